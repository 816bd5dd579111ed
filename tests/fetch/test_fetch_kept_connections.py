"""Kept connections: what they are used for again, and what they must not be."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pytest
from fetch.serving import always, content, respond
from odd_responses import FIVE, OK, LoopbackServer, read_request

from amicrawl.capture import Failure
from amicrawl.fetch import Wire, WireRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetch.serving import Run

    from amicrawl.capture import Capture
    from amicrawl.fetch import Head


def test_a_kept_connection_that_the_server_has_closed_is_replaced(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    with LoopbackServer(respond(OK + FIVE)) as server:

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
    told: list[int] = []

    def serve(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(OK + FIVE)
        received.append(read_request(connection))

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                return [
                    await wire.fetch(
                        WireRequest(url=f"{server.url}/{i}"), departs=partial(told.append, i)
                    )
                    for i in range(2)
                ]

        captures = run(fetch())
        assert [content(capture) for capture in captures] == [b"hello"] * 2
    assert [request.split()[1] for request in received if request] == [b"/0", b"/1", b"/1"]
    assert told == [0, 0, 1, 1, 1], "dialled, sent; sent on the kept one, dialled, sent"


def test_a_kept_connection_that_is_reset_by_the_next_request_is_replaced_once(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(OK + FIVE)
        received.append(read_request(connection))
        # Closed with this option, a socket sends RST in place of FIN.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                return [await wire.fetch(WireRequest(url=f"{server.url}/{i}")) for i in range(2)]

        captures = run(fetch())
        assert [content(capture) for capture in captures] == [b"hello"] * 2
    assert [request.split()[1] for request in received if request] == [b"/0", b"/1", b"/1"]


@pytest.mark.parametrize(("max_idle", "connections"), [(0.02, 2), (60.0, 1)])
def test_a_connection_that_was_idle_for_too_long_is_not_used_again(
    run: Run, make_wire: Callable[..., Wire], max_idle: float, connections: int
) -> None:
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> list[Capture]:
            async with make_wire(wire={"max_idle": max_idle}) as wire:
                first = await wire.fetch(WireRequest(url=server.url))
                await asyncio.sleep(0.05)
                return [first, await wire.fetch(WireRequest(url=server.url))]

        assert [content(capture) for capture in run(fetch())] == [b"hello"] * 2
    assert server.connections == connections


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


def test_unsolicited_bytes_cost_the_connection_not_the_next_capture(
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
                # The loop does not run in between: the check belongs to the taking of a connection.
                more_sent.wait(10)
                return [first, await wire.fetch(WireRequest(url=server.url))]

        captures = run(fetch())
    assert [content(capture) for capture in captures] == [b"hello", b"hello"]
    assert server.connections == 2


class Pieces:
    """A watcher that keeps what it is shown."""

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.data = b""

    def head(self, head: Head) -> bool:
        self.heads.append(head)
        return False

    def body(self, data: bytes) -> bool:
        self.data += data
        return False


@pytest.mark.parametrize("watcher", [None, Pieces()])
def test_a_body_that_comes_late_behind_a_response_without_one_is_not_the_next_response(
    run_once: Run, make_wire: Callable[..., Wire], watcher: Pieces | None
) -> None:
    """It came when the next request was on its way, so no look at the connection could find it."""
    connections = count()

    def serve(connection: socket.socket) -> None:
        if next(connections):
            respond(OK + FIVE)(connection)
        elif read_request(connection):
            connection.sendall(b"HTTP/1.1 304 Not Modified\r\n\r\n")
            read_request(connection)
            connection.sendall(b"late" + OK + FIVE)
            connection.recv(1)

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                first = await wire.fetch(WireRequest(url=server.url))
                return [first, await wire.fetch(WireRequest(url=server.url), watcher=watcher)]

        captures = run_once(fetch())
    assert [(capture.status, content(capture)) for capture in captures] == [(304, b""), (200, b"hello")]
    if watcher is not None:
        assert (len(watcher.heads), watcher.data) == (1, b"hello")


@pytest.mark.parametrize("late", [b"late body", b"\r\n", b"HTT"], ids=["cut", "blank", "begun"])
def test_nor_is_one_that_is_too_long_or_ends_before_it_shows_what_it_is(
    run_once: Run, make_wire: Callable[..., Wire], late: bytes
) -> None:
    connections = count()

    def serve(connection: socket.socket) -> None:
        if next(connections):
            respond(OK + FIVE)(connection)
        elif read_request(connection):
            connection.sendall(b"HTTP/1.1 304 Not Modified\r\n\r\n")
            read_request(connection)
            connection.sendall(late)

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire(max_body=5) as wire:
                return [await wire.fetch(WireRequest(url=server.url)) for _ in range(2)]

        captures = run_once(fetch())
    assert [(capture.status, content(capture)) for capture in captures] == [(304, b""), (200, b"hello")]
    assert captures[1].protocol == "http/1.1"


def test_what_is_left_over_when_the_time_is_up_is_no_response(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 304 Not Modified\r\n\r\n")
        read_request(connection)
        connection.sendall(b"\r\n")
        connection.recv(1)

    with LoopbackServer(serve) as server:

        async def fetch() -> Capture:
            async with make_wire() as wire:
                await wire.fetch(WireRequest(url=server.url))
                return await wire.fetch(WireRequest(url=server.url, timeout=0.5))

        capture = run_once(fetch())
    assert (capture.status, capture.failure) == (0, Failure.RESPONSE_TIMEOUT)
    assert capture.ttfb_ms is None


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


def test_no_more_connections_are_kept_idle_than_requested(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(LoopbackServer(always(OK + FIVE))) for _ in range(3)]

        async def fetch() -> None:
            async with make_wire(wire={"keep": 1}) as wire:
                for server in servers * 2:
                    (await wire.fetch(WireRequest(url=server.url))).body.close()

        run_once(fetch())
        assert [server.connections for server in servers] == [2, 2, 2]


def test_a_response_before_the_request_is_kept_and_ends_the_use_of_its_connection(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    spoken = threading.Semaphore(0)

    def serve(connection: socket.socket) -> None:
        connection.sendall(OK + FIVE)
        spoken.release()
        while read_request(connection):
            pass

    class Departure:
        """Holds up the request, and not the dial before it, until the server has spoken."""

        def __init__(self) -> None:
            self.is_dialled = False

        def __call__(self) -> None:
            if self.is_dialled:
                assert spoken.acquire(timeout=30)
            self.is_dialled = True

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                return [
                    await wire.fetch(WireRequest(url=server.url), departs=Departure()) for _ in range(3)
                ]

        assert [content(capture) for capture in run(fetch())] == [b"hello"] * 3
        assert server.connections == 3


def test_requests_to_one_host_share_the_connection_that_is_being_made(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """Twenty at once: they do not dial twenty times where the server responds at once."""
    with LoopbackServer(always(OK + FIVE)) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                requests = [WireRequest(url=f"{server.url}/{number}") for number in range(20)]
                return await asyncio.gather(*map(wire.fetch, requests))

        assert [content(capture) for capture in run(fetch())] == [b"hello"] * 20
        assert server.connections < 20


def test_a_request_does_not_wait_long_for_a_connection_in_use(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """No response is sent before all requests have come: each needs a connection of its own."""
    barrier = threading.Barrier(5, timeout=30)

    def serve(connection: socket.socket) -> None:
        while read_request(connection):
            barrier.wait()
            connection.sendall(OK + FIVE)

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                requests = [WireRequest(url=f"{server.url}/{number}") for number in range(5)]
                return await asyncio.gather(*map(wire.fetch, requests))

        assert [content(capture) for capture in run(fetch())] == [b"hello"] * 5
    assert server.connections == 5


def test_a_server_that_closes_every_connection_is_dialled_for_each_request(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OK + b"Connection: close\r\n" + FIVE)

    with LoopbackServer(serve) as server:

        async def fetch() -> list[Capture]:
            async with make_wire() as wire:
                requests = [WireRequest(url=f"{server.url}/{number}") for number in range(20)]
                return await asyncio.gather(*map(wire.fetch, requests))

        assert [content(capture) for capture in run(fetch())] == [b"hello"] * 20
    assert server.connections == 20


def test_a_request_that_is_cancelled_before_it_is_sent_keeps_no_other_from_being_sent(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """Requests over kept connections that begin in one turn of the loop are sent together."""

    async def fetch(*urls: str) -> tuple[bool, bool]:
        async with make_wire() as wire:

            async def one(url: str) -> bytes:
                return content(await wire.fetch(WireRequest(url=url)))

            await asyncio.gather(*map(one, urls))
            first, second = (asyncio.ensure_future(one(url)) for url in urls)
            await asyncio.sleep(0)
            first.cancel()
            done, _ = await asyncio.wait([first, second], timeout=20)
            second.cancel()
            return first.cancelled(), second in done

    with LoopbackServer(always(OK + FIVE)) as here, LoopbackServer(always(OK + FIVE)) as there:
        assert run(fetch(here.url, there.url)) == (True, True)
