"""Limits of time and size: what they cut is kept and marked."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from fetch.serving import always, content, drip, respond, silence
from odd_responses import FIVE, OK, LoopbackServer

from amicrawl.capture import Failure, Spool, Truncation
from amicrawl.errors import OutputError
from amicrawl.fetch import Wire, WireRequest
from amicrawl.politeness.throttle import AdaptiveTimeout

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from fetch.serving import Run

    from amicrawl.capture import Capture

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def fetch_from(run: Run, make_wire: Callable[..., Wire]) -> Callable[..., Capture]:
    """Fetch once from a server that serves as told, under the limits given."""

    def fetch(
        serve: Callable[[socket.socket], None], *, timeout: float | None = None, **limits: float
    ) -> Capture:
        async def once(url: str) -> Capture:
            async with make_wire(**limits) as wire:
                return await wire.fetch(WireRequest(url=url, timeout=timeout))

        with LoopbackServer(serve) as server:
            return run(once(server.url))

    return fetch


def test_a_head_beyond_the_cap_is_cut(fetch_from: Callable[..., Capture]) -> None:
    head = OK + b"X: y\r\n" * 2000 + FIVE
    capture = fetch_from(always(head), max_header=1024)
    assert (capture.head, content(capture)) == (head[:1024], b"")
    assert (capture.status, capture.truncated) == (200, Truncation.LENGTH)


def test_an_endless_head_is_cut(fetch_from: Callable[..., Capture]) -> None:
    capture = fetch_from(drip(OK, b"X: y\r\n" * 1000, every=0), max_header=50_000)
    assert (len(capture.head), len(capture.body), capture.truncated) == (50_000, 0, Truncation.LENGTH)


def test_endless_interim_responses_are_cut(fetch_from: Callable[..., Capture]) -> None:
    capture = fetch_from(
        drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000, every=0), max_header=50_000
    )
    assert (len(capture.head) <= 50_000, capture.status, capture.truncated) == (
        True,
        102,
        Truncation.LENGTH,
    )
    capture.body.close()


@pytest.mark.parametrize(
    "serve",
    [
        drip(OK + b"\r\n", b"x" * 9999, every=0),
        drip(CHUNKED, b"5\r\nhello\r\n" * 999, every=0),
        drip(OK + b"Content-Length: 10000000000000\r\n\r\n", b"x" * 9999, every=0),
        drip(b"", b"no head" * 999, every=0),
        drip(OK + FIVE + b"surplus", b"surplus" * 999, every=0),
    ],
    ids=["to the close", "chunked", "ten terabytes", "no head", "surplus"],
)
def test_an_endless_body_is_cut(
    fetch_from: Callable[..., Capture], serve: Callable[[socket.socket], None]
) -> None:
    capture = fetch_from(serve, max_body=300_000, spool_above=100_000, linger=10.0)
    assert (len(capture.body), capture.truncated, capture.failure) == (300_000, Truncation.LENGTH, None)
    assert isinstance(capture.body, Spool)
    assert len(content(capture)) == 300_000


def test_a_body_beyond_memory_goes_to_a_file_and_comes_back_whole(
    fetch_from: Callable[..., Capture],
) -> None:
    whole = bytes(range(256)) * 20_000
    response = OK + b"Content-Length: %d\r\n\r\n" % len(whole) + whole
    capture = fetch_from(always(response), spool_above=100_000)
    assert isinstance(capture.body, Spool)
    assert (content(capture) == whole, capture.truncated) == (True, None)


def test_a_server_that_says_nothing_is_a_failure(fetch_from: Callable[..., Capture]) -> None:
    capture = fetch_from(silence, timeout=0.3)
    assert (capture.status, capture.failure, capture.truncated) == (0, Failure.RESPONSE_TIMEOUT, None)
    assert capture.request.startswith(b"GET / HTTP/1.1\r\n")
    assert capture.ip_address == "127.0.0.1"
    # Timers of uvloop count whole milliseconds of a cached time, and fire a little early.
    assert capture.duration_ms >= 250


@pytest.mark.parametrize(
    ("serve", "timeout", "failure"),
    [
        (silence, 20.0, Failure.RESPONSE_TIMEOUT),
        (drip(b"H", b"", every=0.05), 1.0, None),
        (drip(OK + b"Content-Length: 8\r\n\r\nb", b"o", every=0.12), 20.0, None),
    ],
    ids=["silent", "begun and hung", "begun and slow"],
)
def test_patience_bounds_the_wait_for_the_first_byte_and_nothing_else(
    run: Run,
    make_wire: Callable[..., Wire],
    serve: Callable[[socket.socket], None],
    timeout: float,
    failure: Failure | None,
) -> None:
    patience = AdaptiveTimeout(0.6, 0.6)

    async def fetch(url: str) -> Capture:
        async with make_wire(wire={"patience": patience}, timeout=timeout) as wire:
            return await wire.fetch(WireRequest(url=url))

    with LoopbackServer(serve) as server:
        capture = run(fetch(server.url))
    assert capture.failure is failure
    if failure is not None:
        assert capture.failure_detail == "No response began within 0.6 s."
    capture.body.close()


@pytest.mark.slow
def test_the_first_byte_is_waited_for_from_the_moment_at_which_all_is_sent(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    body, came = bytes(16 << 20), []

    def serve(connection: socket.socket) -> None:
        # Longer than the wait for the first byte, while more is to be sent than sockets hold.
        time.sleep(1.0)
        while data := connection.recv(1 << 20):
            came.append(len(data))

    async def fetch(url: str) -> Capture:
        async with make_wire(wire={"patience": AdaptiveTimeout(0.6, 0.6)}) as wire:
            return await wire.fetch(WireRequest(url=url, method="POST", body=body))

    with LoopbackServer(serve) as server:
        capture = run(fetch(server.url))
    assert capture.failure_detail == "No response began within 0.6 s."
    assert sum(came) > len(body)


@pytest.mark.parametrize("patient", [True, False], ids=["whole time", "first byte"])
@pytest.mark.parametrize("size", [5, 6_000_000], ids=["in the socket", "more than a socket holds"])
@pytest.mark.slow
def test_a_response_that_came_while_the_process_was_stopped_is_kept(
    run: Run, make_wire: Callable[..., Wire], size: int, *, patient: bool
) -> None:
    """Longer than its time limit; a loop that is blocked is as still as a process that is stopped."""
    wire = {} if patient else {"patience": AdaptiveTimeout(1.0, 1.0)}

    def serve(connection: socket.socket) -> None:
        connection.recv(9999)
        time.sleep(0.5)
        connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % size + bytes(size))

    async def fetch(url: str) -> Capture:
        async with make_wire(wire=wire, timeout=1.0 if patient else 60.0) as opened:
            fetching = asyncio.ensure_future(opened.fetch(WireRequest(url=url)))
            await asyncio.sleep(0.2)
            time.sleep(2.5)  # noqa: ASYNC251  # the point of it
            return await fetching

    with LoopbackServer(serve) as server:
        capture = run(fetch(server.url))
    assert (capture.failure, capture.truncated, len(capture.body)) == (None, None, size)
    capture.body.close()


@pytest.mark.slow
def test_a_connection_that_was_being_made_when_the_process_was_stopped_has_its_time_yet(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    def resolve(_: str) -> list[str]:
        time.sleep(0.5)
        return ["127.0.0.1"]

    async def fetch(port: int) -> Capture:
        async with make_wire(wire={"resolve": resolve}, timeout=1.0, connect_timeout=1.0) as opened:
            fetching = asyncio.ensure_future(opened.fetch(WireRequest(url=f"http://a.example:{port}/")))
            await asyncio.sleep(0.2)
            time.sleep(2.5)  # noqa: ASYNC251  # the point of it
            return await fetching

    with LoopbackServer(respond(OK + FIVE)) as server:
        assert content(run(fetch(server.port))) == b"hello"


@pytest.mark.slow
def test_a_server_that_says_nothing_is_given_up_after_a_stop_as_before(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    async def fetch(url: str) -> Capture:
        async with make_wire(timeout=1.0) as opened:
            fetching = asyncio.ensure_future(opened.fetch(WireRequest(url=url)))
            await asyncio.sleep(0.2)
            time.sleep(1.5)  # noqa: ASYNC251  # the point of it
            return await fetching

    with LoopbackServer(silence) as server:
        assert run(fetch(server.url)).failure is Failure.RESPONSE_TIMEOUT


def test_a_request_that_begins_after_a_stop_has_its_time_and_no_more(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    def resolve(_: str) -> list[str]:
        time.sleep(0.12)
        return ["127.0.0.1"]

    async def fetch(url: str, silent: str, port: int) -> tuple[Capture, Capture]:
        async with make_wire(wire={"resolve": resolve}) as opened, asyncio.timeout(30):
            await opened.fetch(WireRequest(url=url))
            opened._stood_still(3600.0)
            given_up = await opened.fetch(WireRequest(url=silent, timeout=0.2))
            return given_up, await opened.fetch(WireRequest(url=f"http://a.example:{port}/"))

    with LoopbackServer(respond(OK + FIVE)) as server, LoopbackServer(silence) as silent:
        given_up, capture = run(fetch(server.url, silent.url, server.port))
    assert given_up.failure in {Failure.RESPONSE_TIMEOUT, Failure.CONNECT_TIMEOUT}
    assert content(capture) == b"hello"


def test_patience_runs_from_the_last_byte_that_was_sent_and_is_told_how_long_responses_take(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """The server reads slowly: sending takes longer than the response may."""
    patience = AdaptiveTimeout(0.8, 0.8)
    body = bytes(8_000_000)

    def serve(connection: socket.socket) -> None:
        time.sleep(1.2)
        left = len(body)
        while left > 0 and (block := connection.recv(1 << 20)):
            left -= len(block)
        connection.sendall(OK + FIVE)

    async def fetch(url: str) -> Capture:
        async with make_wire(wire={"patience": patience}) as wire:
            return await wire.fetch(WireRequest(url=url, method="POST", body=body))

    with LoopbackServer(serve) as server:
        assert content(run(fetch(server.url))) == b"hello"
    told = [patience.seconds]
    for _ in range(63):
        patience.responded(0.01)
        told.append(patience.seconds)
    assert told[-2] == told[0], "one response was told already: the 64th of all adjusts it"


@pytest.mark.parametrize(
    ("begun", "more", "head"),
    [
        (OK + b"\r\n", b"x" * 5000, OK + b"\r\n"),
        (OK + b"Content-Length: 50\r\n\r\nhello", b"", OK + b"Content-Length: 50\r\n\r\n"),
        (CHUNKED + b"5\r\nhello\r\n", b"", CHUNKED),
        (OK + b"X-Never: ends", b"", OK + b"X-Never: ends"),
    ],
    ids=["to the close", "length", "chunked", "head"],
)
def test_what_came_before_the_time_ran_out_is_kept(
    fetch_from: Callable[..., Capture], begun: bytes, more: bytes, head: bytes
) -> None:
    capture = fetch_from(drip(begun, more, every=0.02), timeout=0.6)
    assert (capture.failure, capture.truncated) == (None, Truncation.TIME)
    assert (capture.status, capture.head) == (200, head)
    assert content(capture).startswith(begun[len(head) :])


@pytest.mark.parametrize(
    "begun",
    [OK + b"\r\n", OK, OK + b"X-Drip: ", b"", CHUNKED, b"\r\n"],
    ids=["body", "head", "line", "0.9", "chunk", "crlf"],
)
def test_a_server_that_drips_is_given_up(fetch_from: Callable[..., Capture], begun: bytes) -> None:
    capture = fetch_from(drip(begun, b"x", every=0.05), min_rate=1000, min_rate_time=0.6)
    assert (capture.failure, capture.truncated) == (None, Truncation.TIME)
    assert (capture.head + content(capture)).startswith(begun + b"x")


def test_a_silent_server_is_given_up_for_its_rate_too(fetch_from: Callable[..., Capture]) -> None:
    capture = fetch_from(silence, min_rate=1000, min_rate_time=0.2)
    assert capture.failure is Failure.RESPONSE_TIMEOUT
    assert "1000 bytes a second" in capture.failure_detail


def test_a_slow_server_above_the_rate_is_waited_for(fetch_from: Callable[..., Capture]) -> None:
    whole = OK + b"Content-Length: 12000\r\n\r\n"
    capture = fetch_from(drip(whole, b"x" * 1000, every=0.1), min_rate=1000, min_rate_time=0.5)
    assert capture.truncated is None
    assert len(content(capture)) >= 12_000


def test_a_server_that_closes_without_a_byte_is_a_failure_with_a_sentence(
    fetch_from: Callable[..., Capture],
) -> None:
    capture = fetch_from(respond(b""))
    assert (capture.status, capture.failure) == (0, Failure.EMPTY_RESPONSE)
    assert capture.failure_detail == "The server closed the connection without a response."


def test_what_came_fast_before_does_not_excuse_a_server_that_drips_now(
    fetch_from: Callable[..., Capture],
) -> None:
    """The rate is of each window, not of the exchange: on average this one is fast to its end."""
    head = OK + b"Content-Length: 100100\r\n\r\n"
    capture = fetch_from(drip(head + bytes(100_000), b"x", every=0.05), min_rate=1000, min_rate_time=0.4)
    assert capture.truncated is Truncation.TIME
    assert 100_000 <= len(content(capture)) < 100_100


def test_no_least_rate_is_requested_where_it_is_zero(fetch_from: Callable[..., Capture]) -> None:
    capture = fetch_from(
        drip(OK + b"\r\n", b"", every=0.05), min_rate=0, min_rate_time=0.05, timeout=0.5
    )
    assert capture.truncated is Truncation.TIME
    assert capture.duration_ms < 500
    capture.body.close()


def test_a_handshake_without_response_is_a_connect_timeout(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    async def fetch(url: str) -> Capture:
        async with make_wire(connect_timeout=0.3) as wire:
            return await wire.fetch(WireRequest(url=url))

    with LoopbackServer(silence) as server:
        capture = run(fetch(server.url.replace("http:", "https:")))
    assert (capture.failure, capture.request) == (Failure.CONNECT_TIMEOUT, b"")
    assert capture.ip_address == "127.0.0.1"


@pytest.mark.parametrize(
    ("sent", "truncated"),
    [
        (OK + b"Content-Length: -5\r\n\r\nhe", Truncation.TIME),
        (OK + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\nhello", Truncation.TIME),
        (OK + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\nhello, you", None),
        (CHUNKED + b"5\r\nhello\r\nbroken\r\n", Truncation.TIME),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", None),
    ],
)
def test_a_response_that_does_not_tell_its_end_ends_with_silence(
    fetch_from: Callable[..., Capture], sent: bytes, truncated: Truncation | None
) -> None:
    capture = fetch_from(always(sent))
    assert capture.head + content(capture) == sent
    assert (capture.truncated, capture.failure) == (truncated, None)


def test_a_cut_connection_serves_nothing_else(run: Run, make_wire: Callable[..., Wire]) -> None:
    async def fetch_twice(url: str) -> list[Capture]:
        async with make_wire(max_body=3) as wire:
            return [await wire.fetch(WireRequest(url=url)) for _ in range(2)]

    with LoopbackServer(always(OK + FIVE)) as server:
        captures = run(fetch_twice(server.url))
    assert [content(capture) for capture in captures] == [b"hel", b"hel"]
    assert server.connections == 2


@pytest.mark.parametrize(
    "serve",
    [
        respond(OK + b"Content-Length: 11\r\n\r\nhello world"),
        respond(b"HT"),
        drip(b"HT", b"", every=0.05),
    ],
    ids=["received", "at the end", "out of time"],
)
def test_a_body_that_cannot_be_spooled_stops_the_caller_and_leaves_nothing_open(
    run: Run, make_wire: Callable[..., Wire], tmp_path: Path, serve: Callable[[socket.socket], None]
) -> None:
    async def fetch(url: str) -> None:
        async with make_wire(spool_above=0, spool_dir=tmp_path / "missing", timeout=0.8) as wire:
            with pytest.raises(OutputError, match="missing"):
                await wire.fetch(WireRequest(url=url))

    with LoopbackServer(serve) as server:
        run(fetch(server.url))


def test_a_fast_sender_does_not_keep_others_from_their_turn(
    run: Run, make_wire: Callable[..., Wire]
) -> None:
    """The loop runs on while a hundred megabytes arrive.

    In one turn uvloop reads up to 32 pieces of 250 KB, if the sender is as fast as that.
    """
    whole = OK + b"Content-Length: 100000000\r\n\r\n" + bytes(100_000_000)
    turns = 0

    async def fetch(url: str) -> Capture:
        nonlocal turns
        async with make_wire(max_body=100_000_000) as wire:
            task = asyncio.ensure_future(wire.fetch(WireRequest(url=url)))
            while not task.done():
                turns += 1
                await asyncio.sleep(0)
            return task.result()

    with LoopbackServer(respond(whole)) as server:
        capture = run(fetch(server.url))
    assert len(capture.body) == 100_000_000
    capture.body.close()
    assert turns >= 10
