"""What is different for single hosts, and lines in front of addresses, without a crawl around them."""

from __future__ import annotations

import ast
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from loopback import PROJECT

from amicrawl.capture import Capture
from amicrawl.config import CrawlConfig, Identity, Robots
from amicrawl.crawl.decision import Ticket, outcome_of
from amicrawl.crawl.host_overrides import NAMES, HostOverrides
from amicrawl.crawl.pacing import AddressPace, Pacing
from amicrawl.crawlfile.keys import HOST_KEYS
from amicrawl.errors import UsageError
from amicrawl.frontier import Outcome
from amicrawl.politeness import Gates, HostBreaker
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import Refused, url_key

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.urls import UrlKey

A, B, C = 1, 2, 3
ADDRESS, ELSEWHERE = "192.0.2.1", "192.0.2.2"


def key_of(url: str) -> UrlKey | Refused:
    return url_key(url, Identity.CANONICAL)


def host_key(name: str) -> int:
    key = key_of(f"http://{name}/")
    assert not isinstance(key, Refused)
    return key.host


def overrides(given: dict[str, dict[str, Any]]) -> HostOverrides:
    return HostOverrides(given, key_of=key_of)


def test_an_override_is_for_a_host_however_its_name_is_written() -> None:
    name = "B\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example."
    read = overrides({name: {"robots": "ignore"}})
    for written in (name, "xn--bcher-kva.example", "www.xn--bcher-kva.example"):
        assert read.robots_at(f"http://{written}/a", Robots.OBEY) is Robots.IGNORE


def test_the_longest_delay_and_the_smallest_number_count_for_a_host_key() -> None:
    read = overrides(
        {
            "example.org": {"delay": 2, "per_host": 4},
            "www.example.org": {"delay": 5.5, "per_host": 3},
            "Blog.Example.org.": {"delay": 1},
            "127.0.0.3": {"per_host": 2},
        }
    )
    assert read.delays == {host_key("example.org"): 5.5}
    assert read.per_host == {host_key("example.org"): 3, host_key("127.0.0.3"): 2}


def test_robots_follow_the_longest_name_that_the_host_lies_under() -> None:
    read = overrides(
        {"example.org": {"robots": "ignore"}, "www.Example.org": {"robots": "obey-but-fetch-requisites"}}
    )
    assert read.robots_at("http://example.org/", Robots.OBEY) is Robots.IGNORE
    assert read.robots_at("https://a.b.example.org./x", Robots.OBEY) is Robots.IGNORE
    assert read.robots_at("http://WWW.example.org:8080/", Robots.OBEY) is Robots.REQUISITES
    assert read.robots_at("http://notexample.org/", Robots.OBEY) is Robots.OBEY
    assert read.obey_somewhere
    assert not overrides({"a.org": {"delay": 1}}).obey_somewhere


@pytest.mark.parametrize(
    "given",
    [
        {"": {"delay": 1}},
        {"http://example.org/": {"delay": 1}},
        {"example.org/path": {"delay": 1}},
        {"example.org": {"delay": -1}},
        {"example.org": {"delay": "nan"}},
        {"example.org": {"delay": "soon"}},
        {"example.org": {"per_host": 0}},
        {"example.org": {"per_host": 1.5}},
        {"example.org": {"robots": "maybe"}},
        {"example.org": {"dealy": 5}},
        {"example.org": {"AMICRAWL_DELAY": 5}},
    ],
)
def test_an_override_that_cannot_be_followed_is_said(given: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_HOST_OVERRIDES"):
        overrides(given)


def test_all_keys_of_an_override_that_are_not_known_are_named_and_always_in_one_order() -> None:
    with pytest.raises(UsageError, match=r"has 'dealy', 'hosts', 'per-host', 'zone' for example\.org: "):
        overrides({"example.org": {"zone": 1, "per-host": 2, "delay": 3, "dealy": 4, "hosts": 5}})


def test_settings_take_what_crawl_files_say_of_a_host() -> None:
    assert HOST_KEYS.keys() == NAMES


def pacing(**config: Any) -> Pacing:
    made = CrawlConfig(**config)
    return Pacing(made, HostBreaker(3, max_retries=4), overrides(made.host_overrides))


def test_a_delay_of_a_hosts_own_may_be_shorter_and_is_not_undone_by_its_responses() -> None:
    rules = pacing(delay=1.0, host_overrides={"example.org": {"delay": 0.25}})
    host = host_key("example.org")
    assert (rules.gates.delay_of(host), rules.pace.interval(host)) == (0.25, 0.25)
    assert (rules.gates.delay_of(A), rules.pace.interval(A)) == (1.0, 1.0)


def test_without_delay_or_behind_a_proxy_addresses_are_not_gated() -> None:
    assert pacing(delay=0.0).addresses is None
    assert pacing(address_delay=0.0).addresses is None
    assert pacing(proxy="http://127.0.0.1:3128").addresses is None
    assert pacing().addresses is not None


@pytest.mark.parametrize(
    ("status", "told", "reason", "seconds"),
    [
        (200, {}, "delay", 2.0),
        (200, {"latency_ms": 5000}, "latency", 10.0),
        (503, {}, "back-off", 4.0),
        (503, {"retry_after": 60.0}, "Retry-After", 60.0),
    ],
)
def test_why_a_host_is_not_contacted_is_known_with_the_time(
    status: int, told: dict[str, Any], reason: str, seconds: float
) -> None:
    rules = pacing(delay=2.0)
    assert rules.held_back(A, 100.0) == ("", None)
    ticket = Ticket(A)
    rules.enter(ticket, 100.0)
    assert rules.held_back(A, 100.0) == ("", None), "one is in flight, as many as are allowed"
    ticket.outcome = Outcome(status=status, **told)
    rules.after_exchange(ticket, 100.0)
    rules.end(ticket, 100.0)
    assert rules.held_back(A, 100.0) == (reason, seconds)


def test_responses_within_a_millisecond_end_what_a_slow_one_has_led_to() -> None:
    rules = pacing(delay=0.5)

    def interval_after(ttfb_ms: int) -> float:
        capture = Capture(
            url="https://example.org/",
            started_ms=0,
            duration_ms=ttfb_ms,
            ttfb_ms=ttfb_ms,
            status=200,
        )
        ticket = Ticket(A)
        rules.enter(ticket, 100.0)
        ticket.outcome = outcome_of(CaptureItem(capture, Seed(capture.url)))
        rules.after_exchange(ticket, 100.0)
        rules.end(ticket, 100.0)
        return rules.pace.interval(A)

    assert interval_after(8000) == 16.0
    assert [interval_after(0) for _ in range(14)][-1] == 0.5


def test_back_off_doubles_from_the_crawl_delay() -> None:
    rules = pacing(delay=1.0)
    rules.slow_down(A, 10.0)
    for started, seconds in ((100.0, 20.0), (200.0, 40.0)):
        ticket = Ticket(A)
        rules.enter(ticket, started)
        ticket.started, ticket.outcome = started, Outcome(status=503)
        rules.after_exchange(ticket, started)
        rules.end(ticket, started)
        assert rules.held_back(A, started) == ("back-off", seconds)


def test_a_crawl_delay_that_its_robots_txt_has_no_more_is_over_but_not_that_of_another_origin() -> None:
    rules = pacing(delay=1.0)
    rules.slow_down(A, 30.0, origin="http://www.a.example/robots.txt")
    rules.slow_down(A, 10.0, origin="http://a.example/robots.txt")
    assert (rules.gates.delay_of(A), rules.pace.interval(A)) == (30.0, 30.0)
    rules.slow_down(A, 0.0, origin="http://www.a.example/robots.txt")
    assert (rules.gates.delay_of(A), rules.pace.interval(A)) == (10.0, 10.0)
    rules.slow_down(A, 0.0, origin="http://a.example/robots.txt")
    assert (rules.gates.delay_of(A), rules.pace.interval(A)) == (1.0, 1.0)


def test_of_many_origins_of_a_host_the_longest_crawl_delays_are_kept() -> None:
    rules = pacing(delay=1.0)
    for number in range(1, 1000):
        rules.slow_down(A, 2.0 + number % 50, origin=f"http://{number}.a.example/robots.txt")
    assert (rules.gates.delay_of(A), rules.pace.interval(A)) == (51.0, 51.0)


def test_a_host_can_wait_for_its_robots_txt_its_address_or_its_bandwidth() -> None:
    rules = pacing(delay=1.0, host_bandwidth=1000)
    rules.gates.start(A, 100.0)
    rules.slow_down(A, 30.0)
    rules.gates.end(A, 100.0)
    assert rules.held_back(A, 100.0) == ("Crawl-delay", 30.0)
    rules.gates.hold(B)
    assert rules.held_back(B, 100.0) == ("address", None)
    ticket = Ticket(C)
    rules.enter(ticket, 100.0)
    ticket.capture = Capture(url="http://c.example/", started_ms=0, duration_ms=1, head=bytes(60_000))
    ticket.outcome = Outcome(status=200)
    rules.after_exchange(ticket, 100.0)
    rules.end(ticket, 100.0)
    reason, seconds = rules.held_back(C, 100.0)
    assert (reason, seconds is not None and seconds > 5) == ("bandwidth", True)


def test_a_host_whose_robots_txt_is_not_available_waits_for_that() -> None:
    rules = pacing(delay=1.0)
    ticket = Ticket(A)
    rules.enter(ticket, 100.0)
    rules.wait_for_robots(ticket, 160.0)
    rules.end(ticket, 100.0)
    assert rules.held_back(A, 110.0) == ("robots.txt", 50.0)
    again = Ticket(A)
    rules.enter(again, 160.0)
    again.outcome = Outcome(status=503, retry_after=60.0)
    rules.after_exchange(again, 160.0)
    rules.end(again, 160.0)
    assert rules.held_back(A, 160.0) == ("Retry-After", 60.0)


def test_hosts_that_wait_for_their_robots_txt_are_not_remembered_for_ever() -> None:
    rules = pacing(delay=1.0)
    for host in range(30_000):
        rules.wait_for_robots(Ticket(host), 160.0)
    assert rules.held_back(29_999, 110.0) == ("robots.txt", 50.0)
    assert len(rules.robots_waits) <= 10_000


def test_rules_that_are_not_set_are_not_there() -> None:
    rules = pacing(timeout_floor=0.0)
    assert (rules.bandwidth, rules.first_byte_timeout, rules.opens_at()) == (None, None, -inf)
    assert pacing().first_byte_timeout is not None


def test_a_row_that_is_early_holds_its_host_and_costs_it_no_delay() -> None:
    rules = pacing(delay=10.0, address_delay=0.5)
    told: list[int] = []
    rules.gates.watch(lambda host, *_: told.append(host))
    tickets = [Ticket(host, started=100.0) for host in (A, B, C)]
    for ticket in tickets:
        rules.enter(ticket, 100.0)
    addresses = rules.addresses
    assert addresses is not None
    for name in ("a", "b", "c"):
        addresses.learn(f"http://{name}.example/x", ADDRESS)
    admitted = [
        rules.admit(ticket, f"http://{name}.example/y", 100.0)
        for ticket, name in zip(tickets, "abc", strict=True)
    ]
    assert admitted == [True, False, False]
    for host in (B, C):
        rules.gates.end(host, 100.0)
        assert rules.gates.opens_at(host) == inf
    told.clear()
    assert addresses.next_moment() == 100.5
    addresses.call(100.5)
    assert told == [B]
    assert rules.gates.may_start(B, 100.5), "it was not contacted, and keeps no distance from that"
    assert rules.gates.opens_at(C) == inf


def test_the_delay_of_an_address_begins_when_the_request_leaves() -> None:
    """Connecting may take longer than the delay; the server sees the requests, not the admissions."""
    rules = pacing(delay=1.0, address_delay=0.5)
    addresses = rules.addresses
    assert addresses is not None
    first, second = Ticket(A), Ticket(B)
    for name in ("a", "b"):
        addresses.learn(f"http://{name}.example/", ADDRESS)
    rules.enter(first, 100.0)
    assert rules.admit(first, "http://a.example/", 100.0)
    rules.departs(first, "http://a.example/", lambda: 105.0)
    rules.enter(second, 105.25)
    assert not rules.admit(second, "http://b.example/", 105.25)
    assert addresses.next_moment() == 105.5


def test_a_host_that_was_given_up_in_line_does_not_block_its_neighbours() -> None:
    gates, breaker = Gates(1.0, 1), HostBreaker(1, max_retries=0)
    addresses = AddressPace(0.5, gates, breaker)
    told: list[int] = []
    gates.watch(lambda host, *_: told.append(host))
    assert addresses.enter(ADDRESS, A, 10.0)
    for host in (B, C):
        assert not addresses.enter(ADDRESS, host, 10.0)
    gates.keep_shut(B, 60.0)
    addresses.call(10.5)
    assert told == [B, C], "the turn of one that cannot come goes to the next at once"
    assert addresses.enter(ADDRESS, C, 10.5)


def test_a_host_stands_in_one_line_at_a_time() -> None:
    gates = Gates(1.0, 9)
    addresses = AddressPace(0.5, gates, HostBreaker(3, max_retries=4))
    addresses.start(ADDRESS, 10.0)
    addresses.start(ELSEWHERE, 10.2)
    assert not addresses.enter(ADDRESS, A, 10.3)
    assert not addresses.enter(ELSEWHERE, A, 10.3)
    addresses.call(10.5)
    assert addresses.next_moment() is None
    assert addresses.enter(ADDRESS, A, 10.5)


def test_the_address_of_a_name_is_what_was_dialled_last_and_a_literal_is_its_own() -> None:
    addresses = AddressPace(0.5, Gates(1.0, 1), HostBreaker(3, max_retries=4))
    assert addresses.address_of("http://a.example/") is None
    addresses.learn("http://a.example/x", ADDRESS)
    addresses.learn("http://a.example/y", ELSEWHERE)
    assert addresses.address_of("http://a.example/z?q") == ELSEWHERE
    assert addresses.address_of("http://a.example:81/") is None
    for url in ("http://127.1/", "http://0x7f000001:80/a", "http://2130706433?q"):
        assert addresses.address_of(url) == "127.0.0.1"
    assert addresses.address_of("https://[::1]:8443/") == "::1"
    for odd in ("", "http:", "about:blank", "http:///"):
        assert addresses.address_of(odd) is None


CHANGES = {
    *("start", "end", "hold", "release", "withdraw", "note_sent", "keep_shut", "set_delay", "change"),
    *("lift", "probe", "watch"),
}


def changers_of_gates(room: Path) -> set[str]:
    """Return the modules of *room* with a call such as `self._gates.start(...)`."""
    found = set()
    for path in room.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                gates = ast.unparse(node.func.value).rpartition(".")[2]
                if gates.lstrip("_") == "gates" and node.func.attr in CHANGES:
                    found.add(path.name)
    return found


def test_one_module_of_the_crawl_changes_gates() -> None:
    assert changers_of_gates(PROJECT / "amicrawl" / "crawl") == {"pacing.py"}


def test_one_module_of_the_frontier_changes_gates() -> None:
    assert changers_of_gates(PROJECT / "amicrawl" / "frontier") == {"queue.py"}
