"""Counts: everything in a summary, such that the counts of parts add up to those of the whole.

Adding is associative, bit by bit; it is not commutative, because "consecutive" figures depend on the
order. Parts are therefore added in the order in which they make the whole.

Memory: one entry per different host, media type with status, path depth with query length, month, and
value of a facet (language, format ...); nothing per capture or URL. Different URLs and digests are
counted by `Sketch`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from amicrawl.archive.report.sketch import Sketch
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import numpy.typing as npt

CORRECTED = "corrected"
CDX_SUMMARY = "cdx-summary"
RULES = (CORRECTED, CDX_SUMMARY)
"""The rules that decide what a capture is: ours, or those of cdx-summary with its faults."""

SAMPLES_KEPT = 100
"""Samples that counts carry at most; fewer are shown."""

FACETS = (
    "mime-detected",
    "puid",
    "charset",
    "languages",
    "soft-404",
    "truncated",
    "crawl",
    "subset",
    "segment",
)
"""What else is counted, where the input has it."""

Octets = bytes
"""What `bytes` means where a field has that name."""

_K = TypeVar("_K", bound="Hashable")


class Sample(NamedTuple):
    """A capture that may be shown as a sample."""

    time: str
    """Fourteen digits."""
    url: str
    rank: int
    """A hash; those with the least are drawn."""


class CaptureTally(dict[_K, tuple[int, int]], Generic[_K]):
    """Captures and bytes by key, in the order in which keys were first met."""

    def add(self, key: _K, captures: int, size: int) -> None:
        """Count *captures* of together *size* bytes under *key*."""
        before = self.get(key)
        self[key] = (captures, size) if before is None else (before[0] + captures, before[1] + size)

    def absorb(self, other: CaptureTally[_K]) -> None:
        """Count what *other* has counted."""
        for key, (captures, size) in other.items():
            self.add(key, captures, size)


class MixedRulesError(UsageError):
    """Counts by different rules were to be added."""


@dataclass(slots=True)
class Counts:
    """What was counted in one input, or in several one after the other."""

    rules: str = CORRECTED
    captures: int = 0
    bytes: int = 0
    """Of the records whose size the input has."""
    unsized: int = 0
    """Captures whose size it does not have."""
    urls: int = 0
    """How often a key differs from the one before."""
    hosts: int = 0
    """How often a host differs from the one before."""
    first: str = ""
    """Fourteen digits, or empty."""
    last: str = ""
    ordered: bool = True
    """Whether each key was at least as great as the one before, so that `urls` counts different ones."""
    first_key: Octets = b""
    last_key: Octets = b""
    by_host: CaptureTally[str] = field(default_factory=CaptureTally)
    """By the host in the form of the key: `com,example:8080`; else by the scheme of the key."""
    by_mime_status: CaptureTally[tuple[str, str]] = field(default_factory=CaptureTally)
    by_path_query: CaptureTally[tuple[int, int]] = field(default_factory=CaptureTally)
    """By number of path segments and of query parameters."""
    by_month: CaptureTally[str] = field(default_factory=CaptureTally)
    """By the first six digits of the time."""
    facets: dict[str, CaptureTally[str]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    """Captures of HTML pages: those whose hashes are least, in the order in which they were met."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Lines that are not captures, by reason."""
    different_urls: Sketch = field(default_factory=Sketch)
    different_digests: Sketch = field(default_factory=Sketch)
    digested: int = 0
    """Captures that have a digest."""

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of this part and *other* after it."""
        return added((self, other))

    def absorb(self, other: Counts) -> None:
        """Count what *other* has counted, which comes after; MixedRulesError if by other rules."""
        if other.rules != self.rules:
            raise MixedRulesError(
                f"Counts by the rules {self.rules!r} and {other.rules!r} do not add up. Count all parts "
                "by the same rules."
            )
        self._join(other)
        self.captures += other.captures
        self.bytes += other.bytes
        self.unsized += other.unsized
        self.digested += other.digested
        self.first = min(filter(None, (self.first, other.first)), default="")
        self.last = max(self.last, other.last)
        self.by_host.absorb(other.by_host)
        self.by_mime_status.absorb(other.by_mime_status)
        self.by_path_query.absorb(other.by_path_query)
        self.by_month.absorb(other.by_month)
        for name, tally in other.facets.items():
            self.facets.setdefault(name, CaptureTally()).absorb(tally)
        self.skipped.update(other.skipped)
        self.different_urls.absorb(other.different_urls)
        self.different_digests.absorb(other.different_digests)
        self.samples = drawn([*self.samples, *other.samples])

    def _join(self, other: Counts) -> None:
        """Add the figures that depend on what stands next to each other."""
        if not other.captures:
            return
        if not self.captures:
            self.first_key = other.first_key
            self.ordered = other.ordered
        else:
            same_url = self.last_key == other.first_key
            self.urls -= same_url
            self.hosts -= same_url or host_part(self.last_key) == host_part(other.first_key)
            self.ordered = self.ordered and other.ordered and self.last_key <= other.first_key
        self.urls += other.urls
        self.hosts += other.hosts
        self.last_key = other.last_key


def added(parts: Iterable[Counts]) -> Counts:
    """Return the counts of *parts*, which follow each other in this order."""
    whole: Counts | None = None
    for part in parts:
        if whole is None:
            whole = Counts(rules=part.rules)
        whole.absorb(part)
    return Counts() if whole is None else whole


def host_part(key: bytes) -> bytes:
    """Return the host in *key*; of a key without one, the scheme with its colon."""
    host, mark, _ = key.partition(b")")
    return host if mark else key.partition(b":")[0] + b":"


def drawn(samples: list[Sample], *, size: int = SAMPLES_KEPT) -> list[Sample]:
    """Return *size* of *samples*, each with the same chance, in their order; always the same ones.

    A hash decides, so a sample of the samples of parts is a sample of the whole.
    """
    if len(samples) <= size:
        return samples
    ranks = np.array([sample.rank for sample in samples], np.uint64)
    return [samples[at] for at in least(ranks, size)]


def least(ranks: npt.NDArray[np.uint64], size: int) -> list[int]:
    """Return where the *size* least of *ranks* are, in order of place; of equal ones, the first."""
    if len(ranks) <= size:
        return list(range(len(ranks)))
    bound = np.partition(ranks, size)[size]
    places = np.flatnonzero(ranks <= bound)
    return sorted(places[np.argsort(ranks[places], kind="stable")][:size].tolist())
