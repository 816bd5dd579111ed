"""Which event loop a crawl runs on: the one that there is, or uvloop's where it is installed.

It is one of asyncio's in each case, under Twisted's reactor for those.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
"""The reactor that crawls run on, as TWISTED_REACTOR names it."""
_UVLOOP = "uvloop.Loop"
_NEEDS_ASYNCIO = (
    "The add-on archives on asyncio, and the Twisted reactor of this process is another one. Leave "
    f"TWISTED_REACTOR as it is by default, or install {REACTOR} before anything else imports a reactor."
)


def choose_loop(settings: BaseSettings) -> None:
    """Have *settings* name a loop of uvloop's, where it is installed and there is no loop yet.

    Scrapy may install it before any crawler exists.
    """
    if find_spec("uvloop") is not None and not is_reactor_installed() and not loop_runs():
        settings.set("ASYNCIO_EVENT_LOOP", _UVLOOP, "addon")
        _make_way_for_uvloop(settings)


def take_the_loop_there_is(settings: BaseSettings) -> None:
    """Accept any loop of asyncio's that is installed by now, and refuse a reactor that has none.

    A script that runs a crawler inside its own reactor has chosen the loop before. Raises UsageError.
    """
    if not settings.getbool("TWISTED_REACTOR_ENABLED"):
        return
    if is_reactor_installed():
        if not is_asyncio_reactor_installed():
            raise UsageError(_NEEDS_ASYNCIO)
        if (settings.getpriority("ASYNCIO_EVENT_LOOP") or 0) <= SETTINGS_PRIORITIES["addon"]:
            settings.set("ASYNCIO_EVENT_LOOP", None, "addon")
    elif settings["TWISTED_REACTOR"] != REACTOR:
        raise UsageError(_NEEDS_ASYNCIO)


def _make_way_for_uvloop(settings: BaseSettings) -> None:
    """Set a loop of uvloop's, where Scrapy is about to do the same.

    It has asyncio make one of its own before, only to drop it; and whenever that one is collected, tied
    to itself as it is, Python may complain of a socket that was closed before its loop.
    """
    is_wanted = settings["ASYNCIO_EVENT_LOOP"] == _UVLOOP and settings["TWISTED_REACTOR"] == REACTOR
    if is_wanted and "twisted.internet.reactor" not in sys.modules:
        import uvloop  # noqa: PLC0415  # where there is one

        asyncio.set_event_loop(uvloop.new_event_loop())


def loop_runs() -> bool:
    """Return whether this is called from a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
