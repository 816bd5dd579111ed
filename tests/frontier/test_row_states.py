"""The table of states: complete, and the only way from one to another."""

from __future__ import annotations

from itertools import product

import pytest

from amicrawl.errors import AmicrawlError
from amicrawl.meguri import Status
from amicrawl.meguri.states import RESTING, RETURNS, TRANSITIONS, WAITING, Event, after


@pytest.mark.parametrize(("status", "event"), list(product(Status, Event)))
def test_what_is_not_in_the_table_cannot_happen(status: Status, event: Event) -> None:
    if (status, event) in TRANSITIONS:
        assert after(status, event) is TRANSITIONS[status, event]
    else:
        with pytest.raises(AmicrawlError, match=f"{status.name} cannot be {event.name}"):
            after(status, event)


def test_every_status_this_program_writes_can_be_reached() -> None:
    only_read = {Status.DISCOVERED, Status.READY}
    admitted = {Status.SCHEDULED, Status.TRAPPED}
    assert admitted | set(TRANSITIONS.values()) == set(Status) - only_read


def test_every_event_leads_somewhere() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_a_row_leaves_the_waiting_states_only_by_being_handed_out() -> None:
    assert {event for status, event in TRANSITIONS if status in WAITING} == {Event.DISPATCHED}


def test_a_settled_row_does_nothing_but_fall_due() -> None:
    assert {event for status, event in TRANSITIONS if status in RESTING} == {Event.FELL_DUE}


def test_nothing_happens_to_a_trapped_row() -> None:
    assert not [event for status, event in TRANSITIONS if status is Status.TRAPPED]


def test_only_what_settles_a_row_has_a_pause_and_no_pause_is_ever_shorter_than_the_one_before() -> None:
    for event, back in RETURNS.items():
        assert TRANSITIONS[Status.IN_FLIGHT, event] in RESTING | {Status.SCHEDULED}
        pauses = [back.hours(times) for times in range(1, 300)]
        assert pauses == sorted(pauses)
        assert 1 <= pauses[0] <= pauses[-1] <= back.longest


def test_the_numbers_are_those_of_a_frontier_file() -> None:
    assert [status.name for status in Status] == [
        "DISCOVERED",
        "SCHEDULED",
        "READY",
        "IN_FLIGHT",
        "CRAWLED",
        "DUE",
        "GONE",
        "EXCLUDED",
        "TRAPPED",
        "WITHHELD",
    ]
    assert [int(status) for status in Status] == list(range(10))
