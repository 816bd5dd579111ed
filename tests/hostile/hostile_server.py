"""A server of hostile behaviours, each at a loopback address of its own, that notes forbidden dials.

An address of its own makes each behaviour a host of its own: one that is given up, slow or kept shut has
no part in what becomes of the others. The network of those addresses is the only one that a crawl under
test may dial; whatever reaches the port at another address was led there by an attack.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from odd_responses import read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NETWORK = "127.66.0.0/16"
"""What a crawl under test may dial."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The row that must come of one URL."""

    status: int = 0
    error: str = ""
    """The first word of the column; empty where there was a response."""
    truncated: str = ""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """One way to be hostile, and what must come of it."""

    name: str
    serve: Callable[[Peer], None]
    expected: tuple[Expected, ...] = (Expected(status=200),)
    """Of every URL that leads here, and that a response from here leads to, in any order."""
    paths: tuple[str, ...] = ("/",)
    scheme: str = "http"


class Peer:
    """One connection, as a behaviour sees it."""

    def __init__(self, connection: socket.socket, *, server: HostileServer, address: str) -> None:
        self.socket = connection
        self.address = address
        self.base = f"http://{address}:{server.port}"
        self._server = server

    def request(self) -> bytes:
        """Return the head and body of the next request; empty at the end."""
        request = read_request(self.socket)
        if request:
            self._server.received.append(request)
        return request

    def path(self) -> bytes:
        """Return the path of the next request; empty at the end."""
        return [*self.request().split(b" ", 2), b""][1]

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes, *, every: float = 0.1, size: int = 1) -> None:
        """Send *data*, *size* bytes at a time, with a pause before each."""
        for start in range(0, len(data), size):
            if self.wait(every):
                return
            self.send(data[start : start + size])

    def pour(self, block: bytes) -> None:
        """Send *block* again and again, as long as somebody takes it."""
        while not self._server.stopping.is_set():
            self.send(block)

    def wait(self, seconds: float) -> bool:
        """Pause; return whether all is to end."""
        return self._server.stopping.wait(seconds)

    def hold(self) -> None:
        """Say nothing until the other side goes."""
        with contextlib.suppress(OSError):
            while self.socket.recv(65536):
                pass

    def reset(self) -> None:
        """Break the connection off, once the other side has read what was sent.

        It had better be long done with that: what it has not read is lost with the connection.
        """
        self.wait(1.0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class HostileServer:
    """Serves each of *behaviours* at an address of its own, all at one port."""

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        self.behaviours = {
            f"127.66.{number // 200}.{number % 200 + 1}": behaviour
            for number, behaviour in enumerate(behaviours)
        }
        self.stopping = threading.Event()
        self.received: list[bytes] = []
        """Every request as it came."""
        self.forbidden: list[str] = []
        """Addresses outside of the network at which somebody was led here."""
        self.connections: dict[str, int] = {}
        self._open: set[socket.socket] = set()
        self._listeners = [socket.create_server(("", 0), backlog=1024)]
        self.port: int = self._listeners[0].getsockname()[1]
        with contextlib.suppress(OSError):  # a machine without IPv6
            self._listeners.append(
                socket.create_server(("::1", self.port), family=socket.AF_INET6, backlog=64)
            )

    def __enter__(self) -> Self:
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def urls(self) -> Iterator[tuple[Behaviour, str]]:
        """Yield every behaviour with each URL that leads to it."""
        for address, behaviour in self.behaviours.items():
            for path in behaviour.paths:
                yield behaviour, f"{behaviour.scheme}://{address}:{self.port}{path}"

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            address = connection.getsockname()[0]
            behaviour = self.behaviours.get(address)
            if behaviour is None:
                self.forbidden.append(address)
                return
            self.connections[address] = self.connections.get(address, 0) + 1
            behaviour.serve(Peer(connection, server=self, address=address))
        self._open.discard(connection)
