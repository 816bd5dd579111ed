"""The guard at work: what must not be dialled is not, however it is spelt or resolved."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest
from fetch.serving import always, content, full_backlog
from loopback import free_port
from odd_responses import FIVE, OK, LoopbackServer

from amicrawl.capture import Failure
from amicrawl.fetch import Guard, Wire, WireRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetch.serving import Run

    from amicrawl.capture import Capture


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "017700000001",
        "2130706433",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST.",
        "localhost.",
        "user@127.0.0.1",
        "example.org@127.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[0:0:0:0:0:0:0:1]",
        "127.0.0.1%2f.example.org",
        "%31%32%37.0.0.1",
    ],
)
@pytest.mark.parametrize("listens_on", ["127.0.0.1", "::1"])
def test_no_spelling_of_a_loopback_address_reaches_a_server(
    run_once: Run, make_wire: Callable[..., Wire], host: str, listens_on: str
) -> None:
    async def fetch(port: int) -> Capture:
        async with make_wire(guard=Guard()) as wire:
            return await wire.fetch(WireRequest(url=f"http://{host}:{port}/"))

    with LoopbackServer(always(OK + FIVE), host=listens_on) as server:
        capture = run_once(fetch(server.port))
        assert server.connections == 0
    assert capture.status == 0
    assert capture.failure in {
        Failure.ADDRESS_REFUSED,
        Failure.UNFETCHABLE_URL,
        Failure.NAME_NOT_FOUND,
        Failure.NAME_LOOKUP_FAILED,
    }
    assert capture.ip_address is None
    assert capture.request == b""


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f.1", "017700000001", "2130706433", "localhost.", "[::ffff:7f00:1]"]
)
def test_the_same_spellings_reach_it_where_loopback_is_allowed(
    run_once: Run, make_wire: Callable[..., Wire], host: str
) -> None:
    """Else the test above would pass for URLs that lead nowhere."""

    async def fetch(port: int) -> Capture:
        async with make_wire() as wire:
            return await wire.fetch(WireRequest(url=f"http://{host}:{port}/"))

    with LoopbackServer(always(OK + FIVE)) as server:
        assert content(run_once(fetch(server.port))) == b"hello"


def test_a_refusal_names_the_address_and_the_reason(run: Run, make_wire: Callable[..., Wire]) -> None:
    async def fetch() -> Capture:
        async with make_wire(guard=Guard()) as wire:
            return await wire.fetch(WireRequest(url="http://169.254.169.254/latest/meta-data/"))

    capture = run(fetch())
    assert capture.failure is Failure.ADDRESS_REFUSED
    assert capture.failure_detail == "169.254.169.254 is a cloud metadata address."


def test_of_several_addresses_the_ones_that_may_be_dialled_are(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    guard = Guard([ip_network("127.0.0.1/32")])
    responses = ["10.0.0.1", "::1", "127.0.0.2", "127.0.0.1"]

    async def fetch(port: int) -> Capture:
        async with make_wire(guard=guard, wire={"resolve": lambda _: responses}) as wire:
            return await wire.fetch(WireRequest(url=f"http://several.example:{port}/"))

    with LoopbackServer(always(OK + FIVE)) as server:
        capture = run(fetch(server.port))
    assert (capture.ip_address, content(capture)) == ("127.0.0.1", b"hello")


@pytest.mark.parametrize("responses", [["127.0.0.1", "224.0.0.1"], ["224.0.0.1", "127.0.0.1"]])
def test_an_address_without_a_route_does_not_hide_that_the_server_refused(
    run: Run, make_wire: Callable[..., Wire], responses: list[str]
) -> None:
    """Of a host with both kinds, a machine without IPv6 can reach only some of the addresses."""
    guard = Guard([ip_network("127.0.0.1/32"), ip_network("224.0.0.0/4")])

    async def fetch(port: int) -> Capture:
        async with make_wire(guard=guard, wire={"resolve": lambda _: responses}) as wire:
            return await wire.fetch(WireRequest(url=f"http://several.example:{port}/"))

    capture = run(fetch(free_port()))
    assert (capture.failure, capture.ip_address) == (Failure.CONNECTION_REFUSED, "127.0.0.1")


def test_a_dial_out_of_time_names_an_address_that_was_still_being_dialled(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    guard = Guard([ip_network("127.0.0.1/32"), ip_network("224.0.0.0/4")])
    responses = ["127.0.0.1", "224.0.0.1"]

    async def fetch(port: int) -> Capture:
        given = {"resolve": lambda _: responses}
        async with make_wire(guard=guard, connect_timeout=0.5, wire=given) as wire:
            return await wire.fetch(WireRequest(url=f"http://several.example:{port}/"))

    with full_backlog() as port:
        capture = run_once(fetch(port))
    assert (capture.failure, capture.ip_address) == (Failure.CONNECT_TIMEOUT, "127.0.0.1")


def test_a_name_that_is_bound_anew_to_a_private_address_is_refused(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """Between look and dial there is no second look-up; and each dial is judged by its own address."""
    responses = [["127.0.0.1"], ["127.0.0.2"]]
    guard = Guard([ip_network("127.0.0.1/32")])

    async def fetch(port: int) -> list[Capture]:
        request = WireRequest(url=f"http://rebound.example:{port}/", fields=[(b"Connection", b"close")])
        async with make_wire(
            guard=guard, wire={"resolve": lambda _: responses.pop(0), "keep_names": 0}
        ) as wire:
            return [await wire.fetch(request) for _ in range(2)]

    with LoopbackServer(always(OK + FIVE)) as server:
        first, second = run(fetch(server.port))
        assert server.connections == 1
    assert content(first) == b"hello"
    assert (second.failure, second.failure_detail) == (
        Failure.ADDRESS_REFUSED,
        "127.0.0.2 is a loopback address.",
    )


@pytest.mark.parametrize("scheme", ["http", "https", "socks4", "socks5", "socks5h"])
def test_a_proxys_address_is_judged_like_any_other(
    run_once: Run, make_wire: Callable[..., Wire], scheme: str
) -> None:
    async def fetch(port: int) -> Capture:
        async with make_wire(guard=Guard()) as wire:
            proxy = f"{scheme}://127.0.0.1:{port}"
            return await wire.fetch(WireRequest(url="http://192.0.1.1/", proxy=proxy))

    with LoopbackServer(always(OK + FIVE)) as server:
        capture = run_once(fetch(server.port))
        assert server.connections == 0
    assert capture.failure is Failure.ADDRESS_REFUSED


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "0xa.1", "169.254.169.254", "[::ffff:10.0.0.1]", "[fd00:ec2::254]"]
)
def test_a_proxy_does_not_get_an_address_that_must_not_be_dialled(
    run_once: Run, make_wire: Callable[..., Wire], host: str
) -> None:
    async def fetch(port: int) -> Capture:
        async with make_wire() as wire:
            return await wire.fetch(WireRequest(url=f"http://{host}/", proxy=f"http://127.0.0.1:{port}"))

    with LoopbackServer(always(OK + FIVE)) as server:
        capture = run_once(fetch(server.port))
        assert server.connections == 0
    assert capture.failure is Failure.ADDRESS_REFUSED
