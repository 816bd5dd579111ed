"""Proxies: the bytes of request and response are the server's, whoever carries them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest
import trustme
from fetch.serving import always, content, full_backlog, until
from fetch.test_fetch_tls import context, secured
from loopback import free_port
from odd_responses import FIVE, OK, LoopbackServer, read_request

from amicrawl.capture import Failure
from amicrawl.config import TlsPolicy
from amicrawl.fetch import Wire, WireRequest, proxy_of
from amicrawl.fetch.connection import Connection, Conversation
from amicrawl.fetch.failures import ProxyError
from amicrawl.fetch.proxy import open_socks, open_tunnel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fetch.serving import Run

    from amicrawl.capture import Capture

ODD = OK + b"X-Folded: one\r\n two\r\nX-Nul: \0\r\n" + FIVE + b" and more"


def relay(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until each side has ended."""

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=carry, args=(other, one))
    back.start()
    carry(one, other)
    back.join()


class Proxy:
    """A small HTTP and SOCKS5 proxy; `requested` holds what each connection requested of it."""

    def __init__(self, *, response: bytes = b"HTTP/1.1 200 Connected\r\n\r\n") -> None:
        self.requested: list[bytes] = []
        self.password: bytes | None = None
        """What a SOCKS5 client has to authenticate with (RFC 1929)."""
        self._response = response

    def connect(self, connection: socket.socket) -> None:
        request = read_request(connection)
        self.requested.append(request)
        connection.sendall(self._response)
        if b" 200 " in self._response:
            host, _, port = request.split()[1].rpartition(b":")
            self._pass_on(connection, host.decode(), int(port))

    def plain(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            self.requested.append(request)
            connection.sendall(ODD)

    def socks5(self, connection: socket.socket) -> None:
        greeting = connection.recv(2 + 255)
        if self.password is None:
            connection.sendall(b"\5\0")
        elif 2 in greeting[2:]:
            connection.sendall(b"\5\2")
            good = connection.recv(513) == self.password
            connection.sendall(b"\1\0" if good else b"\1\1")
            if not good:
                return
        else:
            connection.sendall(b"\5\xff")
            return
        requested = connection.recv(300)
        self.requested.append(requested)
        host = requested[5:-2].decode() if requested[3] == 3 else socket.inet_ntoa(requested[4:8])
        connection.sendall(b"\5\0\0\1\0\0\0\0\0\0")
        self._pass_on(connection, host, int.from_bytes(requested[-2:], "big"))

    def socks4(self, connection: socket.socket) -> None:
        self.requested.append(connection.recv(300))
        connection.sendall(b"\0\x5a\0\0\0\0\0\0")
        self._pass_on(connection, "127.0.0.1", int.from_bytes(self.requested[-1][2:4], "big"))

    def _pass_on(self, connection: socket.socket, host: str, port: int) -> None:
        # Names are the proxy's to resolve; in these tests all of them are this machine.
        with socket.create_connection((host if host[:1].isdigit() else "127.0.0.1", port)) as onward:
            relay(connection, onward)


@pytest.fixture
def fetch(run: Run, make_wire: Callable[..., Wire]) -> Callable[..., Capture]:
    def fetch_once(request: WireRequest, **wire: object) -> Capture:
        async def once() -> Capture:
            async with make_wire(wire=wire) as made:
                return await made.fetch(request)

        return run(once())

    return fetch_once


def test_a_plain_request_names_the_whole_url_to_the_proxy(fetch: Callable[..., Capture]) -> None:
    proxy = Proxy()
    with LoopbackServer(proxy.plain) as server:
        capture = fetch(WireRequest(url="http://example.org/a?b", proxy=server.url))
    assert proxy.requested == [b"GET http://example.org/a?b HTTP/1.1\r\nHost: example.org\r\n\r\n"]
    assert (capture.request, capture.head + content(capture)) == (proxy.requested[0], ODD)
    assert capture.ip_address == "127.0.0.1"


def test_a_password_goes_to_the_proxy_and_not_into_the_capture(fetch: Callable[..., Capture]) -> None:
    proxy = Proxy()
    with LoopbackServer(proxy.plain) as server:
        url = f"http://user:pass@127.0.0.1:{server.port}"
        capture = fetch(WireRequest(url="http://origin.example/", proxy=url))
    line = b"Proxy-Authorization: Basic " + base64.b64encode(b"user:pass") + b"\r\n"
    assert line in proxy.requested[0]
    assert capture.request == proxy.requested[0].replace(line, b"")
    assert capture.request == b"GET http://origin.example/ HTTP/1.1\r\nHost: origin.example\r\n\r\n"
    assert capture.head + content(capture) == ODD


@pytest.mark.parametrize("given_by", ["url", "field"])
def test_a_password_opens_a_tunnel_and_does_not_go_through_it(
    fetch: Callable[..., Capture], tmp_path: Path, given_by: str
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    proxy, received = Proxy(), []

    def serve(channel: socket.socket) -> None:
        received.append(read_request(channel))
        channel.sendall(ODD)

    origin_serves = secured(context(authority, "origin.example"), serve)
    secret = b"Basic " + base64.b64encode(b"user:pass")
    with LoopbackServer(origin_serves) as origin, LoopbackServer(proxy.connect) as server:
        in_url = given_by == "url"
        request = WireRequest(
            url=f"https://origin.example:{origin.port}/",
            proxy=f"http://{'user:pass@' * in_url}127.0.0.1:{server.port}",
            fields=[] if in_url else [(b"Proxy-Authorization", secret)],
        )
        capture = fetch(request, ca_file=tmp_path / "ca.pem")
        assert capture.head + content(capture) == ODD
    assert b"\r\nProxy-Authorization: " + secret + b"\r\n" in proxy.requested[0]
    assert received == [capture.request]
    assert b"uthorization" not in capture.request


def test_a_secured_server_is_reached_through_a_secured_proxy_whoever_signed_for_them(
    fetch: Callable[..., Capture],
) -> None:
    """Two layers of TLS; under RECORD neither certificate has to be trusted."""
    proxy = Proxy()
    origin_serves = secured(context(trustme.CA(), "origin.example"), always(ODD))
    proxy_serves = secured(context(trustme.CA()), proxy.connect, orderly=False)
    with LoopbackServer(origin_serves) as origin, LoopbackServer(proxy_serves) as server:
        request = WireRequest(
            url=f"https://origin.example:{origin.port}/", proxy=f"https://127.0.0.1:{server.port}"
        )
        strict = fetch(request)
        capture = fetch(request, tls=TlsPolicy.RECORD)
        assert capture.head + content(capture) == ODD
    assert capture.tls is not None
    assert capture.tls.fault == "unable to get issuer cert locally"
    assert strict.failure is Failure.TLS_CERTIFICATE
    assert len(proxy.requested) == 1


def test_a_secured_request_goes_through_a_tunnel(fetch: Callable[..., Capture], tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    proxy = Proxy(response=b"HTTP/1.1 200 Connected\r\nX-Proxy: says hello\r\n\r\n")
    origin_serves = secured(context(authority, "origin.example"), always(ODD))
    with LoopbackServer(origin_serves) as origin, LoopbackServer(proxy.connect) as server:
        url = f"https://origin.example:{origin.port}/"
        capture = fetch(WireRequest(url=url, proxy=server.url), ca_file=tmp_path / "ca.pem")
    assert capture.head + content(capture) == ODD
    place = f"origin.example:{origin.port}"
    assert proxy.requested == [f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()]
    assert capture.tls is not None
    assert (capture.tls.verified, capture.ip_address) == (True, "127.0.0.1")


def test_a_proxy_may_itself_be_spoken_to_over_tls(fetch: Callable[..., Capture], tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    proxy = Proxy()
    with LoopbackServer(secured(context(authority), proxy.plain)) as server:
        url = server.url.replace("http:", "https:")
        capture = fetch(WireRequest(url="http://example.org/", proxy=url), ca_file=tmp_path / "ca.pem")
    assert capture.head + content(capture) == ODD
    assert capture.tls is None


@pytest.mark.parametrize(
    ("scheme", "requested"),
    [("socks5h", b"\5\1\0\3\x0eorigin.example"), ("socks5", b"\5\1\0\1\x7f\0\0\1")],
)
def test_a_socks_proxy_gets_a_name_or_an_address(
    fetch: Callable[..., Capture], scheme: str, requested: bytes
) -> None:
    proxy = Proxy()
    with LoopbackServer(always(ODD)) as origin, LoopbackServer(proxy.socks5) as server:
        url = f"http://origin.example:{origin.port}/"
        request = WireRequest(url=url, proxy=f"{scheme}://proxy.example:{server.port}")
        capture = fetch(request, resolve=lambda _: ["127.0.0.1"])
        assert (capture.failure_detail, capture.head + content(capture)) == ("", ODD)
    assert proxy.requested[0][:-2] == requested


def test_a_socks_proxy_does_not_get_an_address_that_must_not_be_dialled(
    fetch: Callable[..., Capture],
) -> None:
    addresses = {"proxy.example": ["127.0.0.1"], "origin.example": ["10.0.0.1", "169.254.169.254"]}
    with LoopbackServer(Proxy().socks5) as server:
        request = WireRequest(
            url="http://origin.example/", proxy=f"socks5://proxy.example:{server.port}"
        )
        capture = fetch(request, resolve=addresses.__getitem__)
        assert server.connections == 0
    assert (capture.failure, capture.failure_detail) == (
        Failure.ADDRESS_REFUSED,
        "10.0.0.1 is a private address.",
    )


def test_a_socks_proxy_gets_the_address_that_may_be_dialled(
    fetch: Callable[..., Capture],
) -> None:
    proxy = Proxy()
    with LoopbackServer(always(ODD)) as origin, LoopbackServer(proxy.socks5) as server:
        url = f"http://origin.example:{origin.port}/"
        request = WireRequest(url=url, proxy=f"socks5://127.0.0.1:{server.port}")
        capture = fetch(request, resolve=lambda _: ["10.0.0.1", "127.0.0.1"])
        assert capture.head + content(capture) == ODD
    assert [requested[4:8] for requested in proxy.requested] == [bytes([127, 0, 0, 1])]


@pytest.mark.parametrize(
    ("user", "detail"),
    [
        ("me:p%40ss@", ""),
        ("me:wrong@", "it did not accept user name and password"),
        ("", "it wants another kind of login"),
    ],
)
def test_a_socks_proxy_is_given_the_password_it_requires(
    fetch: Callable[..., Capture], user: str, detail: str
) -> None:
    proxy = Proxy()
    proxy.password = b"\1\2me\4p@ss"
    with LoopbackServer(always(ODD)) as origin, LoopbackServer(proxy.socks5) as server:
        url = f"http://origin.example:{origin.port}/"
        capture = fetch(WireRequest(url=url, proxy=f"socks5h://{user}127.0.0.1:{server.port}"))
        if not detail:
            assert capture.head + content(capture) == ODD
    if detail:
        assert (capture.failure, capture.request) == (Failure.PROXY, b"")
        assert detail in capture.failure_detail
        assert not proxy.requested


@pytest.mark.parametrize(
    ("scheme", "requested"),
    [
        ("socks4", b"\4\1%b\x7f\0\0\1me\0"),
        ("socks4a", b"\4\1%b\0\0\0\1me\0origin.example\0"),
    ],
)
def test_socks_4_is_spoken(fetch: Callable[..., Capture], scheme: str, requested: bytes) -> None:
    proxy = Proxy()
    with LoopbackServer(always(ODD)) as origin, LoopbackServer(proxy.socks4) as server:
        request = WireRequest(
            url=f"http://origin.example:{origin.port}/", proxy=f"{scheme}://me@127.0.0.1:{server.port}"
        )
        capture = fetch(request, resolve=lambda _: ["127.0.0.1"])
        assert capture.head + content(capture) == ODD
    assert proxy.requested == [requested % origin.port.to_bytes(2, "big")]


def test_a_socks_4_proxy_gets_the_first_address_that_it_can_connect_to(
    fetch: Callable[..., Capture],
) -> None:
    """Of a host with both kinds, the IPv6 addresses usually come first."""
    proxy = Proxy()
    with LoopbackServer(always(ODD)) as origin, LoopbackServer(proxy.socks4) as server:
        url = f"http://origin.example:{origin.port}/"
        request = WireRequest(url=url, proxy=f"socks4://127.0.0.1:{server.port}")
        capture = fetch(request, resolve=lambda _: ["::1", "127.0.0.1", "127.0.0.2"])
        assert (capture.failure_detail, capture.head + content(capture)) == ("", ODD)
    assert [requested[4:8] for requested in proxy.requested] == [bytes([127, 0, 0, 1])]


@pytest.mark.parametrize("bound", [b"\1" + bytes(4), b"\4" + bytes(16), b"\3\5proxy"])
def test_what_a_socks_5_proxy_connects_from_is_not_taken_for_bytes_of_the_server(
    run: Run, bound: bytes
) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"\5\0")
        connection.recv(100)
        connection.sendall(b"\5\0\0" + bound + b"\0\x50" + OK)

    async def through(port: int) -> bytes:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        await open_socks(connection, proxy_of("socks5h://a:1"), "a.example", 80)
        assert isinstance(connection.receiver, Conversation)
        return await connection.receiver.exactly(len(OK))

    with LoopbackServer(serve) as server:
        assert run(through(server.port)) == OK


def test_why_a_socks_5_proxy_makes_no_connection_is_said(fetch: Callable[..., Capture]) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"\5\0")
        connection.recv(100)
        connection.sendall(b"\5\5\0\1" + bytes(6))

    with LoopbackServer(serve) as server:
        proxy = f"socks5h://127.0.0.1:{server.port}"
        capture = fetch(WireRequest(url="http://a.example/", proxy=proxy))
    assert capture.failure is Failure.PROXY
    assert capture.failure_detail.endswith("made no connection: connection refused.")


@pytest.mark.parametrize("scheme", ["http", "socks4a", "socks5h"])
def test_a_proxy_that_closed_before_anything_was_said_is_at_fault_at_once(run: Run, scheme: str) -> None:
    async def through(port: int) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        await until(lambda: not connection.open)
        async with asyncio.timeout(60):
            if scheme == "http":
                await open_tunnel(connection, "a.example:443", b"")
            else:
                await open_socks(connection, proxy_of(f"{scheme}://a:1"), "a.example", 443)

    with LoopbackServer(lambda _: None) as server, pytest.raises(ProxyError, match="was closed"):
        run(through(server.port))


def test_a_proxy_whose_name_does_not_exist_is_at_fault(fetch: Callable[..., Capture]) -> None:
    capture = fetch(
        WireRequest(url="http://a.example/", proxy="http://b.example:1"), resolve=lambda _: []
    )
    assert capture.failure is Failure.PROXY


@pytest.mark.parametrize(
    "line", [b"403 Forbidden", b"407 Proxy Authentication Required", b"502 Bad Gateway"]
)
def test_a_proxy_that_opens_no_tunnel_is_at_fault(fetch: Callable[..., Capture], line: bytes) -> None:
    proxy = Proxy(response=b"HTTP/1.1 " + line + b"\r\nContent-Length: 5\r\n\r\nsorry")
    with LoopbackServer(proxy.connect) as server:
        capture = fetch(WireRequest(url="https://example.org/", proxy=server.url))
    assert (capture.failure, capture.request, capture.status) == (Failure.PROXY, b"", 0)
    assert line[:3].decode() in capture.failure_detail


@pytest.mark.parametrize("keeps_407", [False, True])
def test_a_proxy_that_wants_another_password_has_not_responded_for_the_server(
    fetch: Callable[..., Capture], keeps_407: bool
) -> None:
    said = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nsorry"
    with LoopbackServer(always(said)) as server:
        asked = WireRequest(url="http://example.org/", proxy=server.url, keeps_407=keeps_407)
        capture = fetch(asked)
        direct = fetch(WireRequest(url=server.url))
    assert (direct.failure, direct.status) == (None, 407)
    if keeps_407:
        assert (capture.failure, capture.status) == (None, 407)
    else:
        assert (capture.failure, capture.status, capture.head) == (Failure.PROXY, 0, b"")
        assert "password" in capture.failure_detail


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_proxy_that_lets_nobody_connect_is_at_fault_and_not_the_host(
    run_once: Run, make_wire: Callable[..., Wire], scheme: str
) -> None:
    async def fetch(port: int) -> Capture:
        async with make_wire(connect_timeout=0.5) as wire:
            asked = WireRequest(url="http://example.org/", proxy=f"{scheme}://127.0.0.1:{port}")
            return await wire.fetch(asked)

    with full_backlog() as port:
        capture = run_once(fetch(port))
    assert (capture.failure, capture.ip_address) == (Failure.PROXY, "127.0.0.1")


def test_a_proxy_that_is_not_there_is_at_fault(fetch: Callable[..., Capture]) -> None:
    capture = fetch(WireRequest(url="http://example.org/", proxy=f"http://127.0.0.1:{free_port()}"))
    assert capture.failure is Failure.PROXY
