"""Resolver: addresses of host names, looked up by the system in threads.

The system's look-up blocks, and a dead name server holds it for half a minute. libcurl would queue names
behind twenty of those. Here there are more threads, a name asked for twice at once is looked up once,
and a name that does not exist is told from a name server that does not answer: where the system says
that there is no such name, a second opinion is asked for, and only if both agree the name is missing.

The system does not say how long an answer holds. Addresses are kept for a fixed time, a minute, and that
a name is missing for ten seconds; that a look-up failed is not kept, since it is worth another attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.capture import Failure
from amicrawl.fetch.second_opinion import Existence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Lookup = Callable[[str], Sequence[str]]
    """Returns the addresses of a name, best first, or none. Raises socket.gaierror."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
_CACHE_SIZE = 20_000


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A name without an address, and why."""

    failure: Failure
    detail: str


Answer = tuple[str, ...] | Unresolved


def system_lookup(host: str) -> Sequence[str]:
    """Ask the system's resolver; this blocks."""
    # Names under localhost are this machine, whatever the system's tables say (RFC 6761).
    if host.lower().rstrip(".").rpartition(".")[2] == "localhost":
        host = "localhost"
    # As bytes, so that Python's own rules for host names do not apply on top of the resolver's.
    found = socket.getaddrinfo(host.encode(), None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Resolver:
    """Answers for host names on the loop it is first used on.

    *lookup* is called in one of at most *threads* threads, and so is *second*, where *lookup* finds that
    there is no such name. What is found is kept for *keep* seconds, that a name is missing for
    *keep_missing*.
    """

    def __init__(
        self, lookup: Lookup = system_lookup, *, second: Callable[[str], Existence] | None = None,
        threads: int = 128, keep: float = 60.0, keep_missing: float = 10.0,
    ) -> None:  # fmt: skip
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lookup = lookup
        self._second = second
        self._max_threads = threads
        self._keep = keep
        self._keep_missing = keep_missing
        self._known: dict[str, tuple[Answer, float]] = {}
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads = 0
        self._busy = 0

    async def addresses(self, host: str, *, within: float) -> Answer:
        """Return the addresses of *host*, or why there are none after at most *within* seconds."""
        known = self.known(host)
        if known is not None:
            return known
        answer = self._asked.get(host) or self._ask(host)
        await asyncio.wait({answer}, timeout=max(0, within))
        if not answer.done():
            return Unresolved(Failure.NAME_LOOKUP_FAILED, "The look-up of the name took too long.")
        return answer.result()

    def known(self, host: str) -> Answer | None:
        """Return what is kept of *host*, without asking anybody; None where nothing is."""
        known = self._known.get(host)
        return known[0] if known is not None and known[1] > time.monotonic() else None

    def close(self, why: str) -> None:
        """End every look-up as a failure and let the threads go; one that hangs ends with us."""
        for host in list(self._asked):
            self._answer(host, Unresolved(Failure.OTHER, why))
        for _ in range(self._threads):
            self._names.put(None)
        self._threads = 0

    def _ask(self, host: str) -> asyncio.Future[Answer]:
        self._loop = self._loop or asyncio.get_running_loop()
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._asked[host] = future
        self._busy += 1
        if self._busy > self._threads < self._max_threads:
            self._threads += 1
            # A daemon: the end of the process must not wait for a name server that does not answer.
            threading.Thread(target=self._work, daemon=True, name="amicrawl-resolver").start()
        self._names.put(host)
        return future

    def _work(self) -> None:
        assert self._loop is not None
        while (host := self._names.get()) is not None:
            answer = self._answer_for(host)
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                self._loop.call_soon_threadsafe(self._looked_up, host, answer)

    def _answer_for(self, host: str) -> Answer:
        """Ask whoever must be asked about *host*; this blocks."""
        answer: Answer
        try:
            addresses = tuple(dict.fromkeys(self._lookup(host)))
            answer = addresses or Unresolved(Failure.NAME_NOT_FOUND, "The name has no address.")
        except Exception as error:  # noqa: BLE001 - a look-up that was handed in may raise anything
            answer = Unresolved(_failure(error), f"The look-up failed: {error}.")
        if isinstance(answer, Unresolved) and answer.failure is Failure.NAME_NOT_FOUND:
            return self._doubted(host, answer)
        return answer

    def _doubted(self, host: str, missing: Unresolved) -> Unresolved:
        """Return what is to be said of *host*, which is *missing* by the first look-up."""
        if self._second is None:
            return missing
        try:
            existence = self._second(host)
        except Exception:  # noqa: BLE001 - as above
            existence = Existence.UNKNOWN
        if existence is Existence.MISSING:
            return missing
        detail = f"The system says that there is no such name; asked directly, {existence.value}."
        return Unresolved(Failure.NAME_LOOKUP_FAILED, detail)

    def _looked_up(self, host: str, answer: Answer) -> None:
        self._busy -= 1
        keep = self._keep
        if isinstance(answer, Unresolved):
            keep = self._keep_missing if answer.failure is Failure.NAME_NOT_FOUND else 0
        if keep > 0:
            self._known.pop(host, None)
            self._known[host] = (answer, time.monotonic() + keep)
            if len(self._known) > _CACHE_SIZE:
                del self._known[next(iter(self._known))]
        self._answer(host, answer)

    def _answer(self, host: str, answer: Answer) -> None:
        future = self._asked.pop(host, None)
        if future is not None:
            future.set_result(answer)


def _failure(error: Exception) -> Failure:
    if isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME:
        return Failure.NAME_NOT_FOUND
    return Failure.NAME_LOOKUP_FAILED
