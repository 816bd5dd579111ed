"""libcurl's multi interface on the running asyncio loop.

libcurl says which sockets and which moment it waits for; the loop (asyncio's own or uvloop's) wakes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pycurl

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, TimerHandle

Ended = tuple[int, str]
"""libcurl's result code of a transfer, and what it says about it."""


class Multi:
    """Runs easy handles of libcurl until each has done what it was set up for."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._running: dict[Any, Future[Ended]] = {}
        self._watched: dict[int, int] = {}
        self._timer: TimerHandle | None = None
        self._armed_for = 0.0
        self._due: float | None = None
        self._multi: Any = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._wake_in)

    def run(self, easy: Any) -> Future[Ended]:
        """Start *easy* and return what will hold its outcome; it stays attached until `remove`."""
        future: Future[Ended] = self._loop.create_future()
        self._multi.add_handle(easy)
        self._running[easy] = future
        return future

    def remove(self, easy: Any) -> None:
        """Detach *easy*, ending what it was doing; a connection it holds is closed."""
        self._running.pop(easy, None)
        self._multi.remove_handle(easy)

    def abort(self, why: str) -> None:
        """End all that is running as a failure; the handles stay attached until `remove`."""
        for easy in list(self._running):
            self._finish(easy, (pycurl.E_ABORTED_BY_CALLBACK, why))

    def close(self) -> None:
        """Give back everything; no handle may be attached any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._multi.close()
        for fd in list(self._watched):
            self._unwatch(fd)

    def _watch(self, what: int, fd: int, _multi: Any, _data: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            self._unwatch(fd)
            return
        before = self._watched.get(fd, 0)
        wanted = what & pycurl.POLL_INOUT
        self._watched[fd] = wanted
        if wanted & pycurl.POLL_IN:
            self._loop.add_reader(fd, self._act, fd, pycurl.CSELECT_IN)
        elif before & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        if wanted & pycurl.POLL_OUT:
            self._loop.add_writer(fd, self._act, fd, pycurl.CSELECT_OUT)
        elif before & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)

    def _unwatch(self, fd: int) -> None:
        # A descriptor that was handed over is watched by its connection, and must stay so.
        wanted = self._watched.pop(fd, 0)
        if wanted & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        if wanted & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)

    def _wake_in(self, milliseconds: int) -> None:
        if milliseconds < 0:
            self._due = None
            return
        self._due = self._loop.time() + milliseconds / 1000
        # An earlier timer finds out by itself that nothing is due; most deadlines only move away.
        if self._timer is None or self._due < self._armed_for:
            self._arm(self._due)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = when
        self._timer = self._loop.call_at(when, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due > self._loop.time() + _CLOCK_STEP:
            self._arm(self._due)
            return
        self._due = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _act(self, fd: int, events: int) -> None:
        self._multi.socket_action(fd, events)
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for easy in done:
                self._finish(easy, (pycurl.E_OK, ""))
            for easy, code, text in failed:
                self._finish(easy, (code, text))

    def _finish(self, easy: Any, ended: Ended) -> None:
        future = self._running.pop(easy, None)
        if future is not None and not future.done():
            future.set_result(ended)


# Loops fire a timer up to this much early.
_CLOCK_STEP = 0.001
