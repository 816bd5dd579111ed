"""The stream: server-sent events to one browser, as fast as it reads and no faster.

What waits is in a `Viewer`, which is bounded; here it is framed and sent. A stream ends when its browser
goes away, does not read for a minute, or may not look any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from amicrawl.dashboard.problems import Problem
from amicrawl.dashboard.viewer import TYPES, Wish
from amicrawl.jobs.ident import is_ident

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from amicrawl.dashboard.operations import Call
    from amicrawl.dashboard.viewer import Event, Viewer

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent."""
_MOST_JOBS = 100
_PATIENCE = 60.0
_AT_MOST_EVERY = 0.2
_CHECKED_EVERY = 30.0
_EVERY_RUNNING = "*"


def events(_call: Call) -> Any:
    """Tell what changes, as server-sent events."""
    raise AssertionError("it is served by `stream`")


def stream(call: Call) -> Response:
    """Return the answer that goes on until the browser goes away."""
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


def _framed(events_: list[Event], last: str) -> bytes:
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
