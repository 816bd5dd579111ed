"""What a crawl tells Prometheus: the metrics by name, and the text format 0.0.4 that carries them.

`METRICS` is the list that `docs/watching.md` repeats. A name, once it is there, keeps its meaning.
Everything is read when somebody asks; all that is counted for it alone is how long fetches took.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.crawl.tally import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from amicrawl.crawl.tally import Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the histogram, in seconds; what took longer is in the last, unbounded one."""
_BOUNDS_MS = tuple(int(bound * 1000) for bound in BUCKETS)


class Metric(NamedTuple):
    """One line of the list: what a name stands for."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    meaning: str


class Sample(NamedTuple):
    """One number, of the metric *name*, apart from its others by *labels*."""

    name: str
    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""
    """What the name ends in besides, of a histogram: `_bucket`, `_sum`, `_count`."""


METRICS = (
    Metric("amicrawl_build_info", "gauge", "1; the versions are labels."),
    Metric("amicrawl_fetches_total", "counter", "Rows of the index, by class."),
    Metric("amicrawl_received_bytes_total", "counter", "Bytes of response heads and bodies."),
    Metric("amicrawl_fetch_duration_seconds", "histogram", "From a fetch's start to its last byte."),
    Metric("amicrawl_seeds_total", "counter", "Seeds that were read, and what became of them."),
    Metric("amicrawl_urls", "gauge", "Rows of the frontier, by state."),
    Metric("amicrawl_queued", "gauge", "Rows of the frontier that are still to be fetched."),
    Metric("amicrawl_in_flight", "gauge", "Requests that are under way."),
    Metric("amicrawl_inflight_limit", "gauge", "Requests that may be under way now."),
    Metric("amicrawl_hosts_given_up", "gauge", "Hosts that are skipped because they never answered."),
    Metric("amicrawl_paused", "gauge", "1 while the crawl is paused for the reason."),
    Metric("amicrawl_stopping", "gauge", "1 while what is in flight is being waited for."),
    Metric("amicrawl_warc_files_sealed_total", "counter", "Finished WARC files of this crawl."),
    Metric("amicrawl_warc_bytes_sealed_total", "counter", "Bytes of finished WARC files of this crawl."),
    Metric("amicrawl_output_free_bytes", "gauge", "Room left where the crawl is written to."),
    Metric("process_start_time_seconds", "gauge", "When the process started, since 1970."),
    Metric("process_cpu_seconds_total", "counter", "Processor time used, of user and system."),
    Metric("process_resident_memory_bytes", "gauge", "Memory in use."),
    Metric("process_open_fds", "gauge", "Open files and connections."),
    Metric("process_max_fds", "gauge", "How many may be open."),
)
"""Every metric there is, in the order they are told."""


@dataclass(slots=True)
class Durations:
    """How long fetches took, in buckets."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    """Fetches in each bucket alone, the unbounded one last."""
    total_ms: int = 0

    def add(self, milliseconds: int) -> None:
        """Count a fetch that took *milliseconds*."""
        self.counts[bisect_left(_BOUNDS_MS, milliseconds)] += 1
        self.total_ms += milliseconds

    def samples(self, name: str) -> Iterator[Sample]:
        """Yield what the histogram *name* consists of; a bucket holds those below it, too."""
        bounds = [*(f"{bound:g}" for bound in BUCKETS), "+Inf"]
        for bound, count in zip(bounds, accumulate(self.counts), strict=True):
            yield Sample(name, count, {"le": bound}, "_bucket")
        yield Sample(name, self.total_ms / 1000, suffix="_sum")
        yield Sample(name, sum(self.counts), suffix="_count")


def counts_told(tally: Tally) -> Iterator[Sample]:
    """Yield what *tally* has counted."""
    for name in CLASSES:
        yield Sample("amicrawl_fetches_total", getattr(tally, name), {"class": name})
    yield Sample("amicrawl_received_bytes_total", tally.bytes_received)
    for state in ("read", "bad", "elsewhere", "known"):
        yield Sample("amicrawl_seeds_total", getattr(tally, f"seeds_{state}"), {"state": state})


def exposition(samples: Iterable[Sample]) -> bytes:
    """Return *samples* in the text format 0.0.4, each below the help and the type of its metric.

    Raises KeyError for a sample that is of none of `METRICS`.
    """
    by_name: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}
    for sample in samples:
        by_name[sample.name].append(sample)
    lines = []
    for name, kind, meaning in METRICS:
        if by_name[name]:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [_line(sample) for sample in by_name[name]]
    return ("\n".join(lines) + "\n").encode()


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in sample.labels.items())
    value = f"{sample.value:d}" if isinstance(sample.value, int) else repr(sample.value)
    return f"{sample.name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
