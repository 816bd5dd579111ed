"""A crawl of a job as a child process, and a site that responds as long as a test wants it to."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import warm_processes
from loopback import PROJECT, QUICK, environment, page

from amicrawl.fleet.database.connection import JobStore, connect
from amicrawl.fleet.jobs.submission import Submission, submit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from redis_server import RedisServer

PATIENCE = 120.0
PACE_IS_THE_JOBS = ("AMICRAWL_DELAY", "AMICRAWL_PER_HOST")


def path_of(request: bytes) -> str:
    """Return the path of *request*."""
    return request.split()[1].decode()


def site(pages: int) -> Callable[[bytes], bytes]:
    """Return what responds for a site whose first page links to *pages* others, /p/0 and so on."""

    def respond(request: bytes) -> bytes:
        path = path_of(request)
        if path == "/":
            links = b"".join(b'<a href="/p/%d">x</a>' % number for number in range(pages))
            return page(links, "Content-Type: text/html")
        return page(b"this is " + path.encode(), "Content-Type: text/html")

    return respond


def lines_of(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the lines of text among *entries* of a log."""
    return "".join(entry["message"] for entry in entries if entry["type"] == "stdout")


def submitted(server: RedisServer, url: str, **wishes: Any) -> str:
    """Submit a job of *url* without ignores but those in *wishes*; return its ident."""
    store = store_of(server)
    try:
        return submit(store, Submission(url=url, **wishes), now=time.time()).ident
    finally:
        store.close()


def store_of(server: RedisServer) -> JobStore:
    """Return the way to *server*."""
    return connect({"REDIS_URL": server.url})


class JobCrawl:
    """`scrapy crawl job` of *ident* into *out*."""

    def __init__(
        self,
        server: RedisServer,
        ident: str,
        out: Path,
        *,
        settings: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.out = out
        self._server = server
        self.ident = ident
        line = [
            sys.executable,
            "-m",
            "scrapy",
            "crawl",
            "job",
            "-a",
            f"ident={ident}",
            "-a",
            f"out={out}",
        ]
        quick = {name: value for name, value in QUICK.items() if name not in PACE_IS_THE_JOBS}
        for name, value in {**quick, "LOG_LEVEL": "INFO", **(settings or {})}.items():
            line += ["-s", f"{name}={value}"]
        self._log = out.parent / f"{out.name}-{time.monotonic_ns()}.log"
        with self._log.open("wb") as log:
            self.process = warm_processes.Popen(
                line,
                cwd=PROJECT,
                env={**environment(), "REDIS_URL": server.url, **(variables or {})},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return self._log.read_text()

    def record(self) -> dict[str, str]:
        """Return its record as Redis holds it."""
        with self._server.client() as client:
            found: dict[str, str] = client.hgetall(self.ident)
            return found

    def facts(self, name: str = "now") -> Any:
        """Return one of its facts; empty while there is none."""
        with self._server.client() as client:
            told = client.hget(f"amicrawl:facts:{self.ident}", name)
            return json.loads(str(told)) if told else {}

    def entries(self) -> list[dict[str, Any]]:
        """Return its log."""
        with self._server.client() as client:
            return [json.loads(text) for text in client.zrange(f"{self.ident}_log", 0, -1)]

    def said(self) -> str:
        """Return the lines of text in its log."""
        return lines_of(self.entries())

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for *condition*, not for ever; what is not there yet counts as not so."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(KeyError, FileNotFoundError):
                if condition():
                    return
            assert time.monotonic() < deadline, f"waited in vain: {self.stderr}"
            assert self.process.poll() is None, f"ended too soon: {self.stderr}"
            time.sleep(0.05)

    def downloaded(self) -> int:
        """Return how many pages its record tells of."""
        return int(self.record().get("items_downloaded", 0))

    def watched_to_its_end(self) -> tuple[int, dict[str, str], list[dict[str, Any]]]:
        """Wait for its end; return the exit code, and the last of its record and log that was there.

        Those of an aborted job are gone after 5 s.
        """
        deadline = time.monotonic() + PATIENCE
        record, entries = self.record(), self.entries()
        while (code := self.process.poll()) is None:
            assert time.monotonic() < deadline, self.stderr
            record, entries = self.record() or record, self.entries() or entries
            time.sleep(0.05)
        return code, self.record() or record, self.entries() or entries

    def ended(self) -> int:
        """Wait for its end and return the exit code."""
        return self.process.wait(PATIENCE)
