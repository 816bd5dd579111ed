"""Servers that lead astray: in circles, for ever, and to where a crawl must not go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostile.hostile_server import Behaviour
from hostile.scripts_of_servers import failed, found, one, page

if TYPE_CHECKING:
    from hostile.hostile_server import Expected, Peer
    from hostile.scripts_of_servers import Serve

_HOPS = 20
"""Redirects in a row that are followed, by Scrapy's REDIRECT_MAX_TIMES."""

REFUSED = failed("address-refused")
UNFETCHABLE = failed("unfetchable-url")


def _moved(location: bytes, *, status: bytes = b"302 Found") -> bytes:
    return page(b"", b"Location: " + location, status=status)


def _to(location: bytes) -> Serve:
    """Redirect every request to *location*, in which %PORT% stands for the port of this server."""

    def serve(peer: Peer) -> None:
        if peer.request():
            port = peer.base.rpartition(":")[2].encode()
            peer.send(_moved(location.replace(b"%PORT%", port)))

    return serve


def _astray(name: str, location: bytes, *expected: Expected) -> Behaviour:
    return one(f"redirect-to-{name}", _to(location), found(302), *expected)


def _ping_pong(peer: Peer) -> None:
    path = peer.path()
    peer.send(_moved(b"/pong" if path != b"/pong" else b"/ping"))


def _growing(peer: Peer) -> None:
    path = peer.path()
    peer.send(_moved(b"/x" + path[-400:] + path))


def _fan_out(peer: Peer) -> None:
    """Name a hundred targets at once, all of them here."""
    path = peer.path()
    fields = [b"Location: /%d" % number for number in range(100)]
    peer.send(page(b"the end") if path != b"/" else page(b"", *fields, status=b"302 Found"))


def _after_every_status(peer: Peer) -> None:
    """Send a Location where it redirects nobody."""
    peer.request()
    peer.send(_moved(b"http://127.0.0.1:%PORT%/", status=b"200 OK"))


def _here(name: str, location: bytes, *expected: Expected) -> Behaviour:
    """Redirect to this server, where there is a page at every path but the first."""

    def serve(peer: Peer) -> None:
        path = peer.path()
        target = location.replace(b"%ADDRESS%", peer.base.removeprefix("http://").encode())
        peer.send(page(b"the end") if path != b"/" else _moved(target))

    return one(f"redirect-to-{name}", serve, found(302), *(expected or (found(),)))


REDIRECTS_ASTRAY = (
    one("redirect-to-itself", _to(b"/"), found(302)),
    Behaviour(name="redirects-to-and-fro", serve=_ping_pong, expected=(found(302),) * 3),
    Behaviour(name="redirects-that-grow", serve=_growing, expected=(found(302),) * (_HOPS + 1)),
    one("a-hundred-locations-at-once", _fan_out, found(302), found()),
    one("a-location-without-a-redirect", _after_every_status, found()),
    one("an-empty-location", _to(b""), found(302)),
    _astray("loopback", b"http://127.0.0.1:%PORT%/", REFUSED),
    _astray("loopback-by-name", b"http://localhost:%PORT%/", REFUSED),
    _astray("loopback-by-name-with-a-dot", b"http://LOCALHOST.:%PORT%/", REFUSED),
    _astray("loopback-under-localhost", b"http://a.localhost:%PORT%/", REFUSED),
    _astray("loopback-in-hexadecimal", b"http://0x7f.1:%PORT%/", REFUSED),
    _astray("loopback-in-octal", b"http://017700000001:%PORT%/", REFUSED),
    _astray("loopback-as-a-number", b"http://2130706433:%PORT%/", REFUSED),
    _astray("loopback-with-a-dot", b"http://127.0.0.1.:%PORT%/", REFUSED),
    _astray("loopback-cut-short", b"http://127.1:%PORT%/", REFUSED),
    _astray("loopback-in-wide-digits", "http://１２７.0.0.1:%PORT%/".encode(), REFUSED),
    _astray("loopback-escaped", b"http://%31%32%37.0.0.1:%PORT%/", REFUSED),
    _astray("loopback-of-ipv6", b"http://[::1]:%PORT%/", REFUSED),
    _astray("loopback-mapped", b"http://[::ffff:127.0.0.1]:%PORT%/", REFUSED),
    _astray("loopback-behind-nat64", b"http://[64:ff9b::7f00:1]:%PORT%/", REFUSED),
    _astray("the-unspecified-address", b"http://0.0.0.0:%PORT%/", REFUSED),
    _astray("nothing", b"http://0:%PORT%/", REFUSED),
    _astray("the-unspecified-address-of-ipv6", b"http://[::]:%PORT%/", REFUSED),
    _astray("loopback-without-a-scheme", b"//127.0.0.1:%PORT%/no-scheme", REFUSED),
    _astray("loopback-over-tls", b"https://127.0.0.1:%PORT%/", REFUSED),
    _astray("loopback-behind-userinfo", b"http://example.org@127.0.0.1:%PORT%/user", REFUSED),
    _astray("loopback-behind-a-password", b"http://a:b%40example.org@127.0.0.1:%PORT%/word", REFUSED),
    _astray("a-private-network", b"http://10.0.0.1:%PORT%/", REFUSED),
    _astray("a-shared-address", b"http://100.64.0.1:%PORT%/", REFUSED),
    _astray("metadata-of-a-cloud", b"http://169.254.169.254/latest/meta-data/", REFUSED),
    _astray("a-unique-local-address", b"http://[fd00::1]:%PORT%/", REFUSED),
    _astray("6to4", b"http://[2002:7f00:1::]:%PORT%/", REFUSED),
    _astray("a-file", b"file:///etc/passwd"),
    _astray("data", b"data:text/html,<h1>hello</h1>"),
    _astray("a-script", b"javascript:alert(1)"),
    _astray("gopher", b"gopher://127.0.0.1:%PORT%/_GET%20/"),
    _astray("ftp", b"ftp://127.0.0.1:%PORT%/"),
    _astray("s3", b"s3://bucket/key"),
    _astray("a-zone", b"http://[fe80::1%25eth0]:%PORT%/"),
    _astray("a-port-beyond-65535", b"http://127.66.0.1:99999/"),
    _astray("no-host", b"http:///etc/passwd"),
    _astray("backslashes", rb"http:\\127.0.0.1:%PORT%\x"),
    _here("a-bare-cr", b"/a\rX-Forged: yes"),
    _here("a-line-break-escaped", b"/a%0d%0aX-Forged:%20yes"),
    _here("controls", b"/\x1b[2J\x07\x9b\x7f"),
    _here("what-is-not-utf-8", b"/\xff\xfe\xe9"),
    _here("text-that-turns-around", "/\u202e\u2028gpj.exe".encode()),
    _here("a-forged-record", b"/ WARC/1.1 WARC-Type: response"),
    _here("100-kb", b"/" + b"a" * 100_000, UNFETCHABLE),
    _here("ourselves-behind-userinfo", b"http://a:b@%ADDRESS%/b"),
)
