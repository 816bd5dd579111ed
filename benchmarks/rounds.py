"""Rounds: every crawler archives the same pages from the same server, one crawler after the other.

Rounds are interleaved, and each begins with another crawler, so that what else the machine does falls on
all of them. A round in which an archive lacks a page is void and is reported as such.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import TYPE_CHECKING, Any, Self

from benchmarks.crawlers import ROOT, CrawlerMissingError
from benchmarks.measure import run
from benchmarks.server import addresses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.crawlers import Crawler
    from benchmarks.measure import Cost

TIMEOUT_S = 1800.0


class VoidError(Exception):
    """A round that does not count; the message says why."""


@dataclass(frozen=True, slots=True)
class Round:
    """One crawler's turn."""

    pages: int
    cost: Cost
    start_up: Cost
    """What a list of one page cost."""
    archive_bytes: int
    connections: int
    """Connections that were opened for the list."""


class Server:
    """The server process, for as long as the context lasts."""

    def __init__(self, hosts: int, *, paragraphs: int = 33, https: bool = False) -> None:
        self._hosts = hosts
        self._paragraphs = paragraphs
        self._scheme = "https" if https else "http"
        self._own = 0
        self.cpu_s = 0.0
        """User and system time of the server; known after the end."""

    def __enter__(self) -> Self:
        shown = [str(self._paragraphs), self._scheme]
        command = [sys.executable, "-m", "benchmarks.server", *shown]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.stdout.close()
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = used.ru_utime + used.ru_stime

    def urls(self, pages: int, *, kind: str = "page") -> list[str]:
        """Return the URLs of that many pages, or of another *kind* it has, the hosts taking turns."""
        hosts = addresses(self._hosts)
        return [self._url(number, hosts, kind) for number in range(pages)]

    def write_urls(self, path: Path, pages: int, *, kinds: Sequence[str]) -> None:
        """Write the URLs of that many pages to *path*, a line each; hosts, then *kinds*, take turns.

        Nothing is kept: a process that is started has the peak memory of the one that starts it.
        """
        hosts = addresses(self._hosts)
        with path.open("w") as lines:
            for number in range(pages):
                kind = kinds[number // len(hosts) % len(kinds)]
                lines.write(f"{self._url(number, hosts, kind)}\n")

    def _url(self, number: int, hosts: Sequence[str], kind: str) -> str:
        return f"{self._scheme}://{hosts[number % len(hosts)]}:{self._port}/{kind}/{number}"

    def connections(self) -> int:
        """Return how many connections were opened so far, over https with a handshake each."""
        context = ssl._create_unverified_context()  # noqa: SLF001  # the certificate is of no authority
        connection = (
            HTTPSConnection("127.0.0.1", self._port, context=context)
            if self._scheme == "https"
            else HTTPConnection("127.0.0.1", self._port)
        )
        with closing(connection):
            connection.request("GET", "/connections", headers={"Connection": "close"})
            self._own += 1
            return int(connection.getresponse().read()) - self._own


def make_ready(crawlers: Sequence[Crawler]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions of those *crawlers* that can run here, and why the others cannot."""
    versions, missing = {}, {}
    for crawler in crawlers:
        try:
            versions[crawler.name] = crawler.make_ready()
        except CrawlerMissingError as error:
            missing[crawler.name] = str(error)
    return versions, missing


def play(
    crawlers: Sequence[Crawler], server: Server, *, pages: int, rounds: int, directory: Path
) -> Iterator[tuple[str, Round | str]]:
    """Let *crawlers* archive into *directory*, *rounds* times; *pages* is for one with a share of 1.

    Yields the name of a crawler and its round, or why that round is void.
    """
    for number in range(rounds):
        first = number % len(crawlers)
        for crawler in (*crawlers[first:], *crawlers[:first]):
            urls = server.urls(max(1, int(pages * crawler.share)))
            try:
                yield crawler.name, _turn(crawler, urls, server, directory=directory / crawler.name)
            except VoidError as error:
                yield crawler.name, str(error)


def _turn(crawler: Crawler, urls: Sequence[str], server: Server, *, directory: Path) -> Round:
    start_up, _ = _archive(crawler, urls[:1], directory=directory)
    before = server.connections()
    cost, held = _archive(crawler, urls, directory=directory)
    return Round(len(urls), cost, start_up, held["archive_bytes"], server.connections() - before)


def _archive(crawler: Crawler, urls: Sequence[str], *, directory: Path) -> tuple[Cost, dict[str, Any]]:
    """Let *crawler* archive *urls*; return the cost and what the archive holds. Raises VoidError."""
    shutil.rmtree(directory, ignore_errors=True)
    out = directory / "archive"
    out.mkdir(parents=True)
    listed, log = directory / "urls.txt", directory / "log.txt"
    listed.write_text("".join(f"{url}\n" for url in crawler.in_order(urls)))
    command = crawler.command(listed, out)
    cost = run(command, cwd=out, env=crawler.environment(), log=log, timeout=TIMEOUT_S)
    if cost.exit_code != 0:
        raise VoidError(f"{crawler.name} ended with {cost.exit_code}; see {log}.")
    held = _held(listed, crawler.archives(out))
    if held["responses"] != len(urls) or held["missing"]:
        raise VoidError(
            f"{crawler.name} was sent for {len(urls)} pages; its archive holds {held['responses']} "
            f"responses and lacks {held['missing']} of the pages; see {log}."
        )
    shutil.rmtree(out)
    return cost, held


def _held(listed: Path, archives: Sequence[Path]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.contents", str(listed), *map(str, archives)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    held: dict[str, Any] = json.loads(done.stdout)
    return held


def as_json(turn: Round) -> dict[str, Any]:
    """Return *turn* with its rates."""
    return asdict(turn) | {
        "pages_per_cpu_s": turn.pages / turn.cost.cpu_s,
        "pages_per_s": turn.pages / turn.cost.wall_s,
    }
