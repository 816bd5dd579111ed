"""What `amicrawl watch` costs the crawl that it shows: CPU time of the crawl with and without it.

    python -m benchmarks.watch_cost [--turns N] [--pages N] [--json FILE]

A list of pages on 200 hosts is crawled from a server in a process of its own, in turns: once alone, once
with `amicrawl watch` beside it and its page open in headless Chromium, which requests it every two
seconds. Compared is user and system time of the crawl per page; what the process of the watcher
used is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from playwright.sync_api import sync_playwright

from benchmarks.crawlers import ROOT
from benchmarks.measure import run
from benchmarks.server import addresses

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTS = 200
_PARAGRAPHS = "20"


@contextmanager
def serving() -> Iterator[int]:
    """Run the server; yield its port."""
    command = [sys.executable, "-m", "benchmarks.server", _PARAGRAPHS]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


@contextmanager
def watched(out: Path, used: list[float]) -> Iterator[None]:
    """Show the crawl in *out* in a browser; the CPU seconds of the watcher are added to *used*."""
    command = [sys.executable, "-m", "amicrawl", "watch", str(out), "--port", "0"]
    path = os.environ.get("AMICRAWL_TEST_CHROMIUM") or shutil.which("chromium")
    with (
        subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process,
        sync_playwright() as driver,
    ):
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(found[0])
        page.locator("html[data-ready]").wait_for()
        times = psutil.Process(process.pid).cpu_times()
        yield
        page.wait_for_timeout(2500)
        rows = int(page.locator('[data-t="rows"]').inner_text().replace(",", ""))
        assert rows > 0, "the page shows nothing of the crawl"
        browser.close()
        after = psutil.Process(process.pid).cpu_times()
        used.append(after.user + after.system - times.user - times.system)
        process.terminate()


def crawled(out: Path, listed: Path, log: Path) -> float:
    """Crawl *listed* into *out*; return CPU seconds of the crawl."""
    command = [sys.executable, "-m", "amicrawl", "crawl", str(listed), "-o", str(out), "-q"]
    settings = ("AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "AMICRAWL_DELAY=0", "AMICRAWL_ROBOTS=ignore")
    flags = [word for setting in settings for word in ("-s", setting)]
    cost = run([*command, *flags], cwd=ROOT, env={**os.environ}, log=log, timeout=600)
    if cost.exit_code:
        raise SystemExit(log.read_text())
    return cost.cpu_s


def compare(turns: int, pages: int) -> dict[str, Any]:
    """Crawl *pages* pages twice a turn; the order changes from turn to turn."""
    alone: list[float] = []
    beside: list[float] = []
    used: list[float] = []
    with tempfile.TemporaryDirectory() as directory, serving() as port:
        base = Path(directory)
        hosts = addresses(HOSTS)
        listed = base / "list.txt"
        listed.write_text("".join(f"http://{hosts[n % HOSTS]}:{port}/page/{n}\n" for n in range(pages)))
        for turn in range(turns):
            for with_watcher in (False, True) if turn % 2 == 0 else (True, False):
                out = base / f"out-{turn}-{with_watcher}"
                out.mkdir()
                if with_watcher:
                    with watched(out, used):
                        beside.append(crawled(out, listed, base / "log"))
                else:
                    alone.append(crawled(out, listed, base / "log"))
                shutil.rmtree(out)
                print(turn, with_watcher, alone, beside, file=sys.stderr, flush=True)
    each = [100 * (two / one - 1) for one, two in zip(alone, beside, strict=True)]
    return {
        "pages": pages,
        "turns": turns,
        "alone_us_a_page": [round(1e6 * one / pages, 1) for one in alone],
        "watched_us_a_page": [round(1e6 * one / pages, 1) for one in beside],
        "median_alone_us": round(1e6 * statistics.median(alone) / pages, 1),
        "median_watched_us": round(1e6 * statistics.median(beside) / pages, 1),
        "more_percent_by_turn": [round(one, 2) for one in each],
        "more_percent_median": round(statistics.median(each), 2),
        "watcher_cpu_s": [round(one, 2) for one in used],
        "load": round(os.getloadavg()[0], 2),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text = json.dumps(compare(options.turns, options.pages), indent=2)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
