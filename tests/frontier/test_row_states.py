"""The table of states: complete, and the only way from one to another."""

from __future__ import annotations

from itertools import product

import pytest

from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Event, Status
from amicrawl.frontier.states import TRANSITIONS, after

WAITING = {Status.DISCOVERED, Status.SCHEDULED}


@pytest.mark.parametrize(("status", "event"), list(product(Status, Event)))
def test_what_is_not_in_the_table_cannot_happen(status: Status, event: Event) -> None:
    if (status, event) in TRANSITIONS:
        assert after(status, event) is TRANSITIONS[status, event]
    else:
        with pytest.raises(AmicrawlError, match=f"{status.name} cannot be {event.name}"):
            after(status, event)


def test_every_status_but_the_first_can_be_reached() -> None:
    assert {Status.DISCOVERED, *TRANSITIONS.values()} == set(Status)


def test_every_event_leads_somewhere() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_a_row_leaves_the_waiting_states_only_by_being_handed_out() -> None:
    leaving = {event for status, event in TRANSITIONS if status in WAITING}
    assert leaving == {Event.DISPATCHED}


def test_nothing_happens_to_a_row_that_is_settled() -> None:
    settled = set(Status) - WAITING - {Status.IN_FLIGHT}
    assert not [status for status, _ in TRANSITIONS if status in settled]


def test_the_numbers_are_those_of_a_frontier_file() -> None:
    assert {status.name: int(status) for status in Status} == {
        "DISCOVERED": 0,
        "SCHEDULED": 1,
        "IN_FLIGHT": 3,
        "CAPTURED": 4,
        "FAILED": 6,
        "EXCLUDED": 7,
    }
