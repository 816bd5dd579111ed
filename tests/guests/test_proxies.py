"""Proxies with passwords are used as without the line; the archive does not have the password."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING

import pytest
import trustme
from fetch.serving import always
from fetch.test_fetch_proxy import Proxy
from fetch.test_fetch_tls import context, secured
from guests.guest_runs import Ran, both, run
from loopback import free_port, page
from odd_responses import LoopbackServer, read_request

if TYPE_CHECKING:
    import socket
    from pathlib import Path

ONCE = {"RETRY_TIMES": "0"}
SAID = page(b"said", "Content-Type: text/plain")
SECRET = b"Basic " + base64.b64encode(b"user:pass")


def nothing(_: bytes) -> bytes:
    raise AssertionError("the server was contacted without the proxy")


def through(proxy: str, url: str) -> dict[str, str]:
    return {"url": url, "meta": json.dumps({"proxy": proxy})}


def archived_bytes(ran: Ran) -> bytes:
    return b"".join(gzip.decompress(path.read_bytes()) for path in ran.archive.glob("*.warc.gz"))


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_password_for_the_proxy_is_in_no_record_of_a_plain_request(
    tmp_path: Path, scheme: str
) -> None:
    requested: list[bytes] = []

    def serve(channel: socket.socket) -> None:
        while request := read_request(channel):
            requested.append(request)
            channel.sendall(SAID)

    with LoopbackServer(serve) as proxy:
        arguments = through(f"{scheme}user:pass@127.0.0.1:{proxy.port}", "http://shop.example/a")
        _, archived = both("single_request.py", nothing, tmp_path, arguments=arguments)
    assert archived.items[0]["said"] == "said"
    assert len(requested) == 2
    for request in requested:
        assert request.startswith(b"GET http://shop.example/a HTTP/1.1\r\n")
        assert b"\r\nProxy-Authorization: " + SECRET in request
    assert archived.archived == {"/a"}
    assert b"http://shop.example/a" in archived_bytes(archived)
    assert b"uthorization" not in archived_bytes(archived)


def test_a_tunnel_is_opened_with_the_password_which_does_not_go_through_it(tmp_path: Path) -> None:
    proxy, received = Proxy(), []

    def serve(channel: socket.socket) -> None:
        received.append(read_request(channel))
        channel.sendall(SAID)

    origin_serves = secured(context(trustme.CA(), "shop.example"), serve)
    with LoopbackServer(origin_serves) as origin, LoopbackServer(proxy.connect) as server:
        arguments = through(
            f"http://user:pass@127.0.0.1:{server.port}", f"https://shop.example:{origin.port}/a"
        )
        _, archived = both("single_request.py", nothing, tmp_path, arguments=arguments)
    assert archived.items[0]["said"] == "said"
    assert [SECRET in request for request in proxy.requested] == [True, True]
    assert len(received) == 2
    assert not any(b"uthorization" in request for request in received)
    assert b"uthorization" not in archived_bytes(archived)


@pytest.mark.parametrize(
    ("user", "item", "encoding"),
    [
        ("me:p%40sé@", {"said": "said"}, "latin-1"),
        ("me:p%40s%C3%A9@", {"said": "said"}, "utf-8"),
        ("me:wrong@", {"missed": "DownloadConnectionRefusedError"}, "latin-1"),
    ],
)
def test_a_socks_proxy_is_given_its_password(
    tmp_path: Path, user: str, item: dict[str, str], encoding: str
) -> None:
    """Scrapy's own handler takes no such proxy, so there is nothing to compare this with."""
    proxy = Proxy()
    proxy.password = b"\1\2me\5" + "p@sé".encode()
    with LoopbackServer(always(SAID)) as origin, LoopbackServer(proxy.socks5) as server:
        arguments = through(f"socks5h://{user}127.0.0.1:{server.port}", f"{origin.url}/a")
        settings = {**ONCE, "HTTPPROXY_AUTH_ENCODING": encoding}
        ran = run(
            "single_request.py", nothing, tmp_path, has_line=True, arguments=arguments, settings=settings
        )
    assert item.items() <= ran.items[0].items(), ran.log
    assert len(proxy.requested) == ("said" in item)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_what_it_is_without_the_line(tmp_path: Path, scheme: str) -> None:
    arguments = through(f"http://127.0.0.1:{free_port()}", f"{scheme}://shop.example/a")
    plain, _ = both("single_request.py", nothing, tmp_path, arguments=arguments, settings=ONCE)
    assert plain.items == [{"missed": "DownloadConnectionRefusedError"}]


@pytest.mark.parametrize(
    "settings", [{}, {"TWISTED_REACTOR_ENABLED": "False"}, {"AMICRAWL_DNS_SERVERS": "system"}]
)
def test_so_is_one_without_an_address(tmp_path: Path, settings: dict[str, str]) -> None:
    arguments = through("http://proxy.invalid:1", "http://shop.example/a")
    settings = {**ONCE, **settings}
    plain, _ = both("single_request.py", nothing, tmp_path, arguments=arguments, settings=settings)
    assert plain.items == [{"missed": "CannotResolveHostError"}]


def test_so_is_one_that_opens_no_tunnel(tmp_path: Path) -> None:
    with LoopbackServer(always(page(b"no", status="403 Forbidden"))) as proxy:
        arguments = through(proxy.url, "https://shop.example/a")
        plain, _ = both("single_request.py", nothing, tmp_path, arguments=arguments, settings=ONCE)
    assert plain.items == [{"missed": "TunnelError"}]
