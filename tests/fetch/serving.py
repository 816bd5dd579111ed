"""What loopback servers do with a connection, and small things that many tests of the wire need."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from odd_responses import read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from amicrawl.capture import Capture

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine to its end on the loop under test."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


def always(response: bytes) -> Callable[[socket.socket], None]:
    """Give *response* to every request."""

    def serve(connection: socket.socket) -> None:
        while read_request(connection):
            connection.sendall(response)

    return serve


def respond(*responses: bytes) -> Callable[[socket.socket], None]:
    """Give *responses*, one to each request, and then close."""

    def serve(connection: socket.socket) -> None:
        for response in responses:
            if not read_request(connection):
                return
            connection.sendall(response)

    return serve


def silence(connection: socket.socket) -> None:
    """Read to the end and say nothing."""
    while connection.recv(65536):
        pass


def drip(begun: bytes, more: bytes, *, every: float) -> Callable[[socket.socket], None]:
    """Send *begun* at once, and then *more* again and again, with a pause before each."""

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(begun)
        while True:
            time.sleep(every)
            connection.sendall(more)

    return serve


def reset_after(response: bytes) -> Callable[[socket.socket], None]:
    """Send *response*, let the client read it, and reset the connection."""

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(response)
        # A reset destroys what the client has not read yet.
        time.sleep(0.3 if response else 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return serve


@contextlib.contextmanager
def full_backlog() -> Iterator[int]:
    """Have a port on 127.0.0.1 that lets nobody connect, and says nothing of it; yield its number."""
    with contextlib.ExitStack() as opened:
        full = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # What is beyond the backlog gets no response from the system.
        for _ in range(4):
            filling = opened.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        yield full.getsockname()[1]


def content(capture: Capture) -> bytes:
    """Return the body of *capture*, and close it."""
    try:
        return b"".join(capture.body.blocks())
    finally:
        capture.body.close()


def descriptors() -> int:
    """Return how many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.005)
