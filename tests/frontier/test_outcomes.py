"""What an outcome does to a row: the table, line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.capture import Failure
from amicrawl.frontier import Found, Outcome
from amicrawl.frontier.outcomes import event_of, settled
from amicrawl.meguri import Cause, Status
from amicrawl.meguri.format.schema import ROW, packing_of
from amicrawl.meguri.rows import UrlRow
from amicrawl.meguri.states import MANY, Event

HOUR = 470_000
CAUSES = {
    Failure.REFUSED_BY_CRAWL: Cause.RULE,
    Failure.UNFETCHABLE_URL: Cause.UNFETCHABLE,
    Failure.ADDRESS_REFUSED: Cause.ADDRESS,
}
FLYING = UrlRow(1, 2, Status.IN_FLIGHT, url_ref=1, first_seen=HOUR - 5)


def after_settling(row: UrlRow, event: Event, outcome: Outcome, hour: int) -> UrlRow:
    return row._replace(**settled(row, event, outcome, hour))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "event", "status", "pause"),
    [
        (Outcome(200), Event.CAPTURED, Status.CRAWLED, 168),
        (Outcome(204), Event.CAPTURED, Status.CRAWLED, 168),
        (Outcome(999), Event.CAPTURED, Status.CRAWLED, 168),
        (Outcome(200, found=Found(unchanged=True)), Event.UNCHANGED, Status.CRAWLED, 168),
        (Outcome(304), Event.UNCHANGED, Status.CRAWLED, 168),
        (Outcome(301, redirect="http://b.test/"), Event.REDIRECTED, Status.CRAWLED, 168),
        (Outcome(302), Event.REDIRECTED, Status.CRAWLED, 168),
        (Outcome(401), Event.MISSING, Status.GONE, 336),
        (Outcome(403), Event.MISSING, Status.GONE, 336),
        (Outcome(404), Event.MISSING, Status.GONE, 336),
        (Outcome(451), Event.MISSING, Status.GONE, 336),
        (Outcome(410), Event.WITHDRAWN, Status.GONE, 8760),
        (Outcome(408), Event.BUSY, Status.SCHEDULED, 1),
        (Outcome(425), Event.BUSY, Status.SCHEDULED, 1),
        (Outcome(429), Event.BUSY, Status.SCHEDULED, 1),
        (Outcome(429, retry_after=3601), Event.BUSY, Status.SCHEDULED, 2),
        (Outcome(503, retry_after=60), Event.BUSY, Status.SCHEDULED, 1),
        (Outcome(503, retry_after=10**9), Event.BUSY, Status.SCHEDULED, 168),
        (Outcome(500), Event.BUSY, Status.SCHEDULED, 1),
        (Outcome(failure=Failure.RESPONSE_TIMEOUT), Event.FAILED, Status.SCHEDULED, 1),
        (Outcome(failure=Failure.CONNECTION_RESET), Event.FAILED, Status.SCHEDULED, 1),
        (Outcome(failure=Failure.HOST_SKIPPED), Event.FAILED, Status.SCHEDULED, 1),
        (Outcome(failure=Failure.ROBOTS_DENIED), Event.REFUSED_BY_ROBOTS, Status.EXCLUDED, 168),
        (Outcome(failure=Failure.REFUSED_BY_CRAWL), Event.REFUSED, Status.WITHHELD, None),
        (Outcome(failure=Failure.UNFETCHABLE_URL), Event.REFUSED, Status.WITHHELD, None),
        (Outcome(failure=Failure.ADDRESS_REFUSED), Event.REFUSED, Status.WITHHELD, None),
    ],
)
def test_what_an_outcome_does_to_a_row_the_first_time(
    outcome: Outcome, event: Event, status: Status, pause: int | None
) -> None:
    assert event_of(outcome, in_a_row=0) is event
    row = after_settling(FLYING, event, outcome, HOUR)
    assert row.status == status
    assert row.next_due == (0 if pause is None else HOUR + pause)
    assert row.http_status == (
        outcome.status if outcome.failure is None else CAUSES.get(outcome.failure, 0)
    )


@pytest.mark.parametrize("outcome", [Outcome(503), Outcome(failure=Failure.CONNECT_TIMEOUT)])
def test_what_comes_to_nothing_waits_longer_each_time_and_is_given_up_in_the_end(
    outcome: Outcome,
) -> None:
    row, hour, pauses = FLYING, HOUR, []
    for _ in range(MANY + 1):
        row = after_settling(row, event_of(outcome, in_a_row=row.retry_count), outcome, hour)
        pauses.append(row.next_due - hour)
        hour = row.next_due
        if row.status == Status.GONE:
            row = row._replace(status=Status.IN_FLIGHT)
    assert pauses == [1, 2, 4, 8, 336, 672]
    assert row.error_count == MANY + 1


def test_a_response_ends_the_count_of_failures() -> None:
    row = after_settling(FLYING, Event.FAILED, Outcome(failure=Failure.PROXY), HOUR)
    row = after_settling(row._replace(status=Status.IN_FLIGHT), Event.CAPTURED, Outcome(200), HOUR + 1)
    assert (row.retry_count, row.error_count) == (0, 1)


def test_what_the_crawl_refuses_is_no_error() -> None:
    for failure in (Failure.ROBOTS_DENIED, Failure.REFUSED_BY_CRAWL):
        outcome = Outcome(failure=failure)
        assert after_settling(FLYING, event_of(outcome, in_a_row=0), outcome, HOUR).error_count == 0


def test_a_page_that_was_gone_and_responds_is_there_again() -> None:
    row = after_settling(FLYING, Event.MISSING, Outcome(404), HOUR)
    row = after_settling(row._replace(status=Status.IN_FLIGHT), Event.CAPTURED, Outcome(200), HOUR + 400)
    assert row.status == Status.CRAWLED


def test_what_only_the_network_kept_from_being_fetched_is_told_from_what_a_server_did() -> None:
    for failure in (Failure.NAME_LOOKUP_FAILED, Failure.NO_ROUTE, Failure.PROXY):
        row = after_settling(FLYING, Event.FAILED, Outcome(failure=failure), HOUR)
        assert (row.status, row.http_status) == (Status.SCHEDULED, Cause.NETWORK)


@given(
    status=st.integers(0, 70_000),
    failure=st.none() | st.sampled_from(Failure),
    retry_after=st.integers(0, 10**12),
    in_a_row=st.integers(0, 255),
    errors=st.integers(0, 65_535),
)
def test_whatever_comes_of_it_the_row_still_fits_its_columns_and_is_due_in_the_future_if_at_all(
    status: int, failure: Failure | None, retry_after: int, in_a_row: int, errors: int
) -> None:
    outcome = Outcome(0 if failure else status, failure, retry_after=retry_after)
    row = FLYING._replace(retry_count=in_a_row, error_count=errors)
    row = after_settling(row, event_of(outcome, in_a_row=in_a_row), outcome, HOUR)
    assert UrlRow._make(packing_of(ROW).unpack(row.packed())) == row
    assert row.next_due == 0 or HOUR < row.next_due <= HOUR + 8760
