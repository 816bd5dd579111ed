"""Servers whose sitemaps are an attack, all named by one index; and what they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostile.hostile_server import Behaviour
from hostile.scripts_of_servers import OK, drips, gzip_bomb, page

if TYPE_CHECKING:
    from hostile.hostile_server import Peer
    from hostile.scripts_of_servers import Serve

_DECLARATION = b'<?xml version="1.0"?>\n'
_LAUGHS = b"".join(
    b'<!ENTITY a%d "%s">' % (number, b"&a%d;" % (number - 1) * 10) for number in range(1, 12)
)
_DOCTYPES = {
    "entities": b'<!DOCTYPE urlset [<!ENTITY a0 "ha">' + _LAUGHS + b"]>",
    "an-external-entity": b'<!DOCTYPE urlset [<!ENTITY a11 SYSTEM "file:///etc/passwd">]>',
    "an-entity-on-the-web": b'<!DOCTYPE urlset [<!ENTITY a11 SYSTEM "http://127.0.0.1:%PORT%/e">]>',
    "an-external-subset": b'<!DOCTYPE urlset SYSTEM "http://127.0.0.1:%PORT%/dtd">',
}


def urlset(*urls: bytes) -> bytes:
    """Return a sitemap of *urls*."""
    return _DECLARATION + b"<urlset>%s</urlset>" % b"".join(
        b"<url><loc>%s</loc></url>" % url for url in urls
    )


def index(*urls: bytes) -> bytes:
    """Return an index of the sitemaps *urls*."""
    return _DECLARATION + b"<sitemapindex>%s</sitemapindex>" % b"".join(
        b"<sitemap><loc>%s</loc></sitemap>" % url for url in urls
    )


def _serves(document: bytes, *fields: bytes) -> Serve:
    """Send *document* to any client that requests a sitemap, and a page to others."""

    def serve(peer: Peer) -> None:
        path = peer.path()
        port = peer.base.rpartition(":")[2].encode()
        made = document.replace(b"%BASE%", peer.base.encode()).replace(b"%PORT%", port)
        peer.send(page(made if b"sitemap" in path else b"the page", *fields))

    return serve


def _pours(begun: bytes, block: bytes) -> Serve:
    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(OK + b"\r\n" + begun)
        peer.pour(block)

    return serve


def _index_without_end(peer: Peer) -> None:
    """Name one more index each time."""
    path = peer.path()
    peer.send(page(index(peer.base.encode() + path + b"1", peer.base.encode() + path + b"2")))


def _sitemap(name: str, serve: Serve) -> Behaviour:
    return Behaviour(name=f"sitemap-{name}", serve=serve, paths=("/sitemap.xml",))


def _file(name: str, document: bytes, *fields: bytes) -> Behaviour:
    return _sitemap(name, _serves(document, *fields))


SITEMAPS = (
    _file("that-is-good", urlset(b"%BASE%/good")),
    *(
        _file(f"with-{name}", doctype + urlset(b"&a11;", b"%BASE%/behind").removeprefix(_DECLARATION))
        for name, doctype in _DOCTYPES.items()
    ),
    _file("bomb", gzip_bomb(5 * 1024, start=b"<urlset>", filling=b" ")),
    _file("bomb-of-elements", gzip_bomb(100, start=b"<urlset>", filling=b"<url>")),
    _file("of-depth", b"<urlset>" + b"<url>" * 50_000),
    _file("of-one-address", b"<urlset><url><loc>http://x/" + b"a" * 200_000),
    _file("of-attributes", b"<urlset" + b"".join(b' a%d="b"' % n for n in range(20_000)) + b">"),
    _file("that-names-itself", index(b"%BASE%/sitemap.xml")),
    _file(
        "that-names-loopback",
        index(b"http://127.0.0.1:%PORT%/sitemap.xml", b"http://0:%PORT%/sitemap.xml"),
    ),
    _file(
        "that-names-files",
        index(b"file:///etc/passwd", b"ftp://127.0.0.1:%PORT%/", b"data:text/plain,x"),
    ),
    _file("binary", bytes(range(256)) * 100),
    _file("of-utf-7", b'<?xml version="1.0" encoding="utf-7"?><urlset>+ADw-url+AD4-</urlset>'),
    _file(
        "of-hostile-addresses",
        urlset(
            b"http://127.0.0.1:%PORT%/refused",
            b"http://0x7f.1:%PORT%/refused",
            b"http://[::ffff:127.0.0.1]:%PORT%/refused",
            b"file:///etc/passwd",
            b"javascript:alert(1)",
            b"%BASE%/&#13;&#10;X-Forged: yes",
            b"%BASE%/\xe2\x80\xaegpj.exe",
            b"http://a:b@127.0.0.1:%PORT%/refused",
        ),
    ),
    _sitemap("without-end", _pours(b"<urlset>", b"<url><loc></loc></url>" * 999)),
    _sitemap("of-indexes-without-end", _index_without_end),
    _sitemap("that-drips", drips(OK, b"X: y\r\n" * 99)),
)
