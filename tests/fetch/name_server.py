"""A name server on loopback that says what it is told to, and things to tell it."""

from __future__ import annotations

import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

A, AAAA = 1, 28
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3


def reply_to(requested: bytes, *, code: int = NO_ERROR, records: bytes = b"", count: int = 0) -> bytes:
    header = requested[:2] + struct.pack(">5H", 0x8180 | code, 1, count, 0, 0)
    return header + question_in(requested) + records


def question_in(requested: bytes) -> bytes:
    """Return the question of a message, without what follows it (EDNS)."""
    at = 12
    while requested[at]:
        at += 1 + requested[at]
    return requested[12 : at + 5]


def record(kind: int, value: bytes, *, ttl: int = 60) -> bytes:
    """Return a record of the name in the question, which it points at."""
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, ttl, len(value)) + value


ADDRESS = record(A, b"\xc0\x00\x02\x01")
ALIAS = record(5, b"\x03www\xc0\x10")


class NameServer:
    """Responds over UDP on loopback with what *respond* makes of a question: datagrams to send."""

    def __init__(self, response: Callable[[bytes], list[bytes]]) -> None:
        self._response = response
        self.questions: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.server: tuple[str, int] = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.server)
        self._thread.join(10)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            requested, peer = self._socket.recvfrom(4096)
            if not requested:
                return
            self.questions.append(requested)
            for message in self._response(requested):
                self._socket.sendto(message, peer)


def requests_of(kind: int, requested: bytes) -> bool:
    return question_in(requested)[-4:-2] == kind.to_bytes(2, "big")


def knows(requested: bytes) -> list[bytes]:
    known = requests_of(A, requested)
    return [reply_to(requested, records=ADDRESS if known else b"", count=int(known))]


def knows_not(requested: bytes) -> list[bytes]:
    return [reply_to(requested, code=NO_SUCH_NAME)]


def knows_only_ipv6(requested: bytes) -> list[bytes]:
    if requests_of(A, requested):
        return [reply_to(requested)]
    return [reply_to(requested, records=record(AAAA, bytes(15) + b"\2"), count=1)]


def knows_no_address(requested: bytes) -> list[bytes]:
    return [reply_to(requested)]


def cannot_say(requested: bytes) -> list[bytes]:
    return [reply_to(requested, code=SERVER_FAILURE)]


def says_nothing(_: bytes) -> list[bytes]:
    return []


def is_preceded_by_forgeries(requested: bytes) -> list[bytes]:
    other = bytes([requested[0] ^ 1]) + requested[1:]
    return [reply_to(other, code=NO_SUCH_NAME), *knows(requested)]
