"""In force: how a running crawl is to be paced and what it ignores, of all that have a say in it.

    configuration < job (orders in Redis) < control files

Each source has its layer; of several that name a value, the one further right counts, and a value that
is taken back uncovers the one below it. Ignore patterns of all layers count together. The gates, the
status file and the dashboard read from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.config import CrawlConfig
    from amicrawl.discovery import IgnoreSet


@dataclass(slots=True)
class Layer:
    """What one source says; None where it says nothing. Delays are seconds."""

    delay: float | None = None
    delay_max: float | None = None
    """Each request draws its own delay between `delay` and this."""
    per_host: int | None = None
    concurrency: int | None = None
    ignores: set[str] = field(default_factory=set)
    """Patterns that it wants, those included that are there anyway."""


class InForce:
    """What is in force in one crawl."""

    def __init__(self, config: CrawlConfig) -> None:
        self._config = config
        self.random = Random()  # noqa: S311  # no secret
        self.of_job = Layer()
        self.of_files = Layer()
        self._strongest_first = (self.of_files, self.of_job)
        self._added: dict[str, None] = {}
        """Patterns that are there only because a layer wants them."""

    @property
    def delay(self) -> float:
        """Least seconds between two requests to a host."""
        said = (layer.delay for layer in self._strongest_first)
        return next((value for value in said if value is not None), self._config.delay)

    @property
    def delay_max(self) -> float:
        """Greatest seconds that a request draws; as `delay` where none is said together with it."""
        for layer in self._strongest_first:
            if layer.delay is not None or layer.delay_max is not None:
                return max(self.delay, layer.delay_max or 0.0)
        return self.delay

    @property
    def per_host(self) -> int:
        """Requests to one host that may be in flight."""
        said = (layer.per_host for layer in self._strongest_first)
        return next((value for value in said if value is not None), self._config.per_host)

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight in all: what the process was made ready for at most."""
        most = self._config.inflight_max
        said = (layer.concurrency for layer in self._strongest_first)
        return min(next((value for value in said if value is not None), most), most)

    @property
    def ignores(self) -> list[str]:
        """Patterns that count besides those of the configuration, in the order in which they came."""
        return list(self._added)

    @property
    def jitter(self) -> Callable[[], float] | None:
        """What draws the seconds that a request adds to the delay; None for none."""
        span = self.delay_max - self.delay
        return (lambda: self.random.random() * span) if span > 0 else None

    def want(self, layer: Layer, pattern: str, ignores: IgnoreSet, *, named: str = "") -> bool:
        """Have *ignores* hold *pattern* as long as *layer* wants it; False where it is there anyway.

        *named* is what its hits are counted under. Raises UsageError for one that cannot be used.
        """
        is_new = pattern not in ignores
        if is_new:
            ignores.add(pattern, source=named)
            self._added[pattern] = None
        layer.ignores.add(pattern)
        return is_new

    def drop(self, layer: Layer, patterns: Iterable[str], ignores: IgnoreSet) -> int:
        """Note that *layer* does not want *patterns* any more; return how many count no longer."""
        dropped = 0
        for pattern in list(patterns):
            layer.ignores.discard(pattern)
            is_wanted = any(pattern in each.ignores for each in self._strongest_first)
            if pattern in self._added and not is_wanted:
                del self._added[pattern]
                dropped += ignores.remove(pattern)
        return dropped
