"""Loopback servers for whole crawls, and the crawl itself as a child process."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import warm_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROJECT = Path(__file__).parents[1]
DATA = PROJECT / "tests" / "data"
"""Vectors and files of others that more than one room is tested with."""

QUICK = {
    # What a crawl says is read by tests.
    "AMICRAWL_LOG_FORMAT": "json",
    "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
    "AMICRAWL_DELAY": "0",
    "AMICRAWL_PER_HOST": "8",
    "AMICRAWL_ROBOTS": "ignore",
    "AMICRAWL_BACKOFF_MAX": "0",
    "AMICRAWL_RETRY_AFTER_MAX": "0",
}
"""Settings under which a crawl of a loopback server does not wait for anything."""

# Python does not name it. The number is that of all architectures that Python is common on.
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("qq")


class RawServer:
    """Responds to every request on 127.0.0.0/8 with what *respond* makes of it, byte for byte.

    *respond* gets the request head and returns the bytes to send, *pause* seconds later; the connection
    is closed behind them unless *keep_open*. `requests` holds each request head as it was received.
    """

    def __init__(
        self, respond: Callable[[bytes], bytes], *, keep_open: bool = False, pause: float = 0.0
    ) -> None:
        self._respond = respond
        self._keep_open = keep_open
        self._pause = pause
        self._stopping = threading.Event()
        self.requests: list[bytes] = []
        self._arrivals: list[tuple[float, bytes]] = []
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError, TimeoutError):
                    outer._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128

        self._server = Server(("", 0), Handler)
        with contextlib.suppress(OSError):  # a system that does not tell
            self._server.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.port = self._server.server_address[1]

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def arrivals(self) -> list[tuple[float, bytes]]:
        """When the requests came, in order and in seconds, with their heads.

        The kernel notes the moment while they are sent. This process may be late to read one, which
        would make the next look too close behind it.
        """
        return sorted(self._arrivals)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, connection: socket.socket) -> None:
        pending, moment = b"", 0.0
        while not self._stopping.is_set():
            while b"\r\n\r\n" not in pending:
                block, moment = _received(connection)
                if not block:
                    return
                pending += block
            head, blank, pending = pending.partition(b"\r\n\r\n")
            self.requests.append(head + blank)
            self._arrivals.append((moment, head + blank))
            self._stopping.wait(self._pause)
            connection.sendall(self._respond(head + blank))
            if not self._keep_open:
                return


def _received(connection: socket.socket) -> tuple[bytes, float]:
    """Return what *connection* holds, and when the last of it came."""
    block, notes, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(_STAMP.size))
    for level, kind, note in notes:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _STAMP.unpack(note)
            return block, seconds + nanoseconds / 1e9
    return block, time.time()


def page(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    """Return an ordinary response."""
    lines = "".join(f"{field}\r\n" for field in fields)
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


def command(
    file: str | Path,
    out: Path,
    *,
    arguments: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command line of a crawl of *file* into *out*."""
    return _spider("seeds", [f"file={file}", f"out={out}", *arguments], settings)


def _spider(name: str, arguments: Sequence[str], settings: Mapping[str, str] | None) -> list[str]:
    # Scrapy's command line has an event loop before it has the spider; a parent would start itself anew.
    is_parent = any(argument.startswith("processes=") for argument in arguments)
    program = ["-P", "-m", warm_processes.START] if is_parent else ["-m", "scrapy", "crawl"]
    line = [sys.executable, *program, name]
    for argument in arguments:
        line += ["-a", argument]
    for setting, value in {**QUICK, **(settings or {})}.items():
        line += ["-s", f"{setting}={value}"]
    return line


def recrawl(
    out: Path, *, arguments: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Fetch again what is due in *out* and return how it ended, with what it said."""
    return _run(recrawl_command(out, arguments=arguments, settings=settings))


def recrawl_command(
    out: Path, *, arguments: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> list[str]:
    """Return the command line that fetches again what is due in *out*."""
    return _spider("recrawl", [f"dir={out}", *arguments], settings)


def crawl_site(
    url: str,
    out: Path,
    *,
    arguments: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Crawl the site at *url* into *out* and return how it ended, with what it said."""
    return _run(site_command(url, out, arguments=arguments, settings=settings))


def site_command(
    url: str,
    out: Path,
    *,
    arguments: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command line of a crawl of the site at *url* into *out*."""
    return _spider("site", [f"url={url}", f"out={out}", *arguments], settings)


def crawl(
    file: str | Path,
    out: Path,
    *,
    arguments: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess[str]:
    """Crawl *file* into *out* and return how it ended, with what it said."""
    return _run(command(file, out, arguments=arguments, settings=settings), stdin=stdin)


def _run(line: list[str], *, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    done = warm_processes.run(
        line,
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        input=stdin,
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def crawl_foreign(
    arguments: Sequence[str], *, settings: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run the spider `stories` of the foreign project in `tests/foreign_project`."""
    line = [sys.executable, "-m", "scrapy", "crawl", "stories", *arguments]
    for name, value in {**QUICK, **settings}.items():
        line += ["-s", f"{name}={value}"]
    return warm_processes.run(
        line,
        cwd=PROJECT / "tests" / "foreign_project",
        env={**environment(), "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens.

    It is below those that the system assigns: until it is used, one of those could be given to a server
    or to a connection of another test.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def environment() -> dict[str, str]:
    """Return the environment of a child: no proxies, no Scrapy settings from outside."""
    return {
        k: v
        for k, v in os.environ.items()
        if not k.lower().endswith("_proxy") and not k.startswith("SCRAPY_")
    }


def write_lines(path: Path, urls: Sequence[str]) -> Path:
    """Write a seed list of *urls* to *path* and return it."""
    path.write_text("".join(f"{url}\n" for url in urls))
    return path


def write_jsonl(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write a seed list of objects to *path* and return it."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def slow_python(directory: Path) -> tuple[dict[str, str], Callable[[], None]]:
    """Return an environment in which Python goes on to start once SIGINT waits for it, or after 20 s.

    What is returned with it waits until such a Python has come that far.
    """
    mark = directory / "python-starts"
    (directory / "sitecustomize.py").write_text(
        "import pathlib, signal, time\n"
        f"pathlib.Path({str(mark)!r}).touch()\n"
        "for _ in range(2000):\n"
        "    if signal.SIGINT in signal.sigpending():\n"
        "        break\n"
        "    time.sleep(0.01)\n"
    )

    def has_begun() -> None:
        while not mark.exists():
            time.sleep(0.01)

    return {**os.environ, "PYTHONPATH": str(directory)}, has_begun
