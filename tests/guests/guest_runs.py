"""Runs a spider of a project in a child process, with and without the line, and compares the two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from archive_reading import rows
from loopback import PROJECT, RawServer, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SPIDERS = Path(__file__).parent / "spiders"
LINE = {
    "ADDONS": '{"amicrawl.crawl.addon.ArchiveAddon": 300}',
    "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
}
"""The line, and that a server on this machine may be asked."""


@dataclass
class Site:
    """What a server answers, and how it was asked: the *answer* is given *pause* seconds later."""

    answer: Callable[[bytes], bytes]
    pause: float = 0.0
    most_in_flight: int = 0
    _in_flight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, head: bytes) -> bytes:
        with self._lock:
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            time.sleep(self.pause)
            return self.answer(head)
        finally:
            with self._lock:
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
    def asked(self) -> list[str]:
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
    spider: str,
    answer: Callable[[bytes], bytes],
    directory: Path,
    *,
    has_line: bool,
    settings: Mapping[str, Any] | None = None,
    arguments: Mapping[str, str] | None = None,
    pause: float = 0.0,
    keep_open: bool = False,
    command: Sequence[str] | None = None,
) -> Ran:
    """Run the spider file *spider*, which gets the address of the server as its argument `site`."""
    directory.mkdir(parents=True, exist_ok=True)
    site = Site(answer, pause)
    items = directory / "items.jsonl"
    with RawServer(site, keep_open=keep_open) as server:
        given = {**(LINE if has_line else {}), **(settings or {})}
        if command is None:
            line = ["-m", "scrapy", "runspider", str(SPIDERS / spider), "-o", str(items)]
        else:
            line = [str(SPIDERS / spider), server.url, *command]
        for name, value in {"site": server.url, **(arguments or {})}.items() if command is None else ():
            line += ["-a", f"{name}={value}"]
        for name, value in given.items() if command is None else ():
            line += ["-s", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        done = subprocess.run(
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
        server.arrivals,
        site.most_in_flight,
        directory / "ami-out",
    )


def both(
    spider: str, answer: Callable[[bytes], bytes], directory: Path, **given: Any
) -> tuple[Ran, Ran]:
    """Run *spider* without the line and with it, and hold the two equal; return both.

    The address of the server differs from run to run: *answer* and spider must not say it in items.
    """
    plain = run(spider, answer, directory / "plain", has_line=False, **given)
    archived = run(spider, answer, directory / "archived", has_line=True, **given)
    assert plain.returncode == 0, plain.log
    assert archived.returncode == plain.returncode, archived.log
    assert archived.scraped == plain.scraped, archived.log
    assert len(archived.items) == len(plain.items)
    assert sorted(archived.asked) == sorted(plain.asked), archived.log
    return plain, archived
