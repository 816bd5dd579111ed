"""A site whose pages are attacks on whoever follows links; each has a path of its own."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

from hostile.hostile_server import Behaviour
from hostile.lies_about_content import coded
from hostile.odd_messages import FORGED_RECORD
from hostile.scripts_of_servers import MIB, gzip_bomb, page

if TYPE_CHECKING:
    from hostile.hostile_server import Peer

_HTML = b"Content-Type: text/html; charset=utf-8"
_CSS = b"Content-Type: text/css"
_LOOPBACK = (
    b"http://127.0.0.1:%PORT%/",
    b"//127.0.0.1:%PORT%/",
    b"http:\\\\127.1:%PORT%/",
    b"http://0x7f.1:%PORT%/",
    b"http://2130706433:%PORT%/",
    b"http://localhost:%PORT%/",
    b"http://[::1]:%PORT%/",
    b"http://[::ffff:7f00:1]:%PORT%/",
    b"ht\ntp://127.0.0.1:%PORT%/b",
    b"http://a@127.0.0.1:%PORT%/",
)


class HostilePage(NamedTuple):
    """A page, and the path that it must lead to (if any) in spite of what it is."""

    response: bytes
    leads_to: str = ""


def _html(body: bytes, *fields: bytes) -> bytes:
    return page(body, _HTML, *fields)


def _link(path: bytes) -> bytes:
    return b'<a href="%s">x</a>' % path


_PLAIN = b"<html><title>plain</title>" + _link(b"/found/plain")

PAGES: dict[str, HostilePage] = {
    "/nesting": HostilePage(_html(b"<div>" * 600_000 + _link(b"/found/deep")), "/found/deep"),
    "/a-million-links": HostilePage(_html(b"<a href=http://off.example/>" * 120_000 + _link(b"/x"))),
    "/a-million-tags": HostilePage(_html(b"<b>" * 1_000_000)),
    "/an-attribute": HostilePage(
        _html(b'<a title="' + b"a" * (3 * MIB) + b'" href="/found/big">x'), "/found/big"
    ),
    "/an-open-tag": HostilePage(
        _html(_link(b"/found/open") + b"<a href='" + b"a" * (3 * MIB)), "/found/open"
    ),
    "/an-open-comment": HostilePage(
        _html(_link(b"/found/comment") + b"<!--" * 700_000), "/found/comment"
    ),
    "/attributes": HostilePage(
        _html(b"<a " + b"b=c " * 700_000 + b">" + _link(b"/found/attr")), "/found/attr"
    ),
    "/quotes": HostilePage(_html(b"<a href=" + b"\"'" * 1_000_000)),
    "/srcset": HostilePage(_html(b'<img srcset="' + b"(," * 1_000_000 + b'">')),
    "/entities": HostilePage(_html(b'<a href="' + b"&amp" * 700_000 + b'">')),
    "/gzip-bomb": HostilePage(coded(b"gzip", gzip_bomb(200))),
    "/gzip-bomb-of-links": HostilePage(
        coded(b"gzip", gzip_bomb(100, start=_link(b"/found/bomb"), filling=b"<a href=/>")), "/found/bomb"
    ),
    "/two-codings": HostilePage(
        coded(b"gzip, gzip", gzip.compress(gzip.compress(_PLAIN))), "/found/plain"
    ),
    "/forty-two-codings": HostilePage(coded(b"gzip" + b", gzip" * 41, gzip.compress(_PLAIN))),
    "/no-gzip": HostilePage(coded(b"gzip", _PLAIN)),
    "/no-brotli": HostilePage(coded(b"br", _PLAIN)),
    "/no-zstd": HostilePage(coded(b"zstd", _PLAIN)),
    "/utf-7": HostilePage(
        page(b"+ADw-a href=/x+AD4-" + _link(b"/found/utf-7"), b"Content-Type: text/html; charset=utf-7"),
        "/found/utf-7",
    ),
    "/utf-16-without-a-mark": HostilePage(
        page(
            _link(b"/found/utf-16").decode().encode("utf-16-le"),
            b"Content-Type: text/html; charset=utf-16",
        ),
        "/found/utf-16",
    ),
    "/utf-16-that-is-none": HostilePage(
        _html(b"<meta charset=utf-16>" + _link(b"/found/none")), "/found/none"
    ),
    "/iso-2022-jp": HostilePage(
        page(
            b"\x1b$B" * 100_000 + b"\x1b(B" + _link(b"/found/jp"),
            b"Content-Type: text/html; charset=iso-2022-jp",
        ),
        "/found/jp",
    ),
    "/binary": HostilePage(_html(bytes(range(256)) * 4000)),
    "/loopback": HostilePage(
        _html(b"".join(b'<img src="%s"><a href="%s">' % (url, url) for url in _LOOPBACK))
    ),
    "/base": HostilePage(
        _html(b'<base href="http://127.0.0.1:%PORT%/"><img src="based.png"><a href="based">')
    ),
    "/other-schemes": HostilePage(
        _html(
            b"".join(
                map(
                    _link,
                    (
                        b"file:///etc/passwd",
                        b"javascript:alert(1)",
                        b"data:text/html,x",
                        b"ftp://127.0.0.1:%PORT%/",
                        b"gopher://127.0.0.1:%PORT%/",
                        b"view-source:/x",
                        b"java\nscript:x",
                    ),
                )
            )
        )
    ),
    "/controls": HostilePage(
        _html(
            _link(b"/found/\x1b[2J\x07&#13;&#10;X-Forged:%20yes") + _link("/found/\u202egpj".encode())
        ),
        "/found/%E2%80%AEgpj",
    ),
    "/overlong": HostilePage(
        _html(_link(b"/" + b"o" * 200_000) + _link(b"/found/short")), "/found/short"
    ),
    "/record": HostilePage(_html(b"\r\n\r\n" + FORGED_RECORD)),
    "/fields": HostilePage(
        page(b"", _HTML, b"Link: " + b"<a>;" * 20_000, b"Refresh: 0;url=/found/refreshed"),
        "/found/refreshed",
    ),
    "/refresh-to-itself": HostilePage(
        _html(b'<meta http-equiv=refresh content="0; url=/refresh-to-itself">')
    ),
    "/refresh-to-a-script": HostilePage(
        _html(b'<meta http-equiv=refresh content="0; url=javascript:alert(1)">')
    ),
    "/redirect-to-itself": HostilePage(page(b"", b"Location: /redirect-to-itself", status=b"302 Found")),
    "/redirect-to-loopback": HostilePage(
        page(b"", b"Location: http://127.0.0.1:%PORT%/r", status=b"302 Found")
    ),
    "/redirect-to-a-file": HostilePage(page(b"", b"Location: file:///etc/passwd", status=b"302 Found")),
    "/style": HostilePage(page(b"@import '/style';" * 50_000 + b"a{b:url(" * 100_000, _CSS)),
    "/style-of-escapes": HostilePage(page(b"a{b:url(\\2f" + b"\\a " * 500_000 + b")}", _CSS)),
    "/svg": HostilePage(
        page(
            b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
            b'<svg><image href="/found/svg">&x;</svg>',
            b"Content-Type: image/svg+xml",
        ),
        "/found/svg",
    ),
    "/feed": HostilePage(
        page(
            b'<!DOCTYPE rss [<!ENTITY x SYSTEM "http://127.0.0.1:%PORT%/">]><rss>&x;</rss>',
            b"Content-Type: application/rss+xml",
        )
    ),
    "/feed-of-depth": HostilePage(
        page(b"<rss>" + b"<item>" * 500_000, b"Content-Type: application/rss+xml")
    ),
}

ENDLESS = {
    "/styles/0.css": (b"@import '/styles/%d.css'; a{b:url(/i.png)}", _CSS),
    "/frames/0": (b"<iframe src=/frames/%d></iframe>", _HTML),
    "/pages/0": (b"<a href=/pages/%d>next</a>", _HTML),
    "/calendar?day=2031-01-01&n=0": (b'<a href="/calendar?day=2031-01-01&amp;n=%d">next</a>', _HTML),
}
"""What leads to one more of its kind each time; the number stands for the next."""

DEEPER = "/deeper/"
"""What leads to a path that is longer by one segment each time."""


def _generated(path: str) -> bytes:
    """Return the page at a *path* that is made up as it is requested."""
    for first, (template, kind) in ENDLESS.items():
        before, _, after = first.rpartition("0")
        if path.startswith(before) and path.endswith(after):
            number = path[len(before) : len(path) - len(after)]
            return page(template % (int(number) + 1), kind)
    if path.startswith(DEEPER):
        return _html(b"<a href=%s%s>deeper</a>" % (path.encode(), b"again/"))
    return _html(b"an ordinary page at " + path.encode())


def _serve(peer: Peer) -> None:
    port = peer.base.rpartition(":")[2].encode()
    while path := peer.path().decode("latin-1"):
        if path == "/":
            response = _html(
                b"".join(map(_link, map(str.encode, (*PAGES, *ENDLESS, DEEPER)))).replace(b"&", b"&amp;")
            )
        elif path in PAGES:
            response = PAGES[path].response
            if len(response) < 100_000:
                head, _, body = response.replace(b"%PORT%", port).partition(b"\r\n\r\n")
                fields = [
                    line for line in head.split(b"\r\n")[1:] if not line.startswith(b"Content-Length")
                ]
                response = page(body, *fields, status=head.split(b" ", 1)[1].partition(b"\r\n")[0])
        else:
            response = _generated(path)
        peer.send(response)


HOSTILE_SITE = Behaviour(name="site", serve=_serve)
