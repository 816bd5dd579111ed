"""Lines of a seed list for which no request is made: each has its row in the index, once.

A line that is not a URL is one, so is a line whose URL was asked for with other metadata: the capture
has its row, and this one keeps what else was said. A list is read again by the next crawl into the same
directory, so those that are in the index already are found there first; from then on 24 bytes a line are
kept in memory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from xxhash import xxh3_128_intdigest

from amicrawl.capture import Failure
from amicrawl.crawl.index_rows import rows_from
from amicrawl.crawl.processes.specification import is_child
from amicrawl.frontier.seen.keyindex import KeyIndex
from amicrawl.urls import octets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.seed import Seed

    Record = Callable[[Seed, Failure, str], Awaitable[None]]

_WORDS = (Failure.UNFETCHABLE_URL, Failure.REPEATED_SEED)
_HALF = 2**64
_TELLING = 200
"""Characters of the details that are compared; the index cuts them somewhere."""
_WITH_OTHER_METADATA = "the URL was asked for with other metadata; its capture has a row of its own"


class Line(NamedTuple):
    """A line that leads to no request."""

    seed: Seed
    failure: Failure
    detail: str


def repeated(seed: Seed) -> Line:
    """Return the line of *seed*, whose URL was asked for with other metadata."""
    return Line(seed, Failure.REPEATED_SEED, _WITH_OTHER_METADATA)


class LeftOut:
    """Those of the crawl into *directory*; *record* gives one its row."""

    def __init__(self, directory: Path, *, record: Record) -> None:
        self._directory = directory
        self._record = record
        self._known: KeyIndex | None = None
        self._turn = asyncio.Lock()

    async def record(self, lines: Iterable[Line]) -> None:
        """Return when each of *lines* has its row. Raises OutputError where the disk fails."""
        async with self._turn:
            if self._known is None:
                self._known = await asyncio.to_thread(self._rows_before)
            known = self._known
            new = [
                line for line in lines if _note(known, line.seed.url, line.seed.meta_json, line.detail)
            ]
            await asyncio.gather(*(self._record(*line) for line in new))

    def _rows_before(self) -> KeyIndex:
        known = KeyIndex()
        for url, meta, error in self._said():
            word, _, detail = error.partition(": ")
            if word in _WORDS:
                _note(known, url, meta, detail)
        return known

    def _said(self) -> Iterator[tuple[str, str, str]]:
        """Yield URL, metadata and error of every row without a response."""
        import pyarrow.compute as pc  # noqa: PLC0415  # dear to load, and seldom needed

        nothing: Any = ""
        directories = [self._directory]
        if is_child():
            # A process of several has a directory of its own, two below that of the crawl.
            directories.append(self._directory.parent.parent)
        for directory in directories:
            for batch in rows_from(directory, 0, ["url", "meta_json", "error"]):
                errors: Any = batch["error"]
                failed = batch.filter(pc.not_equal(errors, nothing))
                yield from zip(*(column.to_pylist() for column in failed.columns), strict=True)


def _note(known: KeyIndex, url: str, meta: str, detail: str) -> bool:
    """Add a line to *known*; tell whether it is new. Without a URL, its number tells it from others."""
    key = xxh3_128_intdigest(octets(f"{url or detail[:_TELLING]}\n{meta}"))
    return known.add(*divmod(key, _HALF), 0) is None
