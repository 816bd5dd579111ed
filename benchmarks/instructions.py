"""Instructions that a page takes, by callgrind: alike in every run, whatever else the machine does.

    python -m benchmarks.instructions [list|site] [--pages 200 1200] [--root OTHER_CHECKOUT ...]

A crawl of few pages and one of many are run under valgrind; the difference, by the rows of the index, is
what a row takes, without start and end. Each `--root` is a checkout whose code is run with this
environment, so that two states of the code are compared. Neither what the kernel does is counted, nor
the wait for memory; and SHA-1 has no instructions of its own there: digests weigh more than they do.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.crawlers import ROOT
from benchmarks.follow import SETTINGS, SiteServer
from benchmarks.measure import run
from benchmarks.rounds import Server

_COLLECTED = re.compile(r"Collected : (\d+)")
_LIST_SETTINGS = {
    **{name: value for name, value in SETTINGS.items() if name != "AMICRAWL_SITEMAPS"},
    "AMICRAWL_ROBOTS": "ignore",
    "AMICRAWL_TLS": "record",
}
_HOSTS = 50


def counted(kind: str, pages: int, root: Path) -> tuple[int, int]:
    """Return the instructions of a crawl of so many *pages* with the code in *root*, and its rows."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-instructions-") as place:
        work = Path(place)
        if kind == "site":
            with SiteServer(pages, work / "requests.txt") as site:
                words = ["site", "-a", f"url=http://127.0.0.1:{site.port}/", "-a", "depth=inf"]
                return _crawl(words, SETTINGS, work, root)
        with Server(_HOSTS) as server:
            server.write_urls(work / "urls.txt", pages, kinds=("page",))
            return _crawl(["seeds", "-a", f"file={work / 'urls.txt'}"], _LIST_SETTINGS, work, root)


def _crawl(words: list[str], settings: dict[str, str], work: Path, root: Path) -> tuple[int, int]:
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work / 'callgrind.out'}"]
    command += [sys.executable, "-m", "scrapy", "crawl", *words, "-a", f"out={work / 'out'}"]
    for name, value in settings.items():
        command += ["-s", f"{name}={value}"]
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    # The same order of hashes each time.
    environment |= {"PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
    environment["SCRAPY_SETTINGS_MODULE"] = "amicrawl.settings"
    log = work / "log.txt"
    cost = run(command, cwd=root, env=environment, log=log, timeout=3600)
    said = log.read_text(errors="replace")
    found = _COLLECTED.search(said)
    if cost.exit_code or found is None:
        sys.exit(f"The crawl ended with {cost.exit_code}:\n{said[-2000:]}")
    rows = pq.read_metadata(work / "out" / "captures.parquet").num_rows
    return int(found[1]), rows


def main() -> None:
    """Print the instructions of a row for each checkout."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("kind", nargs="?", choices=["list", "site"], default="list")
    parser.add_argument("--pages", nargs=2, type=int, metavar=("FEW", "MANY"), default=(200, 1200))
    parser.add_argument("--root", nargs="+", type=Path, default=[ROOT])
    requested = parser.parse_args()
    for root in requested.root:
        (least, few), (most, many) = (counted(requested.kind, pages, root) for pages in requested.pages)
        per_row = (most - least) / (many - few) / 1e6
        print(f"{root}: {per_row:.3f} million instructions a row ({few:,} and {many:,} rows)")


if __name__ == "__main__":
    main()
