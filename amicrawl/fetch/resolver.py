"""Resolver: addresses of host names, requested once at a time and kept as long as they hold.

A name that does not exist differs from a look-up that failed: the first is cached for ten seconds, the
second not at all, since it is worth a retry. Where results come from is for a `AddressSource` to know:
`name_servers` queries over the network, `Threads` has a blocking function called, such as the system's.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from amicrawl.capture import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Lookup = Callable[[str], Sequence[str]]
    """Returns the addresses of a name, best first, or none. Raises socket.gaierror."""
    Done = Callable[["LookupResult", float], None]
    """Takes a result and the seconds that it holds for; called on the loop."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
_CACHE_SIZE = 100_000


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A name without an address, and why."""

    failure: Failure
    detail: str


LookupResult = tuple[str, ...] | Unresolved

MISSING = Unresolved(Failure.NAME_NOT_FOUND, "The name has no address.")


class AddressSource(Protocol):
    """Where addresses come from."""

    def look_up(self, host: str, done: Done) -> None:
        """Begin to look *host* up, on the running loop, and call *done* with what is found."""

    def close(self) -> None:
        """Give everything back; what is under way may end without a result."""


_LAST_LOOK = 0.05
_THIS_MACHINE = ("127.0.0.1", "::1")


class Resolver:
    """Results of look-ups on the loop it is first used on.

    That a name is missing is kept for *keep_missing* seconds, its addresses as long as *source* says.
    """

    def __init__(self, source: AddressSource, *, keep_missing: float = 10.0) -> None:
        self._source = source
        self._keep_missing = keep_missing
        self._known: OrderedDict[str, tuple[LookupResult, float]] = OrderedDict()
        self._pending: dict[str, asyncio.Future[LookupResult]] = {}

    async def addresses(self, host: str, *, within: float) -> LookupResult:
        """Return the addresses of *host*, or why there are none after at most *within* seconds."""
        known = self.known(host)
        if known is not None:
            return known
        future = self._pending.get(host) or self._look_up(host)
        await asyncio.wait({future}, timeout=max(0, within))
        if not future.done():
            # Where the process was stopped meanwhile, the response is in a socket: it is read now.
            await asyncio.wait({future}, timeout=_LAST_LOOK)
        if not future.done():
            return Unresolved(Failure.NAME_LOOKUP_FAILED, "The look-up of the name took too long.")
        return future.result()

    def known(self, host: str) -> LookupResult | None:
        """Return what is kept of *host*, without a look-up; None where nothing is."""
        # Names under localhost are this machine, whatever a name server says (RFC 6761, 6.3).
        if host.lower().rstrip(".").rpartition(".")[2] == "localhost":
            return _THIS_MACHINE
        known = self._known.get(host)
        return known[0] if known is not None and known[1] > time.monotonic() else None

    def close(self, why: str) -> None:
        """End every look-up as a failure."""
        for host in list(self._pending):
            self._finish(host, Unresolved(Failure.ENDED_HERE, why))
        self._source.close()

    def _look_up(self, host: str) -> asyncio.Future[LookupResult]:
        future = self._pending[host] = asyncio.get_running_loop().create_future()

        def done(result: LookupResult, holds: float) -> None:
            if isinstance(result, Unresolved):
                holds = self._keep_missing if result.failure is Failure.NAME_NOT_FOUND else 0
            if holds > 0:
                self._known.pop(host, None)
                self._known[host] = (result, time.monotonic() + holds)
                if len(self._known) > _CACHE_SIZE:
                    self._known.popitem(last=False)
            self._finish(host, result)

        self._source.look_up(host, done)
        return future

    def _finish(self, host: str, result: LookupResult) -> None:
        future = self._pending.pop(host, None)
        if future is not None and not future.done():
            future.set_result(result)


def system_lookup(host: str) -> Sequence[str]:
    """Query the system's resolver; this blocks."""
    # As bytes, so that Python's own rules for host names do not apply on top of the resolver's.
    found = socket.getaddrinfo(host.encode(), None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Threads:
    """A source that has *lookup* called in one of at most *count* threads.

    How long a result holds it does not learn: *keep* seconds are assumed.
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
        if self._busy >= self._threads < self._most:
            # A daemon: the end of the process must not wait for a name server that does not respond.
            thread = threading.Thread(target=self._work, daemon=True, name="amicrawl-resolver")
            try:
                thread.start()
            except RuntimeError:
                # The system has none left. Those that there are take the name, if there are any.
                if not self._threads:
                    done(Unresolved(Failure.ENDED_HERE, "The system has no thread for a look-up."), 0)
                    return
            else:
                self._threads += 1
        self._busy += 1
        self._hosts.put((host, done, asyncio.get_running_loop()))

    def close(self) -> None:
        """Let the threads go; one that hangs ends with the process."""
        for _ in range(self._threads):
            self._hosts.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (wanted := self._hosts.get()) is not None:
            host, done, loop = wanted
            result = self._result_for(host)
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(self._looked_up, done, result)

    def _looked_up(self, done: Done, result: LookupResult) -> None:
        self._busy -= 1
        done(result, self._keep)

    def _result_for(self, host: str) -> LookupResult:
        try:
            return tuple(dict.fromkeys(self._lookup(host))) or MISSING
        except Exception as error:  # noqa: BLE001 - a look-up that was handed in may raise anything
            missing = isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME
            failure = Failure.NAME_NOT_FOUND if missing else Failure.NAME_LOOKUP_FAILED
            return Unresolved(failure, f"The look-up failed: {error}.")
