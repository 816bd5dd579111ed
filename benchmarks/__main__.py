"""`make bench`: pages per CPU second of crawlers, then microseconds a page of WARC writers."""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES, Case
from benchmarks.crawlers import (
    ROOT,
    Ami,
    Amicrawl,
    BareLoop,
    Environment,
    ScrapyWebarchive,
    Wget,
)
from benchmarks.pages import Pages
from benchmarks.report import machine, summary, table
from benchmarks.rounds import Round, Server, make_ready, play

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.crawlers import Crawler

OUT = ROOT / "benchmarks" / "out"
_ONE_CASE = frozenset({"scrapy-webarchive", "wget"})
"""Crawlers that are measured by the first case only: they take long."""


def crawls(case: Case, crawlers: Sequence[Crawler], *, pages: int, rounds: int) -> dict[str, Any]:
    """Run the rounds of *case*; return the report."""
    versions, missing = make_ready(crawlers)
    ready = [crawler for crawler in crawlers if crawler.name in versions]
    turns: dict[str, list[Round]] = defaultdict(list)
    void: list[str] = []
    with Server(case.hosts, paragraphs=case.paragraphs, https=case.https) as server:
        for name, turn in play(ready, server, pages=pages, rounds=rounds, directory=OUT / "runs"):
            if isinstance(turn, Round):
                turns[name].append(turn)
                _say(f"{name}: {turn.pages / turn.cost.cpu_s:,.0f} pages per CPU second")
            else:
                void.append(turn)
                _say(f"{name}: void")
    served = sum(turn.pages for each in turns.values() for turn in each)
    return {
        "case": case.name,
        "machine": machine(),
        "rounds": rounds,
        "hosts": case.hosts,
        "page": _page_facts(case.paragraphs),
        "versions": versions,
        "crawlers": {name: summary(each) for name, each in turns.items()},
        "server": {"pages": served, "cpu_s": server.cpu_s},
        "not_measured": missing,
        "void": void,
    }


def _page_facts(paragraphs: int) -> dict[str, float]:
    made = Pages(paragraphs)
    pages = [made.page(number) for number in range(0, 10_000, 500)]
    return {
        "bytes": statistics.fmean(len(page) for page in pages),
        "gzip_ratio": statistics.fmean(len(page) / len(gzip.compress(page, 6)) for page in pages),
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _chosen(options: argparse.Namespace) -> tuple[list[Case], list[Crawler]]:
    """Return the cases and the crawlers that *options* name."""
    made = Environment(options.python)
    known: list[Crawler] = [Amicrawl(environment=made)]
    known += [Amicrawl(processes=number, environment=made) for number in options.processes]
    if options.ami:
        known.append(Ami(Path(options.ami)))
    known += [BareLoop(made), ScrapyWebarchive(), Wget()]
    crawlers = [each for each in known if not options.only or each.name in options.only]
    cases = [case for case in CASES if not options.cases or any(w in case.name for w in options.cases)]
    return cases, crawlers


def main(arguments: list[str]) -> int:
    """Measure as *arguments* say; return 1 where a round was void."""
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Measure crawlers and WARC writers side by side."
    )
    parser.add_argument(
        "--pages", type=int, default=10_000, help="pages for each; the slow ones get a fifth"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ami", default="", help="the original crawler's binary, as a further peer")
    parser.add_argument("--python", default="", help="another interpreter for the crawl, as a path")
    parser.add_argument(
        "--processes", nargs="+", type=int, default=[], metavar="N", help="crawl with N processes, too"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="crawlers to measure")
    parser.add_argument(
        "--cases", nargs="+", metavar="WORDS", help="cases with such words in their names"
    )
    options = parser.parse_args(arguments)
    OUT.mkdir(parents=True, exist_ok=True)
    cases, crawlers = _chosen(options)
    reports = []
    for case in cases:
        measured = [each for each in crawlers if case is CASES[0] or each.name not in _ONE_CASE]
        _say(f"--- {case.name}")
        reports.append(crawls(case, measured, pages=options.pages, rounds=options.rounds))
        (OUT / "crawl.json").write_text(json.dumps(reports, indent=2) + "\n")
    for report in reports:
        print(f"\n{report['case']}\n\n{table(report)}")
    if not options.only and not options.cases:
        subprocess.run([sys.executable, "-m", "benchmarks.record"], cwd=ROOT, check=True)
    return 1 if any(report["void"] for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
