"""What the frontier costs: `python -m benchmarks.frontier [--rows N] [--rounds N] [--json FILE]`.

Each step is measured in a process of its own; of the rounds the medians are given. From `offer` on, the
steps of a round follow each other on one directory:

    seeded, crawled  a partition, before and after most of it was crawled, encoded and decoded
    offer            all URLs to a new frontier, the journal flushed every 2,000; then the process ends
    killed           the frontier is opened from that journal, and closed
    reopen           it is opened from the snapshot that closing has left
    known            all URLs are offered again
    fetch            some URLs are handed out and settled
    snapshot         one is written while offers, fetches and flushes go on, whose pauses are taken
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.crawlers import ROOT
from benchmarks.frontier_steps import STEPS, Figures, fresh_urls
from benchmarks.report import machine
from benchmarks.weblist import WebList

if TYPE_CHECKING:
    from collections.abc import Sequence

OUT = ROOT / "benchmarks" / "out"


def measure(rows: int, rounds: int, *, steps: Sequence[str], work: Path) -> dict[str, Any]:
    """Run *steps* so many times with *rows* URLs; return the report."""
    urls, fresh = WebList(work, rows), WebList(work, fresh_urls(rows), seed=2)
    urls.write()
    fresh.write()
    turns: dict[str, list[Figures]] = {step: [] for step in steps}
    for _ in range(rounds):
        for step in steps:
            turns[step].append(_run(step, rows=rows, work=work))
            _say(f"{step}: {_line(turns[step][-1])}")
    return {
        "machine": machine(),
        "rows": rows,
        "rounds": rounds,
        "hosts": urls.hosts,
        "octets_per_url": urls.octets / rows,
        "figures": {step: _medians(each) for step, each in turns.items()},
        "turns": turns,
    }


def _run(step: str, *, rows: int, work: Path) -> Figures:
    """Run *step* in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.frontier", "--step", step]
    command += ["--rows", str(rows), "--work", str(work)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def _medians(turns: Sequence[Figures]) -> Figures:
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def _line(figures: Figures) -> str:
    return ", ".join(f"{name} {value:,.4g}" for name, value in figures.items())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table(report: dict[str, Any]) -> str:
    """Return *report* as a table for people."""
    urls = f"{report['rows']:,} URLs of {report['octets_per_url']:.0f} octets, {report['hosts']:,} hosts"
    lines = [f"{urls}; medians of {report['rounds']} rounds."]
    for step, figures in report["figures"].items():
        lines += ["", step]
        lines += [f"    {name:<36}{_shown(value):>14}" for name, value in figures.items()]
    return "\n".join(lines)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:,.2f}"


def main(arguments: list[str]) -> int:
    """Measure as *arguments* say."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.frontier", description="Measure the frontier and its files."
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="URLs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=OUT / "frontier.json", help="where the report goes")
    parser.add_argument("--only", nargs="+", choices=list(STEPS), help="steps to measure")
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step:
        # As the crawl does: otherwise the collector looks at all that waits, again and again.
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        figures = STEPS[options.step](WebList(options.work, options.rows), options.work, options.rows)
        print(json.dumps(figures), flush=True)
        # The end of a process that is killed: nothing is closed or written on the way out.
        os._exit(0)
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        report = measure(
            options.rows, options.rounds, steps=options.only or list(STEPS), work=Path(name)
        )
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
