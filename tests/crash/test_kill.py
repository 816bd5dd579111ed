"""Crawls killed at random moments: nothing half-written looks whole, and nothing that was kept is lost.

The pages of a site with redirects, errors and pages that never come are crawled, and again once all are
there, with a kill in nearly every crawl. `AMICRAWL_CRASH_ROUNDS` sets how many crawls there are; the
short form in the suite is 10.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
import warm_processes
from archive_reading import check_by_warcio, record, records, rows, run_clean
from loopback import (
    PROJECT,
    RawServer,
    command,
    crawl,
    environment,
    page,
    recrawl,
    recrawl_command,
    write_lines,
)

from amicrawl.disk import Disk
from amicrawl.errors import ExitCode
from amicrawl.meguri import LivePartition, Status
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import verify
from amicrawl.meguri.opening import load

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "10"))
INFLIGHT = 8
A_DAY = 24
"""Hours."""
SETTINGS = {
    "AMICRAWL_INFLIGHT_MAX": str(INFLIGHT),
    "AMICRAWL_PER_HOST": str(INFLIGHT),
    "AMICRAWL_WARC_SIZE": "300000",
    "AMICRAWL_TIMEOUT": "1",  # for the pages that never come
}
PATHS = [
    *(f"/p/{n}" for n in range(900)),
    *(f"/r/{n}" for n in range(150)),
    *(f"/m/{n}" for n in range(40)),
    *(f"/e/{n}" for n in range(40)),
    *(f"/x/{n}" for n in range(2)),
]
ENDS = {
    200: {Status.CRAWLED},
    301: {Status.CRAWLED},
    304: {Status.CRAWLED},
    404: {Status.GONE},
}
FAILED = {Status.SCHEDULED, Status.GONE}
"""Where a page stands that never came, or not yet: it is given up after some days."""


def respond(head: bytes) -> bytes:
    path = head.split(b" ")[1].decode()
    kind, _, name = path[1:].partition("/")
    if kind == "r":
        return page(b"moved", f"Location: /t/{name}", status="301 Moved Permanently")
    if kind == "m":
        return page(b"no such page", status="404 Not Found")
    if kind == "e":
        return page(b"later", "Retry-After: 60", status="503 Service Unavailable")
    if kind == "x":
        return b""
    tag = f'"{name}"'
    if kind == "p" and int(name) % 3 == 0 and f"If-None-Match: {tag}".encode() in head:
        return f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n".encode()
    filler = hashlib.shake_128(path.encode()).hexdigest(2000)
    return page(f"<p>{path}{filler}</p>".encode(), "Content-Type: text/html", f"ETag: {tag}")


@dataclass
class Campaign:
    """One directory, crawled into again and again."""

    out: Path
    seeds: Path
    server: RawServer
    dice: random.Random
    recrawls: bool = False
    """Whether every page is there, so that pages are now fetched again."""
    kills: int = 0
    """Since every page was there last."""
    before: Counter[str] = field(default_factory=Counter)
    """Rows of the index by URL when every page was there last."""
    kept: set[str] = field(default_factory=set)
    """Records that the index has named at any time."""
    checked: set[str] = field(default_factory=set)

    def crawl_and_kill(self) -> None:
        """Crawl, and kill the crawl at some moment, unless it has ended by then."""
        settings = {
            **SETTINGS,
            "AMICRAWL_DURABILITY": self.dice.choice(["none", "normal", "full"]),
        }
        line = (
            recrawl_command(self.out, settings=settings)
            if self.recrawls
            else command(self.seeds, self.out, settings=settings)
        )
        child = warm_processes.Popen(
            line,
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if self.dice.random() < 0.8:  # the others die while they open, mend and read what is there
            self._wait_for_a_request(child)
        try:
            # Some may come to their end.
            child.wait(self.dice.uniform(0.0, self.dice.choice([1.0, 1.0, 6.0])))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait(30)
            self.kills += 1
        else:
            self.everything_is_there()

    def _wait_for_a_request(self, child: subprocess.Popen[bytes]) -> None:
        requested = len(self.server.requests)
        deadline = time.monotonic() + 100
        while child.poll() is None and time.monotonic() < deadline:
            if len(self.server.requests) > requested:
                return
            time.sleep(0.01)

    def check_what_is_sealed(self) -> None:
        """Check every sealed file, and every row of the index; rows once there stay."""
        for path in self.out.glob("*.warc.gz"):
            if path.name not in self.checked:
                run_clean("gzip", "-t", str(path))
                check_by_warcio(path)
                self.checked.add(path.name)
        if (self.out / "captures.parquet").exists():
            named = {row["record_id"] for row in rows(self.out) if row["status"]}
            assert self.kept <= named
            self.kept = named

    def everything_is_there(self) -> None:
        """Check the index and the frontier after a crawl that ended by itself, and let a day pass."""
        found = Counter(row["url"] for row in rows(self.out))
        latest = {row["url"]: row for row in sorted(rows(self.out), key=lambda row: row["fetched_at"])}
        self._check_nothing_was_fetched_needlessly(found)
        self._check_the_frontier(latest)
        self.before, self.kills, self.recrawls = found, 0, True
        a_day_passes(self.out)

    def _check_nothing_was_fetched_needlessly(self, found: Counter[str]) -> None:
        again = [url for url in found if found[url] - self.before[url] > 1]
        extra = sum(found[url] - self.before[url] - 1 for url in again)
        assert extra <= self.kills * INFLIGHT, (self.kills, again)
        assert not [url for url in self.before if found[url] == self.before[url]]

    def _check_the_frontier(self, latest: dict[str, dict[str, object]]) -> None:
        known = statuses(self.out)
        assert known.keys() == latest.keys()
        targets = [path.replace("/r/", "/t/") for path in PATHS if path.startswith("/r/")]
        assert known.keys() == {self.server.url + path for path in [*PATHS, *targets]}
        for url, row in latest.items():
            assert known[url] in ENDS.get(int(str(row["status"])), FAILED), url
        for path in (self.out / "frontier").glob("snap-*.meguri"):
            with FrontierFile.open(path) as file:
                verify(file)


def statuses(out: Path) -> dict[str, Status]:
    """Where every URL stands in the frontier on disk."""
    partition = load(out / "frontier")
    arena = bytes(partition.arena)
    found = {}
    for reference, status in zip(
        partition.urls["url_ref"].tolist(), partition.urls["status"].tolist(), strict=True
    ):
        url = arena[reference + 1 : reference + 1 + arena[reference]].decode()
        found[url] = Status(status)
    return found


def a_day_passes(out: Path) -> None:
    """Make all that was fetched a day older, and due by now if it is due at all."""
    hour = int(time.time() // 3600)
    partition = LivePartition(out / "frontier", disk=Disk(), hour=hour, meta={})
    for number in range(len(partition)):
        row = partition.get(number)
        assert row.next_due, "every page of this site is worth another look"
        partition.put(number, row._replace(next_due=hour, last_crawled=max(0, row.last_crawled - A_DAY)))
    partition.close(hour)
    path = out / "captures.parquet"
    index = pq.read_table(path)
    place = index.schema.get_field_index("fetched_at")
    older = pc.subtract(index["fetched_at"], A_DAY * 3_600_000)
    kept = pq.read_metadata(path).metadata or {}
    aged = index.set_column(place, index.schema.field(place), older)
    pq.write_table(aged.replace_schema_metadata(kept), path)


def test_crawls_killed_at_any_moment_lose_nothing_and_repeat_next_to_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(respond, keep_open=True, pause=0.002) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [server.url + path for path in PATHS])
        campaign = Campaign(out, seeds, server, random.Random(20261121))
        for _ in range(ROUNDS):
            campaign.crawl_and_kill()
            campaign.check_what_is_sealed()
        last = (
            recrawl(out, settings=SETTINGS)
            if campaign.recrawls
            else crawl(seeds, out, settings=SETTINGS)
        )
        # Where all that was left is what never responds, the last crawl has reached nothing.
        assert last.returncode in {ExitCode.DONE, ExitCode.UNREACHED}, last.stderr
        campaign.everything_is_there()
    assert ROUNDS < 20 or campaign.recrawls, "no crawl came to its end: nothing was fetched again"
    assert not list(out.glob("*.open"))
    campaign.checked.clear()
    campaign.check_what_is_sealed()
    for row in rows(out):
        if row["status"]:
            record(out, row)
    _check_rows_and_records_agree(out)


def _check_rows_and_records_agree(out: Path) -> None:
    pointed = {row["record_id"].strip("<>"): row["url"] for row in rows(out) if row["status"]}
    stored = {
        item.rec_headers.get_header("WARC-Record-ID").strip("<>"): item.rec_headers.get_header(
            "WARC-Target-URI"
        )
        for item in records(out)
        if item.rec_type in {"response", "revisit"}
    }
    assert len(stored) >= len(PATHS), "the crawls must have stored something for this to say anything"
    assert pointed == stored
