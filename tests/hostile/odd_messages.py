"""Servers that break the grammar of HTTP, contradict themselves, or never end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostile.hostile_server import Behaviour
from hostile.scripts_of_servers import CHUNKED, FIVE, MIB, OK, found, one, page, pours, says

if TYPE_CHECKING:
    from hostile.hostile_server import Peer

FORGED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
FORGED_RECORD = (
    b"WARC/1.1\r\nWARC-Type: response\r\n"
    b"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
    b"WARC-Date: 2001-01-01T00:00:00Z\r\nWARC-Target-URI: http://forged.example/\r\n"
    b"Content-Length: 0\r\n\r\n\r\n\r\n"
)
_HELLO = b"\r\n\r\nhello"


def _length(value: bytes, body: bytes = b"hello", *more: bytes) -> bytes:
    return OK + b"Content-Length: " + value + b"\r\n" + b"".join(more) + b"\r\n" + body


def _smuggle(peer: Peer) -> None:
    """Send two responses to the first request; the second could be taken for the next one's."""
    path = peer.path()
    peer.send(page(b"genuine " + path) + FORGED)
    # Whoever comes back on this connection gets nothing but what was sent unsolicited.
    peer.hold()


def _smuggle_late(peer: Peer) -> None:
    """Keep the connection, and send a response to a request that was never made."""
    while path := peer.path():
        peer.send(page(b"genuine " + path))
        # The exchange is over, and the next one, a second later, has not begun. No client can tell what
        # meets a request on its way from the response to it.
        peer.wait(0.05)
        peer.send(FORGED)


def _status(line: bytes) -> bytes:
    return line + b"\r\n" + FIVE


HEADS = (
    one("a-header-line-without-end", pours(OK + b"X-Long: ", b"a" * 65536), found(truncated="length")),
    one("headers-without-end", pours(OK, b"X-Name: value\r\n" * 4096), found(truncated="length")),
    one(
        "folded-lines-without-end",
        pours(OK + b"X-A: b\r\n", b" c\r\n" * 9999),
        found(truncated="length"),
    ),
    one("empty-lines-without-end", pours(b"", b"\r\n" * 9999), found(truncated="length")),
    one(
        "interim-responses-without-end", pours(b"", b"HTTP/1.1 100 \r\n\r\n" * 999), found(100, "length")
    ),
    one("a-header-line-of-100-kb", says(OK + b"X-Long: " + b"a" * 100_000 + b"\r\n" + FIVE)),
    one(
        "a-header-line-of-1-mb",
        says(OK + b"X-Long: " + b"a" * MIB + b"\r\n" + FIVE),
        found(truncated="length"),
    ),
    one("two-thousand-headers", says(OK + b"X-Name: value\r\n" * 2000 + FIVE)),
    one(
        "cookies-of-a-megabyte",
        says(OK + b"Set-Cookie: " + b"c=d; " * 200_000),
        found(truncated="length"),
    ),
    one("two-thousand-cookies", says(OK + b"Set-Cookie: a=b; Path=/\r\n" * 2000 + FIVE)),
    one(
        "validators-of-100-kb",
        says(page(b"", b'ETag: "' + b"e" * 50_000, b"Last-Modified: " + b"m" * 50_000)),
    ),
    one("refresh-to-itself", says(page(b"", b"Refresh: 0; url=/", b"Refresh: 0"))),
    one("folded-headers", says(OK + b"X-A: b\r\n c\r\n\td\r\n" + FIVE)),
    one("a-header-without-colon", says(OK + b"no field at all\r\n" + FIVE)),
    one("a-header-without-name", says(OK + b": value\r\n" + FIVE)),
    one("names-with-spaces", says(OK + b"Content Length: 1\r\n X: y\r\nA B : c\r\n" + FIVE)),
    one("nul-in-headers", says(OK + b"X\0-Nul: a\0b\r\nContent-Type: a\0b\r\n" + FIVE)),
    one("bare-lf", says(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", then_holds=True)),
    one("bare-cr", says(b"HTTP/1.1 200 OK\rContent-Length: 5\r\rhello"), found(truncated="disconnect")),
    one("bare-cr-in-a-value", says(OK + b"X: a\rContent-Length: 99\r\n" + FIVE)),
    one(
        "control-sequences",
        says(
            page(
                b"",
                b"Content-Type: \x1b[2J\x9b2J\x07/\xe2\x80\xae",
                b"ETag: \x1b]0;x\x07",
                b"Last-Modified: \x1b[31m",
                status=b"200 \x1b[2J\x1b]0;owned\x07",
            )
        ),
    ),
    one("a-record-in-the-reason", says(b"HTTP/1.1 200 OK WARC/1.1 WARC-Type: response\r\n" + FIVE)),
    one("a-record-as-headers", says(OK + FORGED_RECORD[:-4])),
    one("a-record-as-body", says(page(b"\r\n\r\n" + FORGED_RECORD))),
    one("a-gzip-member-as-body", says(page(b"\r\n\r\n\x1f\x8b\x08" + bytes(20)))),
)

STATUSES = (
    one("no-status-line", says(b"Content-Type: text/html\r\n" + FIVE)),
    one("http-0-9", says(b"<html>no head at all</html>")),
    one("http-9-9", says(_status(b"HTTP/9.9 200 OK"), then_holds=True)),
    one("status-000", says(_status(b"HTTP/1.1 000 OK"))),
    one("status-099", says(_status(b"HTTP/1.1 099 OK"))),
    one("status-999", says(_status(b"HTTP/1.1 999 OK")), found(999)),
    one("status-1e3", says(_status(b"HTTP/1.1 1e3 OK"))),
    one("status-negative", says(_status(b"HTTP/1.1 -200 OK"))),
    one("status-huge", says(_status(b"HTTP/1.1 " + b"2" * 5000 + b" OK"))),
    one("status-in-other-digits", says(_status("HTTP/1.1 ٢٠٠ OK".encode()))),
    one(
        "switching-protocols", says(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nanything"), found(101)
    ),
    one("a-body-on-a-204", says(b"HTTP/1.1 204 None\r\nContent-Length: 5" + _HELLO), found(204)),
    one("a-body-on-a-304", says(b"HTTP/1.1 304 Not\r\nContent-Length: 5" + _HELLO), found(304)),
    one("http-2-frames", says(b"\0\0\0\x04\0\0\0\0\0" * 20)),
    one("another-protocol", says(b"SSH-2.0-OpenSSH_9.9\r\n")),
    one("icy", says(b"ICY 200 OK\r\nicy-name: x\r\n\r\naudio")),
)

LENGTHS = (
    one("a-length-too-large", says(_length(b"500")), found(truncated="disconnect")),
    one("a-length-too-small", says(_length(b"2", b"hello and more"), then_holds=True)),
    one("a-length-of-ten-terabytes", says(_length(b"10000000000000")), found(truncated="disconnect")),
    one("a-length-of-forty-digits", says(_length(b"9" * 40))),
    one("a-length-of-100-kb", says(_length(b"1" * 100_000))),
    one("a-negative-length", says(_length(b"-5"))),
    one("a-length-that-is-no-number", says(_length(b"five"))),
    one("a-length-in-hexadecimal", says(_length(b"0x5"))),
    one("a-length-and-more", says(_length(b"5, 5"), then_holds=True)),
    one("two-different-lengths", says(_length(b"5", b"hello", b"Content-Length: 500\r\n"))),
    one("two-thousand-lengths", says(OK + b"Content-Length: 5\r\n" * 2000 + b"\r\nhello")),
    one(
        "a-length-and-chunks",
        says(_length(b"3", b"5\r\nhello\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n")),
    ),
    one(
        "chunked-twice", says(OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    ),
    one("an-unknown-transfer-coding", says(OK + b"Transfer-Encoding: xchunked" + _HELLO)),
    one("a-body-without-end", pours(OK + b"\r\n", b"x" * 65536), found(truncated="length")),
    one(
        "a-length-that-is-kept-for-ever",
        pours(_length(b"10000000000000"), b"x" * 65536),
        found(truncated="length"),
    ),
)

CHUNKS = (
    one(
        "an-absurd-chunk-size",
        says(CHUNKED + b"fffffffffffffff\r\nhello"),
        found(truncated="disconnect"),
    ),
    one("a-chunk-size-beyond-64-bits", says(CHUNKED + b"f" * 40 + b"\r\nhello")),
    one("a-negative-chunk-size", says(CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n")),
    one("a-chunk-size-with-a-prefix", says(CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n")),
    one("chunks-without-end", pours(CHUNKED, b"5\r\nhello\r\n" * 4096), found(truncated="length")),
    one(
        "chunks-of-one-byte-without-end", pours(CHUNKED, b"1\r\nx\r\n" * 9999), found(truncated="length")
    ),
    one("a-chunk-extension-of-2-mb", pours(CHUNKED + b"5;", b"e" * 65536), found(truncated="length")),
    one("a-chunk-size-of-nothing-but-zeros", pours(CHUNKED, b"0" * 65536), found(truncated="length")),
    one(
        "trailers-without-end",
        pours(CHUNKED + b"0\r\n", b"X-T: v\r\n" * 4096),
        found(truncated="length"),
    ),
    one("chunks-with-bare-lf", says(CHUNKED + b"5\nhello\n0\n\n", then_holds=True)),
)

SMUGGLED = (
    Behaviour(
        name="a-response-too-many", serve=_smuggle, paths=("/1", "/2"), expected=(found(), found())
    ),
    Behaviour(
        name="a-response-too-many-and-late",
        serve=_smuggle_late,
        paths=("/1", "/2"),
        expected=(found(), found()),
    ),
)

ODD_MESSAGES = (*HEADS, *STATUSES, *LENGTHS, *CHUNKS, *SMUGGLED)
