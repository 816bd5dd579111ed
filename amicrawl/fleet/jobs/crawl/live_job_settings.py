"""Live settings of a job, applied to its `Run`. Knows no Redis and no loop.

    delay_min, delay_max    least and greatest time between two requests to a host: each request draws
                            its own in between
    concurrency             requests in flight at most, over all hosts, and to any one of them
    ignores                 expressions that keep URLs out; what waits is checked again as it comes up
    paused                  nothing new is fetched

A control file on the machine counts before what Redis says (`in_force`). What cannot be followed is
said once, and what was in force stays so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from random import Random

    from amicrawl.crawl import Run
    from amicrawl.fleet.jobs.live_settings import LiveSettings

BY_OPERATOR = "operator"
"""The reason for a pause that was requested in Redis."""
MOST_FAULTS = 20


class LiveJobSettings:
    """What is in force in one job."""

    def __init__(self, run: Run, *, random: Random | None = None) -> None:
        self._run = run
        self._in_force = run.in_force
        self._layer = run.in_force.of_job
        if random is not None:
            run.in_force.random = random
        self.suppress_ignore_reports = False
        self.age = ""
        self.faults: tuple[str, ...] = ()
        """What in Redis cannot be followed as it stands."""
        self._refused: dict[str, str] = {}
        """Expressions that cannot be used, and why."""

    @property
    def delay(self) -> float:
        """Seconds, in force."""
        return self._in_force.delay

    @property
    def delay_max(self) -> float:
        """Seconds, in force."""
        return self._in_force.delay_max

    @property
    def concurrency(self) -> int:
        """Requests in flight at most, in all and to any one host, in force."""
        return min(self._in_force.concurrency, self._in_force.per_host)

    def follow(self, settings: LiveSettings) -> list[str]:
        """Do what *settings* say; return what is new about that, one clause each, for the log."""
        changed = self._follow_pace(settings)
        if settings.ignores is not None:
            changed += self._follow_ignores(settings.ignores)
        is_hidden = not settings.values.get("suppress_ignore_reports", True)
        if is_hidden != self.suppress_ignore_reports:
            self.suppress_ignore_reports = is_hidden
            changed.append("ignored URLs " + ("not " * self.suppress_ignore_reports) + "logged")
        if settings.paused is not None:
            changed += self._follow_pause(wanted=settings.paused)
        self.age = settings.age
        self.faults = (*settings.faults, *self._refused.values())[:MOST_FAULTS]
        return changed

    def _follow_pace(self, settings: LiveSettings) -> list[str]:
        layer, before = self._layer, self._shown()
        values = {name: int(value) for name, value in settings.values.items() if type(value) is int}
        if "delay_min" in values:
            layer.delay = values["delay_min"] / 1000
        if "delay_max" in values:
            layer.delay_max = values["delay_max"] / 1000
        if "concurrency" in values:
            layer.concurrency = layer.per_host = min(
                values["concurrency"], self._run.config.inflight_max
            )
        if self._shown() == before:
            return []
        self._run.follow_in_force()
        return [self._shown()]

    def _shown(self) -> str:
        span = f"{self.delay * 1000:g} to {self.delay_max * 1000:g} ms"
        return f"concurrency {self.concurrency}, delay {span}"

    def _follow_ignores(self, wanted: frozenset[str]) -> list[str]:
        following = self._run.following
        known = self._layer.ignores | self._refused.keys()
        if following is None or wanted == known:
            return []
        ignores = following.selection.ignores
        added = 0
        for pattern in sorted(wanted - known):
            try:
                added += self._in_force.want(self._layer, pattern, ignores)
            except UsageError as fault:
                self._refused[pattern] = f"ignore {pattern[:100]!a}: {fault}"
        removed = self._in_force.drop(self._layer, self._layer.ignores - wanted, ignores)
        self._refused = {pattern: why for pattern, why in self._refused.items() if pattern in wanted}
        self._run.wake()
        return [f"{len(self._in_force.ignores)} ignore patterns ({added} added, {removed} removed)"]

    def _follow_pause(self, *, wanted: bool) -> list[str]:
        if wanted and BY_OPERATOR not in self._run.paused:
            self._run.pause(BY_OPERATOR)
            return ["paused"]
        if not wanted and BY_OPERATOR in self._run.paused:
            self._run.resume(BY_OPERATOR)
            return ["resumed"]
        return []
