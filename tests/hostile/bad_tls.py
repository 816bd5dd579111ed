"""Servers that get TLS wrong, on purpose or not. Nothing is requested over such a connection."""

from __future__ import annotations

import datetime as dt
import ssl
from functools import cache
from typing import TYPE_CHECKING

import trustme
from hostile.scripts_of_servers import FIVE, OK, failed, one

if TYPE_CHECKING:
    from hostile.hostile_server import Behaviour, Peer
    from hostile.scripts_of_servers import Serve

_PAST = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
_HANDSHAKE_RECORD = b"\x16\x03\x03"

# A ServerHello that chooses TLS 1.0 and nothing later, and the start of what follows it.
_HELLO_OF_TLS_1_0 = b"\x02\x00\x00\x26\x03\x01" + bytes(32) + b"\x00\x00\x2f\x00"
_TLS_1_0 = b"\x16\x03\x01" + len(_HELLO_OF_TLS_1_0).to_bytes(2, "big") + _HELLO_OF_TLS_1_0


@cache
def _authority() -> trustme.CA:
    return trustme.CA()


def _secured(*names: str, expired: bool = False, own: bool = False) -> Serve:
    """Serve a page over TLS with a certificate for *names*, or for the address that was dialled."""

    def serve(peer: Peer) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority = trustme.CA() if own else _authority()
        issued = authority.issue_cert(*(names or (peer.address,)), not_after=_PAST if expired else None)
        issued.configure_cert(context)
        with context.wrap_socket(peer.socket, server_side=True) as channel:
            channel.recv(65536)
            channel.sendall(OK + FIVE)

    return serve


def _close_in_the_handshake(peer: Peer) -> None:
    peer.socket.recv(5)


def _reset_in_the_handshake(peer: Peer) -> None:
    peer.socket.recv(65536)
    peer.reset()


def _speaks_first(peer: Peer) -> None:
    peer.send(OK + FIVE)
    peer.hold()


def _silent_in_the_handshake(peer: Peer) -> None:
    peer.hold()


def _drip_the_handshake(peer: Peer) -> None:
    peer.socket.recv(65536)
    peer.drip(_HANDSHAKE_RECORD + b"\x40\x00" + bytes(1000))


def _handshake_without_end(peer: Peer) -> None:
    peer.socket.recv(65536)
    peer.pour(_HANDSHAKE_RECORD + b"\x40\x00" + b"\x0b\xff\xff\xff" + bytes(0x4000 - 4))


def _sends(data: bytes) -> Serve:
    def serve(peer: Peer) -> None:
        peer.socket.recv(65536)
        peer.send(data)
        peer.hold()

    return serve


def _tls(name: str, serve: Serve, word: str) -> Behaviour:
    return one(f"tls-{name}", serve, failed(word), scheme="https")


BAD_TLS = (
    _tls("unknown-authority", _secured(), "tls-certificate"),
    _tls("expired", _secured(expired=True), "tls-certificate"),
    _tls("another-name", _secured("example.org"), "tls-certificate"),
    _tls("signed-by-itself", _secured(own=True), "tls-certificate"),
    _tls("1-0-only", _sends(_TLS_1_0), "tls-handshake"),
    _tls("an-alert", _sends(b"\x15\x03\x03\x00\x02\x02\x28"), "tls-handshake"),
    _tls("plain-http", _sends(OK + FIVE), "tls-handshake"),
    _tls("plain-http-at-once", _speaks_first, "tls-handshake"),
    _tls("closed-in-the-handshake", _close_in_the_handshake, "tls-handshake"),
    _tls("reset-in-the-handshake", _reset_in_the_handshake, "tls-handshake"),
    _tls("silence-in-the-handshake", _silent_in_the_handshake, "connect-timeout"),
    _tls("drip-of-the-handshake", _drip_the_handshake, "connect-timeout"),
    _tls("a-handshake-without-end", _handshake_without_end, "tls-handshake"),
)
