"""Servers whose robots.txt is an attack; every other path has a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostile.hostile_server import Behaviour, Expected
from hostile.lies_about_content import coded
from hostile.odd_messages import FORGED_RECORD
from hostile.scripts_of_servers import OK, found, gzip_bomb, page

if TYPE_CHECKING:
    from hostile.hostile_server import Peer
    from hostile.scripts_of_servers import Serve

DENIED = Expected(error="robots-denied")
PAGE = found()
_DENY_FIRST = b"User-agent: *\nDisallow: /no\n"
_RULES = b"".join(b"Disallow: /%d\n" % number for number in range(50_000))


def _text(body: bytes) -> bytes:
    return page(body, b"Content-Type: text/plain")


def _robots(name: str, robots: Serve, *expected: Expected) -> Behaviour:
    """Serve robots.txt by *robots*, which is called when it was requested; expect rows of two pages."""

    def serve(peer: Peer) -> None:
        path = peer.path()
        if path in (b"/yes", b"/no"):
            peer.send(_text(b"the page"))
        elif path:
            robots(peer)

    return Behaviour(
        name=f"robots-{name}", serve=serve, paths=("/yes", "/no"), expected=expected or (PAGE, PAGE)
    )


def _sends(data: bytes) -> Serve:
    return lambda peer: peer.send(data)


def _pours(begun: bytes, block: bytes) -> Serve:
    def serve(peer: Peer) -> None:
        peer.send(begun)
        peer.pour(block)

    return serve


def _redirects(location: bytes) -> Serve:
    def serve(peer: Peer) -> None:
        port = peer.base.rpartition(":")[2].encode()
        where = location.replace(b"%PORT%", port)
        peer.send(page(b"", b"Location: " + where, status=b"302 Found"))

    return serve


def _redirects_for_ever(peer: Peer) -> None:
    peer.send(page(b"", b"Location: /robots.txt?%d" % id(peer), status=b"302 Found"))


def _files(name: str, body: bytes, *expected: Expected) -> Behaviour:
    return _robots(name, _sends(_text(body)), *expected)


_WAITS: tuple[Expected, ...] = ()
"""No row at all: the pages wait until robots.txt can be had."""


def _waits(name: str, robots: Serve) -> Behaviour:
    behaviour = _robots(name, robots, PAGE)
    return Behaviour(name=behaviour.name, serve=behaviour.serve, paths=behaviour.paths, expected=_WAITS)


ROBOTS_FILES = (
    _files("of-50000-rules", _DENY_FIRST + _RULES, PAGE, DENIED),
    _files("of-one-line", _DENY_FIRST + b"Disallow: /" + b"a" * 5_000_000, PAGE, DENIED),
    _files("of-50000-agents", b"User-agent: a\n" * 50_000 + _DENY_FIRST, PAGE, PAGE),
    _files("of-wildcards", _DENY_FIRST + b"Disallow: /" + b"*a" * 20_000 + b"b$\n", PAGE, DENIED),
    _files("of-blanks", _DENY_FIRST + b" \t\r" * 80_000, PAGE, DENIED),
    _files("of-controls", b"\x1b[2J\x07Sitemap: http://x/\x1b[2J\n" + _DENY_FIRST, PAGE, DENIED),
    _files("of-records", FORGED_RECORD + _DENY_FIRST, PAGE, DENIED),
    _files("binary", bytes(range(256)) * 200),
    _files("of-nul", bytes(100_000)),
    _files("of-an-absurd-delay", _DENY_FIRST + b"Crawl-delay: " + b"9" * 4000 + b"\n", PAGE, DENIED),
    _files(
        "of-a-delay-that-is-none", _DENY_FIRST + b"Crawl-delay: NaN\nCrawl-delay: -1e999\n", PAGE, DENIED
    ),
    _robots("without-end", _pours(OK + b"\r\n" + _DENY_FIRST, b"Disallow: /x\n" * 5000), PAGE, DENIED),
    _robots("bomb", _sends(coded(b"gzip", gzip_bomb(10 * 1024)))),
    _robots("redirected-to-itself", _redirects_for_ever),
    _robots("redirected-to-loopback", _redirects(b"http://127.0.0.1:%PORT%/robots.txt")),
    _robots("redirected-to-a-file", _redirects(b"file:///etc/passwd")),
    _robots("redirected-to-ftp", _redirects(b"ftp://127.0.0.1:%PORT%/robots.txt")),
    _robots("redirected-to-a-script", _redirects(b"javascript:alert(1)")),
    _robots("redirected-to-data", _redirects(b"data:text/plain,User-agent:*%0aDisallow:/")),
    _waits("of-a-failing-server", _sends(page(b"", status=b"503 Busy"))),
    _waits("silent", lambda peer: peer.hold()),
    _waits("reset", lambda peer: peer.reset()),
    _waits("empty", _sends(b"")),
)
