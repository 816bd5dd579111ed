"""The detectors, each a plug-in of one of four kinds, and which of them are installed.

A new one joins by having the methods of its protocol and a place in `installed_detectors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from amicrawl.errors import UsageError
from amicrawl.index.sidecar.charset import Chardetng, CharsetDetector
from amicrawl.index.sidecar.language import Cld2
from amicrawl.index.sidecar.media_type import Libmagic, Signatures
from amicrawl.index.sidecar.pronom import FidoSignatures
from amicrawl.index.sidecar.soft404 import Soft404Model

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from amicrawl.index.sidecar.findings import Charset, Identity, Languages
    from amicrawl.index.sidecar.subject import Subject

Detector = TypeVar("Detector")


class TypeDetector(Protocol):
    """Tells what a payload is by its bytes."""

    name: str
    """The key of its answer in the record."""
    version: str

    def identify(self, content: bytes, *, is_whole: bool) -> Identity:
        """Return what *content* is taken for; *is_whole* tells whether its end is the payload's."""
        ...


class TextDetector(Protocol):
    """Tells the character set of a text."""

    version: str

    def charset(self, subject: Subject) -> Charset | None:
        """Return the character set of *subject*, or None where it has none."""
        ...


class LanguageDetector(Protocol):
    """Tells the languages of a text."""

    version: str

    def languages(self, subject: Subject, charset: Charset, *, is_markup: bool) -> Languages | None:
        """Return the languages of *subject*, or None where none is known."""
        ...


class ErrorPageDetector(Protocol):
    """Tells how likely a page says that there is no such page."""

    version: str

    def probability(self, subject: Subject, charset: Charset) -> float:
        """Return the probability that *subject* is such a page."""
        ...


@dataclass(frozen=True)
class Detectors:
    """Those that are used."""

    types: tuple[TypeDetector, ...] = ()
    """In the order in which their answers are written."""
    charset: TextDetector | None = None
    languages: LanguageDetector | None = None
    soft_404: ErrorPageDetector | None = None

    def versions(self) -> list[str]:
        """Return what each of them is, and its version: as long as none changes, no finding does."""
        types = [f"{each.name} {each.version}" for each in self.types]
        others = (self.charset, self.languages, self.soft_404)
        return types + [each.version for each in others if each is not None]


KINDS = ("fido", "libmagic", "charset", "languages", "soft-404")
"""What can be left out."""


def installed_detectors(without: Collection[str] = ()) -> Detectors:
    """Return the best detector of each kind that is installed, but for the kinds *without*.

    Without opf-fido there are no PRONOM identifiers, without pycld2 no languages. Without libmagic
    our own table tells types, and without chardetng a text that declares nothing and proves nothing
    is taken for Windows-1252. Raises UsageError where *without* names a kind that there is not.
    """
    if unknown := sorted(set(without) - set(KINDS)):
        raise UsageError(
            f"There is no detector {', '.join(unknown)} to leave out. Choose from {', '.join(KINDS)}."
        )
    pronom: TypeDetector | None = None if "fido" in without else _installed(FidoSignatures)
    libmagic = None if "libmagic" in without else _installed(Libmagic)
    types: list[TypeDetector] = [pronom] if pronom is not None else []
    types.append(libmagic if libmagic is not None else Signatures())
    return Detectors(
        types=tuple(types),
        charset=None if "charset" in without else CharsetDetector(_installed(Chardetng)),
        languages=None if "languages" in without else _installed(Cld2),
        soft_404=None if "soft-404" in without else Soft404Model.shipped(),
    )


def _installed(make: Callable[[], Detector]) -> Detector | None:
    try:
        return make()
    except ImportError:
        return None
