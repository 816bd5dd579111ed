"""Feeding: from a seed list into the frontier, no faster than the frontier empties.

A seed list may hold tens of millions of lines, and standard input may be silent for hours, so the
reader runs on a thread of its own and hands over batches; the next is read when the frontier has
room again.

Lines for which no request is made have their row in the index, once: a line that is not a URL is one, so
is a line whose URL was requested with other metadata: the capture has its row, and this one keeps what
else was said. A list is read again by the next crawl into the same directory, so those that are in the
index already are found there first; from then on 24 bytes a line are kept in memory.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from xxhash import xxh3_128_intdigest

from amicrawl.capture import Failure
from amicrawl.crawl.index_rows import rows_from
from amicrawl.crawl.processes.specification import crawl_directory
from amicrawl.frontier import Offer, Source
from amicrawl.meguri import KeyIndex
from amicrawl.threads import on_a_thread
from amicrawl.urls import Refused, octets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.crawl.run import Run
    from amicrawl.seed import Seed

    Record = Callable[[Seed, Failure, str], Awaitable[None]]

_WORDS = (Failure.UNFETCHABLE_URL, Failure.REPEATED_SEED)
_HALF = 2**64
_TELLING = 200
"""Characters of the details that are compared; the index cuts them somewhere."""
_WITH_OTHER_METADATA = "the URL was requested with other metadata; its capture has a row of its own"


class SkippedLine(NamedTuple):
    """A line that leads to no request."""

    seed: Seed
    failure: Failure
    detail: str


def repeated(seed: Seed) -> SkippedLine:
    """Return the line of *seed*, whose URL was requested with other metadata."""
    return SkippedLine(seed, Failure.REPEATED_SEED, _WITH_OTHER_METADATA)


class LeftOut:
    """The lines that lead to no request, in the crawl into *directory*; *record* gives one its row."""

    def __init__(self, directory: Path, *, record: Record) -> None:
        self._directory = directory
        self._record = record
        self._known: KeyIndex | None = None
        self._turn = asyncio.Lock()

    async def record(self, lines: Iterable[SkippedLine]) -> None:
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
        # A process of several has a directory of its own in that of the crawl.
        for directory in {self._directory, crawl_directory(self._directory)}:
            for batch in rows_from(directory, 0, ["url", "meta_json", "error"]):
                errors: Any = batch["error"]
                failed = batch.filter(pc.not_equal(errors, nothing))
                yield from zip(*(column.to_pylist() for column in failed.columns), strict=True)


def _note(known: KeyIndex, url: str, meta: str, detail: str) -> bool:
    """Add a line to *known*; tell whether it is new. Without a URL, its number tells it from others."""
    key = xxh3_128_intdigest(octets(f"{url or detail[:_TELLING]}\n{meta}"))
    return known.add(*divmod(key, _HALF), 0) is None


_BATCH = 500
_ROOM = 250_000
"""Rows that may wait in the frontier before reading pauses: enough to spread over many hosts."""
_LOOK_AGAIN = 0.05


async def batches(seeds: Iterable[Seed]) -> AsyncIterator[list[Seed]]:
    """Yield what *seeds* yields, in lists, reading on a thread; what it raises is raised here."""
    iterator = iter(seeds)
    while batch := await on_a_thread(lambda: list(islice(iterator, _BATCH))):
        yield batch


async def feed(run: Run, seeds: Iterable[Seed]) -> None:
    """Offer all of *seeds* to the frontier of *run*.

    A crawl that is about to end leaves the rest unread; the next one into the directory reads it.
    """
    async for batch in batches(seeds):
        if run.takes_offers and (left_out := await _offered(run, batch)):
            await run.left_out.record(left_out)
        if not run.takes_offers:
            return
        run.wake()
        # Polled: a frontier that had to report its room would do so for every row.
        while run.takes_offers and run.frontier.queued > _ROOM:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN)
    run.tally.seeds_ended = True


async def offer_seed(run: Run, seed: Seed) -> None:
    """Offer one seed; one for which nothing is requested gets its row at once."""
    if left_out := await _offered(run, [seed]):
        await run.left_out.record(left_out)


async def _offered(run: Run, seeds: list[Seed]) -> list[SkippedLine]:
    """Offer *seeds*; return the lines of those that are to have a row, and no request."""
    tally, ours, others, left_out = run.tally, list[Offer](), list[Offer](), list[SkippedLine]()
    tally.seeds_read += len(seeds)
    for seed in seeds:
        key = run.key_of(seed.url)
        if not isinstance(key, Refused):
            (ours if run.is_ours(key.host) else others).append(Offer(seed, key, Source.SEED))
        elif run.spec.shard and not run.spec.deals_seeds:
            # It has no host: of all that read the list, the first accounts for it.
            tally.seeds_elsewhere += 1
        else:
            tally.seeds_bad += 1
            left_out.append(SkippedLine(seed, Failure.UNFETCHABLE_URL, key.reason))
    # First: once the crawl is about to end, the frontier takes nothing, and says that it knows all.
    left_out += _taken(run, ours)
    tally.seeds_elsewhere += len(others)
    if others and run.spec.deals_seeds and run.elsewhere is not None:
        await run.elsewhere.keep(others)
    return left_out


def _taken(run: Run, offers: list[Offer]) -> list[SkippedLine]:
    """Give the frontier *offers*; return the lines that say something else of a URL that it knows."""
    frontier, tally = run.frontier, run.tally
    if not any(offer.seed.meta_json for offer in offers):
        tally.seeds_known += len(offers) - frontier.offer_all(offers)
        return []
    known = [offer for offer in offers if not frontier.offer(offer)]
    tally.seeds_known += len(known)
    return [
        repeated(seed)
        for seed, key, *_ in known
        if seed.meta_json and seed.meta_json != frontier.meta_json(key)
    ]
