"""Build the demonstration collection: `make collection-demo`.

Documentation packages are downloaded, served on this machine and crawled; then come index, sidecars,
merged index, WAT, WET, table, summary page, the results of queries, and a WACZ package. Each step is a
command that is printed before it runs, with the seconds and CPU seconds that it took. A complete crawl
is not repeated.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

from manuals.site import PACKAGES, ManualsSite, UnpackError, chosen_files, unpack

AMICRAWL = Path(sys.executable).parent / "amicrawl"
PORT = 8652
QUERIES = {
    "table": (
        "count_by_month",
        "count_fetch_status",
        "compare_mime_type_http_vs_detected",
        "average_warc_record_length_by_mime_type",
        "correlation_language_charset",
        "count_url_path_elements",
        "duplicates_by_digest",
    ),
    "crawl": ("captures_count", "captures_by_content_type", "captures_by_status", "captures_failures"),
}
_DAMAGED = 5


def main() -> int:
    """Build the collection; return the exit code of the step that failed, else 0."""
    parser = argparse.ArgumentParser(description="Build the demonstration collection.")
    parser.add_argument("--out", type=Path, default=Path("build/collection-demo"))
    parser.add_argument("--cache", type=Path, default=Path("build/manuals"))
    parser.add_argument("--most", type=int, default=11_500, help="most files of one package")
    given = parser.parse_args()
    out: Path = given.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    try:
        files = chosen_files(unpack(PACKAGES, given.cache.absolute()), most=given.most)
    except UnpackError as error:
        sys.stderr.write(f"{error}\nDebian's package lists are needed: apt-get update.\n")
        return 1
    if not (out / "crawl" / "captures.parquet").exists():
        # The same port each time, so that a crawl that was interrupted is resumed.
        with ManualsSite(files, port=PORT) as site:
            (out / "seeds.txt").write_text("".join(f"{site.url}{name}\n" for name in files))
            code = _step(
                [
                    *("crawl", str(out / "seeds.txt"), "-o", str(out / "crawl"), "-q", "--delay", "0"),
                    *("-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "-s", "AMICRAWL_PER_HOST=8"),
                    # Several files, so that each processor has one.
                    *("-s", "AMICRAWL_WARC_SIZE=33554432"),
                ]
            )
        if code:
            return code
    return _derivatives(out)


def _derivatives(out: Path) -> int:
    collection, table = out / "collection", out / "collection" / "table"
    steps: list[list[str]] = [
        ["collection", str(out / "crawl"), "-o", str(collection), "-q", "--crawl", "MANUALS"],
        ["summary", str(table), "--html", str(out / "summary.html"), "-q"],
        ["report", str(out / "crawl"), "-o", str(out / "report.html")],
        [
            *("wacz", str(out / "crawl"), "-o", str(out / "manuals.wacz"), "--title", "Manuals"),
            *("--pages", str(out / "crawl" / "captures.parquet")),
        ],
    ]
    (out / "queries").mkdir(exist_ok=True)
    for place, names in QUERIES.items():
        path = table if place == "table" else out / "crawl"
        steps += [
            ["query", str(path), name, "-o", str(out / "queries" / f"{name}.csv")] for name in names
        ]
    for step in steps:
        code = _step(step)
        if code:
            return code
    return 0


def _step(arguments: list[str]) -> int:
    """Run a command of amicrawl; return its exit code, or 0 where it only reported damage."""
    sys.stderr.write(f"$ amicrawl {shlex.join(arguments)}\n")
    before, started = _cpu(), time.monotonic()
    code = subprocess.run([str(AMICRAWL), *arguments], check=False).returncode
    used = {"seconds": round(time.monotonic() - started, 1), "cpu": round(_cpu() - before, 1)}
    sys.stderr.write(f"  {json.dumps({'step': arguments[0], **used})}\n")
    return 0 if code == _DAMAGED else code


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
