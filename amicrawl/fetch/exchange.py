"""Exchange: one request and its response on one connection, under limits of time and size."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pycurl

from amicrawl.capture import Failure, Truncation
from amicrawl.errors import OutputError
from amicrawl.fetch.failures import one_line
from amicrawl.fetch.raw import More, ResponseReader

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, TimerHandle
    from collections.abc import Callable

    from amicrawl.fetch.connection import Connection
    from amicrawl.fetch.limits import Limits
    from amicrawl.fetch.request import Message
    from amicrawl.fetch.spool import Spool

_RECEIVE = 64 * 1024
# After so many reads others have their turn: a fast sender must not hold the loop.
_READS_A_TURN = 16
# Loops fire a timer a little early now and then; waking again at once would be in vain.
_SHORTEST = 0.001


class Exchange:
    """Sends a message, receives the response, and knows when to stop.

    `ended` is done when the exchange is over, however it went; the attributes tell how. It raises
    nothing but OutputError, where the body cannot be spooled. *clock* is a monotonic one. With
    *answer_within*, the first byte has to come so many seconds after the last one was sent.
    """

    def __init__(
        self, connection: Connection, message: Message, *, limits: Limits, deadline: float,
        loop: AbstractEventLoop, body: Spool, clock: Callable[[], float],
        answer_within: float | None = None,
    ) -> None:  # fmt: skip
        self.ended: Future[None] = loop.create_future()
        self.connection = connection
        self.body = body
        self.reader = ResponseReader(
            message.method, body, max_header=limits.max_header, max_body=limits.max_body
        )
        self.sent = 0
        """Bytes of the message that were taken for sending."""
        self.sent_at: float | None = None
        """When the last byte of the message was taken for sending."""
        self.first_byte: float | None = None
        self.last_byte: float | None = None
        self.truncated: Truncation | None = None
        self.failure: Failure | None = None
        self.detail = ""
        self.reusable = False
        """Whether the connection may serve another request."""
        self._unsent = memoryview(message.data)
        self._waits_to_send = False
        self._comes_again = False
        self._limits = limits
        self._deadline = deadline
        self._loop = loop
        self._clock = clock
        self._answer_within = answer_within
        self._quiet_by: float | None = None
        self._window_start = clock()
        self._window_bytes = 0
        self._timer: TimerHandle | None = None

    def start(self) -> Future[None]:
        """Begin, and return `ended`."""
        self.connection.readable = self._receive
        self._send()
        self._arm()
        return self.ended

    def abandon(self, detail: str) -> None:
        """End it from outside, unless it is over; what came is kept."""
        try:
            if self.first_byte is None:
                self._fail(Failure.OTHER, detail)
            else:
                self._finish(Truncation.UNSPECIFIED)
        except OutputError as error:
            self._break_off(error)

    def release(self) -> None:
        """Let go of loop and connection; after this nothing of the exchange happens any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wait_to_send(wanted=False)

    def _send(self) -> None:
        try:
            while self._unsent:
                count = self.connection.send(self._unsent)
                self.sent += count
                self._unsent = self._unsent[count:]
        except BlockingIOError:
            pass
        except pycurl.error:
            # A server may answer and close before it has read everything; the answer is still to come.
            self._wait_to_send(wanted=False)
            return
        self._wait_to_send(wanted=bool(self._unsent))
        if not self._unsent and self.sent_at is None:
            self.sent_at = self._clock()
            if self._timer is not None:
                self._arm()  # it did not go out at once, and the timer knows nothing of the answer yet

    def _wait_to_send(self, *, wanted: bool) -> None:
        if wanted is not self._waits_to_send:
            self._waits_to_send = wanted
            self.connection.on_writable(self._send if wanted else None)

    def _receive(self) -> None:
        self._comes_again = False
        if self.ended.done():
            return
        try:
            self._take_what_came()
        except OutputError as error:
            self._break_off(error)

    def _break_off(self, error: OutputError) -> None:
        """Hand the caller the error of a body that cannot be kept; the loop could do nothing with it."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def _take_what_came(self) -> None:
        """Receive until there is nothing for now, and find out whether that is all."""
        more = None
        for _ in range(_READS_A_TURN):
            try:
                data = self.connection.recv(_RECEIVE)
            except BlockingIOError:
                break
            except pycurl.error as error:
                self._lost(one_line(str(error.args[-1])))
                return
            if not data:
                self._closed()
                return
            more = self._take(data)
            if more is More.CUT or (len(data) < _RECEIVE and not self.connection.buffers):
                break
        else:
            self._receive_again()
        if more is not None:
            self._judge(more)

    def _receive_again(self) -> None:
        """See to it that bytes which wait above the socket are received though the loop sees none."""
        if self.connection.buffers and not self._comes_again:
            self._comes_again = True
            self._loop.call_soon(self._receive)

    def _take(self, data: bytes) -> More:
        self.last_byte = self._clock()
        if self.first_byte is None:
            self.first_byte = self.last_byte
        self.reader.feed(data)
        return self.reader.more()

    def _judge(self, more: More) -> None:
        """Finish, or wait as long as what has come so far deserves."""
        if more is More.MUST:
            self._quiet_by = None
        elif more is More.CUT:
            self._finish(Truncation.LENGTH)
        elif more is More.NONE:
            self.reusable = not self._unsent
            self._finish(None)
        else:
            silence = self._limits.linger if more is More.SURPLUS else self._limits.idle
            self._quiet_by = self._clock() + silence
            self._arm()

    def _closed(self) -> None:
        if self.first_byte is None:
            self._fail(Failure.EMPTY_RESPONSE, "The server closed the connection without an answer.")
        else:
            self._finish(self.reader.end(orderly=True))

    def _lost(self, detail: str) -> None:
        if self.first_byte is None:
            self._fail(Failure.CONNECTION_RESET, detail)
        else:
            self._finish(self.reader.end(orderly=False))

    def _arm(self) -> None:
        """Wake at the next moment at which time alone can end the exchange."""
        when = min(self._deadline, self._window_start + self._limits.min_rate_time, self._answer_by)
        if self._quiet_by is not None:
            when = min(when, self._quiet_by)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(_SHORTEST, when - self._clock()), self._wake)

    @property
    def _answer_by(self) -> float:
        """The moment by which the answer has to begin; infinity where there is none (any more)."""
        if self._answer_within is None or self.sent_at is None or self.first_byte is not None:
            return inf
        return self.sent_at + self._answer_within

    def _wake(self) -> None:
        self._timer = None
        if self.ended.done():
            return
        try:
            self._look_at_the_clock()
        except OutputError as error:
            self._break_off(error)

    def _look_at_the_clock(self) -> None:
        now = self._clock()
        if self._quiet_by is not None and now >= self._quiet_by:
            self._finish(self.reader.give_up())
        elif now >= self._deadline:
            self._out_of_time("The time for the exchange ran out.")
        elif now >= self._answer_by:
            self._out_of_time(f"No answer began within {self._answer_within:g} s.")
        elif now >= self._window_start + self._limits.min_rate_time and self._is_slow(now):
            self._out_of_time(f"Fewer than {self._limits.min_rate} bytes a second came.")
        else:
            self._arm()

    def _is_slow(self, now: float) -> bool:
        """Judge the window that has passed, and begin the next one."""
        total = self.sent + self.reader.received
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
        self.reader.stop()
        self.truncated = truncated
        self.ended.set_result(None)
