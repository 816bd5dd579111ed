"""The frontier in memory: what it keeps, and what it does not."""

from __future__ import annotations

import tracemalloc

import pytest

from amicrawl.capture import Failure
from amicrawl.frontier import Offer, Outcome, ResidentFrontier, Source
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

OUTCOMES = [Outcome(200), Outcome(failure=Failure.CONNECTION_RESET), Outcome(failure=Failure.PROXY)]


def frontier() -> ResidentFrontier:
    return ResidentFrontier(Gates(0.0, 1), HostBreaker(3, max_retries=2), InflightLimit(50, 1, 50))


def offer(number: int, hosts: int, extra: dict[str, object] | None = None) -> Offer:
    host, path = number % hosts, number * 0x9E37_79B9_7F4A_7C15 % 2**64
    url = f"http://host-{host}.test/{number:064}"
    return Offer(Seed(url), UrlKey(host, path), Source.LINK, number % 3, extra=extra)


def drain(frontier: ResidentFrontier) -> int:
    """Fetch until nothing is left; return how many fetches it took."""
    now, fetches = 0.0, 0
    while frontier.has_pending():
        moment = frontier.next_moment(now)
        assert moment is not None
        now = moment
        while (dispatch := frontier.next(now)) is not None:
            frontier.settle(dispatch.key, OUTCOMES[fetches % 3], now)
            fetches += 1
    return fetches


@pytest.mark.parametrize("hosts", [1, 37, 3000])
def test_settled_rows_leave_nothing_but_their_keys(hosts: int) -> None:
    resident = frontier()
    for number in range(3000):
        resident.offer(offer(number, hosts, {"number": number}))
    assert drain(resident) > 3000
    assert len(resident) == 3000
    kept = (resident._lanes, resident._extras, resident._flights, resident._postponed)
    assert not any(kept)
    assert not resident._rotation._ready
    assert not resident._rotation._waiting


def test_a_known_url_costs_no_more_than_its_packed_key() -> None:
    resident = frontier()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20_000):
            resident.offer(offer(number, 40))
        drain(resident)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / 20_000 < 32


def test_a_waiting_url_costs_little_more_than_its_text() -> None:
    resident = frontier()
    offers = [offer(number, 40) for number in range(20_000)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for each in offers:
            resident.offer(each)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    text = sum(len(each.seed.url) for each in offers) / len(offers)
    assert (after - before) / 20_000 < text + 140
