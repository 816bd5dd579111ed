"""The stream: server-sent events to one browser, as fast as it reads and no faster.

What waits to be sent is in a `Viewer`, which is bounded. State (figures, jobs) is kept once for each
thing, so a viewer that reads slowly gets the newest and nothing in between. Log lines have a bound in
number and in bytes: the oldest are dropped, and counted. Everything arrives as encoded JSON, made once
for all viewers.

A stream ends when its browser disconnects, does not read for a minute, or is no longer signed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.database import is_ident

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from starlette.types import Receive, Scope, Send

    from amicrawl.fleet.dashboard.operations import Call

MOST_LINES = 2000
MOST_BYTES = 4 * 1024**2
TYPES = frozenset({"download", "ignore", "stdout", "unknown"})
HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent."""
_MOST_JOBS = 100
_PATIENCE = 60.0
_AT_MOST_EVERY = 0.2
_CHECKED_EVERY = 30.0
_EVERY_RUNNING = "*"


class LogLine(NamedTuple):
    """One log entry, ready to be sent."""

    number: int
    """Grows with every line of every job."""
    type: str
    data: bytes


class StreamEvent(NamedTuple):
    """One server-sent event, without its id."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Wish:
    """What a viewer wants to see."""

    jobs: frozenset[str] = frozenset()
    """Jobs of which it wants details and log."""
    all_logs: bool = False
    """Whether it wants the log of every job that runs."""
    types: frozenset[str] = TYPES
    """Types of log lines that it wants."""
    replay: int = 200
    """Lines of the past that it wants first."""
    after: int | None = None
    """The number of the last line that it has had from us, where it comes back."""


@dataclass(slots=True)
class _Logs:
    lines: deque[tuple[str, LogLine]] = field(default_factory=deque)
    size: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    reset: set[str] = field(default_factory=set)


class Viewer:
    """What is on its way to one browser. Filled by one thread, emptied by another."""

    def __init__(self, wish: Wish, *, wake: Callable[[], None]) -> None:
        """*wake* is called, from any thread, when there is something where there was nothing."""
        self.wish = wish
        self._wake = wake
        self._lock = threading.Lock()
        self._events: dict[tuple[str, str], bytes] = {}
        self._totals = b""
        self._jobs: dict[str, bytes] = {}
        self._gone: set[str] = set()
        self._is_full = False
        self._logs = _Logs()
        self._last = wish.after or 0
        self._is_awake = False
        self.is_welcome = False
        """Whether it has received the state that everything after builds on."""
        self.is_over = False
        """Whether there is nothing more to come."""

    def wants_log(self, ident: str) -> bool:
        """Tell whether it is to get the log of *ident*."""
        return self.wish.all_logs or ident in self.wish.jobs

    def tell(self, name: str, data: bytes, *, about: str = "") -> None:
        """Have the event *name* sent, in place of one *about* the same that still waits."""
        with self._lock:
            # In its place at the end: an older one about something else must not come after it.
            self._events.pop((name, about), None)
            self._events[name, about] = data
        self._rouse()

    def tell_overview(
        self, totals: bytes, jobs: Mapping[str, bytes], gone: Iterable[str], *, is_full: bool
    ) -> None:
        """Have the figures sent, and *jobs* by ident: all if it *is_full*, or what changed."""
        with self._lock:
            if is_full:
                self._jobs, self._gone, self._is_full = {}, set(), True
            self._totals = totals
            for ident in gone:
                self._jobs.pop(ident, None)
                self._gone.add(ident)
            self._jobs.update(jobs)
            self._gone -= jobs.keys()
        self._rouse()

    def tell_log(
        self, ident: str, lines: Iterable[LogLine], *, reset: bool = False, skipped: int = 0
    ) -> None:
        """Have *lines* of *ident* sent; *skipped* lines before them are known to be lost."""
        with self._lock:
            logs = self._logs
            if reset:
                kept = [(of, line) for of, line in logs.lines if of != ident]
                logs.lines = deque(kept)
                logs.size = sum(len(line.data) for _, line in kept)
                logs.dropped.pop(ident, None)
                logs.reset.add(ident)
            logs.dropped[ident] += skipped
            for line in lines:
                if line.type in self.wish.types:
                    logs.lines.append((ident, line))
                    logs.size += len(line.data)
            while logs.lines and (len(logs.lines) > MOST_LINES or logs.size > MOST_BYTES):
                of, line = logs.lines.popleft()
                logs.size -= len(line.data)
                logs.dropped[of] += 1
        self._rouse()

    def end(self) -> None:
        """Say that nothing more will come."""
        self.is_over = True
        self._rouse()

    def take(self) -> tuple[list[StreamEvent], int]:
        """Return what waits, and the number of the last line in it or before."""
        with self._lock:
            self._is_awake = False
            events, self._events = self._events, {}
            totals, self._totals = self._totals, b""
            jobs, self._jobs = self._jobs, {}
            gone, self._gone = self._gone, set()
            is_full, self._is_full = self._is_full, False
            logs, self._logs = self._logs, _Logs()
            if logs.lines:
                self._last = max(self._last, logs.lines[-1][1].number)
            last = self._last
        taken = []
        if totals:
            taken.append(StreamEvent("overview", _overview(totals, jobs, gone, is_full=is_full)))
        taken += [StreamEvent(name, data) for (name, _), data in events.items()]
        # What a job said last comes before the news that it has ended.
        ended = [event for event in taken if event.name == "ended"]
        return [*(e for e in taken if e.name != "ended"), *_log_events(logs), *ended], last

    def _rouse(self) -> None:
        with self._lock:
            was_awake, self._is_awake = self._is_awake, True
        if not was_awake:
            self._wake()


def _overview(totals: bytes, jobs: Mapping[str, bytes], gone: Iterable[str], *, is_full: bool) -> bytes:
    listed = b",".join(jobs.values())
    named = b",".join(b'"%s"' % ident.encode("ascii") for ident in gone)
    full = b"true" if is_full else b"false"
    return b'{"full":%s,"totals":%s,"jobs":[%s],"gone":[%s]}' % (full, totals, listed, named)


def _log_events(logs: _Logs) -> list[StreamEvent]:
    by_job: dict[str, list[bytes]] = {ident: [] for ident in logs.reset}
    for ident, line in logs.lines:
        by_job.setdefault(ident, []).append(line.data)
    for ident, dropped in logs.dropped.items():
        if dropped:
            by_job.setdefault(ident, [])
    return [
        StreamEvent(
            "log",
            b'{"ident":"%s","reset":%s,"dropped":%d,"entries":[%s]}'
            % (
                ident.encode("ascii"),
                b"true" if ident in logs.reset else b"false",
                logs.dropped[ident],
                b",".join(lines),
            ),
        )
        for ident, lines in by_job.items()
    ]


def events(_call: Call) -> Any:
    """Send changes as server-sent events."""
    raise AssertionError("it is served by `stream`")


def stream(call: Call) -> Response:
    """Return the response, which lasts until the browser disconnects."""
    return _Stream(call, _wish_of(call))


class _Stream(Response):
    media_type = "text/event-stream"

    def __init__(self, call: Call, wish: Wish) -> None:
        super().__init__()
        self._call = call
        self._wish = wish
        # A length would end it, and proxies that gather would hold it back.
        del self.headers["content-length"]
        self.headers["x-accel-buffering"] = "no"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        hub = self._call.site.hub
        loop, awake = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                loop.call_soon_threadsafe(awake.set)

        viewer = hub.join(self._wish, wake=wake)
        if viewer is None:
            problem = Problem(503, "There are too many viewers.", headers={"retry-after": "30"})
            await problem.response()(scope, receive, send)
            return
        sending = asyncio.ensure_future(self._send(viewer, awake, send))
        listening = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({sending, listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hub.leave(viewer)
            for task in (sending, listening):
                task.cancel()
            results = await asyncio.gather(sending, listening, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError | TimeoutError):
                raise result

    async def _send(self, viewer: Viewer, awake: asyncio.Event, send: Send) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        epoch = self._call.site.hub.epoch
        hello = orjson.dumps({"epoch": epoch, "time": time.time()})
        await _push(send, b"retry: 2000\nevent: hello\ndata: " + hello + b"\n\n")
        checked = time.monotonic()
        while not viewer.is_over:
            try:
                await asyncio.wait_for(awake.wait(), HEARTBEAT)
            except TimeoutError:
                await _push(send, b": still here\n\n")
            awake.clear()
            events_, last = viewer.take()
            if events_:
                await _push(send, _framed(events_, f"{epoch}-{last}"))
            if time.monotonic() - checked > _CHECKED_EVERY:
                checked = time.monotonic()
                if not await run_in_threadpool(self._may_look):
                    break
            await asyncio.sleep(_AT_MOST_EVERY)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _may_look(self) -> bool:
        try:
            return self._call.site.visitors.of(self._call.request) is not None
        except Problem:
            return False


def _wish_of(call: Call) -> Wish:
    named = list(filter(None, call.query.jobs.split(",")))
    idents = [ident for ident in named if ident != _EVERY_RUNNING]
    if len(idents) > _MOST_JOBS or not all(map(is_ident, idents)):
        raise Problem(422, f"jobs: up to {_MOST_JOBS} idents with commas between, or `*`.")
    return Wish(
        jobs=frozenset(idents),
        all_logs=_EVERY_RUNNING in named,
        types=types_in(call.query.types),
        replay=call.query.replay,
        after=_after(call.request.headers.get("last-event-id", ""), call.site.hub.epoch),
    )


def types_in(text: str) -> frozenset[str]:
    """Return the types of log lines in *text*, all where it is empty; Problem where one is none."""
    types = frozenset(filter(None, text.split(",")))
    if not types <= TYPES:
        raise Problem(422, f"A type is one of {', '.join(sorted(TYPES))}.")
    return types or TYPES


def _after(last: str, epoch: str) -> int | None:
    """Return the number of the last line that a browser has had from this very hub."""
    was, _, number = last.partition("-")
    is_number = number.isascii() and number.isdigit() and len(number) < 16
    return int(number) if was == epoch and is_number else None


def _framed(events_: list[StreamEvent], last: str) -> bytes:
    frames = [b"event: %s\ndata: %s\n" % (event.name.encode(), event.data) for event in events_]
    # Only the last one of a batch has an id: a client that has it has them all.
    frames[-1] += b"id: %s\n" % last.encode()
    return b"\n".join(frames) + b"\n"


async def _push(send: Send, content: bytes) -> None:
    async with asyncio.timeout(_PATIENCE):
        await send({"type": "http.response.body", "body": content, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
