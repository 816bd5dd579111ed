"""The steps of `benchmarks.frontier`: each measures one thing, in a process of its own.

The time of a step is that of all threads; what it takes to read the list of URLs and to make offers of
them is left out.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.disk import Disk
from amicrawl.frontier import DurableFrontier, Found, Offer, Outcome, Source
from amicrawl.meguri import LivePartition, Status
from amicrawl.meguri.arena import entry_of
from amicrawl.meguri.format.footer import RegionId
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Codec, Partition, columns_of
from amicrawl.meguri.format.verification import inspect, read_partition
from amicrawl.meguri.format.writer import WriteOptions, write_partition
from amicrawl.meguri.seen import merged_blob
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from benchmarks.weblist import BATCH, WebList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from amicrawl.urls import UrlKey

    Step = Callable[["WebList", Path, int], "Figures"]

Figures = dict[str, float]

WALL = 1_700_000_000.0
HOUR = int(WALL // 3600)
META = {b"amicrawl.identity": b"exact"}
IN_FLIGHT = 32
MOST_FETCHES = 300_000
_PAGE = 65_536


class Watch:
    """Adds up the time of the blocks that it is entered for, in seconds."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    def __enter__(self) -> Self:
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu += time.process_time() - self._cpu
        self.wall += time.perf_counter() - self._wall

    def figures(self, name: str) -> Figures:
        """Return both times."""
        return {f"{name}_cpu_s": self.cpu, f"{name}_wall_s": self.wall}

    def rates(self, name: str, count: int) -> Figures:
        """Return both times, and *count* a second of each."""
        rates = {f"{name}_per_cpu_s": count / self.cpu, f"{name}_per_wall_s": count / self.wall}
        return self.figures(name) | rates


class Memory:
    """The resident memory of this process, in bytes, beyond what there was when this was made."""

    def __init__(self) -> None:
        self._before = self._read()

    def figures(self, name: str, rows: int) -> Figures:
        """Return what was added since, in all and by kind, for each of *rows*."""
        now = self._read()
        return {f"{name}_{kind}_bytes_per_url": (now[kind] - self._before[kind]) / rows for kind in now}

    @staticmethod
    def _read() -> dict[str, int]:
        wanted = {"VmRSS": "rss", "RssAnon": "anon", "RssFile": "file"}
        lines = Path("/proc/self/status").read_text().splitlines()
        pairs = (line.split(":") for line in lines)
        return {wanted[name]: int(value.split()[0]) * 1024 for name, value in pairs if name in wanted}


def file_step(urls: WebList, work: Path, rows: int, *, codec: Codec, crawled: bool) -> Figures:
    """Encode, inspect and decode one partition."""
    partition = partition_of(urls, rows, crawled=crawled)
    path = work / "measured.amf"
    options = WriteOptions(codec=codec, schedule=True, max_page_rows=_PAGE)
    encoding, decoding, inspecting = Watch(), Watch(), Watch()
    with encoding:
        size = write_partition(partition, path, options=options, disk=Disk())
    del partition
    with inspecting:
        inspect(path)
    with FrontierFile.open(path) as file:
        reads = file.reads
        sizes = {region.id: region.length for region in file.regions}
    with decoding:
        decoded = read_partition(path)
    assert len(decoded.urls["host_key"]) == rows
    path.unlink()
    return {
        **encoding.rates("encode", rows),
        **decoding.rates("decode", rows),
        "bytes_per_url": size / rows,
        "filter_bytes_per_url": sizes[RegionId.SEEN_SET] / rows,
        "arena_bytes_per_url": sizes[RegionId.STRINGS] / rows,
        "inspect_ms": inspecting.wall * 1e3,
        "inspect_reads": reads,
    }


def partition_of(urls: WebList, rows: int, *, crawled: bool) -> Partition:
    """Return the partition of a frontier that was offered *urls*, or has crawled most of them too."""
    keys, numbers = urls.keys(), np.random.default_rng(7)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    entries = [entry_of(text) for text in urls.texts()]
    ends = np.cumsum(np.fromiter(map(len, entries), np.uint64, rows))
    starts = np.concatenate(([1], 1 + ends[:-1])).astype(np.uint64)
    arena = b"\0" + b"".join(entries)
    records = np.zeros(rows, ROW)
    records["host_key"], records["path_key"] = keys[order, 0], keys[order, 1]
    records["url_ref"], records["status"], records["first_seen"] = starts[order], 1, HOUR
    if crawled:
        etags = [entry_of(b'"%016x"' % number) for number in numbers.integers(0, 1 << 62, rows // 2)]
        _fill_crawled(records, numbers, first_etag=len(arena))
        arena += b"".join(etags)
    names, counts = np.unique(records["host_key"], return_counts=True)
    hosts = np.zeros(len(names), HOST_ROW)
    hosts["host_key"], hosts["url_count"], hosts["crawl_delay"] = names, counts, 10
    hosts["host_ref"] = hosts["registrable_ref"] = 1
    pages = (
        (records["host_key"][at : at + _PAGE].copy(), records["path_key"][at : at + _PAGE].copy())
        for at in range(0, rows, _PAGE)
    )
    return Partition(
        urls=columns_of(records),
        hosts=columns_of(hosts),
        arena=arena,
        created=HOUR,
        host_key_lo=int(names[0]),
        host_key_hi=int(names[-1]),
        meta=tuple(META.items()),
        seen_filter=merged_blob(pages, rows),
    )


def _fill_crawled(records: np.ndarray, numbers: np.random.Generator, *, first_etag: int) -> None:
    """Fill in what nine of ten rows have after two or three visits; half of those have an ETag."""
    chosen = np.flatnonzero(numbers.random(len(records)) < 0.9)
    count = len(chosen)
    statuses = numbers.choice([200, 301, 404, 503], count, p=[0.86, 0.07, 0.06, 0.01])
    crawled = HOUR + numbers.integers(0, 24 * 30, count)
    visits = numbers.integers(1, 4, count)
    changes = np.minimum(numbers.integers(0, 3, count), visits - 1)
    etagged = chosen[numbers.random(count) < 0.5][: len(records) // 2]
    filled = {
        "status": np.where(statuses == 404, 6, np.where(statuses == 503, 1, 4)),
        "http_status": statuses,
        "last_crawled": crawled,
        "last_changed": np.where(changes > 0, crawled - 24, 0),
        "next_due": crawled + numbers.integers(24, 24 * 14, count),
        "crawl_count": visits,
        "change_count": changes,
        "no_change_streak": visits - 1 - changes,
        "lambda": changes / np.float32(168),
        "content_fp": numbers.integers(1, 1 << 63, count),
    }
    for name, values in filled.items():
        records[name][chosen] = values
    records["etag_ref"][etagged] = first_etag + 19 * np.arange(len(etagged))


def fresh_urls(rows: int) -> int:
    """Return how many URLs to have ready for what goes on during a snapshot of *rows*."""
    return max(rows // 4, 2_000)


def make_frontier(directory: Path) -> DurableFrontier:
    """Return the frontier in *directory*, of a crawl without delays whose clock stands still."""
    partition = LivePartition(directory, disk=Disk(), hour=HOUR, meta=META)
    rules = Gates(0.0, 1), HostBreaker(3, max_retries=4), InflightLimit(2 * IN_FLIGHT, 1, 1_000)
    return DurableFrontier(partition, *rules, wall=lambda: WALL)


def offers(batch: Iterable[tuple[str, UrlKey]]) -> list[Offer]:
    """Return what a crawl offers for those URLs."""
    return [Offer(Seed(url), key, Source.SEED) for url, key in batch]


def offer_all(frontier: DurableFrontier, urls: WebList, watch: Watch) -> int:
    """Offer *urls*, flushing now and then; return how many were new."""
    new = 0
    for batch in urls.batches():
        given = offers(batch)
        with watch:
            for each in given:
                new += frontier.offer(each)
            frontier.flush()
    return new


def offer_step(urls: WebList, work: Path, rows: int) -> Figures:
    """Offer all to a new frontier."""
    directory, watch = work / "frontier", Watch()
    shutil.rmtree(directory, ignore_errors=True)
    memory = Memory()
    frontier = make_frontier(directory)
    assert offer_all(frontier, urls, watch) == rows
    return {**watch.rates("offer", rows), **memory.figures("offered", rows)}


def killed_step(_: WebList, work: Path, rows: int) -> Figures:
    """Open what `offer` left: a journal and no snapshot of it. Then close it."""
    opening, closing, memory = Watch(), Watch(), Memory()
    with opening:
        frontier = make_frontier(work / "frontier")
    assert frontier.queued == rows
    held = memory.figures("replayed", rows)
    with closing:
        frontier.close()
    return {**opening.figures("reopen_killed"), **held, **closing.figures("close")}


def reopen_step(_: WebList, work: Path, rows: int) -> Figures:
    """Open what was closed."""
    opening, memory = Watch(), Memory()
    with opening:
        frontier = make_frontier(work / "frontier")
    assert frontier.queued == rows
    return {**opening.figures("reopen"), **memory.figures("reopened", rows)}


def known_step(urls: WebList, work: Path, rows: int) -> Figures:
    """Offer what is known."""
    watch, frontier = Watch(), make_frontier(work / "frontier")
    assert offer_all(frontier, urls, watch) == 0
    return watch.rates("known", rows)


def fetch_step(_: WebList, work: Path, rows: int) -> Figures:
    """Hand out and settle some."""
    frontier, watch = make_frontier(work / "frontier"), Watch()
    wanted = min(rows // 4, MOST_FETCHES)
    for start in range(0, wanted, BATCH):
        outcomes = [outcome(number) for number in range(start, min(start + BATCH, wanted))]
        with watch:
            fetch(frontier, outcomes)
            frontier.flush()
    assert frontier.counts[Status.CRAWLED] == wanted
    return watch.rates("fetch", wanted)


def fetch(frontier: DurableFrontier, outcomes: list[Outcome]) -> None:
    """Hand out a row for each of *outcomes*, if there are so many, and settle it so."""
    flights: deque[tuple[UrlKey, Outcome]] = deque()
    for each in outcomes:
        # Where few hosts are left, each of them may have a request in flight.
        while (dispatch := frontier.next(0.0)) is None and flights:
            frontier.settle(*flights.popleft(), 0.0)
        if dispatch is None:
            break
        flights.append((dispatch.key, each))
        if len(flights) == IN_FLIGHT:
            frontier.settle(*flights.popleft(), 0.0)
    while flights:
        frontier.settle(*flights.popleft(), 0.0)


def outcome(number: int) -> Outcome:
    """Return what came of a fetch."""
    digest = f"{number * 0x9E3779B97F4A7C15 % (1 << 160):040x}"
    found = Found(digest, f'"{number:x}"', "Sat, 21 Nov 2026 10:00:00 GMT", int(WALL * 1e3))
    return Outcome(200, found=found, latency_ms=40)


def snapshot_step(_: WebList, work: Path, rows: int) -> Figures:
    """Write a snapshot while the crawl goes on; then let it go on as long without one."""
    frontier = make_frontier(work / "frontier")
    fresh = WebList(work, fresh_urls(rows), seed=2)
    batches = (batch[at : at + 10] for batch in fresh.batches() for at in range(0, len(batch), 10))
    began = time.perf_counter()
    frontier.snapshot()
    begin = time.perf_counter() - began
    busy = _pauses(frontier, batches, while_=lambda _: _is_writing())
    took = time.perf_counter() - began
    frontier.partition.poll()
    calm = _pauses(frontier, batches, while_=lambda elapsed: elapsed < min(took, 10.0))
    return {
        "snapshot_wall_s": took,
        "snapshot_begin_ms": begin * 1e3,
        "snapshot_pause_max_ms": max(busy) * 1e3,
        "snapshot_pause_p999_ms": float(np.quantile(busy, 0.999)) * 1e3,
        "snapshot_turns": len(busy),
        "calm_pause_max_ms": max(calm) * 1e3,
        "calm_pause_p999_ms": float(np.quantile(calm, 0.999)) * 1e3,
        "calm_turns": len(calm),
    }


def _is_writing() -> bool:
    return any(thread.name == "amicrawl-snapshot" for thread in threading.enumerate())


def _pauses(
    frontier: DurableFrontier,
    batches: Iterator[list[tuple[str, UrlKey]]],
    *,
    while_: Callable[[float], bool],
) -> list[float]:
    """Offer, fetch and flush *while_* what is told the seconds so far; return what each turn took."""
    pauses: list[float] = []
    outcomes = [outcome(number) for number in range(5)]
    first = last = time.perf_counter()
    while not pauses or while_(last - first):
        if not (batch := next(batches, [])):
            # A crawl without work waits for its network. One that turned on here would keep the
            # interpreter from the thread of the snapshot, 5 ms each time that it asks for it.
            time.sleep(0.001)
            last = time.perf_counter()
        for each in offers(batch):
            frontier.offer(each)
        fetch(frontier, outcomes)
        frontier.flush()
        now = time.perf_counter()
        pauses.append(now - last)
        last = now
    return pauses


STEPS: dict[str, Step] = {
    "seeded, zstd": partial(file_step, codec=Codec.ZSTD, crawled=False),
    "seeded, none": partial(file_step, codec=Codec.NONE, crawled=False),
    "crawled, zstd": partial(file_step, codec=Codec.ZSTD, crawled=True),
    "crawled, none": partial(file_step, codec=Codec.NONE, crawled=True),
    "offer": offer_step,
    "killed": killed_step,
    "reopen": reopen_step,
    "known": known_step,
    "fetch": fetch_step,
    "snapshot": snapshot_step,
}
"""The steps by name, in their order: from `offer` on, each works on what those before it left."""
