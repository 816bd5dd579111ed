"""What a failure is evidence of, which hosts are given up for failures, and how long a retry waits.

`BLAME` says what each failure is evidence of; `_VERDICTS` says what follows from it, given whether
the crawl is congested and whether the host has ever spoken. After so many counted failures as the
caller's threshold says, the host, a registered domain, is skipped for the rest of the crawl.

A host has spoken once a single byte came from it, and is never skipped from then on: what fails there
is the page or the network, not the host.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING

from amicrawl.capture import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping


class Blame(StrEnum):
    """What a failure is evidence of."""

    HOST = "host"
    """There is no such host, or no way to it."""
    SILENCE = "silence"
    """Nothing came in time: the host is dead, or we have filled the network."""
    REFUSAL = "refusal"
    """The host's machine turned us away; full tables on the way do the same."""
    PASSING = "passing"
    """Something broke on the way that the next attempt need not meet."""
    NONE = "none"
    """A decision, or a fault that another attempt would meet again: it says nothing of the host."""


BLAME: Mapping[Failure, Blame] = {
    Failure.NAME_NOT_FOUND: Blame.HOST,
    Failure.NO_ROUTE: Blame.HOST,
    Failure.CONNECT_TIMEOUT: Blame.SILENCE,
    Failure.RESPONSE_TIMEOUT: Blame.SILENCE,
    Failure.CONNECTION_REFUSED: Blame.REFUSAL,
    Failure.CONNECTION_RESET: Blame.PASSING,
    Failure.EMPTY_RESPONSE: Blame.PASSING,
    Failure.NAME_LOOKUP_FAILED: Blame.PASSING,  # the resolver did not say that there is no such name
    Failure.TLS_HANDSHAKE: Blame.NONE,
    Failure.TLS_CERTIFICATE: Blame.NONE,
    Failure.ADDRESS_REFUSED: Blame.NONE,
    Failure.UNFETCHABLE_URL: Blame.NONE,
    Failure.PROXY: Blame.NONE,
    Failure.HOST_SKIPPED: Blame.NONE,
    Failure.ROBOTS_DENIED: Blame.NONE,
    Failure.REFUSED_BY_CRAWL: Blame.NONE,
    Failure.REPEATED_SEED: Blame.NONE,
    Failure.ENDED_HERE: Blame.NONE,
    Failure.OTHER: Blame.NONE,
}


class Verdict(Enum):
    """What follows from a failure."""

    RETRY = "retry"
    """It may go better next time: try again."""
    COUNT = "count"
    """It is final, and counts against the host."""
    FINAL = "final"
    """It is final, and counts against no host."""


_CALM, _CONGESTED = False, True
_SILENT, _SPOKEN = False, True

_VERDICTS: Mapping[tuple[Blame, bool, bool], Verdict] = {
    (Blame.HOST, _CALM, _SILENT): Verdict.COUNT,
    (Blame.HOST, _CALM, _SPOKEN): Verdict.FINAL,
    (Blame.HOST, _CONGESTED, _SILENT): Verdict.COUNT,
    (Blame.HOST, _CONGESTED, _SPOKEN): Verdict.FINAL,
    (Blame.SILENCE, _CALM, _SILENT): Verdict.COUNT,
    # A page that brings nothing in two minutes while all else goes well would bring nothing again.
    (Blame.SILENCE, _CALM, _SPOKEN): Verdict.FINAL,
    (Blame.SILENCE, _CONGESTED, _SILENT): Verdict.RETRY,
    (Blame.SILENCE, _CONGESTED, _SPOKEN): Verdict.RETRY,
    # Only silence counts: a machine that refuses is up, and says so at no cost to us.
    (Blame.REFUSAL, _CALM, _SILENT): Verdict.FINAL,
    (Blame.REFUSAL, _CALM, _SPOKEN): Verdict.FINAL,
    (Blame.REFUSAL, _CONGESTED, _SILENT): Verdict.RETRY,
    (Blame.REFUSAL, _CONGESTED, _SPOKEN): Verdict.RETRY,
    (Blame.PASSING, _CALM, _SILENT): Verdict.RETRY,
    (Blame.PASSING, _CALM, _SPOKEN): Verdict.RETRY,
    (Blame.PASSING, _CONGESTED, _SILENT): Verdict.RETRY,
    (Blame.PASSING, _CONGESTED, _SPOKEN): Verdict.RETRY,
    (Blame.NONE, _CALM, _SILENT): Verdict.FINAL,
    (Blame.NONE, _CALM, _SPOKEN): Verdict.FINAL,
    (Blame.NONE, _CONGESTED, _SILENT): Verdict.FINAL,
    (Blame.NONE, _CONGESTED, _SPOKEN): Verdict.FINAL,
}


class HostBreaker:
    """Which hosts have spoken, which have failed how often, which are skipped.

    A host costs memory once something came of it: about 80 bytes where it has spoken, 90 where only
    failures were counted. Both are kept to the end, since links may lead back to it.
    """

    def __init__(self, threshold: int, *, max_retries: int) -> None:
        """Skip a host that never spoke after *threshold* counted failures.

        A fetch is tried again *max_retries* times at most.
        """
        self._threshold = threshold
        self._max_retries = max_retries
        self.spoken: set[int] = set()
        """The hosts that ever sent a byte."""
        self.given_up: set[int] = set()
        """The hosts whose URLs are not fetched any more."""
        self._failures: dict[int, int] = {}

    def responded(self, host: int) -> None:
        """Note that *host* sent at least one byte; needless where it is among `spoken`."""
        self.spoken.add(host)
        self._failures.pop(host, None)
        self.given_up.discard(host)

    def failed(self, host: int, failure: Failure, *, attempt: int, congested: bool) -> Verdict:
        """Note *failure* of *host* and return what follows from it.

        *attempt* is the number of the attempt that failed, from 1; *congested* the crawl's state
        (`InflightLimit.congested`). Call `responded` first for a failed exchange in which the
        host did send something.
        """
        verdict = _VERDICTS[BLAME[failure], congested, host in self.spoken]
        if verdict is Verdict.COUNT:
            failures = self._failures[host] = self._failures.get(host, 0) + 1
            if failures >= self._threshold:
                self.given_up.add(host)
        elif verdict is Verdict.RETRY and attempt > self._max_retries:
            return Verdict.FINAL
        return verdict


_STEP = 0.075
_LONGEST = 0.5


def backoff(attempt: int) -> float:
    """Return the seconds to wait after attempt number *attempt* (the first is 1) failed."""
    return min(_STEP * attempt, _LONGEST)
