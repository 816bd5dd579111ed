"""Orders: what Redis says of how a job is to be crawled, done to its `Run`. Knows no Redis and no loop.

    delay_min, delay_max    least and greatest time between two requests to a host: each request draws
                            its own in between
    concurrency             requests in flight at most, over all hosts, and to any one of them
    ignores                 expressions that keep URLs out; what waits is asked again as it comes up
    paused                  nothing new is fetched

What cannot be followed is told once, and what was in force stays so.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.crawl.run import Run
    from amicrawl.jobs.live import LiveSettings

BY_OPERATOR = "operator"
"""The reason for a pause that somebody asked for in Redis."""
MOST_FAULTS = 20


class Orders:
    """What is in force in one job."""

    def __init__(self, run: Run, *, random: Random | None = None) -> None:
        self._run = run
        self._random = random or Random()  # noqa: S311  # no secret
        self.delay = run.config.delay
        """Seconds."""
        self.delay_max = run.config.delay
        """Seconds."""
        self.concurrency = min(run.config.inflight_max, run.config.per_host)
        self.suppress_ignore_reports = False
        self.age = ""
        self.faults: tuple[str, ...] = ()
        """What in Redis cannot be followed as it stands."""
        self._ignores: set[str] = set()
        """The expressions of the job that are in force."""
        self._refused: dict[str, str] = {}
        """Those that cannot be used, and why."""
        self._there: set[str] = set()
        """Those that the crawl has anyway, and keeps whatever the job says."""

    def follow(self, settings: LiveSettings) -> list[str]:
        """Do what *settings* say; return what is new about that, one clause each, for the log."""
        told = self._follow_pace(settings)
        if settings.ignores is not None:
            told += self._follow_ignores(settings.ignores)
        if settings.suppress_ignore_reports != self.suppress_ignore_reports:
            self.suppress_ignore_reports = settings.suppress_ignore_reports
            told.append("ignore reports off" if self.suppress_ignore_reports else "ignore reports on")
        if settings.paused is not None:
            told += self._follow_pause(wanted=settings.paused)
        self.age = settings.age
        self.faults = (*settings.faults, *self._refused.values())[:MOST_FAULTS]
        return told

    def _follow_pace(self, settings: LiveSettings) -> list[str]:
        shortest, longest = self.delay, self.delay_max
        if settings.delay_min is not None:
            shortest = settings.delay_min / 1000
        if settings.delay_max is not None:
            longest = settings.delay_max / 1000
        longest = max(shortest, longest)
        concurrency = self.concurrency
        if settings.concurrency is not None:
            # The process has been made ready for so many connections, and no more.
            concurrency = min(settings.concurrency, self._run.config.inflight_max)
        if (shortest, longest, concurrency) == (self.delay, self.delay_max, self.concurrency):
            return []
        self.delay, self.delay_max, self.concurrency = shortest, longest, concurrency
        self._run.change_pace(delay=shortest, per_host=concurrency, further=self._further())
        self._run.limit.change_maximum(concurrency)
        self._run.wake()
        return [f"{concurrency} workers, {shortest * 1000:g} to {longest * 1000:g} ms delay"]

    def _further(self) -> Callable[[], float] | None:
        span = self.delay_max - self.delay
        return (lambda: self._random.random() * span) if span > 0 else None

    def _follow_ignores(self, wanted: frozenset[str]) -> list[str]:
        following = self._run.following
        known = self._ignores | self._refused.keys() | self._there
        if following is None or wanted == known:
            return []
        ignores = following.selection.ignores
        everything = set(ignores)
        added = removed = 0
        for pattern in sorted(wanted - known):
            if pattern in everything:
                self._there.add(pattern)
                continue
            try:
                ignores.add(pattern)
                self._ignores.add(pattern)
                added += 1
            except UsageError as fault:
                self._refused[pattern] = f"ignore {pattern[:100]!a}: {fault}"
        for pattern in self._ignores - wanted:
            ignores.remove(pattern)
            removed += 1
        self._ignores &= wanted
        self._there &= wanted
        self._refused = {pattern: why for pattern, why in self._refused.items() if pattern in wanted}
        self._run.wake()
        return [f"{len(self._ignores)} ignores ({added} new, {removed} gone)"]

    def _follow_pause(self, *, wanted: bool) -> list[str]:
        if wanted and BY_OPERATOR not in self._run.paused:
            self._run.pause(BY_OPERATOR)
            return ["paused"]
        if not wanted and BY_OPERATOR in self._run.paused:
            self._run.resume(BY_OPERATOR)
            return ["going on"]
        return []
