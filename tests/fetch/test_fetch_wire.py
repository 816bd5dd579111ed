"""The wire: exchanges with ordinary and less ordinary servers."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from fetch.serving import always, answer, content, descriptors, reset_after, silence, until
from odd_responses import FIVE, OK, LoopbackServer, read_request

from amicrawl.capture import Failure, Truncation
from amicrawl.errors import UsageError
from amicrawl.fetch import Wire, WireRequest

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


def test_a_kept_connection_that_the_server_has_closed_is_replaced(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    with LoopbackServer(answer(OK + FIVE)) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                captures = []
                for _ in range(3):
                    captures.append(await wire.fetch(WireRequest(url=server.url)))
                    await asyncio.sleep(0.05)
                return captures

        captures = run(fetch())
    assert [content(capture) for capture in captures] == [b"hello"] * 3
    assert server.connections == 3


def test_a_kept_connection_that_dies_with_the_next_request_is_replaced_once(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """The server's decision to close and our request cross on the way."""
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(OK + FIVE)
        received.append(read_request(connection))

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                return [await wire.fetch(WireRequest(url=f"{server.url}/{i}")) for i in range(2)]

        captures = run(fetch())
        assert [content(capture) for capture in captures] == [b"hello"] * 2
    assert [request.split()[1] for request in received if request] == [b"/0", b"/1", b"/1"]


def test_a_post_is_sent_once_and_on_a_connection_of_its_own(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        while request := read_request(connection):
            received.append(request)
            if request.startswith(b"POST"):
                return
            connection.sendall(OK + FIVE)

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                first = await wire.fetch(WireRequest(url=server.url))
                return [first, await wire.fetch(WireRequest(url=server.url, method="POST", body=b"x"))]

        captures = run_once(fetch())
    assert content(captures[0]) == b"hello"
    assert captures[1].failure is Failure.EMPTY_RESPONSE
    assert len(received) == 2
    assert server.connections == 2


def test_bytes_that_come_unasked_cost_the_connection_not_the_next_capture(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    more_sent = threading.Event()
    go_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        while read_request(connection):
            connection.sendall(OK + FIVE)
            if not more_sent.is_set():
                go_on.wait(10)
                connection.sendall(b"HTTP/1.1 200 Forged\r\nContent-Length: 6\r\n\r\nforged")
                more_sent.set()

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                first = await wire.fetch(WireRequest(url=server.url))
                go_on.set()
                # The loop is not asked in between: the check belongs to the taking of a connection.
                more_sent.wait(10)
                return [first, await wire.fetch(WireRequest(url=server.url))]

        captures = run(fetch())
    assert [content(capture) for capture in captures] == [b"hello", b"hello"]
    assert server.connections == 2


def test_connection_close_in_the_request_is_kept_to(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> None:
            async with make_wire() as wire:
                for _ in range(2):
                    request = WireRequest(url=server.url, fields=[(b"Connection", b"close")])
                    (await wire.fetch(request)).body.close()

        run_once(fetch())
    assert server.connections == 2


def test_no_more_connections_are_kept_idle_than_asked_for(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(LoopbackServer(always(OK + FIVE))) for _ in range(3)]

        async def fetch() -> int:
            before = descriptors()
            async with make_wire(wire={"keep": 1}) as wire:
                for server in servers * 2:
                    (await wire.fetch(WireRequest(url=server.url))).body.close()
                return descriptors() - before

        run_once(fetch())
        assert [server.connections for server in servers] == [2, 2, 2]


def test_a_reset_before_an_answer_is_a_failure_and_after_some_of_it_a_disconnect(
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


def test_a_server_that_answers_before_it_has_read_everything_is_heard(
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
    assert 0 < len(capture.request) < 20_000_000


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
        # The reset, which unread bytes bring about, may overtake the answer.
        assert capture.failure is Failure.CONNECTION_RESET
    else:
        assert (capture.status, capture.truncated, content(capture)) == (413, None, b"hello")
    assert len(capture.request) < 20_000_000


def test_head_is_answered_without_a_body(run_once: Run, make_wire: Callable[..., Wire]) -> None:
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
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

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
    asked = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(sent)
        asked.set()
        silence(connection)
        hung_up.set()

    with LoopbackServer(serve) as server:

        async def cancel() -> None:
            async with make_wire() as wire:
                task = asyncio.ensure_future(wire.fetch(WireRequest(url=server.url)))
                await until(asked.is_set)
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
                # A TLS handshake that is not answered is part of connecting.
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

    def serve(connection: socket.socket) -> None:
        request = read_request(connection)
        connection.sendall(begun if b"/begun" in request else b"")
        silence(connection)

    with LoopbackServer(serve) as server:

        async def close() -> list[Capture]:
            wire = make_wire()
            urls = [f"{server.url}/silent", f"{server.url}/begun", server.url.replace("http", "https")]
            tasks = [asyncio.ensure_future(wire.fetch(WireRequest(url=url))) for url in urls]
            await until(lambda: server.connections == 3)
            await asyncio.sleep(0.1)
            await wire.close()
            await wire.close()
            with pytest.raises(UsageError, match="closed"):
                await wire.fetch(WireRequest(url=server.url))
            return await asyncio.gather(*tasks)

        silent, cut, connecting = run(close())
    assert (silent.failure, connecting.failure) == (Failure.OTHER, Failure.OTHER)
    assert "closed" in silent.failure_detail
    assert (cut.failure, cut.truncated, content(cut)) == (None, Truncation.UNSPECIFIED, b"hello")


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
            before = descriptors()
            async with make_wire(spool_above=0) as wire:
                requests = [WireRequest(url=server.url) for _ in range(20)]
                captures = await asyncio.gather(*map(wire.fetch, requests))
                for capture in captures:
                    capture.body.close()
            await until(lambda: not server.open_connections)
            return before, descriptors()

        before, after = run(fetch())
    assert before == after
