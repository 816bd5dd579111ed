"""Index, summary, package and collection of real manuals, beside the tools that people have.

    make collection-demo
    python -m benchmarks.demonstration build/collection-demo [--trees build/manuals/trees] [--rounds 3]

The WARC files are those of the demonstration collection. All take turns in each round, one process
each; figures are medians of processor time, user and system, of the whole command, and of the command
less what the same command takes of a crawl of one page. With `--trees`, milliseconds a capture of
`amicrawl collection` follow, all products and detectors, for files of some 8 and 34 KB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.analytics_index import write_warc
from benchmarks.measure import run
from benchmarks.peer import peer_command
from benchmarks.report import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.measure import Cost

AMICRAWL = str(Path(sys.executable).parent / "amicrawl")
_TIMEOUT = 1200.0
SIZES = {"8 KB": (6_000, 10_000), "34 KB": (28_000, 40_000)}
"""Least and most bytes of the pages of each size."""
_PAGES = 1_200


class Inputs:
    """The files of a crawl, and what the commands read of it."""

    def __init__(self, warcs: Sequence[Path], scratch: Path) -> None:
        scratch.mkdir()
        self.warcs = [str(path) for path in warcs]
        self.scratch = scratch
        self.cdx = scratch / "index.cdx"
        self.pages = scratch / "pages.jsonl"
        self._package = scratch / "first.wacz"
        index = [AMICRAWL, "index", *self.warcs, "--format", "cdx11", "--merge", str(self.cdx), "-q"]
        cost(index, scratch)
        cost([AMICRAWL, "wacz", *self.warcs, "-o", str(self._package)], scratch)
        with zipfile.ZipFile(self._package) as package:
            self.pages.write_bytes(package.read("pages/pages.jsonl"))


def commands(given: Inputs) -> dict[str, list[str]]:
    """Return what is measured, by name: ours and the others' in turns."""
    out = str(given.scratch / "out")
    return {
        "index: amicrawl": [AMICRAWL, "index", *given.warcs, "--merge", out, "--jobs", "1", "-q"],
        "index: amicrawl, a process a core": [AMICRAWL, "index", *given.warcs, "--merge", out, "-q"],
        "index: cdxj-indexer": [
            *(peer_command("cdxj_indexer", "cdxj-indexer"), "-s", "-o", out, *given.warcs)
        ],
        "index: fastwarc": [*(peer_command("fastwarc", "fastwarc"), "index", "-o", out, *given.warcs)],
        "summary: amicrawl": [AMICRAWL, "summary", "--json", str(given.cdx)],
        "summary: cdx-summary": [peer_command("cdx_summary", "cdxsummary"), "-j", str(given.cdx)],
        "package: amicrawl": [AMICRAWL, "wacz", *given.warcs, "-o", f"{out}.wacz"],
        "package: py-wacz": [
            *(peer_command("py_wacz", "wacz"), "create", "-o", f"{out}.wacz"),
            *("-p", str(given.pages), "-f", *given.warcs),
        ],
    }


def cost(command: Sequence[str], scratch: Path) -> Cost:
    """Run *command* and return what it took."""
    for each in ("out", "out.wacz"):
        (scratch / each).unlink(missing_ok=True)
    log = scratch / "log"
    took = run(command, cwd=scratch, env=dict(os.environ), log=log, timeout=_TIMEOUT)
    if took.exit_code:
        raise SystemExit(f"{command[:3]} failed:\n{log.read_text()[-2000:]}")
    return took


def medians(named: Callable[[], dict[str, list[str]]], scratch: Path, rounds: int) -> dict[str, Any]:
    """Return processor time and memory of each command, over *rounds* in which they take turns."""
    costs: dict[str, list[Cost]] = {}
    for _ in range(rounds):
        for name, command in named().items():
            costs.setdefault(name, []).append(cost(command, scratch))
    return {
        name: {
            "cpu_s": round(statistics.median(each.cpu_s for each in taken), 2),
            "wall_s": round(statistics.median(each.wall_s for each in taken), 2),
            "peak_rss_mib": round(max(each.peak_rss_bytes for each in taken) / 1024**2),
        }
        for name, taken in costs.items()
    }


def beside(whole: dict[str, Any], start: dict[str, Any]) -> dict[str, Any]:
    """Return how many times what amicrawl took each of the others took, with and without the start."""
    found = {}
    for name in whole:
        step, _, tool = name.partition(": ")
        if not tool.startswith("amicrawl"):
            ours, theirs = whole[f"{step}: amicrawl"]["cpu_s"], whole[name]["cpu_s"]
            begun = start[f"{step}: amicrawl"]["cpu_s"], start[name]["cpu_s"]
            less_start = (theirs - begun[1]) / max(ours - begun[0], 0.01)
            found[name] = {"times": round(theirs / ours, 2), "less_start": round(less_start, 2)}
    return found


def write_pages(trees: Path, target: Path, *, least: int, most: int) -> int:
    """Write pages of *trees* of between *least* and *most* bytes to *target*; return their number."""
    found = [each for each in trees.rglob("*.html") if least <= each.stat().st_size <= most]
    # Spread over all packages, and the same each time.
    chosen = sorted(found)[:: max(1, len(found) // _PAGES)][:_PAGES]
    with target.open("wb") as stream:
        for number, path in enumerate(chosen):
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + path.read_bytes()
            head = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:test:{number}>\r\n"
                f"WARC-Target-URI: http://manuals.example/{number}.html\r\n"
                "WARC-Date: 2026-11-27T12:00:00Z\r\nContent-Type: application/http\r\n"
                f"Content-Length: {len(block)}\r\n\r\n"
            )
            stream.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 6))
    return len(chosen)


def collections(trees: Path, scratch: Path, rounds: int) -> dict[str, Any]:
    """Return milliseconds a capture of a collection of pages of each size."""
    write_warc(scratch / "one.warc.gz", pages=1, seed=1)
    found: dict[str, Any] = {}
    for name, (least, most) in SIZES.items():
        source = scratch / "pages.warc.gz"
        captures = write_pages(trees, source, least=least, most=most)

        def collecting(warc: Path) -> list[str]:
            out = tempfile.mkdtemp(dir=scratch)
            return [AMICRAWL, "collection", str(warc), "-o", out, "-j", "1", "-q"]

        taken, begun = [], []
        for _ in range(rounds):
            taken.append(cost(collecting(source), scratch))
            begun.append(cost(collecting(scratch / "one.warc.gz"), scratch))
        whole = statistics.median(each.cpu_s for each in taken)
        start = statistics.median(each.cpu_s for each in begun)
        found[name] = {
            "captures": captures,
            "ms_a_capture": round((whole - start) / captures * 1000, 2),
            "start_cpu_s": round(start, 2),
            "peak_rss_mib": round(max(each.peak_rss_bytes for each in taken) / 1024**2),
        }
    return found


def main() -> None:
    """Print the report as JSON."""
    parser = argparse.ArgumentParser(
        description="Tools beside amicrawl on the demonstration collection."
    )
    parser.add_argument("demo", type=Path, help="what make collection-demo has built")
    parser.add_argument("--trees", type=Path, help="unpacked manuals: also measure collection")
    parser.add_argument("--rounds", type=int, default=3)
    requested = parser.parse_args()
    warcs = sorted((requested.demo / "crawl").absolute().glob("*.warc.gz"))
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_warc(scratch / "one.warc.gz", pages=1, seed=0)
        all_files = Inputs(warcs, scratch / "all")
        one_page = Inputs([scratch / "one.warc.gz"], scratch / "one")
        report: dict[str, Any] = {"machine": machine()}
        report["whole"] = medians(lambda: commands(all_files), all_files.scratch, requested.rounds)
        report["start"] = medians(lambda: commands(one_page), one_page.scratch, requested.rounds)
        report["beside"] = beside(report["whole"], report["start"])
        if requested.trees is not None:
            report["collection"] = collections(requested.trees, scratch, requested.rounds)
        report["load_after"] = os.getloadavg()[0]
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
