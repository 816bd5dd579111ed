"""Connections that send no whole request: they keep none out, and are closed in time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trustme
import uvicorn
from dashboard_client import until

from amicrawl.fleet.dashboard.app import AccessGuard, Hosts
from amicrawl.fleet.dashboard.connections import ConnectionLimits, connection_factory

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def half_requests(address: str) -> Iterator[list[socket.socket]]:
    host, port = address.removeprefix("http://").split(":")
    opened = []
    for _ in range(400):
        opened.append(socket.create_connection((host, int(port))))
        opened[-1].sendall(WHOLE[:-4])
    yield opened
    for each in opened:
        each.close()


def test_half_requests_keep_no_one_out_and_the_oldest_are_closed(
    address: str, half_requests: list[socket.socket]
) -> None:
    assert httpx.get(f"{address}/healthz", trust_env=False, timeout=30).status_code == 200

    def is_closed(connection: socket.socket) -> bool:
        connection.setblocking(False)
        try:
            return connection.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    until(lambda: is_closed(half_requests[0]))
    assert not is_closed(half_requests[-1])


async def served(
    *,
    head_seconds: float,
    most_waiting: int,
    read_seconds: float = 100,
    body: bytes = b"",
    tls: ssl.SSLContext | None = None,
    held: asyncio.Event | None = None,
    keep_alive: int = 5,
) -> tuple[uvicorn.Server, int]:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        if held is not None and scope["path"] == "/held":
            await held.wait()
        headers = [(b"content-length", b"%d" % len(body))] if body else []
        await send({"type": "http.response.start", "status": 200 if body else 204, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    limits = ConnectionLimits(
        head_seconds=head_seconds, most_waiting=most_waiting, read_seconds=read_seconds
    )
    made: Any = connection_factory(limits, tls=tls)
    config = uvicorn.Config(
        application,
        http=made,
        lifespan="off",
        log_config=None,
        port=0,
        ws="none",
        timeout_keep_alive=keep_alive,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    return server, server.servers[0].sockets[0].getsockname()[1]


def test_a_head_that_drips_is_given_up_however_steadily_it_does() -> None:
    async def drip() -> int:
        server, port = await served(head_seconds=0.5, most_waiting=100)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # A whole request first: what comes after it has its time, too.
        writer.write(WHOLE)
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            for octet in b"GET / HTTP/1.1\r\nX: " + b"x" * 1000:
                writer.write(bytes([octet]))
                await writer.drain()
                await asyncio.sleep(0.05)
                sent += 1
        await server.shutdown()
        return sent

    assert asyncio.run(asyncio.wait_for(drip(), 60)) < 1000


def test_a_client_that_takes_nothing_of_its_response_is_given_up_and_one_that_does_is_not() -> None:
    async def read() -> None:
        body = bytes(8 << 20)
        server, port = await served(head_seconds=100, most_waiting=9, read_seconds=1, body=body)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        deaf = socket.create_connection(("127.0.0.1", port))
        deaf.sendall(WHOLE)
        for _ in range(2):
            writer.write(WHOLE)
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(body)) == body
            # Longer than the time that it has: it took all, and waits for nothing.
            await asyncio.sleep(1.5)
        connections = server.server_state.connections
        while deaf.getsockname() in {getattr(each, "client", None) for each in connections}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        writer.close()
        deaf.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(read(), 60))


def test_a_client_that_takes_its_response_slowly_has_all_of_it() -> None:
    async def read() -> None:
        body = bytes(32 << 20)
        server, port = await served(head_seconds=100, most_waiting=1, read_seconds=1, body=body)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(WHOLE)
        await reader.readuntil(b"\r\n\r\n")
        # It is the one that is here longest, and does not wait.
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        assert await idle[0][0].read() == b""
        for _ in range(16):
            await asyncio.sleep(0.15)
            await reader.readexactly(len(body) // 16)
        for each in (writer, *(one for _, one in idle)):
            each.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(read(), 60))


def test_over_tls_the_time_of_a_handshake_is_not_that_of_taking_a_response() -> None:
    async def read() -> None:
        body = bytes(32 << 20)
        tls, client = secured()
        server, port = await served(
            head_seconds=1, most_waiting=9, read_seconds=50, body=body, tls=tls, keep_alive=1
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        writer.write(WHOLE)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(4)
        assert await reader.readexactly(len(body)) == body
        writer.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(read(), 60))


def test_one_connection_too_many_costs_the_one_that_waits_longest() -> None:
    async def too_many() -> None:
        server, port = await served(head_seconds=100, most_waiting=2)
        opened = []
        for _ in range(3):
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            # Whether it was taken is not heard of; its response to a request would be.
            opened[-1][1].write(WHOLE)
            await opened[-1][0].readuntil(b"\r\n\r\n")
        assert await opened[0][0].read() == b""
        opened[1][1].write(WHOLE)
        assert b"204" in await opened[1][0].readuntil(b"\r\n\r\n")
        for _, writer in opened:
            writer.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(too_many(), 60))


def secured() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server and of a client that trusts it."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


def test_a_handshake_that_does_not_come_is_given_up_and_keeps_no_one_out() -> None:
    tls, trust = secured()

    async def silent(head_seconds: float, most_waiting: int) -> None:
        server, port = await served(head_seconds=head_seconds, most_waiting=most_waiting, tls=tls)
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        opened[1][1].write(b"\x16\x03\x01")
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
            for _ in range(2):
                writer.write(WHOLE)
                assert b"204" in await reader.readuntil(b"\r\n\r\n")
            writer.close()
        with contextlib.suppress(ConnectionError):
            assert await opened[0][0].read() == b""
        for _, writer in opened:
            writer.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(silent(0.5, 100), 30))
    asyncio.run(asyncio.wait_for(silent(100, 2), 30))


def test_what_is_no_handshake_ends_its_connection_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    tls, trust = secured()

    async def garbage() -> None:
        server, port = await served(head_seconds=100, most_waiting=9, tls=tls)
        for sent in (WHOLE, b"", b"\x16\x03\x01\x00\x05hello"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.write(WHOLE)
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(garbage(), 30))
    assert caplog.text == ""


def test_bodies_that_do_not_come_keep_no_one_out() -> None:
    async def too_many() -> None:
        server, port = await served(head_seconds=100, most_waiting=2)
        opened = []
        for _ in range(3):
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            opened[-1][1].write(WHOLE)
            await opened[-1][0].readuntil(b"\r\n\r\n")
            opened[-1][1].write(WHOLE[:-2] + b"Content-Length: 2\r\n\r\n1")
        assert await opened[0][0].read() == b""
        opened[1][1].write(b"2")
        assert b"204" in await opened[1][0].readuntil(b"\r\n\r\n")
        for _, writer in opened:
            writer.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(too_many(), 60))


def test_a_body_that_does_not_come_is_given_up_and_a_stream_behind_it_is_not() -> None:
    received: list[Any] = []

    async def never() -> dict[str, Any]:
        if not received:
            received.append(True)
            return {"type": "http.request", "body": b"x", "more_body": False}
        await asyncio.sleep(0.3)
        return {"type": "http.disconnect"}

    async def application(_scope: Any, receive: Any, _send: Any) -> None:
        while (message := await receive())["type"] != "http.disconnect":
            received.append(message)

    async def ignore(_: Any) -> None:
        pass

    scope = {"type": "http", "path": "/", "headers": [(b"host", b"127.0.0.1")]}

    async def serve(body_seconds: float) -> None:
        guard = AccessGuard(
            application,
            hosts=Hosts("127.0.0.1", ()),
            is_healthy=lambda: True,
            body_seconds=body_seconds,
        )
        await guard(scope, never, ignore)

    asyncio.run(serve(0.1))
    received.clear()
    received.append("a body of which nothing comes")
    with pytest.raises(Exception, match="408"):
        asyncio.run(serve(0.1))


def test_a_connection_with_a_request_behind_the_first_does_not_wait() -> None:
    async def both() -> None:
        held = asyncio.Event()
        server, port = await served(head_seconds=100, most_waiting=1, held=held)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(WHOLE + WHOLE.replace(b"/healthz", b"/held"))
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        assert await idle[0][0].read() == b""
        held.set()
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        for each in (writer, *(one for _, one in idle)):
            each.close()
        await server.shutdown()

    asyncio.run(asyncio.wait_for(both(), 60))
