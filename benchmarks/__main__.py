"""`make bench`: pages per CPU second of crawlers, then microseconds a page of WARC writers."""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from benchmarks.crawlers import ROOT, Amicrawl, ScrapyWebarchive, Wget
from benchmarks.pages import Pages
from benchmarks.report import machine, summary, table
from benchmarks.rounds import Round, Server, make_ready, play

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.crawlers import Crawler

HOSTS = 100
OUT = ROOT / "benchmarks" / "out"


def crawls(crawlers: Sequence[Crawler], *, pages: int, rounds: int) -> dict[str, Any]:
    """Run the rounds; return the report."""
    versions, missing = make_ready(crawlers)
    ready = [crawler for crawler in crawlers if crawler.name in versions]
    turns: dict[str, list[Round]] = defaultdict(list)
    void: list[str] = []
    with Server(HOSTS) as server:
        for name, turn in play(ready, server, pages=pages, rounds=rounds, directory=OUT / "runs"):
            if isinstance(turn, Round):
                turns[name].append(turn)
                _say(f"{name}: {turn.pages / turn.cost.cpu_s:,.0f} pages per CPU second")
            else:
                void.append(turn)
                _say(f"{name}: void")
    served = sum(turn.pages for each in turns.values() for turn in each)
    return {
        "machine": machine(),
        "rounds": rounds,
        "hosts": HOSTS,
        "page": _page_facts(),
        "versions": versions,
        "crawlers": {name: summary(each) for name, each in turns.items()},
        "server": {"pages": served, "cpu_s": server.cpu_s},
        "not_measured": missing,
        "void": void,
    }


def _page_facts() -> dict[str, float]:
    pages = [Pages().page(number) for number in range(0, 10_000, 500)]
    return {
        "bytes": statistics.fmean(len(page) for page in pages),
        "gzip_ratio": statistics.fmean(len(page) / len(gzip.compress(page, 6)) for page in pages),
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Measure as *arguments* say; return 1 where a round was void."""
    known: list[Crawler] = [Amicrawl(), ScrapyWebarchive(), Wget()]
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Measure crawlers and WARC writers side by side."
    )
    parser.add_argument(
        "--pages", type=int, default=20_000, help="pages for amicrawl; the others get a fifth"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", choices=[crawler.name for crawler in known], help="crawlers to measure"
    )
    options = parser.parse_args(arguments)
    OUT.mkdir(exist_ok=True)
    chosen = [crawler for crawler in known if not options.only or crawler.name in options.only]
    report = crawls(chosen, pages=options.pages, rounds=options.rounds)
    (OUT / "crawl.json").write_text(json.dumps(report, indent=2) + "\n")
    print(table(report))
    if not options.only:
        subprocess.run([sys.executable, "-m", "benchmarks.record"], cwd=ROOT, check=True)
    return 1 if report["void"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
