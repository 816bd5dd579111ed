"""Forks: a child is a fork of its parent, for which all that a crawl imports is there already.

It is what a process of its own would be: it has a session, signals as Python sets them, no standard
input, no event loop and no open file of the parent but those that it is given. It never returns into the
parent's code, whose locks and loop it must not touch.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

_IMPORTED = (
    *(f"amicrawl.crawl.{name}" for name in ("addon", "scheduler", "downloader", "handler", "robots")),
    *("amicrawl.crawl.processes.child", "amicrawl.fetch.name_servers"),
    *("scrapy.core.engine", "scrapy.extensions.corestats", "twisted.internet.asyncioreactor"),
)
"""What every child would import. Nothing that makes a thread, as Arrow does, or an event loop."""


def prepare() -> None:
    """Import what the forks will use."""
    for name in _IMPORTED:
        import_module(name)
    # A fork shares the memory of what is never looked at by its collector.
    gc.freeze()


def fork(act: Callable[[], object], *, keep: int, stderr: int) -> int:
    """Return the process ID of a fork that does *act* and exits as that says, by SystemExit.

    It has the descriptor *keep*, and *stderr* as its standard error.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # One that arrives before its handler is the fork's own would be taken for the parent's.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    process = os.fork()
    if not process:
        _be_the_fork(act, keep=keep, stderr=stderr)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _be_the_fork(act: Callable[[], object], *, keep: int, stderr: int) -> NoReturn:
    code: object = ExitCode.OUR_ERROR
    try:
        os.setsid()
        _leave_the_loop()
        os.dup2(stderr, 2)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.closerange(3, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
        act()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  # nothing of it may reach the code of the parent
        traceback.print_exc()
    finally:
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave_the_loop() -> None:
    """Have signals do what they do in a process that has just begun, and forget the parent's loop."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            is_interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    asyncio.set_event_loop(None)
