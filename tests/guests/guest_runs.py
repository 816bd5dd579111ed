"""Runs a spider of a project in a child process, with and without the line, and compares the two."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import warm_processes
from archive_reading import rows
from loopback import PROJECT, RawServer, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SPIDERS = Path(__file__).parent / "spiders"
LINE = {
    "ADDONS": '{"amicrawl.crawl.addon.ArchiveAddon": 300}',
    "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
}
"""The line, and that a server on this machine may be contacted."""


_PATIENCE = 20
_MORE = 0.4


class GuestServer(RawServer):
    """Responds with what *respond* makes of a request head, and notes how many it has at once.

    With *gathers* no request gets its response before so many are in flight, and a while after that, in
    which there may be more: how many a crawl has in flight at most is not a matter of chance then.
    What is requested at `/alone` does not wait.
    """

    def __init__(
        self, response: Callable[[bytes], bytes], *, keep_open: bool = False, gathers: int = 0
    ) -> None:
        super().__init__(self._respond, keep_open=keep_open)
        self._made_by = response
        self._gathers = gathers
        self._in_flight = 0
        self._changed = threading.Condition()
        self.most_in_flight = 0

    def _respond(self, head: bytes) -> bytes:
        gathers = self._gathers and b" /alone " not in head
        with self._changed:
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            self._changed.notify_all()
            if gathers:
                self._changed.wait_for(lambda: self.most_in_flight >= self._gathers, _PATIENCE)
        if gathers:
            time.sleep(_MORE)
        try:
            return self._made_by(head)
        finally:
            with self._changed:
                self._in_flight -= 1


@dataclass
class Ran:
    """One run: how it ended, what it scraped, and what the server saw of it."""

    returncode: int
    log: str
    items: list[dict[str, Any]]
    arrivals: list[tuple[float, bytes]]
    most_in_flight: int
    archive: Path

    @property
    def requested(self) -> list[str]:
        """Method and target of the requests, in the order in which they came."""
        return [" ".join(head.decode("latin-1").split(" ")[:2]) for _, head in self.arrivals]

    @property
    def smallest_gap(self) -> float:
        """Seconds between the two requests to one host that were closest to each other."""
        by_host = defaultdict(list)
        for moment, head in self.arrivals:
            host = head.lower().partition(b"\nhost:")[2].partition(b"\r")[0].strip()
            by_host[host].append(moment)
        gaps = [b - a for moments in by_host.values() for a, b in pairwise(moments)]
        return min(gaps, default=float("inf"))

    @property
    def scraped(self) -> set[str]:
        """The items, comparable."""
        return {json.dumps(item, sort_keys=True) for item in self.items}

    @property
    def archived(self) -> set[str]:
        """Method-less targets of the responses that have a row and a record."""
        return {target_of(row["url"]) for row in rows(self.archive) if row["status"]}


def target_of(url: str) -> str:
    """Return path and query of *url*."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def run(
    spider: str, response: Callable[[bytes], bytes], directory: Path, *, has_line: bool, **given: Any
) -> Ran:
    """Run *spider* as `run_on` does, on a server of its own that responds with *respond*."""
    keep_open, gathers = given.pop("keep_open", False), given.pop("gathers", 0)
    with GuestServer(response, keep_open=keep_open, gathers=gathers) as server:
        return run_on(server, spider, directory, has_line=has_line, **given)


def run_on(
    server: GuestServer,
    spider: str,
    directory: Path,
    *,
    has_line: bool,
    settings: Mapping[str, Any] | None = None,
    arguments: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
) -> Ran:
    """Run the spider file *spider*, which gets the address of *server* as its argument `site`."""
    directory.mkdir(parents=True, exist_ok=True)
    items, before = directory / "items.jsonl", len(server.arrivals)
    line = [str(SPIDERS / spider), server.url, *(command or ())]
    if command is None:
        line = ["-m", "scrapy", "runspider", str(SPIDERS / spider), "-O", str(items)]
        for name, value in {"site": server.url, **(arguments or {})}.items():
            line += ["-a", f"{name}={value}"]
        for name, value in {**(LINE if has_line else {}), **(settings or {})}.items():
            line += ["-s", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    done = warm_processes.run(
        [sys.executable, *line],
        cwd=directory,
        env={**environment(), "PYTHONPATH": os.pathsep.join([str(PROJECT), str(SPIDERS)])}
        | ({"WITH_LINE": "1"} if has_line else {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    scraped = [json.loads(each) for each in items.read_text().splitlines()] if items.exists() else []
    return Ran(
        done.returncode,
        done.stderr,
        scraped,
        server.arrivals[before:],
        server.most_in_flight,
        directory / "ami-out",
    )


def both(
    spider: str, response: Callable[[bytes], bytes], directory: Path, **given: Any
) -> tuple[Ran, Ran]:
    """Run *spider* without the line and with it, and hold the two equal; return both.

    The address of the server differs from run to run: *respond* and spider must not say it in items.
    """
    plain = run(spider, response, directory / "plain", has_line=False, **given)
    archived = run(spider, response, directory / "archived", has_line=True, **given)
    assert plain.returncode == 0, plain.log
    assert archived.returncode == plain.returncode, archived.log
    assert archived.scraped == plain.scraped, archived.log
    assert len(archived.items) == len(plain.items)
    assert sorted(archived.requested) == sorted(plain.requested), archived.log
    if given.get("gathers"):
        assert archived.most_in_flight == plain.most_in_flight, archived.log
    return plain, archived
