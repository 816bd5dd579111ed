"""Blame: a host is given up for what is its own fault, and for nothing else."""

from __future__ import annotations

import pytest

from amicrawl.capture import Failure
from amicrawl.politeness import BLAME, Blame, HostBreaker, Verdict

HOST, OTHER = 7, 8

RETRY, COUNT, FINAL = Verdict.RETRY, Verdict.COUNT, Verdict.FINAL


def test_every_failure_has_its_blame() -> None:
    assert set(BLAME) == set(Failure)


@pytest.mark.parametrize(
    ("failure", "silent", "spoken", "silent_congested", "spoken_congested"),
    [
        (Failure.NAME_NOT_FOUND, COUNT, FINAL, COUNT, FINAL),
        (Failure.NO_ROUTE, COUNT, FINAL, COUNT, FINAL),
        (Failure.CONNECT_TIMEOUT, COUNT, FINAL, RETRY, RETRY),
        (Failure.RESPONSE_TIMEOUT, COUNT, FINAL, RETRY, RETRY),
        (Failure.CONNECTION_REFUSED, FINAL, FINAL, RETRY, RETRY),
        (Failure.CONNECTION_RESET, RETRY, RETRY, RETRY, RETRY),
        (Failure.EMPTY_RESPONSE, RETRY, RETRY, RETRY, RETRY),
        (Failure.NAME_LOOKUP_FAILED, RETRY, RETRY, RETRY, RETRY),
        (Failure.TLS_HANDSHAKE, FINAL, FINAL, FINAL, FINAL),
        (Failure.TLS_CERTIFICATE, FINAL, FINAL, FINAL, FINAL),
        (Failure.ADDRESS_REFUSED, FINAL, FINAL, FINAL, FINAL),
        (Failure.UNFETCHABLE_URL, FINAL, FINAL, FINAL, FINAL),
        (Failure.PROXY, FINAL, FINAL, FINAL, FINAL),
        (Failure.HOST_SKIPPED, FINAL, FINAL, FINAL, FINAL),
        (Failure.ROBOTS_DENIED, FINAL, FINAL, FINAL, FINAL),
        (Failure.REFUSED_BY_CRAWL, FINAL, FINAL, FINAL, FINAL),
        (Failure.OTHER, FINAL, FINAL, FINAL, FINAL),
    ],
)
def test_what_follows_from_a_failure(
    failure: Failure,
    silent: Verdict,
    spoken: Verdict,
    silent_congested: Verdict,
    spoken_congested: Verdict,
) -> None:
    breaker = HostBreaker(3, max_retries=4)
    breaker.responded(OTHER)
    assert breaker.failed(HOST, failure, attempt=1, congested=False) is silent
    assert breaker.failed(OTHER, failure, attempt=1, congested=False) is spoken
    assert breaker.failed(HOST, failure, attempt=1, congested=True) is silent_congested
    assert breaker.failed(OTHER, failure, attempt=1, congested=True) is spoken_congested


def test_a_host_is_given_up_at_the_threshold_and_not_before() -> None:
    breaker = HostBreaker(3, max_retries=4)
    for _ in range(2):
        breaker.failed(HOST, Failure.NAME_NOT_FOUND, attempt=1, congested=False)
        assert HOST not in breaker.given_up
    breaker.failed(HOST, Failure.CONNECT_TIMEOUT, attempt=1, congested=False)
    assert HOST in breaker.given_up
    assert OTHER not in breaker.given_up


@pytest.mark.parametrize("failure", [failure for failure in Failure if BLAME[failure] is not Blame.HOST])
def test_while_congested_no_host_is_given_up_for_what_may_be_ours(failure: Failure) -> None:
    breaker = HostBreaker(3, max_retries=4)
    for _ in range(100):
        breaker.failed(HOST, failure, attempt=1, congested=True)
    assert HOST not in breaker.given_up


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("congested", [False, True])
def test_a_host_that_has_spoken_once_is_never_given_up(failure: Failure, congested: bool) -> None:
    breaker = HostBreaker(3, max_retries=4)
    breaker.responded(HOST)
    for _ in range(100):
        breaker.failed(HOST, failure, attempt=1, congested=congested)
    assert HOST not in breaker.given_up
    assert HOST in breaker.spoken


def test_a_host_that_speaks_late_is_contacted_again() -> None:
    breaker = HostBreaker(3, max_retries=4)
    for _ in range(3):
        breaker.failed(HOST, Failure.RESPONSE_TIMEOUT, attempt=1, congested=False)
    assert HOST in breaker.given_up
    assert HOST not in breaker.spoken
    breaker.responded(HOST)
    assert HOST not in breaker.given_up


@pytest.mark.parametrize(("attempt", "expected"), [(1, RETRY), (4, RETRY), (5, FINAL)])
def test_a_fetch_is_tried_again_so_many_times_at_most(attempt: int, expected: Verdict) -> None:
    breaker = HostBreaker(3, max_retries=4)
    verdict = breaker.failed(HOST, Failure.CONNECTION_RESET, attempt=attempt, congested=False)
    assert verdict is expected


def test_attempts_that_are_used_up_blame_nobody() -> None:
    breaker = HostBreaker(1, max_retries=0)
    verdict = breaker.failed(HOST, Failure.CONNECT_TIMEOUT, attempt=1, congested=True)
    assert verdict is FINAL
    assert HOST not in breaker.given_up
