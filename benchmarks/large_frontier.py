"""One frontier of as many URLs as a large crawl has, killed and opened again.

    python -m benchmarks.extremes hundred_million [--part 0.1]

The offers are made up: fifty URLs a host on average, by Zipf's law, in no order. Two processes follow
each other on one directory:

    offered   all are offered, with the flushes and snapshots of a crawl
    settled   a million are handed out and settled; then the process ends by SIGKILL
    reopened  the frontier is opened from what that has left
    again     another million are handed out and settled
    sealed    it is closed, with a snapshot

For each step the processor time and the clock, without what it takes to make up offers; the most
resident memory, mapped files included; and the most disk, files without a name included.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.frontier import Offer, Source
from amicrawl.meguri import Status
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey
from benchmarks.crawlers import ROOT
from benchmarks.frontier_steps import Watch, fetch, make_frontier, outcome
from benchmarks.weblist import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.frontier import DurableFrontier

URLS = 100_000_000
URLS_PER_HOST = 50
SETTLED = 1_000_000
STEPS = ("offered", "settled", "reopened", "again", "sealed")
FIGURES = "figures.jsonl"
_SLOPE = 0.8
"""The URLs of the host of rank r are as r to the power of minus this."""
_SYLLABLES = ("ka", "lo", "mi", "ter", "ran", "sel", "vo", "du", "pra", "nis", "ge", "hol", "bur", "cas")
_SECTIONS = ("news", "blog", "products", "category", "en", "de", "articles", "shop", "wiki", "archive")
_PATHS = tuple(
    f"/{section}/{one}{two}-{three}{four}"
    for section in _SECTIONS
    for one, two, three, four in product(_SYLLABLES, _SYLLABLES[:7], _SYLLABLES[3:11], _SYLLABLES[6:])
)
_ENDS = ("com", "org", "net", "de", "fr", "co.uk", "ru", "jp")
_SCATTER, _NUMBERS = 0x9E37_79B1, 1 << 28
_WATCHED_S = 0.25


def made_up(urls: int) -> Iterator[list[Offer]]:
    """Yield offers of so many different *urls*, some at a time."""
    numbers, hosts = np.random.default_rng(1), max(1, urls // URLS_PER_HOST)
    edges = np.cumsum(np.arange(1, hosts + 1, dtype=np.float64) ** -_SLOPE)
    edges /= edges[-1]
    for start in range(0, urls, BATCH):
        count = min(BATCH, urls - start)
        hosts_of = np.searchsorted(edges, numbers.random(count), side="right").astype(np.uint64)
        rows = np.arange(start, start + count, dtype=np.uint64)
        keys = zip(_mixed(hosts_of + 1).tolist(), _mixed(rows + (1 << 40)).tolist(), strict=True)
        shuffled = (rows * np.uint64(_SCATTER) % np.uint64(_NUMBERS)).tolist()
        drawn = numbers.integers(0, len(_PATHS), count).tolist()
        made = [
            f"https://www.{_SYLLABLES[host % 14]}{host:x}.{_ENDS[host % 8]}{_PATHS[path]}-{number}.html"
            for host, path, number in zip(hosts_of.tolist(), drawn, shuffled, strict=True)
        ]
        yield [Offer(Seed(url), UrlKey(*key), Source.SEED) for url, key in zip(made, keys, strict=True)]


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as evenly spread as digests are."""
    numbers = numbers * np.uint64(0x9E37_79B9_7F4A_7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58_476D_1CE4_E5B9)
    return np.asarray(numbers ^ numbers >> np.uint64(31))


class Sampler(threading.Thread):
    """Notes the most memory and disk of this process, in bytes, since the last call."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self._directory = directory
        self._most = 0
        self._taken = threading.Event()
        self.start()

    def run(self) -> None:
        """Look at the disk now and then."""
        while not self._taken.wait(_WATCHED_S):
            self._most = max(self._most, self._disk())

    def figures(self) -> dict[str, int]:
        """Return both, and begin anew."""
        most, self._most = max(self._most, self._disk()), 0
        said = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        # Has the kernel begin its own count of the most resident memory anew.
        Path("/proc/self/clear_refs").write_text("5")
        resident = {name: int(said[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS", "RssAnon")}
        return {
            "peak_bytes": resident["VmHWM"],
            "resident_bytes": resident["VmRSS"],
            "anonymous_bytes": resident["RssAnon"],
            "disk_peak_bytes": most,
            "disk_bytes": self._disk(),
        }

    def _disk(self) -> int:
        blocks = {}
        for path in (*self._directory.iterdir(), *Path("/proc/self/fd").iterdir()):
            try:
                found = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                blocks[found.st_dev, found.st_ino] = found.st_blocks
        return 512 * sum(blocks.values())


class Steps:
    """Writes down what each step took, before the next: the process may be killed."""

    def __init__(self, work: Path, urls: int) -> None:
        self._file = work / FIGURES
        self._sampler = Sampler(work / "frontier")
        self._urls = urls

    @contextmanager
    def step(self, name: str) -> Iterator[Watch]:
        """Measure a step; time is what its watch was entered for."""
        watch = Watch()
        yield watch
        figures = {"step": name, "urls": self._urls, **watch.figures("step"), **self._sampler.figures()}
        with self._file.open("a") as file:
            file.write(json.dumps(figures) + "\n")
        print(line_of(figures), file=sys.stderr, flush=True)


def line_of(figures: dict[str, Any]) -> str:
    """Return *figures* for people."""
    each = figures["urls"]
    peak, kept = figures["peak_bytes"] / each, figures["anonymous_bytes"] / each
    disk_peak, disk = figures["disk_peak_bytes"] / each, figures["disk_bytes"] / each
    return (
        f"{figures['step']:<9}{each:>12,} URLs {figures['step_cpu_s']:>9,.1f} CPU s "
        f"{figures['step_wall_s']:>9,.1f} s, bytes a URL: {peak:>6.1f} at most, {kept:>6.1f} kept; "
        f"disk {disk_peak:>6.1f} at most, {disk:>6.1f} kept"
    )


def _offered(work: Path, urls: int) -> None:
    steps = Steps(work, urls)
    frontier = make_frontier(work / "frontier")
    with steps.step("offered") as watch:
        for count, batch in enumerate(made_up(urls), 1):
            with watch:
                frontier.offer_all(batch)
                _tick(frontier)
            if not count % 500:
                print(f"{count * BATCH:,} {watch.cpu:,.0f} CPU s", file=sys.stderr, flush=True)
    with steps.step("settled") as watch:
        _settle(frontier, urls, watch)
    frontier.sync()
    os.kill(os.getpid(), signal.SIGKILL)


def _reopened(work: Path, urls: int) -> None:
    steps = Steps(work, urls)
    with steps.step("reopened") as watch, watch:
        frontier = make_frontier(work / "frontier")
    before = frontier.counts[Status.CRAWLED]
    assert (len(frontier), before) == (urls, min(SETTLED, urls // 4))
    with steps.step("again") as watch:
        _settle(frontier, urls, watch)
    assert frontier.counts[Status.CRAWLED] == 2 * before
    with steps.step("sealed") as watch, watch:
        frontier.close()


def _settle(frontier: DurableFrontier, urls: int, watch: Watch) -> None:
    wanted = min(SETTLED, urls // 4)
    for start in range(0, wanted, BATCH):
        outcomes = [outcome(number) for number in range(start, min(start + BATCH, wanted))]
        with watch:
            fetch(frontier, outcomes)
            _tick(frontier)


def _tick(frontier: DurableFrontier) -> None:
    """Do what a crawl does each second."""
    frontier.flush()
    frontier.partition.poll()
    if frontier.partition.snapshot_is_due:
        frontier.snapshot()


def measure(urls: int, work: Path) -> list[dict[str, Any]]:
    """Measure a frontier of so many *urls* in *work*; return the figures of each step."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "frontier").mkdir(parents=True)
    for part, expected in (("offered", -signal.SIGKILL), ("reopened", 0)):
        command = [sys.executable, "-m", "benchmarks.large_frontier", part, str(work), str(urls)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode != expected:
            sys.exit(f"The part {part} ended with {done.returncode}.")
    shutil.rmtree(work / "frontier")
    return [json.loads(line) for line in (work / FIGURES).read_text().splitlines()]


if __name__ == "__main__":
    # As the crawl does: otherwise the collector looks at all that waits, again and again.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    {"offered": _offered, "reopened": _reopened}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
