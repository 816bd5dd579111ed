"""Exchange: one request and its response on one connection, under limits of time and size."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from amicrawl.capture import Failure, Truncation
from amicrawl.errors import OutputError
from amicrawl.fetch.connection import Conversation
from amicrawl.fetch.failures import one_line
from amicrawl.fetch.response import NOT_HTTP, More, ResponseReader

if TYPE_CHECKING:
    from asyncio import Future

    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.request import Message
    from amicrawl.fetch.response import Head

_PIECE = 64 * 1024
# Where the loop is less late than this, the system is not queried for when bytes came: it costs some 2
# us.
_WORTH_A_CALL = 0.02
_LEFT_OVER = "What came on the kept connection was left over of the response before."
_WITHOUT_RESPONSE: dict[Truncation | None, Failure] = {
    Truncation.TIME: Failure.RESPONSE_TIMEOUT,
    Truncation.UNSPECIFIED: Failure.ENDED_HERE,
}
"""What an exchange that ended so has come to where nothing else came; a reset in all other cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds one exchange. Times are seconds and sizes bytes.

    What a limit cuts is kept and marked; the connection is then closed.
    """

    connect_timeout: float = 20.0
    """Time for name look-up, connection and TLS handshake."""
    timeout: float = 120.0
    """Time for the whole exchange, look-up included."""
    min_rate: int = 64
    """Bytes per second, both ways together, that a connection must average; 0: no such rule."""
    min_rate_time: float = 30.0
    """Time over which that average is taken, again and again from the moment the connection stands."""
    max_header: int = 256 * 1024
    """Bytes of the head (interim responses included) that are kept."""
    max_body: int = 64 * 1024**2
    """Bytes behind the head that are kept."""
    spool_above: int = 1024**2
    """Size above which a body moves from memory to a temporary file."""
    spool_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Directory of those files; they never have a name there."""
    linger: float = 0.25
    """Silence after which a response that is complete, but says that the server will close the
    connection or has broken a rule, is taken to be over. Surplus bytes that come by then are kept."""
    idle: float = 5.0
    """Silence after which a response that contradicts itself about its end is taken to be over."""


class Lateness:
    """How late the loop is with what it has to do."""

    __slots__ = ("due", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        """How late it was with the last look at the clock."""
        self.due = inf
        """When the next look is due."""


class Watcher(Protocol):
    """Looks on while a response is received, and may end it; what came is then the response."""

    def head(self, head: Head) -> bool:
        """Take the final header section; return True to end the exchange."""

    def body(self, data: bytes) -> bool:
        """Take the next bytes of the payload, chunked coding removed; return True to end it all."""


class Exchange:
    """Sends a message, receives the response, and knows when to stop.

    `ended` is done when the exchange is over, successful or not; the attributes say how. It raises
    nothing but OutputError, where the body cannot be spooled, and what *watcher* raises. Where the
    loop is late, the system is queried for when bytes came. With
    *first_byte_within*, the first byte has to come so many seconds after the last one was sent. Moments
    are those of `time.monotonic`. `wake` must be called when `wake_at` has passed.
    """

    __slots__ = (
        "_deadline",
        "_first_byte_within",
        "_is_kept",
        "_lateness",
        "_limits",
        "_message",
        "_quiet_by",
        "_unsent",
        "_unsolicited",
        "_watcher",
        "_window_bytes",
        "_window_start",
        "began",
        "connection",
        "detail",
        "ended",
        "failure",
        "first_byte",
        "last_byte",
        "reader",
        "reusable",
        "sent",
        "sent_at",
        "started",
        "truncated",
        "wake_at",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, message: Message, *, limits: Limits, deadline: float,
        ended: Future[None], max_body: int, lateness: Lateness, first_byte_within: float | None = None,
        watcher: Watcher | None = None,
    ) -> None:  # fmt: skip
        self.ended = ended
        self.reader = ResponseReader(
            message.method, max_header=limits.max_header, max_body=max_body,
            spool_above=limits.spool_above, spool_dir=limits.spool_dir, pieces=watcher is not None,
        )  # fmt: skip
        self.connection = connection
        self.started = 0.0
        """The Unix time at which the first byte of the message was sent."""
        self.began = 0.0
        """The same moment on the clock of the limits."""
        self.sent = 0
        """Bytes of the message that were handed to the system; see `count_sent`."""
        self.sent_at: float | None = None
        """When the last byte of the message was taken for sending."""
        self.first_byte: float | None = None
        self.last_byte: float | None = None
        self.truncated: Truncation | None = None
        self.failure: Failure | None = None
        self.detail = ""
        self.reusable = False
        """Whether the connection may serve another request."""
        self.wake_at = inf
        self._message = message
        self._is_kept = False
        self._unsolicited = False
        self._unsent = memoryview(b"")
        self._limits = limits
        self._deadline = deadline
        self._first_byte_within = first_byte_within
        self._watcher = watcher
        self._lateness = lateness
        self._quiet_by: float | None = None
        self._window_start = 0.0
        self._window_bytes = 0

    def start(self, at: float) -> None:
        """Begin; it is *at*, in Unix time."""
        self.started, connection, early = at, self.connection, b""
        self.began = self._window_start = time.monotonic()
        if isinstance(connection.receiver, Conversation):
            early = connection.receiver.take()
            self._unsolicited = bool(early) or connection.spoke_first()
        else:
            self._is_kept = True
        connection.receiver = self
        if not connection.open:
            self.closed("The connection was lost before the request was sent.")
            return
        data = self._message.data
        if len(data) > _PIECE:
            self._unsent = memoryview(data)
            self.writable()
        else:
            self.sent = len(data)
            connection.write(data)
            if not connection.blocked:
                self.sent_at = self.began
            self._arm()
        if early:
            self.received(early)

    def count_sent(self) -> int:
        """Return how many bytes of the message the system took, as far as that is known."""
        return max(0, self.sent - self.connection.backlog)

    def abandon(self, detail: str) -> None:
        """End it from outside, unless it is over; what came is kept."""
        try:
            if self.first_byte is None:
                self._fail(Failure.ENDED_HERE, detail)
            else:
                self._finish(Truncation.UNSPECIFIED)
        except OutputError as error:
            self.break_off(error)

    def writable(self) -> None:
        """Send on, where not everything is sent yet."""
        if self.ended.done():
            return
        while self._unsent and self.connection.open and not self.connection.backlog:
            piece, self._unsent = self._unsent[:_PIECE], self._unsent[_PIECE:]
            self.sent += len(piece)
            self.connection.write(piece)
        if self.sent_at is None and not self._unsent and not self.connection.backlog:
            self.sent_at = time.monotonic()
        self._arm()

    def received(self, data: bytes) -> None:
        """Take bytes of the response, and find out whether that is all."""
        if self.ended.done():
            self.reusable = False
            return
        now = time.monotonic()
        if self.first_byte is None:
            late = self._lateness
            if late.seconds > _WORTH_A_CALL or now - late.due > _WORTH_A_CALL:
                # The server must not be blamed for a busy loop.
                now = max(self.began, now - self.connection.waited())
            self.first_byte = now
        self.last_byte = now
        try:
            if self._watcher is None:
                self._judge(self.reader.feed(data))
            elif not self._take(data, self._watcher):
                self._judge(self.reader.more())
        except Exception as error:  # noqa: BLE001 - the caller of `fetch` has to see it, not the loop
            self.break_off(error)

    def closed(self, detail: str | None) -> None:
        """Take note that the connection has ended."""
        if self.ended.done():
            self.reusable = False
            return
        try:
            if self.first_byte is not None:
                self._finish(self.reader.end(orderly=detail is None))
            elif detail is None:
                self._fail(
                    Failure.EMPTY_RESPONSE, "The server closed the connection without a response."
                )
            else:
                detail, failure = self.connection.fault or (detail, Failure.CONNECTION_RESET)
                self._fail(failure, one_line(detail))
        except OutputError as error:
            self.break_off(error)

    def wake(self, now: float) -> None:
        """Find out whether time ends the exchange at *now*."""
        if self.ended.done():
            return
        try:
            self._look_at_the_clock(now)
        except OutputError as error:
            self.break_off(error)

    def postpone(self, seconds: float) -> None:
        """Let no limit count *seconds* that have just passed."""
        self._deadline += seconds
        self._window_start += seconds
        if self.sent_at is not None:
            self.sent_at += seconds
        if self._quiet_by is not None:
            self._quiet_by += seconds
        self.wake_at += seconds

    def _take(self, data: bytes, watcher: Watcher) -> bool:
        """Read *data* and show it to *watcher*; return whether that has ended the exchange."""
        reader = self.reader
        had_head = reader.section is not None
        reader.feed(data)
        if reader.section is None or (self._is_kept and reader.section is NOT_HTTP):
            return False
        stop = not had_head and watcher.head(reader.section)
        pieces = reader.taken()
        stop = stop or bool(pieces and watcher.body(pieces))
        if stop and reader.more() is not More.NONE:
            self._finish(Truncation.UNSPECIFIED)
            return True
        return False

    def break_off(self, error: Exception) -> None:
        """Hand the caller the error of a body that cannot be kept; the loop could do nothing with it."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def _judge(self, more: More) -> None:
        """Finish, or wait as long as what has come so far deserves."""
        if more is More.NONE:
            self.reusable = not (self._unsolicited or self._unsent or self.sent_at is None)
            self.ended.set_result(None)
        elif more is More.MUST:
            self._quiet_by = None
            if self._is_kept and self.reader.section is NOT_HTTP:
                self._finish(None)
        elif more is More.CUT:
            self._finish(Truncation.LENGTH)
        else:
            silence = self._limits.linger if more is More.SURPLUS else self._limits.idle
            self._quiet_by = time.monotonic() + silence
            self._arm()

    def _arm(self) -> None:
        """Set the next moment at which time alone can end the exchange."""
        when = min(self._deadline, self._window_start + self._limits.min_rate_time)
        if self._first_byte_within is not None and self.first_byte is None and self.sent_at is not None:
            when = min(when, self.sent_at + self._first_byte_within)
        self.wake_at = when if self._quiet_by is None else min(when, self._quiet_by)

    def _look_at_the_clock(self, now: float) -> None:
        if self._quiet_by is not None and now >= self._quiet_by:
            self._finish(self.reader.give_up())
        elif now >= self._deadline:
            self._out_of_time("The time for the exchange ran out.")
        elif self._is_overdue(now):
            self._out_of_time(f"No response began within {self._first_byte_within:g} s.")
        elif now >= self._window_start + self._limits.min_rate_time and self._is_slow(now):
            self._out_of_time(f"Fewer than {self._limits.min_rate} bytes a second came.")
        else:
            self._arm()

    def _is_overdue(self, now: float) -> bool:
        if self._first_byte_within is None or self.sent_at is None or self.first_byte is not None:
            return False
        return now >= self.sent_at + self._first_byte_within

    def _is_slow(self, now: float) -> bool:
        """Judge the window that has passed, and begin the next one."""
        total = self.count_sent() + self.reader.received
        rate = (total - self._window_bytes) / (now - self._window_start)
        self._window_start, self._window_bytes = now, total
        return rate < self._limits.min_rate

    def _out_of_time(self, detail: str) -> None:
        if self.first_byte is None:
            self._fail(Failure.RESPONSE_TIMEOUT, detail)
        else:
            self._finish(None if self.reader.more() is More.SURPLUS else Truncation.TIME)

    def _fail(self, failure: Failure, detail: str) -> None:
        if not self.ended.done():
            self.failure, self.detail = failure, detail
            self._finish(None)

    def _finish(self, truncated: Truncation | None) -> None:
        if self.ended.done():
            return
        if self.reader.section is None:
            self.reader.stop()
        if self._is_kept and self.failure is None and self.reader.section is NOT_HTTP:
            # Who spoke HTTP/1.1 before does not begin to speak HTTP/0.9.
            self.failure = _WITHOUT_RESPONSE.get(truncated, Failure.CONNECTION_RESET)
            self.detail, truncated = _LEFT_OVER, None
            self.first_byte = self.last_byte = None
        self.truncated = truncated
        self.ended.set_result(None)
