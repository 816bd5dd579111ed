"""The proxy of the browser: who may use it, and what it makes of requests and responses."""

import asyncio
import base64
import hashlib
import ssl
from collections.abc import Awaitable, Callable

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from amicrawl.browser.authority import KeyOfProxy
from amicrawl.browser.proxy import MOST_BODIES, MOST_BODY, BrowserProxy, BrowserRequest, Pass, ProxyReply

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def with_proxy(
    act: Callable[[BrowserProxy, KeyOfProxy], Awaitable[None]],
    *,
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    async def run() -> None:
        authority = KeyOfProxy()
        proxy = BrowserProxy(authority)
        await proxy.open()
        try:
            await asyncio.wait_for(act(proxy, authority), 20)
        finally:
            await proxy.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


async def connected(proxy: BrowserProxy) -> Streams:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def response(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return head, await reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b""


async def echo(requested: BrowserRequest) -> ProxyReply:
    body = f"{requested.method} {requested.url} ".encode() + requested.body
    return ProxyReply(200, [(b"X-oDD", b"1"), (b"Transfer-Encoding", b"chunked")], (body,), len(body))


def signed(given: Pass) -> bytes:
    return b"Proxy-Authorization: " + given.value + b"\r\n"


def test_a_request_of_no_live_page_gets_nothing_but_407() -> None:
    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(echo)
        wrong = given._replace(password="guessed")
        proxy.dismiss(over := proxy.admit(echo))
        for fields in (b"", signed(wrong), signed(over)):
            reader, writer = await connected(proxy)
            for line in (b"GET http://h.test/ HTTP/1.1", b"CONNECT h.test:443 HTTP/1.1"):
                writer.write(line + b"\r\nHost: h.test\r\n" + fields + b"\r\n")
                head, body = await response(reader)
                assert head.startswith(b"HTTP/1.1 407 ")
                assert body == b""
            writer.close()

    with_proxy(act)


def test_a_page_that_is_over_loses_its_connections() -> None:
    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(echo)
        reader, writer = await connected(proxy)
        writer.write(b"CONNECT h.test:80 HTTP/1.1\r\nHost: h.test\r\n" + signed(given) + b"\r\n")
        await response(reader)
        writer.write(b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
        assert (await response(reader))[1] == b"GET http://h.test/ "
        proxy.dismiss(given)
        assert await reader.read() == b""
        writer.close()

    with_proxy(act)


@pytest.mark.parametrize(
    ("said", "lengths"),
    [([(b"content-length", b"1234")], [b"1234"]), ([(b"Content-Length", b"-1")], []), ([], [])],
)
def test_the_response_to_a_head_request_has_the_length_that_its_server_says(
    said: list[tuple[bytes, bytes]], lengths: list[bytes]
) -> None:
    async def without_body(_: BrowserRequest) -> ProxyReply:
        return ProxyReply(200, said)

    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(without_body)
        reader, writer = await connected(proxy)
        for _number in range(2):
            writer.write(b"HEAD http://h.test/ HTTP/1.1\r\nHost: h.test\r\n" + signed(given) + b"\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            fields = [line.partition(b": ") for line in head.split(b"\r\n")]
            assert [value for name, _, value in fields if name == b"Content-Length"] == lengths
        writer.close()

    with_proxy(act)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_page_may_be_over_while_its_response_is_awaited(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    unhandled: list[object] = []
    requested, release = asyncio.Event(), asyncio.Event()

    async def late(request: BrowserRequest) -> ProxyReply:
        requested.set()
        await release.wait()
        return await echo(request)

    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        running = asyncio.get_running_loop()
        running.set_exception_handler(lambda _loop, context: unhandled.append(context))
        given = proxy.admit(late)
        reader, writer = await connected(proxy)
        writer.write(b"GET http://h.test/ HTTP/1.1\r\nHost: h.test\r\n" + signed(given) + b"\r\n")
        await requested.wait()
        proxy.dismiss(given)
        assert await reader.read() == b""
        release.set()
        await asyncio.sleep(0.05)
        writer.close()

    with_proxy(act, loop=loop)
    assert unhandled == []


def test_requests_keep_their_bytes_and_lose_the_password() -> None:
    seen: list[BrowserRequest] = []

    async def note(requested: BrowserRequest) -> ProxyReply:
        seen.append(requested)
        return await echo(requested)

    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(note)
        reader, writer = await connected(proxy)
        request = (
            b"POST http://h.test/s?q=1 HTTP/1.1\r\nHost: h.test\r\nProxy-Connection: keep-alive\r\n"
            + signed(given)
            + b"X-CaSe: a\r\nContent-Length: 3\r\n\r\nq=1"
        )
        # Two at once: what comes behind the first is the second.
        writer.write(request + request)
        for _number in range(2):
            head, body = await response(reader)
            assert b"X-oDD: 1\r\n" in head
            assert b"chunked" not in head
            assert body == b"POST http://h.test/s?q=1 q=1"
        writer.close()

    with_proxy(act)
    assert seen[0].fields == [
        (b"Host", b"h.test"),
        (b"Connection", b"keep-alive"),
        (b"X-CaSe", b"a"),
        (b"Content-Length", b"3"),
    ]


def test_a_tunnel_speaks_tls_by_the_key_whose_hash_is_told() -> None:
    async def act(proxy: BrowserProxy, authority: KeyOfProxy) -> None:
        given = proxy.admit(echo)
        reader, writer = await connected(proxy)
        writer.write(b"CONNECT h.test:443 HTTP/1.1\r\nHost: h.test\r\n" + signed(given) + b"\r\n")
        await response(reader)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        await writer.start_tls(context, server_hostname="h.test")
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert _hash_of_key(der) == authority.key_hash
        for _number in range(2):
            writer.write(b"GET /a HTTP/1.1\r\nHost: h.test\r\n\r\n")
            assert (await response(reader))[1] == b"GET https://h.test/a "
        writer.close()

    with_proxy(act)


def _hash_of_key(der: bytes) -> str:
    key = x509.load_der_x509_certificate(der).public_key()
    public = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


def test_a_body_beyond_the_limit_is_refused_and_not_kept() -> None:
    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(echo)
        reader, writer = await connected(proxy)
        length = MOST_BODY + (1 << 20)
        writer.write(
            b"POST http://h.test/ HTTP/1.1\r\nHost: h.test\r\n"
            + signed(given)
            + b"Content-Length: %d\r\n\r\n" % length
        )
        for _number in range(length >> 20):
            writer.write(bytes(1 << 20))
            await writer.drain()
        assert (await response(reader))[0].startswith(b"HTTP/1.1 413 ")
        writer.close()

    with_proxy(act)


def test_bodies_of_all_connections_together_are_bounded() -> None:
    release, holds = asyncio.Event(), asyncio.Semaphore(0)

    async def hold(request: BrowserRequest) -> ProxyReply:
        if request.is_cut:
            assert request.body == b""
            return ProxyReply(403)
        holds.release()
        await release.wait()
        return ProxyReply(200)

    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(hold)

        async def sent(length: int) -> Streams:
            reader, writer = await connected(proxy)
            writer.write(
                b"POST http://h.test/ HTTP/1.1\r\nHost: h.test\r\n"
                + signed(given)
                + b"Content-Length: %d\r\n\r\n" % length
            )
            writer.write(bytes(length))
            await writer.drain()
            return reader, writer

        waiting = [await sent(MOST_BODY) for _ in range(MOST_BODIES // MOST_BODY)]
        for _streams in waiting:
            await holds.acquire()
        waiting.append(await sent(1))
        assert (await response(waiting[-1][0]))[0].startswith(b"HTTP/1.1 413 ")
        release.set()
        for streams in waiting[:-1]:
            assert (await response(streams[0]))[0].startswith(b"HTTP/1.1 200 ")
        waiting.append(await sent(MOST_BODY))
        assert (await response(waiting[-1][0]))[0].startswith(b"HTTP/1.1 200 ")
        for streams in waiting:
            streams[1].close()

    with_proxy(act)


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x00\x00", b"GET / HTTP/1.1\r\n\r\n" * 3, b"\0" * 99])
def test_garbage_ends_its_connection_and_no_other(garbage: bytes) -> None:
    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        reader, writer = await connected(proxy)
        writer.write(garbage)
        writer.write_eof()
        await reader.read()
        writer.close()
        given = proxy.admit(echo)
        reader, writer = await connected(proxy)
        writer.write(b"GET http://h.test/ HTTP/1.1\r\nHost: h.test\r\n" + signed(given) + b"\r\n")
        assert (await response(reader))[1] == b"GET http://h.test/ "
        writer.close()

    with_proxy(act)


def test_a_response_cannot_forge_another() -> None:
    async def forged(requested: BrowserRequest) -> ProxyReply:
        return ProxyReply(
            200, [(b"X-A", b"b\r\n\r\nHTTP/1.1 200 OK"), (b"Content-Length", b"9")], (b"c",), 1
        )

    async def act(proxy: BrowserProxy, _: KeyOfProxy) -> None:
        given = proxy.admit(forged)
        reader, writer = await connected(proxy)
        writer.write(b"GET http://h.test/ HTTP/1.1\r\nHost: h.test\r\n" + signed(given) + b"\r\n")
        head, body = await response(reader)
        assert head.count(b"\r\n\r\n") == 1
        assert head.lower().count(b"content-length") == 1
        assert body == b"c"
        writer.close()

    with_proxy(act)
