"""Which detectors tell what payloads are, and which could be installed, in lines. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


class _Optional(NamedTuple):
    """A detector of the extra `sidecar`."""

    name: str
    kind: str
    """What leaves it out."""
    seen_as: tuple[str, ...]
    """One of these is in the list of versions where it, or what stands in for it, is installed."""


_OPTIONAL = (
    _Optional("fido", "fido", ("fido ",)),
    _Optional("libmagic", "libmagic", ("libmagic ",)),
    _Optional("chardetng", "charset", ("+chardetng",)),
    _Optional("cld2", "languages", ("cld2 ",)),
)


def detector_lines(versions: Sequence[str], *, without: Collection[str] = ()) -> Iterator[str]:
    """Yield what is said of detectors of *versions*; the kinds *without* are not wanted."""
    yield f"Detectors: {', '.join(versions)}"
    missing = [
        optional.name
        for optional in _OPTIONAL
        if optional.kind not in without
        and not any(mark in version for version in versions for mark in optional.seen_as)
    ]
    if missing:
        yield f"Not installed: {', '.join(missing)} (pip install 'amicrawl[sidecar]')"
