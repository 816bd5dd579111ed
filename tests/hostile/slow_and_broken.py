"""Servers that are slow, silent, or gone: every wait has a cap, and what came by then is kept."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from hostile.scripts_of_servers import CHUNKED, FIVE, OK, drips, failed, found, one, resets, says

if TYPE_CHECKING:
    from hostile.hostile_server import Peer

_INTERIM = b"HTTP/1.1 102 \r\n\r\n"
_LONG = b"x" * 100_000
_HALF_HEAD = OK + b"Content-Type: text/html\r\nX-Half: be"
_HALF_BODY = OK + b"Content-Length: 5000\r\n\r\nhello"


def _silence(peer: Peer) -> None:
    peer.request()
    peer.hold()


def _close_unread(peer: Peer) -> None:
    """Close when the request has come and was not read, which resets the connection."""
    peer.socket.recv(1, socket.MSG_PEEK)


def _close_when_requested(peer: Peer) -> None:
    peer.request()


def _reset_when_requested(peer: Peer) -> None:
    peer.request()
    peer.reset()


def _respond_before_the_request(peer: Peer) -> None:
    peer.send(OK + FIVE)
    peer.request()


def _respond_in_single_bytes(peer: Peer) -> None:
    """Every byte in a packet of its own, at a rate that is fast enough."""
    peer.request()
    for number in range(len(OK + FIVE)):
        peer.send((OK + FIVE)[number : number + 1])
        peer.wait(0.002)


SLOW_AND_BROKEN = (
    one("drip-of-the-status-line", drips(b"", OK * 20), found(truncated="time")),
    one("drip-of-a-header", drips(OK, b"X-Long: " + _LONG), found(truncated="time")),
    one("drip-of-headers", drips(OK, b"X-A: b\r\n" * 500, size=4), found(truncated="time")),
    one("drip-of-the-body", drips(OK + b"Content-Length: 9999\r\n\r\n", _LONG), found(truncated="time")),
    one("drip-of-a-chunk-size", drips(CHUNKED, b"0" * 1000), found(truncated="time")),
    one("drip-of-chunk-sizes", drips(CHUNKED, b"1\r\nx\r\n" * 500), found(truncated="time")),
    one("drip-of-a-trailer", drips(CHUNKED + b"0\r\n", b"X-T: " + _LONG), found(truncated="time")),
    one(
        "drip-of-interim-responses",
        drips(b"", _INTERIM * 99, every=0.4, size=len(_INTERIM)),
        found(102, "time"),
    ),
    one(
        "drip-above-the-least-rate-for-ever",
        drips(OK + b"\r\n", _LONG, every=0.1, size=100),
        found(truncated="time"),
    ),
    one("single-bytes-that-are-quick-enough", _respond_in_single_bytes),
    one("silence", _silence, failed("response-timeout")),
    one("silence-in-the-status-line", says(b"HTTP/1.", then_holds=True), found(truncated="time")),
    one("silence-in-a-header", says(_HALF_HEAD, then_holds=True), found(truncated="time")),
    one("silence-in-the-body", says(_HALF_BODY, then_holds=True), found(truncated="time")),
    one("silence-in-a-chunk", says(CHUNKED + b"5\r\nhe", then_holds=True), found(truncated="time")),
    one("closed-without-reading", _close_unread, failed("connection-reset")),
    one("closed-when-requested", _close_when_requested, failed("empty-response")),
    one("reset-when-requested", _reset_when_requested, failed("connection-reset")),
    one("reset-in-the-status-line", resets(b"HTTP/1.1 2"), found(truncated="disconnect")),
    one("reset-in-a-header", resets(_HALF_HEAD), found(truncated="disconnect")),
    one("reset-in-the-body", resets(_HALF_BODY), found(truncated="disconnect")),
    one("closed-in-the-status-line", says(b"HTTP/1.1 2"), found(truncated="disconnect")),
    one("closed-in-a-header", says(_HALF_HEAD), found(truncated="disconnect")),
    one("closed-in-the-body", says(_HALF_BODY), found(truncated="disconnect")),
    one("closed-in-a-chunk", says(CHUNKED + b"5\r\nhe"), found(truncated="disconnect")),
    one("closed-in-a-chunk-size", says(CHUNKED + b"5\r\nhello\r\n1"), found(truncated="disconnect")),
    one("a-response-before-the-request", _respond_before_the_request),
)
