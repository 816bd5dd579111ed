"""DelayedRequests: arrival order within a host, hosts taking turns, nothing before its gate, a bound."""

from __future__ import annotations

from scrapy import Request

from amicrawl.crawl.scheduler import DelayedRequests
from amicrawl.politeness import Gates

A, B = 1, 2


def request(name: str) -> Request:
    return Request(f"http://example.com/{name}")


def names(parking: DelayedRequests, gates: Gates, now: float) -> list[str]:
    """Take and start everything that may start at *now*."""
    taken = []
    while (found := parking.next(now)) is not None:
        taken.append(found.url.rpartition("/")[2])
        gates.start(A if taken[-1].startswith("a") else B, now)
    return taken


def test_a_request_waits_for_the_gate_of_its_host() -> None:
    gates = Gates(10.0, 1)
    gates.start(A, 0.0)
    gates.end(A, 1.0)
    parking = DelayedRequests(gates)
    parking.add(A, request("a"))
    assert names(parking, gates, 9.9) == []
    assert parking.next_moment() == 10.0
    assert names(parking, gates, 10.0) == ["a"]


def test_hosts_take_turns_and_keep_their_order() -> None:
    gates = Gates(0.0, 100)
    parking = DelayedRequests(gates)
    for host, name in ((A, "a1"), (A, "a2"), (B, "b1"), (B, "b2")):
        parking.add(host, request(name))
    assert names(parking, gates, 0.0) == ["a1", "b1", "a2", "b2"]
    assert len(parking) == 0


def test_only_an_end_opens_a_gate_with_a_request_in_flight() -> None:
    gates = Gates(0.0, 1)
    parking = DelayedRequests(gates)
    parking.add(A, request("a1"))
    parking.add(A, request("a2"))
    assert names(parking, gates, 0.0) == ["a1"]
    assert parking.next_moment() is None
    gates.end(A, 1.0)
    assert names(parking, gates, 1.0) == ["a2"]


def test_it_is_full_at_its_number_of_places_and_gives_everything_back() -> None:
    parking = DelayedRequests(Gates(5.0, 1), places=2)
    parking.add(A, request("a"))
    before = parking.full
    parking.add(B, request("b"))
    assert (before, parking.full) == (False, True)
    assert sorted(each.url[-1] for each in parking.drain()) == ["a", "b"]
    assert len(parking) == 0
