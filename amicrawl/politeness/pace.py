"""The pace of a host: the least time between the starts of two requests to it.

It is the longest of

    the configured delay        the same for all hosts
    Crawl-delay                 what robots.txt demands, capped
    a multiple of the latency   smoothed: a quarter of it is the last response; with a ceiling of its own
    the back-off                doubled by 429 and 5xx, from a second on; decays with other responses

Back-off is for a host that is overloaded. Responses to requests that were under way at the same time
double it once. A 5xx whose neighbours succeed is the fault of its URL: as long as fewer than a quarter
of the recent responses are errors, the next response that is none ends the back-off; the queue of the
host helps to find out by taking a row from its far end after an error (`Gates.probe`). A 429 says that
the host is contacted too often, whatever its neighbours say.

Apart from these, Retry-After names a moment before which the host is not contacted at all.

Every request that reaches the host is reported here: pages, robots.txt, redirects and media. A fetch
that brought no response says nothing of how well the host bears us, so it neither adds to the back-off
nor takes from it. Whether the host is given up for it is decided by the breaker.

Pure: what follows from a response is a function of the state before (`PaceRules.after`); `HostPace` only
remembers it for those hosts that are not contacted at the usual pace.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.message import http_date

if TYPE_CHECKING:
    from collections.abc import Mapping

BUSY = frozenset({429, *range(500, 600)})
"""The statuses that say that a host wants fewer requests."""
_USUAL_CAPACITY = 100_000
_LEAST_BACK_OFF = 1.0
"""Seconds from which the first back-off is doubled, however short the delay is."""
_WEIGHT = 1 / 32
"""What one response counts for in the share of errors."""
_OVERLOADED = 0.25
"""The share of errors from which on a host is overloaded, and not some of its URLs at fault. Nine errors
in a row reach it, or twenty responses of which half are errors."""
_TENTH = 0.1
"""Seconds that intervals are kept with, rounded up."""
_FORGOTTEN = 0.004
"""The share of errors below which there were none."""


class PaceState(NamedTuple):
    """What is known of a host that bears on its pace, in seconds; zeros for what is not."""

    crawl_delay: float = 0.0
    """What its robots.txt demands, capped."""
    latency: float = 0.0
    """Smoothed latency of its responses."""
    back_off: float = 0.0
    """The interval that its errors have led to."""
    errors: float = 0.0
    """The share of errors among its recent responses, 0 to 1; a response counts for a 32nd."""
    is_limited: bool = False
    """Whether the back-off is due to a 429."""
    stepped: float = -inf
    """The moment of the response that lengthened the back-off last."""


class Pace(NamedTuple):
    """How requests to a host are spaced from now on."""

    interval: float
    """Seconds from the start of a request to the start of the next."""
    until: float
    """The moment before which it gets no request, whatever the interval; minus infinity for none."""


@dataclass(frozen=True, slots=True)
class PaceRules:
    """How the pace of a host follows from what it says; all times in seconds."""

    delay: float = 1.0
    """Least interval of all hosts."""
    latency_factor: float = 2.0
    """The interval is this many latencies at least: with 2, we occupy a host half of the time at most.
    0 for an interval that does not follow the latency."""
    latency_ceiling: float = 30.0
    """The interval is not made longer than this on account of the latency."""
    back_off_factor: float = 2.0
    """What an error multiplies the interval by."""
    back_off_ceiling: float = 300.0
    """The interval is not made longer than this on account of errors."""
    narrow: float = 0.1
    """The least that a response other than an error takes from the back-off."""
    decay: float = 0.125
    """The part of the back-off that such a response takes, if that is more than `narrow`. From the
    ceiling, subtraction alone would take thousands of responses; halving would run into the same limit
    of the host every second time."""
    retry_after_cap: float = 3600.0
    """A Retry-After beyond this is cut to it."""

    def interval(self, state: PaceState) -> float:
        """Return the seconds between two starts that *state* leads to."""
        by_latency = min(self.latency_factor * state.latency, self.latency_ceiling)
        return max(self.delay, state.crawl_delay, by_latency, state.back_off)

    def after(
        self, state: PaceState, status: int, *, latency: float = 0.0, lengthens: bool = True
    ) -> PaceState:
        """Return the state after a response with *status* (0 where none came), *latency* seconds late.

        *lengthens* is False for an error that belongs to the one before: it was under way already.

        What the state says but the interval does not show is dropped from it: a back-off that another
        rule exceeds, and a latency too short to matter. So the next latency is taken as it comes.
        """
        if not status:
            return state
        crawl_delay, smoothed, back_off, errors, is_limited, _ = state
        if status in BUSY:
            errors += (1 - errors) * _WEIGHT
            is_limited = is_limited or status == 429
            if lengthens:
                back_off = max(self.interval(state), _LEAST_BACK_OFF) * self.back_off_factor
        else:
            errors = errors * (1 - _WEIGHT) if errors > _FORGOTTEN else 0.0
            if is_limited or errors >= _OVERLOADED:
                back_off -= max(self.narrow, self.decay * back_off)
            else:
                back_off = 0.0
        back_off = min(back_off, self.back_off_ceiling)
        if self.latency_factor and latency > 0:
            # Beyond the ceiling all latencies are alike; one that hung must not count for an hour.
            sample = min(latency, self.latency_ceiling / self.latency_factor)
            smoothed = (3 * smoothed + sample) / 4 if smoothed else sample
        if back_off <= max(self.delay, crawl_delay):
            back_off, is_limited = 0.0, False
        if self.latency_factor * smoothed <= self.delay:
            smoothed = 0.0
        return PaceState(crawl_delay, smoothed, back_off, errors, is_limited, state.stepped)


_USUAL = PaceState()


class HostPace:
    """The pace of every host, of which only those with another than the usual one are remembered.

    At most *capacity* of them, about 300 bytes each; beyond, the one reported longest ago is
    forgotten. What its gate holds against it (a delay, a moment) stays in force there.
    """

    def __init__(
        self,
        rules: PaceRules,
        *,
        capacity: int = _USUAL_CAPACITY,
        delays: Mapping[int, float] | None = None,
    ) -> None:
        """*delays* are those of single hosts, in place of the rules' own."""
        self.rules = rules
        self._rules_of = {
            host: replace(rules, delay=delay, latency_factor=rules.latency_factor if delay else 0.0)
            for host, delay in (delays or {}).items()
        }
        self._capacity = capacity
        self._states: OrderedDict[int, PaceState] = OrderedDict()

    def __len__(self) -> int:
        """Return how many hosts are remembered."""
        return len(self._states)

    def state(self, host: int) -> PaceState:
        """Return what is known of *host*."""
        return self._states.get(host, _USUAL)

    def interval(self, host: int) -> float:
        """Return the seconds from one start of a request to *host* to the next."""
        state, rules = self._states.get(host), self._rules_of.get(host, self.rules)
        return rules.delay if state is None else rules.interval(state)

    def responded(
        self,
        host: int,
        status: int,
        *,
        now: float,
        started: float = inf,
        latency: float = 0.0,
        retry_after: float = 0.0,
    ) -> Pace:
        """Note what a request to *host* brought, at *now*, and return its pace from then on.

        *status* is 0 where no response came. *started* is when the request was sent. *latency* is the
        seconds from there to the first byte, 0 where unknown; *retry_after* the seconds that the
        response names, believed with an error only.
        """
        rules = self._rules_of.get(host, self.rules) if self._rules_of else self.rules
        known = self._states.get(host)
        if known is None and rules.latency_factor * latency <= rules.delay and status not in BUSY:
            # Most responses: nothing is remembered of the host, and there is nothing to remember.
            return Pace(rules.delay, -inf)
        state = known or _USUAL
        lengthens = status in BUSY and started > state.stepped
        state = rules.after(state, status, latency=latency, lengthens=lengthens)
        if lengthens:
            state = state._replace(stepped=now)
        state = self._keep(host, state)
        until = -inf
        if retry_after > 0 and status in BUSY:
            until = now + min(retry_after, rules.retry_after_cap)
        return Pace(rules.interval(state), until)

    def set_crawl_delay(self, host: int, seconds: float) -> float:
        """Note that robots.txt of *host* demands *seconds*, capped; return the interval from then on.

        It replaces what an earlier robots.txt demanded. Back-off doubles from there.
        """
        rules = self._rules_of.get(host, self.rules)
        # One that the configured delay covers is nothing to remember.
        state = self._states.get(host, _USUAL)._replace(
            crawl_delay=seconds if seconds > rules.delay else 0.0
        )
        return rules.interval(self._keep(host, state))

    def recall(self, host: int, *, interval: float, latency: float) -> None:
        """Go on from what an earlier process knew of *host*: its last interval and smoothed latency.

        An interval that neither the delay nor the latency explains is taken for a back-off of a host
        that was overloaded: it decays with its responses.
        """
        rules = self._rules_of.get(host, self.rules)
        smoothed = latency if rules.latency_factor * latency > rules.delay else 0.0
        usual = rules.interval(PaceState(latency=smoothed))
        back_off = min(interval, rules.back_off_ceiling) if interval > usual + _TENTH else 0.0
        self._keep(host, PaceState(0.0, smoothed, back_off, _OVERLOADED if back_off else 0.0))

    def _keep(self, host: int, state: PaceState) -> PaceState:
        states = self._states
        if not any(state[:4]):
            if host in states:
                del states[host]
            return state
        states[host] = state
        states.move_to_end(host)
        if len(states) > self._capacity:
            states.popitem(last=False)
        return state


_LONGEST_VALUE = 64
"""Bytes of a Retry-After."""
_DIGITS = re.compile(r"[0-9]+")


def retry_after_seconds(value: bytes | str, *, now: float, cap: float) -> float:
    """Return the wait in seconds that a Retry-After of *value* requests (RFC 9110, section 10.2.3).

    It is at most *cap*, and 0 if it requests none; the caller decides with which statuses it counts.

    *now* is in Unix seconds: a date is measured against our clock, not the server's. A moment that has
    passed, a sign, a fraction, a list, and a value longer than any date give 0.
    """
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if len(text) > _LONGEST_VALUE:
        return 0.0
    text = text.strip(" \t")
    if _DIGITS.fullmatch(text):
        return min(float(int(text)), cap)
    moment = http_date(text)
    return 0.0 if moment is None else min(max(moment - now, 0.0), cap)
