"""Supervisor: takes units of work into its slots, watches their crawls, and reports how they end.

    take -> directory, fence -> crawl as a child process -> its end -> completed, or given back

A unit is a job (`pipeline.py`) or a partition of a shared crawl (`sharing/worker.py`); both are held by
a claim with a lease and a fencing token (`lease.py`). One thread does everything except copying files
and reading the children's output. While Redis is unavailable the crawls continue, no decision is made,
and it is tried again after growing pauses.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, TypeVar

import redis

from amicrawl.errors import AmicrawlError
from amicrawl.fleet.checkpoints import show_life
from amicrawl.fleet.jobs.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from pathlib import Path

    from amicrawl.fleet.leases import Claim, Claims

TICK = 0.2
"""Seconds between two looks at the children."""
SECOND = 1.0
"""Seconds between two rounds of requests to Redis, at most a quarter of the lease."""
LONGEST_PAUSE = 5.0
"""Longest pause, in seconds, between two tries while Redis does not respond."""
HURRY = 15.0
"""Seconds that crawls have to seal their files after the second signal, before they are killed."""


class Mode(IntEnum):
    """What a supervisor is doing; the value only increases."""

    RUNS = 0
    FINISHES = 1
    """It takes no more units, and runs those it has to their end."""
    RELEASES = 2
    """It takes no more units, stops its crawls, and gives their units back."""
    HURRIES = 3
    """Its crawls seal their files at once."""


@dataclass(slots=True)
class _Outage:
    """How long Redis has not responded."""

    failures: int = 0
    until: float = field(default=float("-inf"))


Unit = TypeVar("Unit", bound=Attempt)


class Supervisor(ABC, Generic[Unit]):
    """The slots of one process, and the crawls in them."""

    def __init__(
        self,
        claims: Claims,
        data: Path,
        *,
        slots: int,
        lease: timedelta,
        report: Callable[[str], object],
        on_signal: Mode = Mode.RELEASES,
        end_patience: float = 0,
        wait: Callable[[float], object],
    ) -> None:
        """*report* shows the operator a sentence.

        *end_patience*: seconds that crawls get to stop, before they are killed, if this one fails.
        """
        self._claims = claims
        self._data = data
        self._slots = slots
        self._lease = lease
        self._report = report
        self._on_signal = on_signal
        self._end_patience = end_patience
        self._wait = wait
        self._every = min(SECOND, lease.total_seconds() / 4)
        self._outage = _Outage()
        self._looked = float("-inf")
        self._shown = float("-inf")
        self._hurry_since: float | None = None
        self._signals: list[None] = []
        self.mode = Mode.RUNS
        self.attempts: list[Unit] = []

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do, now or later."""
        return self.mode > Mode.RUNS and not self.attempts

    def signalled(self) -> None:
        """Register a signal to stop: the first drains, the second hurries, the third kills.

        It is acted upon in the next turn: a signal handler may call this at any point.
        """
        self._signals.append(None)

    def run(self) -> None:
        """Work until there is nothing left to do."""
        try:
            while not self.is_over:
                self.turn()
                self._wait(TICK)
        finally:
            self._end_children()

    def turn(self) -> None:
        """Do what is due now."""
        now = time.monotonic()
        if now - self._shown >= SECOND:
            self._shown = now
            show_life(self._data)
        self._act_on_signals()
        for attempt in self.attempts:
            if attempt.poll():
                self._exited(attempt)
        if self.mode is Mode.HURRIES:
            self._hurry(now)
        if now >= self._outage.until:
            try:
                self._work(now)
            except (AmicrawlError, redis.RedisError, OSError) as error:
                self._could_not(error)

    def _work(self, now: float) -> None:
        """Do what needs Redis, once a second, and at once where a crawl has ended."""
        is_due = now - self._looked >= self._every
        if not is_due and not any(attempt.has_ended for attempt in self.attempts):
            return
        if is_due:
            self._looked = now
            self._every_second()
            self._watch(now)
        for attempt in [attempt for attempt in self.attempts if attempt.has_ended]:
            self._end(attempt)
        self._act_on_signals()
        while self.mode is Mode.RUNS and len(self.attempts) < self._slots:
            taken = self._take()
            if taken is None:
                break
            self.attempts.append(taken)
            self._begin(taken)
        if self._outage.failures:
            self._report("Redis responds again.")
        self._outage = _Outage()

    def _every_second(self) -> None:
        """Do what is due once a second, before the leases are looked at."""

    @abstractmethod
    def _take(self) -> Unit | None:
        """Claim a unit; None where none is to be had now."""

    @abstractmethod
    def _begin(self, attempt: Unit) -> None:
        """Start the crawl of *attempt*, or take the next step towards that while it `is_waiting`."""

    @abstractmethod
    def _exited(self, attempt: Unit) -> None:
        """Handle the exit of the crawl of *attempt*, without Redis: copy its files, for example."""

    @abstractmethod
    def _end(self, attempt: Unit) -> None:
        """Report the end of *attempt* and take it out of its slot."""

    def _held(self, attempt: Unit, now: float) -> None:
        """Do what is due once a second for an *attempt* whose claim is still ours."""

    def _watch(self, now: float) -> None:
        """See whether the crawls renew their leases, and whether their units are still ours."""
        watched = [attempt for attempt in self.attempts if not attempt.has_ended]
        sent = time.monotonic()
        looks = self._claims.look([attempt.claim.unit for attempt in watched])
        responded = time.monotonic()
        for attempt, (claim, left) in zip(watched, looks, strict=True):
            if claim is not None and self._is_lost(claim, attempt.claim):
                attempt.is_lost, attempt.is_waiting = True, False
                why = "its claim is another owner's now"
                attempt.pulse.lose(why)
                attempt.kill(why)
                continue
            # Without ours, Redis was emptied or put back: the crawl of a job has as long to restore it.
            is_ours = claim is not None and claim.token == attempt.claim.token
            has_begun = claim is not None and is_ours and claim.has_begun
            seconds = left.total_seconds() if is_ours else 0.0
            attempt.pulse.looked(seconds, sent, responded, has_begun=has_begun)
            if is_ours:
                self._held(attempt, now)
                if attempt.is_busy or attempt.pulse.is_our_turn(now):
                    self._claims.renew(attempt.claim.unit, attempt.claim.token, self._lease, beats=1)
                    attempt.pulse.renewed(time.monotonic())
            if attempt.is_waiting:
                self._begin(attempt)
            if attempt.is_running and attempt.pulse.is_hung(responded):
                attempt.kill("it has not renewed its lease: it hangs, or does not reach Redis")

    def _is_lost(self, claim: Claim, ours: Claim) -> bool:
        """Tell whether *claim*, which Redis has of the same unit, ends *ours*."""
        return claim.token != ours.token or claim.state != "held"

    def _act_on_signals(self) -> None:
        while self._signals:
            self._signals.pop()
            if self.mode < self._on_signal:
                self._drain(self._on_signal, "a signal")
            elif self.mode < Mode.HURRIES:
                self._drain(Mode.HURRIES, "another signal")
            else:
                self._hurry_since = float("-inf")

    def _drain(self, mode: Mode, why: str) -> None:
        if mode <= self.mode:
            return
        self._report(f"Nothing more is taken because of {why}; {_WHAT_NOW[mode]}.")
        self.mode = mode
        if mode >= Mode.RELEASES:
            for attempt in self.attempts:
                if not attempt.has_ended:
                    attempt.stop()
        if mode is Mode.HURRIES:
            self._hurry_since = time.monotonic()

    def _hurry(self, now: float) -> None:
        if self._hurry_since is not None and now - self._hurry_since >= HURRY:
            for attempt in self.attempts:
                attempt.kill("it was to stop at once")
                attempt.give_up_copying()
            if self._outage.failures and self.attempts:
                units = ", ".join(attempt.claim.unit for attempt in self.attempts)
                self._report(
                    f"The end of {units} is not reported: Redis is away, and their leases run out."
                )
                self.attempts.clear()

    def _could_not(self, error: Exception) -> None:
        """Note that Redis did not respond."""
        if not self._outage.failures:
            self._report(f"{error} The crawls continue. Trying again.")
        failures = self._outage.failures + 1
        self._outage = _Outage(
            failures, time.monotonic() + min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
        )
        for attempt in self.attempts:
            attempt.pulse.could_not_look()

    def _end_children(self) -> None:
        """Leave no crawl behind. Only a failure of this process leaves any running until now."""
        if self._end_patience:
            for attempt in self.attempts:
                attempt.stop()
            until = time.monotonic() + self._end_patience
            while time.monotonic() < until and any(attempt.is_running for attempt in self.attempts):
                self._wait(TICK)
                for attempt in self.attempts:
                    attempt.poll()
        for attempt in self.attempts:
            # Its lease runs out, and another process resumes it.
            attempt.kill("its supervisor ends")


_WHAT_NOW = {
    Mode.FINISHES: "those in slots are crawled to their end",
    Mode.RELEASES: "those in slots are stopped and given back",
    Mode.HURRIES: "those in slots seal their files at once and are given back",
}
