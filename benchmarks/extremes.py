"""Extremes: lists that no crawl should have trouble with, each crawled once.

    python -m benchmarks.extremes [NAME...] [--part 1.0]

prints a line for each: processor time, clock, peak memory, what became of the URLs, and pauses. With
`--part` lists have that part of their lines. A pause is the processor time that the event loop's thread
took between two turns of the loop, so that a busy machine does not lengthen it. `hundred_million` is a
frontier without a crawl: see `benchmarks.large_frontier`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import large_frontier
from benchmarks.crawlers import ROOT, Amicrawl
from benchmarks.measure import run
from benchmarks.pauses import FILE, SETTINGS
from benchmarks.rounds import TIMEOUT_S, Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

OUT = ROOT / "benchmarks" / "out" / "extremes"
_MIB = 1 << 20
_GIB = 1 << 30
_LARGE = "hundred_million"
_SHOWN = ("ok", "redirect", "failed", "skipped", "bytes_received")


class Extreme(NamedTuple):
    """One list."""

    lines: int
    hosts: int = 200
    kinds: tuple[str, ...] = ("page",)
    """What is requested of the server, in turns."""
    paragraphs: int = 1
    settings: Mapping[str, str] = MappingProxyType({})
    whole: bool = False
    """Whether a part of it would be another list."""


EXTREMES = {
    "one-host": Extreme(1_000_000, hosts=1),
    "many-hosts": Extreme(100_000, hosts=100_000),
    "empty": Extreme(10_000, kinds=("empty",)),
    "gibibyte": Extreme(
        1, kinds=(f"zeros/{_GIB}",), settings={"AMICRAWL_MAX_BODY": str(2 * _GIB)}, whole=True
    ),
    "redirects": Extreme(10_000, kinds=("moved",)),
    "half-silent": Extreme(
        4_000,
        kinds=("page", "silent"),
        settings={"AMICRAWL_TIMEOUT": "2", "AMICRAWL_MAX_RETRIES": "0"},
    ),
    "many-pages": Extreme(100_000, hosts=2_000, paragraphs=33),
    # More lines than twenty minutes suffice for; its samples are left in `pauses.json`.
    "twenty-minutes": Extreme(
        4_500_000, hosts=2_000, paragraphs=33, settings={"AMICRAWL_STOP_TIME": "1200"}
    ),
}


def measure(name: str, extreme: Extreme, *, lines: int) -> str:
    """Crawl *lines* lines of the list; return the line that says what it took."""
    directory = OUT / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    crawler = Amicrawl({**extreme.settings, **SETTINGS})
    crawler.make_ready()
    with Server(extreme.hosts, paragraphs=extreme.paragraphs) as server:
        # Every host has all kinds: one that is silent throughout would be given up.
        server.write_urls(directory / "urls.txt", lines, kinds=extreme.kinds)
        cost = run(
            crawler.command(directory / "urls.txt", directory / "archive"),
            cwd=directory,
            env=crawler.environment(),
            log=directory / "log.txt",
            timeout=TIMEOUT_S,
        )
        connections = server.connections()
    counts = _counts(directory)
    paused = json.loads((directory / FILE).read_text())
    del paused["samples"]
    shutil.rmtree(directory / "archive")
    return (
        f"{name}, {lines:,} lines: exit code {cost.exit_code}, {cost.cpu_s:.1f} CPU s "
        f"({cost.cpu_s / lines * 1000:.2f} ms a line), {cost.wall_s:.0f} s by the clock, "
        f"{cost.peak_rss_bytes / _MIB:,.0f} MiB, {connections:,} connections, {counts}; pauses {paused}"
    )


def _counts(directory: Path) -> str:
    """Return what the crawl says of its rows."""
    counts = json.loads((directory / "archive" / "crawl.json").read_text())["counts"]
    return ", ".join(f"{counts[key]:,} {key}" for key in _SHOWN)


def main(arguments: Sequence[str]) -> int:
    """Measure the extremes that *arguments* name, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks.extremes", description="Crawl extreme lists.")
    named = ", ".join((*EXTREMES, f"{_LARGE} (a frontier alone; not among all)"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=named)
    parser.add_argument("--part", type=float, default=1.0, help="part of the lines of each list")
    options = parser.parse_args(arguments)
    for name in options.names or EXTREMES:
        if name == _LARGE:
            for figures in large_frontier.measure(int(large_frontier.URLS * options.part), OUT / name):
                print(large_frontier.line_of(figures), flush=True)
            continue
        extreme = EXTREMES[name]
        lines = extreme.lines if extreme.whole else max(1, int(extreme.lines * options.part))
        print(measure(name, extreme, lines=lines), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
