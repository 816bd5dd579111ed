"""PRONOM identifiers, by the byte signatures that the package opf-fido brings, matched as Fido does.

A format matches where all patterns of one of its signatures do: at the beginning, or anywhere in the
first 128 KiB, or in the last. Of the formats that match, those go to which another one is preferred; the
first that is left counts. Containers are not opened and file names not looked at.

Fido tries all 2,300 expressions on every file. Here what a signature begins with decides whether it is
tried, and whether the pairs of bytes of its literals are somewhere there, which takes a hundredth of the
time and leads to the same result. An expression that takes too
long, as those with many gaps do on bytes that were made for it, counts as not matching.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from amicrawl.archive.index.sidecar.findings import TypeIdentity
from amicrawl.archive.index.sidecar.openings import SignatureOpening, literals_in, opening_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

WINDOW = 128 << 10
"""Bytes at the beginning, and at the end, that are looked at."""
PATIENCE = 0.02
"""Seconds of processor time that an expression may take: ten times what honest payloads need."""
MOST_SLOW = 5
"""Expressions of one payload that may run out of patience; then no more are tried."""

_KEY = 4
_ALWAYS = 1 << 16
"""The number that stands for no pair of bytes, and is always there."""
_COMPARED = 24
"""Pairs of bytes that have to be there for a signature to be tried, so many at most."""
_NEVER = r"\A\Z"
"""The expression of formats that Fido knows no signature of; it matches empty files."""


class _TooSlowError(Exception):
    """The signatures have had all the time that one payload is worth."""


@dataclass(slots=True, eq=False)
class _Pattern:
    """One expression, compiled when it is first tried: most never are."""

    position: str
    source: str
    compiled: Any = None

    def matches(self, begin: bytes, end: bytes, slow: list[str]) -> bool:
        """Return whether it is found; one that takes too long is added to *slow*."""
        if self.compiled is None:
            # What is at the end is found soonest from there: "(?r)" searches backwards.
            source = f"(?r){self.source}" if self.position == "EOF" else self.source
            self.compiled = import_module("regex").compile(source.encode())
        look = self.compiled.match if self.position == "BOF" else self.compiled.search
        try:
            return look(end if self.position == "EOF" else begin, timeout=PATIENCE) is not None
        except TimeoutError as error:
            slow.append(self.source)
            if len(slow) > MOST_SLOW:
                raise _TooSlowError from error
            return False


@dataclass(slots=True, eq=False)
class _Format:
    """A format of PRONOM."""

    puid: str
    media_type: str
    place: int
    beats: frozenset[str]
    """Identifiers of formats that this one is preferred to."""


@dataclass(slots=True, eq=False)
class _Signature:
    """The patterns that make a format, and what the one begins with that is tried first."""

    format: _Format
    patterns: Sequence[_Pattern]
    place: int
    opening: SignatureOpening | None = None
    in_end: bool = False


class _Shelf:
    """Signatures that are found alike, and the pairs of bytes that none of them can be without."""

    def __init__(self) -> None:
        self._held: list[tuple[_Signature, bytes, Sequence[_Pattern]]] = []

    def put(self, signature: _Signature, literal: bytes, patterns: Sequence[_Pattern] = ()) -> None:
        """Put *signature* here, whose opening may be *literal*; once for each that it may be.

        Of *patterns*, all literals have to be there, too.
        """
        self._held.append((signature, literal, patterns))

    def possible(self, there: npt.NDArray[np.bool_]) -> Iterator[_Signature]:
        """Yield those of which every pair is *there*, some of them twice."""
        for place in np.flatnonzero(np.logical_and.reduce(there.take(self._columns))).tolist():
            yield self._held[place][0]

    @cached_property
    def _columns(self) -> npt.NDArray[np.intp]:
        """A column for each signature, as numpy looks them up fastest."""
        columns = np.full((_COMPARED, len(self._held)), _ALWAYS, dtype=np.intp)
        for column, (_, literal, patterns) in zip(columns.T, self._held, strict=True):
            demanded = [literal, *(each for one in patterns for each in literals_in(one.source))]
            pairs = list(dict.fromkeys(np.concatenate([*map(_pairs, demanded)]).tolist()))
            # What comes last tells most: all that is XML begins alike.
            column[: len(pairs)] = pairs[-_COMPARED:]
        return columns


@dataclass(slots=True)
class _Shelves:
    """Signatures by how they are found."""

    at: dict[tuple[int, int], dict[bytes, _Shelf]] = field(default_factory=dict)
    """By where a literal stands and how much of it is looked up, and then by that."""
    floating: _Shelf = field(default_factory=_Shelf)
    """Those whose literal can stand at many places."""
    blind: list[_Signature] = field(default_factory=list)
    """Those of which nothing is known, always tried."""


class FidoSignatures:
    """The formats of PRONOM."""

    name = "fido"

    def __init__(self, paths: Iterable[Path] | None = None) -> None:
        """Read the signature files *paths*, by default those of the installed opf-fido.

        Raises ImportError where that, or the package regex, is not installed.
        """
        import_module("regex")
        self._paths = list(paths) if paths is not None else installed_signatures()
        self.version = " ".join(path.stem for path in self._paths)

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        """Return media type and identifier of *content*; the end of one that is cut is not its end."""
        begin = content[:WINDOW]
        end = content[-WINDOW:] if is_whole else b""
        found = _Trial(begin, end, self._candidates(begin, end)).first()
        return TypeIdentity(found.media_type, found.puid) if found is not None else TypeIdentity()

    def _candidates(self, begin: bytes, end: bytes) -> Iterator[_Signature]:
        """Yield the signatures that may match, some of them twice."""
        shelves = self._shelves
        yield from shelves.blind
        there = _pairs_there(begin, end)
        for (start, stop), table in shelves.at.items():
            shelf = table.get(begin[start:stop])
            if shelf is not None:
                yield from shelf.possible(there)
        yield from shelves.floating.possible(there)

    @cached_property
    def _shelves(self) -> _Shelves:
        shelves = _Shelves()
        for signature in _signatures(self._paths):
            _shelve(signature, shelves)
        return shelves


class _Trial:
    """Which formats one payload is of: an expression is tried where the result depends on it.

    The first format counts that matches and is not beaten. So what stands behind the first that matches
    is looked at only where it may beat that: for a page of HTML 4 expressions are tried of 10 whose
    beginning is there, for one of XHTML 56 of 74.
    """

    def __init__(self, begin: bytes, end: bytes, candidates: Iterable[_Signature]) -> None:
        self._begin = begin
        self._end = end
        self._signatures: dict[_Format, list[_Signature]] = {}
        for signature in sorted(set(candidates), key=_place):
            self._signatures.setdefault(signature.format, []).append(signature)
        self._counting: dict[_Format, bool] = {}
        """Whether a format matches, and no earlier one that counts beats it; of those looked at."""
        self._found: dict[_Pattern, bool] = {}
        self._slow: list[str] = []

    def first(self) -> _Format | None:
        """Return the first format that counts and that no other one beats; None where none does."""
        try:
            for made in self._signatures:
                if self._counts(made) and not self._is_beaten(made, self._signatures):
                    return made
        except _TooSlowError:
            # What is known by then decides.
            for made in self._signatures:
                known = [each for each, counts in self._counting.items() if counts]
                if made in known and not any(made.puid in each.beats for each in known):
                    return made
        return None

    def _counts(self, made: _Format) -> bool:
        counts = self._counting.get(made)
        if counts is None:
            earlier = (each for each in self._signatures if each.place < made.place)
            counts = self._matches(made) and not self._is_beaten(made, earlier)
            self._counting[made] = counts
        return counts

    def _is_beaten(self, made: _Format, by: Iterable[_Format]) -> bool:
        """Return whether one of the formats *by* counts that is preferred to *made*."""
        preferred = [each for each in by if made.puid in each.beats]
        # Those first of which it is known.
        preferred.sort(key=lambda each: not self._counting.get(each, False))
        return any(map(self._counts, preferred))

    def _matches(self, made: _Format) -> bool:
        return any(
            self._may_match(signature) and all(map(self._finds, signature.patterns))
            for signature in self._signatures[made]
        )

    def _may_match(self, signature: _Signature) -> bool:
        """Return whether what *signature* begins with is where it may be."""
        opening = signature.opening
        if opening is None:
            return True
        where = self._end if signature.in_end else self._begin
        return any(
            where.find(
                literal,
                opening.least,
                len(where) if opening.most is None else opening.most + len(literal),
            )
            >= 0
            for literal in opening.literals
        )

    def _finds(self, pattern: _Pattern) -> bool:
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = pattern.matches(self._begin, self._end, self._slow)
        return found


def _pairs(block: bytes) -> npt.NDArray[np.uint16]:
    """Return each two neighbouring bytes of *block* as one number: first those at even places."""
    octets = np.frombuffer(block, dtype=np.uint8)
    even, odd = octets[: len(octets) // 2 * 2], octets[1:]
    return np.concatenate([even.view("<u2"), odd[: len(odd) // 2 * 2].view("<u2")])


def _pairs_there(begin: bytes, end: bytes) -> npt.NDArray[np.bool_]:
    """Return for each pair of bytes, by its number, whether it is somewhere in *begin* or *end*."""
    there = np.bincount(_pairs(begin), minlength=_ALWAYS + 1)
    if len(end) == WINDOW:  # otherwise it is what `begin` is
        there += np.bincount(_pairs(end), minlength=_ALWAYS + 1)
    there[_ALWAYS] = 1
    return there.astype(np.bool_)


def installed_signatures() -> list[Path]:
    """Return the signature files of the installed opf-fido; ImportError where there is none."""
    spec = find_spec("fido")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        conf = Path(place) / "conf"
        versions = conf / "versions.xml"
        if not versions.is_file():
            continue
        root = etree.parse(str(versions)).getroot()
        names = [root.findtext("pronomSignature"), root.findtext("fidoExtensionSignature")]
        paths = [conf / Path(name).name for name in names if name]
        if paths and all(path.is_file() for path in paths):
            return paths
    raise ImportError("opf-fido and its signature files are not installed")


def _signatures(paths: Iterable[Path]) -> list[_Signature]:
    """Return the signatures of the files, in order; a format that a later file has too is replaced."""
    formats: dict[str, Any] = {}
    for path in paths:
        for element in etree.parse(str(path)).getroot().iterfind("format"):
            formats[element.findtext("puid") or ""] = element
    signatures: list[_Signature] = []
    shared: dict[tuple[str, str], _Pattern] = {}  # many formats end alike
    for place, (puid, element) in enumerate(formats.items()):
        beats = frozenset(each.text for each in element.iterfind("has_priority_over"))
        made = _Format(puid, element.findtext("mime") or "", place, beats)
        for each in element.iterfind("signature"):
            patterns = [
                shared.setdefault((position, source), _Pattern(position, source))
                for pattern in each.iterfind("pattern")
                for position, source in (
                    (pattern.findtext("position"), pattern.findtext("regex") or ""),
                )
            ]
            if patterns and not any(pattern.source == _NEVER for pattern in patterns):
                signatures.append(_Signature(made, patterns, len(signatures)))
    return signatures


def _shelve(signature: _Signature, shelves: _Shelves) -> None:
    """Put *signature* where its most telling pattern is looked for."""
    openings = [(opening_of(each.source), each.position) for each in signature.patterns]
    known = [(opening, position) for opening, position in openings if opening is not None]
    if not known:
        shelves.blind.append(signature)
        return
    opening, position = min(known, key=_rank)
    signature.opening = opening
    signature.in_end = position == "EOF"
    if position == "BOF" and opening.least == opening.most:
        for literal in opening.literals:
            key = literal[:_KEY]
            table = shelves.at.setdefault((opening.least, opening.least + len(key)), {})
            table.setdefault(key, _Shelf()).put(signature, literal, signature.patterns)
        return
    if min(map(len, opening.literals)) < 2:
        shelves.blind.append(signature)
    else:
        for literal in opening.literals:
            shelves.floating.put(signature, literal)


def _place(signature: _Signature) -> int:
    return signature.place


def _rank(known: tuple[SignatureOpening, str]) -> tuple[bool, bool, int]:
    """Return what orders openings: those at one place first, then those in the shortest stretch."""
    opening, position = known
    if position != "BOF" or opening.most is None:
        return True, True, -len(opening.literals[0])
    stretch = opening.most - opening.least
    return stretch > 0, False, stretch - len(opening.literals[0])
