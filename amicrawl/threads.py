"""Work that waits, done on a thread so that an event loop need not wait."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

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
