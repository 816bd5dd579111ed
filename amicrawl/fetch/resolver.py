"""Resolver: addresses of host names, asked for once at a time and kept as long as they hold.

A name that does not exist differs from a look-up that failed: the first is cached for ten seconds, the
second not at all, since it is worth a retry. Where answers come from is for a `AddressSource` to know:
`name_servers` asks over the network, `Threads` has a blocking function called, such as the system's.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from amicrawl.capture import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Lookup = Callable[[str], Sequence[str]]
    """Returns the addresses of a name, best first, or none. Raises socket.gaierror."""
    Done = Callable[["Answer", float], None]
    """Takes an answer and the seconds that it holds for; called on the loop."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
_CACHE_SIZE = 100_000


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A name without an address, and why."""

    failure: Failure
    detail: str


Answer = tuple[str, ...] | Unresolved

MISSING = Unresolved(Failure.NAME_NOT_FOUND, "The name has no address.")


class AddressSource(Protocol):
    """Where addresses come from."""

    def look_up(self, host: str, done: Done) -> None:
        """Begin to look *host* up, on the running loop, and call *done* with what is found."""

    def close(self) -> None:
        """Give everything back; what is under way may end without an answer."""


_LAST_LOOK = 0.05
_THIS_MACHINE = ("127.0.0.1", "::1")


class Resolver:
    """Answers for host names on the loop it is first used on.

    That a name is missing is kept for *keep_missing* seconds, its addresses as long as *source* says.
    """

    def __init__(self, source: AddressSource, *, keep_missing: float = 10.0) -> None:
        self._source = source
        self._keep_missing = keep_missing
        self._known: dict[str, tuple[Answer, float]] = {}
        self._asked: dict[str, asyncio.Future[Answer]] = {}

    async def addresses(self, host: str, *, within: float) -> Answer:
        """Return the addresses of *host*, or why there are none after at most *within* seconds."""
        known = self.known(host)
        if known is not None:
            return known
        answer = self._asked.get(host) or self._ask(host)
        await asyncio.wait({answer}, timeout=max(0, within))
        if not answer.done():
            # Where the process was stopped meanwhile, the answer is in a socket: it is read now.
            await asyncio.wait({answer}, timeout=_LAST_LOOK)
        if not answer.done():
            return Unresolved(Failure.NAME_LOOKUP_FAILED, "The look-up of the name took too long.")
        return answer.result()

    def known(self, host: str) -> Answer | None:
        """Return what is kept of *host*, without a look-up; None where nothing is."""
        # Names under localhost are this machine, whatever a name server says (RFC 6761, 6.3).
        if host.lower().rstrip(".").rpartition(".")[2] == "localhost":
            return _THIS_MACHINE
        known = self._known.get(host)
        return known[0] if known is not None and known[1] > time.monotonic() else None

    def close(self, why: str) -> None:
        """End every look-up as a failure."""
        for host in list(self._asked):
            self._answer(host, Unresolved(Failure.ENDED_HERE, why))
        self._source.close()

    def _ask(self, host: str) -> asyncio.Future[Answer]:
        future = self._asked[host] = asyncio.get_running_loop().create_future()

        def done(answer: Answer, holds: float) -> None:
            if isinstance(answer, Unresolved):
                holds = self._keep_missing if answer.failure is Failure.NAME_NOT_FOUND else 0
            if holds > 0:
                self._known.pop(host, None)
                self._known[host] = (answer, time.monotonic() + holds)
                if len(self._known) > _CACHE_SIZE:
                    del self._known[next(iter(self._known))]
            self._answer(host, answer)

        self._source.look_up(host, done)
        return future

    def _answer(self, host: str, answer: Answer) -> None:
        future = self._asked.pop(host, None)
        if future is not None and not future.done():
            future.set_result(answer)


def system_lookup(host: str) -> Sequence[str]:
    """Ask the system's resolver; this blocks."""
    # As bytes, so that Python's own rules for host names do not apply on top of the resolver's.
    found = socket.getaddrinfo(host.encode(), None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Threads:
    """A source that has *lookup* called in one of at most *count* threads.

    How long an answer holds it does not learn: *keep* seconds are assumed.
    """

    def __init__(self, lookup: Lookup, *, count: int = 128, keep: float = 60.0) -> None:
        self._lookup = lookup
        self._most = count
        self._keep = keep
        self._hosts: queue.SimpleQueue[tuple[str, Done, asyncio.AbstractEventLoop] | None]
        self._hosts = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0

    def look_up(self, host: str, done: Done) -> None:
        """Queue *host*; there is a thread for it unless all are busy."""
        self._busy += 1
        if self._busy > self._threads < self._most:
            self._threads += 1
            # A daemon: the end of the process must not wait for a name server that does not answer.
            threading.Thread(target=self._work, daemon=True, name="amicrawl-resolver").start()
        self._hosts.put((host, done, asyncio.get_running_loop()))

    def close(self) -> None:
        """Let the threads go; one that hangs ends with the process."""
        for _ in range(self._threads):
            self._hosts.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (asked := self._hosts.get()) is not None:
            host, done, loop = asked
            answer = self._answer_for(host)
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(self._looked_up, done, answer)

    def _looked_up(self, done: Done, answer: Answer) -> None:
        self._busy -= 1
        done(answer, self._keep)

    def _answer_for(self, host: str) -> Answer:
        try:
            return tuple(dict.fromkeys(self._lookup(host))) or MISSING
        except Exception as error:  # noqa: BLE001 - a look-up that was handed in may raise anything
            missing = isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME
            failure = Failure.NAME_NOT_FOUND if missing else Failure.NAME_LOOKUP_FAILED
            return Unresolved(failure, f"The look-up failed: {error}.")
