"""The detectors that look at payloads, and what these find.

Types come first; a new type detector has the methods of `TypeDetector` and a place in
`installed_detectors`. For texts, by the family of their type, the character set is detected; for those
in a natural language the languages, read in that character set; and for pages with status 200 the
probability of a soft 404. A detector that fails costs its own result, and the failure is a finding.

Findings that depend on the payload alone are cached by payload. What depends on the status or the URL is
not: a page is classified anew in every response.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from amicrawl.archive.index.sidecar.findings import Findings
from amicrawl.archive.index.sidecar.media_type import XML_KINDS, Libmagic, Signatures, begins_as
from amicrawl.archive.index.sidecar.pronom import FidoSignatures
from amicrawl.archive.index.sidecar.soft404 import Soft404Model
from amicrawl.archive.index.sidecar.text import Chardetng, CharsetDetector, Cld2
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from amicrawl.archive.index.sidecar.findings import TypeIdentity
    from amicrawl.archive.index.sidecar.subject import Subject


_XHTML = "application/xhtml+xml"
_MARKUP = frozenset({"text/html", _XHTML})
_PLAIN_XML = frozenset({"application/xml", "text/xml"})
_XML = _PLAIN_XML | {"application/rss+xml", "application/atom+xml"}
_CODE = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/ld+json",
        "application/x-javascript",
        "text/css",
        "text/javascript",
        "text/json",
        "text/x-javascript",
    }
)
_UNCERTAIN = frozenset({"", "application/octet-stream", "application/x-empty", "text/plain"})
_DRAWING = "image/svg"
_PLAIN = "text/plain"
_GUESSED_TEXT = "text/x-"
"""How libmagic's types begin that follow from words in a text."""
_SCRIPTS = frozenset({"application/javascript", "application/x-javascript", "text/javascript"})
"""Names of one type."""
_DECLARED_TEXTS = _CODE | {
    _PLAIN,
    *("application/ecmascript", "text/ecmascript", "application/manifest+json", "application/geo+json"),
    *("application/source-map", "application/typescript", "text/csv", "text/markdown", "text/calendar"),
    *("text/vcard", "text/vtt", "text/tab-separated-values", "application/x-ndjson", "text/troff"),
}
"""Types of texts that bytes do not prove, and that a declaration tells apart."""
_BY_NAME = {
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "json": "application/json",
    "map": "application/json",
    "webmanifest": "application/manifest+json",
    "css": "text/css",
    "csv": "text/csv",
    "md": "text/markdown",
    "vtt": "text/vtt",
    "ics": "text/calendar",
}
"""The same by the ending of a URL's path."""
_MARKUP_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_VOTE = "vote 7"
"""How types are decided on; it changes with `_vote`, so that sidecars are made again."""
Detector = TypeVar("Detector")


class TypeDetector(Protocol):
    """Detects the type of a payload by its bytes."""

    name: str
    """The key of its result in the record."""
    version: str

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        """Return what *content* is taken for; *is_whole*: whether its end is the payload's."""
        ...


@dataclass(frozen=True)
class Detectors:
    """Those that are used."""

    types: tuple[TypeDetector, ...] = ()
    """In the order in which their results are written."""
    charset: CharsetDetector | None = None
    languages: Cld2 | None = None
    soft_404: Soft404Model | None = None

    def versions(self) -> list[str]:
        """Return what each of them is, and its version: as long as none changes, no finding does."""
        types = [f"{each.name} {each.version}" for each in self.types]
        others = (self.charset, self.languages, self.soft_404)
        return [
            *types,
            *([_VOTE] if types else []),
            *(each.version for each in others if each is not None),
        ]


KINDS = ("fido", "libmagic", "charset", "languages", "soft-404")
"""What can be left out."""


def installed_detectors(without: Collection[str] = ()) -> Detectors:
    """Return the best detector of each kind that is installed, but for the kinds *without*.

    Without opf-fido there are no PRONOM identifiers, without pycld2 no languages. Without libmagic
    our own table of signatures decides, and without chardetng a text that declares nothing and proves
    nothing is taken for Windows-1252. Raises UsageError where *without* names an unknown kind.
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


REMEMBERED = 8192
"""Payloads of which the findings are kept; some 10 MB."""

_Key = tuple[bytes, bool, str, str, str, str]
Result = TypeVar("Result")


class Characteriser:
    """Finds out what payloads are."""

    def __init__(self, detectors: Detectors, *, remembered: int = REMEMBERED) -> None:
        self.detectors = detectors
        self._remembered = remembered
        self._known: OrderedDict[_Key, Findings] = OrderedDict()

    def findings(self, subject: Subject) -> Findings:
        """Return what is found of *subject*."""
        key = _key(subject)
        known = self._known.get(key)
        if known is None:
            known = self._of_content(subject)
            self._known[key] = known
            if len(self._known) > self._remembered:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        found = replace(known, types=dict(known.types), errors=dict(known.errors))
        self._judge(subject, found)
        return found

    def _of_content(self, subject: Subject) -> Findings:
        """Find what depends on no more than `_key` names."""
        found = Findings()
        for detector in self.detectors.types:
            identity = self._detected(
                detector.name,
                partial(detector.identify, subject.content, is_whole=subject.is_whole),
                found,
            )
            if identity is None:
                continue
            if identity.media_type:
                found.types[detector.name] = identity.media_type
            found.puid = found.puid or identity.puid
        _vote(found, subject)
        kind = leading_type(found)
        if not is_text(kind):
            return found
        if (charsets := self.detectors.charset) is not None:
            found.charset = self._detected("charset", lambda: charsets.charset(subject), found)
        charset, languages = found.charset, self.detectors.languages
        if languages is not None and charset is not None and _has_language(kind, subject):
            found.languages = self._detected(
                "languages",
                lambda: languages.languages(subject, charset, is_markup=_is_marked_up(kind, subject)),
                found,
            )
        return found

    def _judge(self, subject: Subject, found: Findings) -> None:
        """Add what depends on the response that the payload was sent with."""
        model, charset = self.detectors.soft_404, found.charset
        if model is None or charset is None or subject.status != 200:
            return
        if _is_page(leading_type(found), subject):
            found.soft_404 = self._detected(
                "soft-404", lambda: model.probability(subject, charset), found
            )

    def _detected(self, name: str, detect: Callable[[], Result], found: Findings) -> Result | None:
        try:
            return detect()
        except Exception as error:  # noqa: BLE001  # whatever it is, it costs this result only
            found.errors[name] = type(error).__name__
            return None


def _vote(found: Findings, subject: Subject) -> None:
    """Replace what a general detector says of a text where the bytes leave it open.

    Types follow from content, then by declaration, then by name. Signatures and markup are content.
    libmagic tells other texts by words in their first lines: it takes pages that begin with a script for
    scripts, half of all scripts for plain text or Python, and most style sheets for plain text. So its
    result is left out where PRONOM's signatures and the server both say HTML. Where all it says is that
    it is a text, or a script, or a page that does not begin as one, the type that the server declares
    counts, or else that of the name, as in browsers: if it is a type of texts, and not of markup, which
    would have been seen. A page behind an XML declaration is XHTML, and a feed one, and not merely XML.
    """
    kinds = list(found.types.items())
    if not kinds:
        return
    name, kind = kinds[-1]
    declared = subject.declared_type
    if len(kinds) == 2 and is_markup(declared) and is_markup(kinds[0][1]):
        if not is_markup(kind):
            del found.types[name]
        return
    if kind in _PLAIN_XML:
        stated = next((each for each in XML_KINDS if begins_as(each, subject.content)), "")
    else:
        stated = _declared_text(subject) if _is_guess(kind, subject) else ""
    if stated and stated != kind and not (stated in _SCRIPTS and kind in _SCRIPTS):
        del found.types[name]
        found.types[Signatures.name] = stated


def _is_guess(kind: str, subject: Subject) -> bool:
    """Return whether libmagic says *kind* by words in a text, and not by how it begins."""
    if kind in _SCRIPTS:
        # A script that is sent as plain text is one if its name says so, too; a script is not JSON.
        named = _BY_NAME.get(subject.name_ending, "")
        stated = named if subject.declared_type in _UNCERTAIN else subject.declared_type
        return stated not in _SCRIPTS and (
            not _is_json(stated) or begins_as("application/json", subject.content)
        )
    if kind == "text/html":
        return _MARKUP_BEGINS.match(subject.content) is None
    return kind == _PLAIN or kind.startswith(_GUESSED_TEXT)


def _declared_text(subject: Subject) -> str:
    """Return the type of text that *subject* is declared or named as; empty where that is none.

    A sentence of an error page that is sent as a script or a style sheet is neither: code has marks that
    a sentence lacks.
    """
    declared = subject.declared_type
    if begins_as(declared, subject.content):
        return declared
    named = _BY_NAME.get(subject.name_ending, "")
    stated = named if declared in _UNCERTAIN and declared != _PLAIN else declared
    if stated not in _DECLARED_TEXTS or _MARKUP_BEGINS.match(subject.content):
        return ""
    has_two_witnesses = (
        is_code(stated) and is_code(named) and (stated == "text/css") == (named == "text/css")
    )
    if is_code(stated) and not has_two_witnesses and not _has_marks_of_code(stated, subject.content):
        return ""
    return stated


def _has_marks_of_code(media_type: str, content: bytes) -> bool:
    """Return whether *content* has what text of *media_type* is full of."""
    if media_type == "text/css":
        return begins_as(media_type, content)
    return any(mark in content[:4096] for mark in (b"=", b"(", b"{", b"["))


def leading_type(found: Findings) -> str:
    """Return the media type that decides who runs: the general detector's, where it says much."""
    kinds = list(found.types.values())
    if not kinds:
        return ""
    return next((kind for kind in reversed(kinds) if not says_little(kind)), kinds[-1])


def _has_language(kind: str, subject: Subject) -> bool:
    """Return whether a text can be in a natural language; to libmagic, a script is plain text."""
    return not is_code(kind) and (is_markup(kind) or not is_code(subject.declared_type))


def _is_page(kind: str, subject: Subject) -> bool:
    return is_markup(kind) or (kind == "text/plain" and is_markup(subject.declared_type))


def _is_marked_up(kind: str, subject: Subject) -> bool:
    return kind != "text/plain" or is_markup(subject.declared_type)


def _key(subject: Subject) -> _Key:
    declared = subject.content_type
    return (
        # Payloads are made by strangers: no cheaper hash keeps them from being taken for each other.
        hashlib.sha256(subject.content).digest(),
        subject.is_whole,
        # A long one would fill the memory, and what it ends with may be the charset.
        declared
        if len(declared) <= 256
        else hashlib.sha256(declared.encode("utf-8", "replace")).hexdigest(),
        subject.language_hint,
        subject.top_level_domain,
        subject.name_ending[:16],
    )


def is_markup(media_type: str) -> bool:
    """Return whether *media_type* is that of HTML or XHTML."""
    return media_type in _MARKUP


def is_code(media_type: str) -> bool:
    """Return whether *media_type* is text of no natural language: scripts, style sheets, JSON."""
    return media_type in _CODE or media_type.endswith("+json")


def _is_json(media_type: str) -> bool:
    return media_type == "application/source-map" or media_type.endswith(("/json", "+json"))


def is_text(media_type: str) -> bool:
    """Return whether *media_type* is of the family of text.

    The family counts, not the name: office documents have `xml` in theirs and are ZIP archives.
    """
    if media_type.startswith(_DRAWING):
        return True
    if media_type.startswith(("image/", "audio/", "video/", "font/", "model/")):
        return False
    return (
        media_type.startswith("text/")
        or media_type in _MARKUP
        or media_type in _XML
        or is_code(media_type)
        or media_type.endswith("+xml")
    )


def says_little(media_type: str) -> bool:
    """Return whether *media_type* leaves open what the payload is."""
    return media_type in _UNCERTAIN
