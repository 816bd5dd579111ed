"""Name servers, queried over the network by c-ares on the event loop: thousands of names a second.

They are those of `/etc/resolv.conf`, unless others are given. The hosts file and the search rules of the
system are followed, and addresses hold as long as their records do (TTL). That a name does not exist is
believed only of a name server that says so; no response, a refusal or a failure of one is a failed
look-up.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pycares
from pycares import errno as ares

from amicrawl.capture import Failure
from amicrawl.config import SYSTEM
from amicrawl.fetch.resolver import MISSING, Resolver, Threads, Unresolved, system_lookup
from amicrawl.socket_address import socket_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.fetch.resolver import Done

_PORT = 53
_MOST_SERVERS = 8
_LONGEST_TTL = 24 * 3600.0
_SHORTEST_TTL = 1.0  # or a record without one would be queried by every request at once
_SHORTEST_SLEEP, _LONGEST_SLEEP = 0.02, 1.0
_RECEIVE_BUFFER = 1024**2
_DOES_NOT_EXIST = frozenset({ares.ARES_ENOTFOUND, ares.ARES_ENODATA, ares.ARES_EBADNAME})


def make_resolver(names: Sequence[str] = (), *, timeout: float = 1.5, tries: int = 3) -> Resolver:
    """Return what looks names up at the servers *names*, `192.0.2.53`, `192.0.2.53:5353` or `[::1]:53`.

    None given: those of the system; `system`: its resolver. A response is waited for *timeout* seconds,
    then the query is sent again, *tries* times in all. Raises ValueError for what is not an address.
    """
    if list(names) == [SYSTEM]:
        return Resolver(Threads(system_lookup))
    return Resolver(NameServers([_named(name) for name in names], timeout=timeout, tries=tries))


class NameServers:
    """A source of addresses: the name servers *servers*, or those of the system where there are none."""

    def __init__(self, servers: Sequence[str], *, timeout: float, tries: int) -> None:
        self._servers = list(servers)[:_MOST_SERVERS]
        self._timeout = timeout
        self._tries = tries
        self._channel: pycares.Channel | None = None
        self._loop: asyncio.AbstractEventLoop
        self._watched: set[int] = set()
        self._pending = 0
        self._timer: asyncio.TimerHandle | None = None

    def look_up(self, host: str, done: Done) -> None:
        """Query the IPv4 and IPv6 addresses of *host*."""

        def looked_up(result: Any, error: int | None) -> None:
            self._pending -= 1
            if error is not None:
                done(_failed(error), 0)
                return
            nodes = [node for node in result.nodes if node.family in (socket.AF_INET, socket.AF_INET6)]
            addresses = tuple(dict.fromkeys(_text(node.addr[0]) for node in nodes))
            ttl = min((float(node.ttl) for node in nodes), default=0)
            done(addresses or MISSING, max(_SHORTEST_TTL, min(ttl, _LONGEST_TTL)))

        self._pending += 1
        try:
            channel = self._channel or self._open()
            channel.getaddrinfo(host, None, type=socket.SOCK_STREAM, callback=looked_up)
        except (pycares.AresError, UnicodeError) as error:
            self._pending -= 1
            done(Unresolved(Failure.NAME_LOOKUP_FAILED, f"The look-up failed: {error}."), 0)
            return
        self._sleep()

    def close(self) -> None:
        """Close the sockets."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._channel is not None:
            channel, self._channel = self._channel, None
            channel.cancel()
            for fd in tuple(self._watched):
                self._watch(fd, readable=False, writable=False)
            channel.close()

    def _open(self) -> pycares.Channel:
        self._loop = asyncio.get_running_loop()
        self._channel = pycares.Channel(
            servers=self._servers or None,
            timeout=self._timeout,
            tries=self._tries,
            sock_state_cb=lambda fd, readable, writable: self._watch(
                fd, readable=readable, writable=writable
            ),
            socket_receive_buffer_size=_RECEIVE_BUFFER,
        )
        return self._channel

    def _watch(self, fd: int, *, readable: bool, writable: bool) -> None:
        if fd in self._watched:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            self._watched.discard(fd)
        if readable or writable:
            self._watched.add(fd)
        if readable:
            self._loop.add_reader(fd, self._act, fd, pycares.ARES_SOCKET_BAD)
        if writable:
            self._loop.add_writer(fd, self._act, pycares.ARES_SOCKET_BAD, fd)

    def _act(self, readable: int, writable: int) -> None:
        if self._channel is not None:
            self._channel.process_fd(readable, writable)

    def _sleep(self) -> None:
        """Have queries without a response in time sent again, as long as there are any."""
        if self._timer is None and self._channel is not None and self._pending:
            due: float = self._channel.timeout()  # type: ignore[no-untyped-call]
            wait = max(_SHORTEST_SLEEP, min(due, _LONGEST_SLEEP))
            self._timer = self._loop.call_later(wait, self._wake)

    def _wake(self) -> None:
        self._timer = None
        # What has come is read before the time of a question is up: this process may have been stopped.
        for fd in tuple(self._watched):
            self._act(fd, pycares.ARES_SOCKET_BAD)
        self._act(pycares.ARES_SOCKET_BAD, pycares.ARES_SOCKET_BAD)
        self._sleep()


def _failed(error: int) -> Unresolved:
    reason = _text(ares.strerror(error))
    if error in _DOES_NOT_EXIST:
        return Unresolved(Failure.NAME_NOT_FOUND, f"{reason}.")
    return Unresolved(Failure.NAME_LOOKUP_FAILED, f"The look-up failed: {reason}.")


def _text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("ascii")


def _named(server: str) -> str:
    """Return *server* as c-ares wants it, address and port."""
    host, port = socket_address(server, port=_PORT)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
