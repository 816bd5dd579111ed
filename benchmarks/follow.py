"""Whether a crawl that follows links finds all of a site whose truth is known, and nothing else.

    python -m benchmarks.follow [--pages N] [--timeout S] [--json FILE] [-s NAME=VALUE ...]

The site (`site.py`) is served by a process of its own; `scrapy crawl site` archives it as a child. What
the crawl requested is taken from the server's log, and held against the site's truth: every URL in scope
must have been requested and be in the index with a response, and nothing forbidden may have been
requested for. What was requested in traps is counted, as is what was requested more than once.

The rate is pages of HTML in the truth per CPU second of the crawl, link extraction and all requisites
included; requests per CPU second counts every request. Exit code 1: the crawl did not find the truth.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow.parquet as pq

from benchmarks.crawlers import ROOT
from benchmarks.measure import run
from benchmarks.report import machine
from benchmarks.site import OFF, OFF_SITE_REQUISITES, ON, Site
from benchmarks.site_server import speed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

OUT = ROOT / "benchmarks" / "out"
SETTINGS = {
    "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
    "AMICRAWL_DELAY": "0",
    "AMICRAWL_PER_HOST": "32",
    "AMICRAWL_SITEMAPS": "1",
    "AMICRAWL_BACKOFF_MAX": "0",
}
_SHOWN = 20
"""Names of each kind of mistake that are shown; all are counted."""


class SiteServer:
    """The site's process, for as long as the context lasts."""

    def __init__(self, pages: int, log: Path) -> None:
        self._command = [sys.executable, "-m", "benchmarks.site_server", str(pages), str(log)]
        self.port = 0
        self.cpu_s = 0.0
        """User and system time of the server; known after the end."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.stdout.close()
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = used.ru_utime + used.ru_stime


def verdict(site: Site, log: Sequence[str], indexed: set[str]) -> dict[str, Any]:
    """Return how what was requested, by the lines of *log*, and the index fit the truth of *site*.

    *indexed* has the URLs of the rows with a response.
    """
    requested = Counter(log)
    on_site = {line.partition(" ")[2] for line in requested if line.startswith(f"{ON} ")}
    off_site = {line.partition(" ")[2] for line in requested if line.startswith(f"{OFF} ")}
    kinds = {path: site.kind(path) for path in on_site}
    # A browser would not request more from a stranger's server than this.
    beyond = off_site - {*OFF_SITE_REQUISITES, "/robots.txt"}
    forbidden = [path for path, kind in kinds.items() if kind.startswith(("forbidden", "unknown"))]
    forbidden += [site.off + path for path in beyond]
    missing = site.truth - on_site
    unindexed = {path for path in site.truth if site.on + path not in indexed} - missing
    requisites = set(OFF_SITE_REQUISITES) - off_site
    return {
        "truth": len(site.truth),
        "found": len(site.truth & on_site),
        "missing": _told(missing),
        "not_in_index": _told(unindexed),
        "requisites_missing": _told(requisites),
        "forbidden": _told(forbidden),
        "in_traps": dict(Counter(kind[5:] for kind in kinds.values() if kind.startswith("trap"))),
        "requests": len(log),
        "requested_again": sum(count - 1 for count in requested.values()),
        "is_right": not (missing or unindexed or requisites or forbidden),
    }


def _told(names: Collection[str]) -> dict[str, Any]:
    return {"count": len(names), "names": sorted(names)[:_SHOWN]}


def indexed_in(out: Path) -> set[str]:
    """Return the URLs of *out* that have a row with a response; none where the crawl was killed."""
    if not (out / "captures.parquet").exists():
        return set()
    table = pq.read_table(out / "captures.parquet", columns=["url", "status"])
    rows = zip(table["url"].to_pylist(), table["status"].to_pylist(), strict=True)
    return {str(url) for url, status in rows if status}


def measure(pages: int, *, work: Path, timeout: float, settings: Sequence[str]) -> dict[str, Any]:
    """Crawl a site of so many *pages* into *work*, and return the report."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    out, requests, log = work / "crawl", work / "requests.txt", work / "log.txt"
    with SiteServer(pages, requests) as server:
        site = Site(pages, port=server.port)
        command = [sys.executable, "-m", "scrapy", "crawl", "site"]
        command += ["-a", f"url={site.on}/", "-a", "depth=inf", "-a", f"out={out}"]
        for setting in (*(f"{name}={value}" for name, value in SETTINGS.items()), *settings):
            command += ["-s", setting]
        environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        cost = run(command, cwd=ROOT, env=environment, log=log, timeout=timeout)
    report: dict[str, Any] = {
        "machine": machine(),
        "pages": pages,
        "settings": [*settings],
        "exit_code": cost.exit_code,
        "server": {"cpu_s": server.cpu_s, "makes_pages_per_cpu_s": speed(min(pages, 20_000))},
        "cost": asdict(cost),
    }
    report |= verdict(site, requests.read_text().splitlines(), indexed_in(out))
    report["is_right"] = report["is_right"] and cost.exit_code == 0
    html = sum(bool(re.search(r"\.html$|/$", path)) for path in site.truth)
    return report | {
        "html_pages": html,
        "pages_per_cpu_s": html / cost.cpu_s,
        "requests_per_cpu_s": report["requests"] / cost.cpu_s,
        "log": str(log),
        "warc_bytes": sum(path.stat().st_size for path in out.glob("*.warc.gz")),
    }


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.follow", description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--timeout", type=float, default=7200.0, help="seconds; then it is killed")
    parser.add_argument("--json", type=Path, help="where the report goes, too")
    parser.add_argument("--work", type=Path, default=OUT / "follow", help="replaced by this run's files")
    parser.add_argument("-s", dest="settings", action="append", default=[], help="NAME=VALUE")
    options = parser.parse_args(arguments)
    report = measure(
        options.pages, work=options.work, timeout=options.timeout, settings=options.settings
    )
    text = json.dumps(report, indent=2) + "\n"
    if options.json is not None:
        options.json.write_text(text)
    print(text, end="")
    return 0 if report["is_right"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
