"""What an outcome means: for the row, for its host, and for the in-flight limit.

Every frontier judges alike, wherever it keeps its rows, so the rule stands here by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.politeness import BLAME, Blame, Verdict

if TYPE_CHECKING:
    from amicrawl.frontier.row import Outcome
    from amicrawl.politeness import HostBreaker, InflightLimit


def judge(
    host: int, outcome: Outcome, *, attempt: int, breaker: HostBreaker, limit: InflightLimit
) -> Verdict:
    """Give *breaker* and *limit* the evidence that *outcome* is, and return what follows for the row.

    *host* is the host key that was asked, *attempt* the number of the attempt, from 1. To be called once
    for each outcome. A response is final.
    """
    failure = outcome.failure
    if failure is None:
        breaker.answered(host)
        limit.answered()
        return Verdict.FINAL
    if outcome.answered:
        breaker.answered(host)
    if BLAME[failure] is Blame.SILENCE and breaker.has_spoken(host):
        limit.lost()
    # The loss just noted counts towards the congestion that may excuse the host.
    return breaker.failed(host, failure, attempt=attempt, congested=limit.congested)
