"""Crawls killed at random moments: nothing half-written looks whole, nothing stored is without its row.

`AMICRAWL_CRASH_ROUNDS` sets how many crawls are killed; the short form in the suite is 20.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from archive_reading import check_sealed, record, records, rows
from loopback import PROJECT, RawServer, command, crawl, environment, page, write_lines

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "20"))
PAGES = 2000


def answer(head: bytes) -> bytes:
    path = head.split(b" ")[1]
    return page(
        b"<p>" + path * 200 + os.urandom(2000).hex().encode() + b"</p>", "Content-Type: text/html"
    )


def test_a_crawl_killed_at_any_moment_is_repaired_by_the_next(tmp_path: Path) -> None:
    dice = random.Random(20261120)
    out = tmp_path / "out"
    with RawServer(answer, keep_open=True, pause=0.002) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(PAGES)])
        checked: set[str] = set()
        for _ in range(ROUNDS):
            settings = {
                "AMICRAWL_WARC_SIZE": "300000",
                "AMICRAWL_DURABILITY": dice.choice(["none", "normal", "full"]),
            }
            _crawl_and_kill(seeds, out, settings, wait=dice.uniform(0.0, 1.2))
            _check_what_is_sealed(out, checked)
        last = write_lines(tmp_path / "last.txt", [f"{server.url}/last"])
        done = crawl(last, out)
    assert done.returncode == 0, done.stderr
    assert not list(out.glob("*.open"))
    _check_what_is_sealed(out, set())
    _check_rows_and_records_agree(out)


def _crawl_and_kill(seeds: Path, out: Path, settings: dict[str, str], *, wait: float) -> None:
    """Start a crawl, let it come to writing, and kill it *wait* seconds later."""
    child = subprocess.Popen(
        command(seeds, out, settings=settings),
        cwd=PROJECT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while child.poll() is None and not list(out.glob("*.warc.gz.open")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(wait)
    child.send_signal(signal.SIGKILL)
    child.wait(30)


def _check_what_is_sealed(out: Path, checked: set[str]) -> None:
    """Check every sealed file that is not in *checked*, and every row of the index."""
    for path in out.glob("*.warc.gz"):
        if path.name not in checked:
            check_sealed(path)
            checked.add(path.name)
    if (out / "captures.parquet").exists():
        for row in rows(out):
            if row["status"]:
                record(out, row)


def _check_rows_and_records_agree(out: Path) -> None:
    pointed = {row["record_id"].strip("<>"): row["url"] for row in rows(out) if row["status"]}
    stored = {
        item.rec_headers.get_header("WARC-Record-ID").strip("<>"): item.rec_headers.get_header(
            "WARC-Target-URI"
        )
        for item in records(out)
        if item.rec_type in {"response", "revisit"}
    }
    assert len(stored) > ROUNDS, "the crawls must have stored something for this to say anything"
    assert pointed == stored
