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


def reply_to(asked: bytes, *, code: int = NO_ERROR, records: bytes = b"", count: int = 0) -> bytes:
    header = asked[:2] + struct.pack(">5H", 0x8180 | code, 1, count, 0, 0)
    return header + question_in(asked) + records


def question_in(asked: bytes) -> bytes:
    """Return the question of a message, without what follows it (EDNS)."""
    at = 12
    while asked[at]:
        at += 1 + asked[at]
    return asked[12 : at + 5]


def record(kind: int, value: bytes, *, ttl: int = 60) -> bytes:
    """Return a record of the name in the question, which it points at."""
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, ttl, len(value)) + value


ADDRESS = record(A, b"\xc0\x00\x02\x01")
ALIAS = record(5, b"\x03www\xc0\x10")


class NameServer:
    """Answers over UDP on loopback with what *answer* makes of a question: datagrams to send."""

    def __init__(self, answer: Callable[[bytes], list[bytes]]) -> None:
        self._answer = answer
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
            asked, peer = self._socket.recvfrom(4096)
            if not asked:
                return
            self.questions.append(asked)
            for message in self._answer(asked):
                self._socket.sendto(message, peer)


def asks_for(kind: int, asked: bytes) -> bool:
    return question_in(asked)[-4:-2] == kind.to_bytes(2, "big")


def knows(asked: bytes) -> list[bytes]:
    known = asks_for(A, asked)
    return [reply_to(asked, records=ADDRESS if known else b"", count=int(known))]


def knows_not(asked: bytes) -> list[bytes]:
    return [reply_to(asked, code=NO_SUCH_NAME)]


def knows_only_ipv6(asked: bytes) -> list[bytes]:
    if asks_for(A, asked):
        return [reply_to(asked)]
    return [reply_to(asked, records=record(AAAA, bytes(15) + b"\2"), count=1)]


def knows_no_address(asked: bytes) -> list[bytes]:
    return [reply_to(asked)]


def cannot_say(asked: bytes) -> list[bytes]:
    return [reply_to(asked, code=SERVER_FAILURE)]


def says_nothing(_: bytes) -> list[bytes]:
    return []


def is_preceded_by_forgeries(asked: bytes) -> list[bytes]:
    other = bytes([asked[0] ^ 1]) + asked[1:]
    return [reply_to(other, code=NO_SUCH_NAME), *knows(asked)]
