"""Work that takes long, done on a thread so that an event loop, or Ctrl-C, need not wait for it."""

from __future__ import annotations

import _thread
import asyncio
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def on_a_thread(work: Callable[[], T]) -> T:
    """Return what *work* returns, or raise what it raises, having run it on a thread."""
    # A daemon thread and not the loop's executor: one that waits for standard input would keep the
    # process from ending when the crawl is stopped.
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(outcome: Callable[[], None]) -> None:
        if not future.done():
            outcome()

    def run() -> None:
        outcome: Callable[[], None]
        try:
            outcome = partial(future.set_result, work())
        except Exception as caught:  # noqa: BLE001  # it is raised where it is awaited
            outcome = partial(future.set_exception, caught)
        # The process may be past waiting by the time that standard input says something.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=run, name="amicrawl-work", daemon=True).start()
    return await future


class StoppableCall(Generic[T]):
    """One call, made on a thread of its own, that Ctrl-C stops in the thread that waits for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        """*work* is what is called."""
        # The locks of `threading` and of a Future are written in Python: a Ctrl-C within them ends in a
        # RuntimeError, or in a lock that is never released. This one is the interpreter's own.
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self._work = work
        self._error: BaseException | None = None
        self._result: T
        self.is_over = True
        """Whether it does not run: it has not begun, or has come to its end."""

    def result(self) -> T:
        """Make the call and return what it returns, or raise what it raises.

        KeyboardInterrupt at Ctrl-C: what was called runs on until it `is_over`.
        """
        self.is_over = False
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self.is_over = True
            raise
        while not self.is_over:
            self.wait(_thread.TIMEOUT_MAX)
        if self._error is not None:
            raise self._error
        return self._result

    def wait(self, seconds: float) -> None:
        """Wait until it is over, for *seconds* at most."""
        if not self.is_over:
            self._over.acquire(timeout=seconds)

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is expected
            self._error = error
        finally:
            self.is_over = True
            self._over.release()
