"""The wire: exchanges with ordinary and less ordinary servers."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import uvloop
from fetch.serving import always, content, descriptors, reset_after, silence, until
from loopback import free_port
from odd_responses import FIVE, OK, LoopbackServer, read_request

from amicrawl.capture import Failure, Truncation
from amicrawl.errors import UsageError
from amicrawl.fetch import Wire, WireRequest
from amicrawl.politeness import AdaptiveTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetch.serving import Run

    from amicrawl.capture import Capture


def test_an_ordinary_page_is_captured(run: Run, make_wire: Callable[..., Wire]) -> None:
    page = OK + b"Content-Type: text/html\r\n" + FIVE
    with LoopbackServer(always(page)) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(WireRequest(url=f"{server.url}/a?b"))

        capture = run(fetch())
    assert capture.url == f"{server.url}/a?b"
    assert capture.request == b"GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port
    assert (capture.status, capture.protocol, capture.tls) == (200, "http/1.1", None)
    assert (capture.ip_address, capture.truncated, capture.failure) == ("127.0.0.1", None, None)
    assert (capture.fields, capture.header(b"content-type")) == (
        [(b"Content-Type", b"text/html"), (b"Content-Length", b"5")],
        b"text/html",
    )
    assert content(capture) == b"hello"


def test_ipv6_is_spoken(run: Run, make_wire: Callable[..., Wire]) -> None:
    with LoopbackServer(always(OK + FIVE), host="::1") as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(WireRequest(url=server.url))

        capture = run(fetch())
    assert (capture.ip_address, content(capture)) == ("::1", b"hello")


def test_the_caller_is_told_before_a_server_is_called_and_before_it_is_sent_anything(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    seen: list[str] = []

    def serve(connection: socket.socket) -> None:
        seen.append(read_request(connection).split()[1].decode())
        connection.sendall(OK + FIVE)

    def look_up(_: str) -> list[str]:
        seen.append("looked up")
        return ["127.0.0.1"]

    with LoopbackServer(serve) as server:

        async def fetch() -> Capture:
            async with make_wire(wire={"resolve": look_up}) as wire:
                url = f"http://name.example:{server.port}/a"
                return await wire.fetch(WireRequest(url=url), departs=lambda: seen.append("departs"))

        assert run(fetch()).status == 200
    assert seen == ["departs", "looked up", "departs", "/a"]


def test_a_server_that_cannot_be_reached_was_called_and_not_sent_anything(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    told: list[None] = []
    port = free_port()

    async def fetch() -> Capture:
        async with make_wire() as wire:
            request = WireRequest(url=f"http://127.0.0.1:{port}/")
            return await wire.fetch(request, departs=lambda: told.append(None))

    assert run_once(fetch()).failure is Failure.CONNECTION_REFUSED
    assert told == [None]


def test_a_capture_begins_at_the_clocks_time_in_whole_milliseconds(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> Capture:
            async with make_wire(wire={"clock": lambda: 1_700_000_000.1239}) as wire:
                return await wire.fetch(WireRequest(url=server.url))

        capture = run_once(fetch())
    assert capture.started == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert capture.ttfb_ms is not None
    assert 0 <= capture.ttfb_ms <= capture.duration_ms
    capture.body.close()


def test_the_request_is_sent_byte_for_byte_as_the_capture_has_it(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        while request := read_request(connection):
            received.append(request)
            connection.sendall(OK + FIVE)

    fields = [(b"x-LOW", b"1"), (b"Host", b"other.example"), (b"X-Low", b"\xe9"), (b"Accept", b"")]
    body = bytes(range(256)) * 40_000

    async def fetch(url: str) -> list[Capture]:
        async with make_wire() as wire:
            return [
                await wire.fetch(WireRequest(url=url, method="POST", fields=fields, body=body)),
                await wire.fetch(WireRequest(url=url + "/../%7e?a=%C3%A4|{}", fields=fields)),
                await wire.fetch(WireRequest(url=url, method="OPTIONS")),
            ]

    with LoopbackServer(serve) as server:
        captures = run(fetch(server.url))
    assert [capture.request for capture in captures] == received
    assert received[0].endswith(b"Content-Length: 10240000\r\n\r\n" + body)
    assert received[1].startswith(
        b"GET /../%7e?a=%C3%A4|{} HTTP/1.1\r\nx-LOW: 1\r\nHost: other.example\r\n"
    )
    assert [content(capture) for capture in captures] == [b"hello"] * 3


def test_the_environments_proxies_are_not_used(
    run_once: Run, make_wire: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(WireRequest(url=server.url))

        assert content(run_once(fetch())) == b"hello"


def test_redirects_are_not_followed_and_cookies_not_kept(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nSet-Cookie: a=b\r\n" + FIVE
    with LoopbackServer(always(moved)) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                return [await wire.fetch(WireRequest(url=server.url)) for _ in range(2)]

        captures = run_once(fetch())
    assert [capture.status for capture in captures] == [302, 302]
    assert b"Cookie" not in captures[1].request
    for capture in captures:
        capture.body.close()


def test_a_reset_before_a_response_is_a_failure_and_after_some_of_it_a_disconnect(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    async def fetch(url: str) -> Capture:
        async with make_wire() as wire:
            return await wire.fetch(WireRequest(url=url))

    with LoopbackServer(reset_after(b"")) as server:
        nothing = run(fetch(server.url))
    assert (nothing.status, nothing.failure) == (0, Failure.CONNECTION_RESET)
    assert nothing.failure_detail
    for head in (OK + b"Content-Length: 50\r\n\r\n", OK + b"\r\n"):
        with LoopbackServer(reset_after(head + b"hello")) as server:
            begun = run(fetch(server.url))
        assert (begun.failure, begun.truncated, begun.head) == (None, Truncation.DISCONNECT, head)
        assert content(begun) == b"hello"


def test_a_server_that_responds_before_it_has_read_everything_is_heard(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\n" + FIVE)
        connection.shutdown(socket.SHUT_WR)
        silence(connection)

    with LoopbackServer(serve) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(
                    WireRequest(url=server.url, method="POST", body=bytes(20_000_000))
                )

        capture = run(fetch())
    assert (capture.status, content(capture)) == (413, b"hello")
    assert capture.request.startswith(b"POST / HTTP/1.1\r\n")


def test_a_server_that_hangs_up_on_a_long_request_is_heard_as_far_as_it_spoke(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\n" + FIVE)

    with LoopbackServer(serve) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(
                    WireRequest(url=server.url, method="POST", body=bytes(20_000_000))
                )

        capture = run(fetch())
    if capture.failure:
        # The reset, which unread bytes bring about, may overtake the response.
        assert capture.failure is Failure.CONNECTION_RESET
    else:
        assert (capture.status, capture.truncated, content(capture)) == (413, None, b"hello")
    assert capture.request.startswith(b"POST / HTTP/1.1\r\n")


def test_head_has_a_response_without_a_body(run_once: Run, make_wire: Callable[..., Wire]) -> None:
    with LoopbackServer(always(OK + b"Content-Length: 5\r\n\r\n")) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                return [await wire.fetch(WireRequest(url=server.url, method="HEAD")) for _ in range(2)]

        captures = run_once(fetch())
    assert [(capture.status, content(capture)) for capture in captures] == [(200, b"")] * 2
    assert server.connections == 1


def test_a_refused_connection_and_a_url_that_is_none_are_failures(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    port = free_port()

    async def fetch() -> list[Capture]:
        async with make_wire() as wire:
            urls = [
                f"http://127.0.0.1:{port}/",
                "http://127.0.0.1:port/",
                "http://[::1/",
                "mailto:me",
                "http://a b/",
            ]
            return [await wire.fetch(WireRequest(url=url)) for url in urls]

    captures = run(fetch())
    assert [capture.failure for capture in captures] == [
        Failure.CONNECTION_REFUSED,
        *[Failure.UNFETCHABLE_URL] * 4,
    ]
    assert all(
        capture.failure_detail and not capture.request and not capture.head for capture in captures
    )
    assert captures[0].ip_address == "127.0.0.1"


def test_a_name_that_does_not_exist_is_not_found(run: Run, make_wire: Callable[..., Wire]) -> None:
    async def fetch() -> Capture:
        async with make_wire() as wire:
            # The top-level domain is reserved for this (RFC 6761); no resolver is needed to know it.
            return await wire.fetch(WireRequest(url="http://nothing.here.invalid/"))

    capture = run(fetch())
    assert capture.failure in {Failure.NAME_NOT_FOUND, Failure.NAME_LOOKUP_FAILED}


def test_a_resolver_that_knows_no_address_is_believed(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    async def fetch() -> Capture:
        async with make_wire(wire={"resolve": lambda _: []}) as wire:
            return await wire.fetch(WireRequest(url="http://example.org/"))

    assert run_once(fetch()).failure is Failure.NAME_NOT_FOUND


@pytest.mark.parametrize("sent", [b"", OK + b"Content-Length: 50\r\n\r\nhello"], ids=["silent", "begun"])
def test_a_cancelled_fetch_gives_everything_back(
    run: Run, make_wire: Callable[..., Wire], sent: bytes
) -> None:
    hung_up = threading.Event()
    requested = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(sent)
        requested.set()
        try:
            silence(connection)
        finally:
            # Bytes that the client has not read make its hanging up a reset.
            hung_up.set()

    with LoopbackServer(serve) as server:

        async def cancel() -> None:
            async with make_wire() as wire:
                task = asyncio.ensure_future(wire.fetch(WireRequest(url=server.url)))
                await until(requested.is_set)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert hung_up.wait(10)
                assert (await wire.fetch(WireRequest(url="http://nowhere"))).failure

        run(cancel())
    assert hung_up.is_set()


def test_a_fetch_cancelled_while_it_connects_gives_everything_back(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    with LoopbackServer(silence) as server:

        async def cancel() -> None:
            async with make_wire() as wire:
                # A TLS handshake without a response is part of connecting.
                task = asyncio.ensure_future(
                    wire.fetch(WireRequest(url=server.url.replace("http", "https")))
                )
                await until(lambda: server.connections == 1)
                before = descriptors()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert descriptors() < before

        run(cancel())


def test_closing_ends_what_is_under_way(run: Run, make_wire: Callable[..., Wire]) -> None:
    begun = OK + b"Content-Length: 50\r\n\r\nhello"
    has_begun = threading.Event()

    def serve(connection: socket.socket) -> None:
        if b"/begun" in read_request(connection):
            connection.sendall(begun)
            has_begun.set()
        silence(connection)

    with LoopbackServer(serve) as server:

        async def close() -> list[Capture]:
            wire = make_wire()
            urls = [f"{server.url}/silent", f"{server.url}/begun", server.url.replace("http", "https")]
            tasks = [asyncio.ensure_future(wire.fetch(WireRequest(url=url))) for url in urls]
            await until(lambda: server.connections == 3 and has_begun.is_set())
            await asyncio.sleep(0.1)  # in which the loop sees what lies in the socket
            await wire.close()
            await wire.close()
            with pytest.raises(UsageError, match="closed"):
                await wire.fetch(WireRequest(url=server.url))
            return await asyncio.gather(*tasks)

        silent, cut, connecting = run(close())
    assert (silent.failure, connecting.failure) == (Failure.ENDED_HERE, Failure.ENDED_HERE)
    assert "closed" in silent.failure_detail
    assert (cut.failure, cut.truncated, content(cut)) == (None, Truncation.UNSPECIFIED, b"hello")


def test_closing_does_not_wait_for_a_request_that_waits_for_a_connection_in_use(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    requested = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        requested.set()
        silence(connection)

    with LoopbackServer(serve) as server:

        async def close() -> tuple[Capture, Capture]:
            wire = make_wire()
            first = asyncio.ensure_future(wire.fetch(WireRequest(url=server.url)))
            await until(requested.is_set)
            second = asyncio.ensure_future(wire.fetch(WireRequest(url=server.url)))
            await asyncio.sleep(0)
            await wire.close()
            return await asyncio.gather(first, second)

        captures = run(close())
    assert ["closed" in capture.failure_detail for capture in captures] == [True, True]


def test_a_wire_that_was_never_used_can_be_closed(run_once: Run, make_wire: Callable[..., Wire]) -> None:
    async def close() -> None:
        wire = make_wire()
        await wire.close()
        with pytest.raises(UsageError):
            await wire.fetch(WireRequest(url="http://127.0.0.1/"))

    run_once(close())


def test_nothing_is_left_open(run: Run, make_wire: Callable[..., Wire]) -> None:
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> tuple[int, int]:
            async with make_wire() as wire:
                # A loop keeps a descriptor of its own from its first connection on.
                (await wire.fetch(WireRequest(url=server.url))).body.close()
            await until(lambda: not server.open_connections)
            before = descriptors()
            async with make_wire(spool_above=0) as wire:
                requests = [WireRequest(url=server.url) for _ in range(20)]
                captures = await asyncio.gather(*map(wire.fetch, requests))
                for capture in captures:
                    capture.body.close()
            await until(lambda: not server.open_connections)
            return before, descriptors()

        before, after = run(fetch())
    # Fewer where a server of an earlier test lets go of its last connections meanwhile.
    assert before >= after


def test_what_is_secret_by_its_name_is_sent_and_not_kept(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(OK + FIVE)

    with LoopbackServer(serve) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                fields = [(b"Cookie", b"geheim")]
                return await wire.fetch(WireRequest(url=server.url, fields=fields))

        capture = run_once(fetch())
    capture.body.close()
    assert b"Cookie: geheim" in received[0]
    assert b"geheim" not in capture.request


def test_a_connection_is_made_from_the_address_that_is_requested(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    peers: list[str] = []

    def serve(connection: socket.socket) -> None:
        peers.append(connection.getpeername()[0])
        always(OK + FIVE)(connection)

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                addresses = ["127.0.0.7", "127.0.0.7", "127.0.0.8", ""]
                return [await wire.fetch(WireRequest(url=server.url, bind=bind)) for bind in addresses]

        assert [content(capture) for capture in run(fetch())] == [b"hello"] * 4
    assert peers == ["127.0.0.7", "127.0.0.8", "127.0.0.1"]


def test_an_address_that_is_not_ours_to_bind_to_is_a_failure(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(WireRequest(url=server.url, bind="192.0.2.1"))

        capture = run(fetch())
        assert server.connections == 0
    assert capture.failure in {Failure.NO_ROUTE, Failure.OTHER}


class Noted(AdaptiveTimeout):
    """Notes how long responses took."""

    def __init__(self) -> None:
        super().__init__(5.0, 5.0)
        self.waits: list[float] = []

    def responded(self, *latencies: float) -> None:
        self.waits += latencies


def test_how_long_a_response_took_is_learnt_from_each(run: Run, make_wire: Callable[..., Wire]) -> None:
    noted = Noted()

    async def fetch(url: str) -> list[Capture]:
        async with make_wire(wire={"patience": noted}) as wire:
            return [await wire.fetch(WireRequest(url=url)) for _ in range(2)]

    with LoopbackServer(always(OK + FIVE)) as server:
        captures = run(fetch(server.url))
    assert [content(capture) for capture in captures] == [b"hello"] * 2
    # A number of its own for each, to the digits of the clock: none is a bound, or another's.
    assert len(set(noted.waits)) == 2
    assert min(noted.waits) > 0


def test_a_busy_loop_is_not_the_servers_latency(run: Run, make_wire: Callable[..., Wire]) -> None:
    """The response is there at once; the loop is busy for half a second before it looks."""
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                (await wire.fetch(WireRequest(url=server.url))).body.close()

                def departs() -> None:
                    asyncio.get_running_loop().call_soon(time.sleep, 0.8)

                return await wire.fetch(WireRequest(url=server.url), departs=departs)

        capture = run(fetch())
    capture.body.close()
    assert capture.ttfb_ms is not None
    assert capture.ttfb_ms < 600


def test_how_late_the_loop_is_is_told_while_something_is_under_way(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    late: list[float] = []
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> None:
            async with make_wire(wire={"on_lag": late.append}) as wire:

                def departs() -> None:
                    asyncio.get_running_loop().call_soon(time.sleep, 0.8)

                (await wire.fetch(WireRequest(url=server.url), departs=departs)).body.close()
                await asyncio.sleep(0.1)

        run(fetch())
    assert max(late) > 0.5


@pytest.mark.parametrize("kind", ["succeeds", "is refused", "is not https"])
def test_a_fetch_leaves_nothing_for_the_collector(make_wire: Callable[..., Wire], kind: str) -> None:
    """Cycles would be found by full collections only, which stop a crawl for as long as they take.

    The loop is uvloop, that of crawls: a transport of asyncio's own refers to itself.
    """
    plain = always(OK + FIVE) if kind == "succeeds" else lambda connection: connection.sendall(OK)
    with LoopbackServer(plain) as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        refused = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        urls = {"is refused": refused, "is not https": server.url.replace("http:", "https:")}
        url = urls.get(kind, server.url)

        async def fetch() -> int:
            async with make_wire() as wire:
                for count in (10, 100):
                    gc.collect()
                    gc.disable()
                    for _ in range(count):
                        capture = await wire.fetch(WireRequest(url=url))
                        assert (capture.failure is None) == (kind == "succeeds")
                        capture.body.close()
                found = gc.collect()
                gc.enable()
                return found

        assert uvloop.run(fetch()) < 30
