"""What an outcome means for the row, the host and the in-flight limit."""

from __future__ import annotations

import pytest

from amicrawl.capture import Failure
from amicrawl.frontier import Outcome, judge
from amicrawl.politeness import HostBreaker, InflightLimit, Verdict

HOST = 7


def rules() -> tuple[HostBreaker, InflightLimit]:
    return HostBreaker(3, max_retries=4), InflightLimit(64, 32, 2000)


def losses(limit: InflightLimit) -> int:
    """Tell whether the limit was told of a loss, by counting those that it still takes to congest it."""
    needed = 0
    while not limit.congested:
        limit.lost()
        needed += 1
    return 6 - needed


@pytest.mark.parametrize("status", [200, 404, 503, 999])
def test_any_response_is_final_raises_the_limit_and_clears_the_host(status: int) -> None:
    breaker, limit = rules()
    verdict = judge(HOST, Outcome(status), attempt=1, breaker=breaker, limit=limit)
    assert verdict is Verdict.FINAL
    assert limit.limit == 65
    assert HOST in breaker.spoken


@pytest.mark.parametrize("failure", list(Failure))
def test_no_failure_raises_the_limit(failure: Failure) -> None:
    breaker, limit = rules()
    judge(HOST, Outcome(failure=failure), attempt=1, breaker=breaker, limit=limit)
    assert limit.limit == 64
    assert HOST not in breaker.spoken


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("spoken", [False, True])
def test_only_the_timeout_of_a_host_that_has_spoken_is_a_loss(failure: Failure, spoken: bool) -> None:
    breaker, limit = rules()
    if spoken:
        breaker.responded(HOST)
    judge(HOST, Outcome(failure=failure), attempt=1, breaker=breaker, limit=limit)
    timeout = failure in {Failure.CONNECT_TIMEOUT, Failure.RESPONSE_TIMEOUT}
    assert losses(limit) == (1 if spoken and timeout else 0)


def test_one_byte_before_the_failure_clears_the_host() -> None:
    breaker, limit = rules()
    outcome = Outcome(failure=Failure.RESPONSE_TIMEOUT, responded=True)
    for _ in range(10):
        judge(HOST, outcome, attempt=1, breaker=breaker, limit=limit)
    assert HOST in breaker.spoken
    assert HOST not in breaker.given_up


def test_the_loss_that_congests_the_crawl_is_itself_excused() -> None:
    breaker, limit = rules()
    breaker.responded(HOST)
    for _ in range(5):
        limit.lost()
    assert not limit.congested
    outcome = Outcome(failure=Failure.CONNECT_TIMEOUT)
    assert judge(HOST, outcome, attempt=1, breaker=breaker, limit=limit) is Verdict.RETRY


def test_the_number_of_the_attempt_is_heeded() -> None:
    breaker, limit = rules()
    outcome = Outcome(failure=Failure.CONNECTION_RESET)
    assert judge(HOST, outcome, attempt=1, breaker=breaker, limit=limit) is Verdict.RETRY
    assert judge(HOST, outcome, attempt=5, breaker=breaker, limit=limit) is Verdict.FINAL
