"""The metrics endpoint: `/metrics` for Prometheus and `/healthz`, served by the crawl's event loop.

It takes a request head of at most 8 KiB within 5 s, GET or HEAD, one request a connection, and sixteen
connections at once, of which the oldest is closed when one more is opened. What it serves is readable by
everything that reaches its address. On a loopback address only a loopback `Host` is served: a page in a
browser on this machine could otherwise read it by rebinding a name of its own (DNS rebinding).

`METRICS` is the list that `docs/watching.md` repeats; a name keeps its meaning. Only the histogram of
fetch durations is counted while the crawl runs; everything else is read from what is counted anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import socket
from typing import TYPE_CHECKING, NamedTuple

import scrapy
from prometheus_client import (
    CollectorRegistry,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from scrapy import signals
from scrapy.exceptions import NotConfigured

from amicrawl import __version__
from amicrawl.crawl.decision import CLASSES
from amicrawl.crawl.extensions import CrawlExtension
from amicrawl.crawl.watching.progress import in_flight
from amicrawl.crawl.watching.stopping import free_bytes
from amicrawl.errors import UsageError
from amicrawl.socket_address import socket_address
from amicrawl.urls import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scrapy.crawler import Crawler

    from amicrawl.crawl.run import Run
    from amicrawl.record import CaptureItem


BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histogram, in seconds; the last bucket has none."""
_REASONS = ("file", "signal", "disk")
"""Reasons for a pause that are exposed also while not in force, so that a graph has their lines."""
_DURATION = "amicrawl_fetch_duration_seconds"


class ListedMetric(NamedTuple):
    """One metric and its description."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    meaning: str
    label: str = ""
    """The label that distinguishes its samples; empty if there is one sample."""


METRICS = (
    ListedMetric("amicrawl_build_info", "gauge", "1; the versions are labels."),
    ListedMetric("amicrawl_fetches_total", "counter", "Rows of the index, by class.", "class"),
    ListedMetric("amicrawl_received_bytes_total", "counter", "Bytes of response headers and bodies."),
    ListedMetric(_DURATION, "histogram", "Time from the start of a fetch to its last byte."),
    ListedMetric("amicrawl_seeds_total", "counter", "Seeds that were read, by result.", "state"),
    ListedMetric("amicrawl_urls", "gauge", "Rows of the frontier, by state.", "state"),
    ListedMetric("amicrawl_queued", "gauge", "Rows of the frontier that are queued."),
    ListedMetric("amicrawl_in_flight", "gauge", "Requests in flight."),
    ListedMetric("amicrawl_inflight_limit", "gauge", "Limit of requests in flight."),
    ListedMetric(
        "amicrawl_hosts_given_up", "gauge", "Hosts that are skipped because they never responded."
    ),
    ListedMetric("amicrawl_paused", "gauge", "1 while the crawl is paused for the reason.", "reason"),
    ListedMetric("amicrawl_stopping", "gauge", "1 while the crawl waits for what is in flight."),
    ListedMetric("amicrawl_warc_files_sealed_total", "counter", "Finished WARC files of this crawl."),
    ListedMetric(
        "amicrawl_warc_bytes_sealed_total", "counter", "Bytes of finished WARC files of this crawl."
    ),
    ListedMetric("amicrawl_output_free_bytes", "gauge", "Free space where the crawl is written to."),
)
"""Every metric of ours. Those of the process (`process_...`) are prometheus_client's."""


class CrawlMetrics:
    """The metrics of one crawl, in a registry of their own."""

    def __init__(self, run: Run, *, in_flight: Callable[[], int]) -> None:
        """Read the numbers of *run*; *in_flight* counts the requests that are under way."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._run = run
        self._in_flight = in_flight
        self._registry = CollectorRegistry()
        meaning = next(each.meaning for each in METRICS if each.name == _DURATION)
        self._durations = Histogram(_DURATION, meaning, buckets=BUCKETS, registry=self._registry)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, item: CaptureItem) -> None:
        """Count how long the fetch of *item* took, if a server was contacted."""
        if item.attempts:
            self._durations.observe(item.capture.duration_ms / 1000)

    def exposition(self) -> bytes:
        """Return all metrics in the text format 0.0.4."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric but the histogram, as it is now."""
        yield _build_info()
        values = dict(self._values())
        for name, kind, meaning, label in METRICS:
            if name in values:
                family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
                metric = family(name, meaning, labels=[label] if label else [])
                for each, number in values[name].items():
                    metric.add_metric([each] if label else [], number)
                yield metric

    def _values(self) -> Iterator[tuple[str, Mapping[str, float]]]:
        """Yield what each metric is now, by the value of its label; by "" where it has none."""
        run, tally = self._run, self._run.tally
        yield "amicrawl_fetches_total", {name: getattr(tally, name) for name in CLASSES}
        yield "amicrawl_received_bytes_total", {"": tally.bytes_received}
        states = ("read", "bad", "elsewhere", "known")
        yield "amicrawl_seeds_total", {state: getattr(tally, f"seeds_{state}") for state in states}
        if run.has_frontier:
            yield "amicrawl_urls", run.urls_by_state
            yield "amicrawl_queued", {"": run.frontier.queued}
        yield "amicrawl_in_flight", {"": self._in_flight()}
        yield "amicrawl_inflight_limit", {"": run.limit.limit}
        yield "amicrawl_hosts_given_up", {"": len(run.breaker.given_up)}
        reasons = dict.fromkeys([*_REASONS, *sorted(run.paused)])
        yield "amicrawl_paused", {reason: int(reason in run.paused) for reason in reasons}
        yield "amicrawl_stopping", {"": int(run.stopping)}
        sizes = [file.size for file in run.sealed if file.name.endswith(".warc.gz")]
        yield "amicrawl_warc_files_sealed_total", {"": len(sizes)}
        yield "amicrawl_warc_bytes_sealed_total", {"": sum(sizes)}
        free = free_bytes(run.config.directory)
        if free is not None:
            yield "amicrawl_output_free_bytes", {"": free}


def _build_info() -> Metric:
    versions = {
        "version": __version__,
        "scrapy": scrapy.__version__,
        "python": platform.python_version(),
    }
    info, _, meaning, _ = METRICS[0]
    metric = GaugeMetricFamily(info, meaning, labels=list(versions))
    metric.add_metric(list(versions.values()), 1)
    return metric


logger = logging.getLogger(__name__)

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HEAD_LIMIT = 8192
_TIME_LIMIT = 5.0
_MOST_CONNECTIONS = 16


class MetricsEndpoint(CrawlExtension):
    """Serves the numbers of one crawl; not there where `AMICRAWL_METRICS` is empty."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Take the address; raises UsageError where it cannot be had, before anything was fetched."""
        if not run.config.metrics:
            raise NotConfigured
        super().__init__(crawler, run)
        self._metrics = CrawlMetrics(run, in_flight=lambda: in_flight(crawler, run))
        self._socket = _bound(*socket_address(run.config.metrics))
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, None] = {}
        """Those that are open, oldest first."""
        host, port = self._socket.getsockname()[:2]
        self._is_loopback = is_loopback(host)
        if not self._is_loopback:
            logger.warning(
                "Metrics are served on %s, where others than this machine may read them.", host
            )
        run.metrics_url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
        run.tally.on_count.append(self._metrics.count)
        crawler.signals.connect(self._stopped, signals.engine_stopped)

    async def _opened(self) -> None:
        logger.info("Metrics are served at %s", self._run.metrics_url)
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_HEAD_LIMIT)

    def _stopped(self) -> None:
        # Not at spider_closed: what a crawl looks like while its last calls are made can be seen.
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = None
        if len(self._connections) > _MOST_CONNECTIONS:
            # A client that only holds a connection keeps no other from connecting.
            next(iter(self._connections)).transport.abort()
        try:
            async with asyncio.timeout(_TIME_LIMIT):
                head = await reader.readuntil(b"\r\n\r\n")
                if writer.is_closing():
                    return
                writer.write(self._response(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # A client that requests nothing, or for too long, is not worth a line of the log.
            pass
        finally:
            del self._connections[writer]
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _response(self, head: bytes) -> bytes:
        """Return the whole response to the request that *head* begins; a body would not be read."""
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if not _serves(head, loopback=self._is_loopback):
            return _response("421 Misdirected Request", b"Use the address, or localhost.\n")
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"GET or HEAD\n", "Allow: GET, HEAD")
        if path == b"/metrics":
            response = _response("200 OK", self._metrics.exposition(), content_type=_CONTENT_TYPE)
        elif path == b"/healthz":
            run = self._run
            # Of a seed list that is cut, what was read is crawled: that it fails is said at its end.
            goes_on = run.fault is None or (run.fault is run.seed_fault and not run.finish_reason)
            status = "200 OK" if goes_on else "503 Service Unavailable"
            response = _response(status, f"{run.state}\n".encode())
        else:
            response = _response("404 Not Found", b"/metrics or /healthz\n")
        return response if method == b"GET" else response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def _serves(head: bytes, *, loopback: bool) -> bool:
    """Tell whether the `Host` of the request in *head* is one that a server on such an address has."""
    if not loopback:
        return True
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"host":
            host = value.strip().decode("latin-1")
            return is_loopback(host[1:].partition("]")[0] if host[:1] == "[" else host.partition(":")[0])
    # HTTP/1.0 has no Host; a browser always sends one.
    return True


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
