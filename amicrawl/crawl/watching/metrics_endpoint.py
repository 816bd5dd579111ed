"""The metrics endpoint: `/metrics` for Prometheus and `/healthz`, answered by the crawl's event loop.

It is no web server: a request head of 8 KiB at most, within 5 s, GET and HEAD, one answer a connection,
sixteen connections at once, of which the oldest goes when one more comes. Whoever reaches it can read
the numbers, so it listens where it is told and nowhere else, and says so where others can reach it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import resource
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Self

import scrapy
from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl import __version__
from amicrawl.crawl.run import Run, run_of
from amicrawl.crawl.watching.metrics import CONTENT_TYPE, Durations, Sample, counts_told, exposition
from amicrawl.crawl.watching.stopping import free_bytes
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler

    from amicrawl.record import CaptureItem

logger = logging.getLogger(__name__)

_HEAD_LIMIT = 8192
_TIME_LIMIT = 5.0
_MOST_CONNECTIONS = 16
_REASONS = ("file", "signal", "disk")
"""Reasons for a pause that are told while they are not in force, so that a graph has a line for them."""


class MetricsEndpoint:
    """Serves the numbers of one crawl; not there where `AMICRAWL_METRICS` is empty."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Take the address; raises UsageError where it cannot be had, before anything was fetched."""
        if not run.config.metrics:
            raise NotConfigured
        self._crawler = crawler
        self._run = run
        self._durations = Durations()
        self._socket = _bound(*parsed_address(run.config.metrics))
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, None] = {}
        """Those that are open, oldest first."""
        host, port = self._socket.getsockname()[:2]
        run.metrics_url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
        run.on_count.append(self._counted)
        crawler.signals.connect(self._opened, signals.spider_opened)
        crawler.signals.connect(self._stopped, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*."""
        return cls(crawler, run_of(crawler))

    def _counted(self, item: CaptureItem) -> None:
        if item.attempts:
            self._durations.add(item.capture.duration_ms)

    async def _opened(self) -> None:
        logger.info("Metrics are served at %s", self._run.metrics_url)
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_HEAD_LIMIT)

    def _stopped(self) -> None:
        # Not at spider_closed: what a crawl looks like while its last calls are made can be asked for.
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = None
        if len(self._connections) > _MOST_CONNECTIONS:
            # Who only holds a connection keeps nobody else from asking.
            next(iter(self._connections)).transport.abort()
        try:
            async with asyncio.timeout(_TIME_LIMIT):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Somebody who asks for nothing, or for too long, is not worth a line of the log.
            pass
        finally:
            del self._connections[writer]
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        """Return the whole response to the request that *head* begins; a body would not be read."""
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"GET or HEAD\n", "Allow: GET, HEAD")
        if path == b"/metrics":
            response = _response("200 OK", exposition(self.samples()), content_type=CONTENT_TYPE)
        elif path == b"/healthz":
            fault = self._run.fault
            status = "200 OK" if fault is None else "503 Service Unavailable"
            response = _response(status, f"{self._run.state}\n".encode())
        else:
            response = _response("404 Not Found", b"/metrics or /healthz\n")
        return response if method == b"GET" else response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    def samples(self) -> Iterator[Sample]:
        """Yield every number as it is now."""
        run = self._run
        versions = {"version": __version__, "scrapy": scrapy.__version__}
        yield Sample("amicrawl_build_info", 1, {**versions, "python": platform.python_version()})
        yield from counts_told(run.tally)
        yield from self._durations.samples("amicrawl_fetch_duration_seconds")
        if run.has_frontier:
            for status, count in run.frontier.counts.items():
                yield Sample("amicrawl_urls", count, {"state": status.name.lower()})
            yield Sample("amicrawl_queued", run.frontier.queued)
        sizes = [file.size for file in run.sealed if file.name.endswith(".warc.gz")]
        yield Sample("amicrawl_warc_files_sealed_total", len(sizes))
        yield Sample("amicrawl_warc_bytes_sealed_total", sum(sizes))
        yield Sample("amicrawl_in_flight", len(self._crawler.engine.downloader.active))
        yield Sample("amicrawl_inflight_limit", run.limit.limit)
        yield Sample("amicrawl_hosts_given_up", run.breaker.given_up)
        for reason in dict.fromkeys([*_REASONS, *sorted(run.paused)]):
            yield Sample("amicrawl_paused", int(reason in run.paused), {"reason": reason})
        yield Sample("amicrawl_stopping", int(run.stopping))
        free = free_bytes(run)
        if free is not None:
            yield Sample("amicrawl_output_free_bytes", free)
        yield from _process_told()


def parsed_address(text: str) -> tuple[str, int]:
    """Return host and port of *text*, `127.0.0.1:9410`, `[::1]:9410` or `localhost:9410`.

    Raises UsageError for anything else. A name other than `localhost` is refused: what it stands for
    elsewhere decides who can read the numbers.
    """
    host, colon, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        address = ip_address(host)
        number = int(port)
    except ValueError:
        address, number = None, -1
    if address is None or not colon or not 0 <= number <= 65535 or not port.isascii():
        raise UsageError(
            f"Setting AMICRAWL_METRICS is {text!r}: write an address and a port, as in 127.0.0.1:9410 "
            "(0.0.0.0:9410 for all that this machine has; port 0 for any that is free)."
        )
    if not address.is_loopback:
        logger.warning("Metrics are served on %s, where others than this machine may read them.", text)
    return str(address), number


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_MOST_CONNECTIONS)
    except OSError as error:
        raise UsageError(
            f"Metrics cannot be served on {host} port {port}: {error.strerror or error}. Choose another "
            "address with AMICRAWL_METRICS, or end what has this one."
        ) from error


def _response(
    status: str, body: bytes, *fields: str, content_type: str = "text/plain; charset=utf-8"
) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *fields,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _process_told() -> Iterator[Sample]:
    """Yield what the system says of this process; less where there is no `/proc`."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield Sample("process_cpu_seconds_total", round(used.ru_utime + used.ru_stime, 3))
    yield Sample("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    with contextlib.suppress(OSError, ValueError, IndexError):
        # Behind the name, which may hold blanks and brackets; fields of proc(5), the third comes first.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/stat").read_text().partition("btime ")[2].split()[0]
        ticks = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        yield Sample("process_start_time_seconds", int(boot) + round(ticks, 2))
        yield Sample("process_resident_memory_bytes", int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
        yield Sample("process_open_fds", len(os.listdir("/proc/self/fd")))  # noqa: PTH208
