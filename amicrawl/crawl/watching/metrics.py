"""What a crawl exposes to Prometheus: the metrics by name, read when a scrape asks for them.

`METRICS` is the list that `docs/watching.md` repeats; a name keeps its meaning. Only the histogram of
fetch durations is counted while the crawl runs; everything else is read from what is counted anyway.
"""

from __future__ import annotations

import platform
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

from amicrawl import __version__
from amicrawl.crawl.tally import CLASSES
from amicrawl.crawl.watching.stopping import free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from amicrawl.crawl.run import Run
    from amicrawl.record import CaptureItem

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histogram, in seconds; the last bucket has none."""
_REASONS = ("file", "signal", "disk")
"""Reasons for a pause that are exposed also while not in force, so that a graph has their lines."""
_DURATION = "amicrawl_fetch_duration_seconds"


class Listed(NamedTuple):
    """One metric and its description."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    meaning: str
    label: str = ""
    """The label that distinguishes its samples; empty if there is one sample."""


METRICS = (
    Listed("amicrawl_build_info", "gauge", "1; the versions are labels."),
    Listed("amicrawl_fetches_total", "counter", "Rows of the index, by class.", "class"),
    Listed("amicrawl_received_bytes_total", "counter", "Bytes of response headers and bodies."),
    Listed(_DURATION, "histogram", "Time from the start of a fetch to its last byte."),
    Listed("amicrawl_seeds_total", "counter", "Seeds that were read, by result.", "state"),
    Listed("amicrawl_urls", "gauge", "Rows of the frontier, by state.", "state"),
    Listed("amicrawl_queued", "gauge", "Rows of the frontier that are queued."),
    Listed("amicrawl_in_flight", "gauge", "Requests in flight."),
    Listed("amicrawl_inflight_limit", "gauge", "Limit of requests in flight."),
    Listed("amicrawl_hosts_given_up", "gauge", "Hosts that are skipped because they never responded."),
    Listed("amicrawl_paused", "gauge", "1 while the crawl is paused for the reason.", "reason"),
    Listed("amicrawl_stopping", "gauge", "1 while the crawl waits for what is in flight."),
    Listed("amicrawl_warc_files_sealed_total", "counter", "Finished WARC files of this crawl."),
    Listed("amicrawl_warc_bytes_sealed_total", "counter", "Bytes of finished WARC files of this crawl."),
    Listed("amicrawl_output_free_bytes", "gauge", "Free space where the crawl is written to."),
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
        """Count how long the fetch of *item* took, if a server was asked."""
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
            counts = run.frontier.counts.items()
            yield "amicrawl_urls", {status.name.lower(): count for status, count in counts}
            yield "amicrawl_queued", {"": run.frontier.queued}
        yield "amicrawl_in_flight", {"": self._in_flight()}
        yield "amicrawl_inflight_limit", {"": run.limit.limit}
        yield "amicrawl_hosts_given_up", {"": run.breaker.given_up}
        reasons = dict.fromkeys([*_REASONS, *sorted(run.paused)])
        yield "amicrawl_paused", {reason: int(reason in run.paused) for reason in reasons}
        yield "amicrawl_stopping", {"": int(run.stopping)}
        sizes = [file.size for file in run.sealed if file.name.endswith(".warc.gz")]
        yield "amicrawl_warc_files_sealed_total", {"": len(sizes)}
        yield "amicrawl_warc_bytes_sealed_total", {"": sum(sizes)}
        free = free_bytes(run)
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
