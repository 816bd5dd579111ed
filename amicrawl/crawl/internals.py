"""Every private part of Scrapy that is used here, and what a crawl needs of Scrapy's engine.

There is no public way to these. All of them are looked for before a crawl begins, since a crawl that
misses one of them later would lose requests, or wait without an end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import scrapy
from pydispatch import dispatcher
from scrapy.core.scheduler import Scheduler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import BaseRedirectMiddleware
from scrapy.settings import SETTINGS_PRIORITIES

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from scrapy import Request
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

CLASSES: dict[type, tuple[str, ...]] = {
    Scheduler: ("_dqpush",),
    HttpCompressionMiddleware: ("_handle_encoding",),
    BaseRedirectMiddleware: ("_redirect", "_engine_started"),
}
"""Methods that are overridden or called, by class."""
SLOT = ("inprogress", "closing", "nextcall")
"""What is used of the slot of an engine, which has it as `_slot` while a spider is open."""


def check(crawler: Crawler, *, classes: Mapping[type, tuple[str, ...]] = CLASSES) -> None:
    """Raise UsageError where Scrapy lacks what is used of it; to be called when a spider is open."""
    missing = [
        f"{each.__name__}.{name}"
        for each, names in classes.items()
        for name in names
        if not hasattr(each, name)
    ]
    missing += _missing_of_engine(crawler)
    if missing:
        raise UsageError(
            f"Scrapy {scrapy.__version__} has no {', '.join(missing)}, which amicrawl needs. "
            "Install a version of Scrapy that this version of amicrawl supports, see pyproject.toml."
        )


def _missing_of_engine(crawler: Crawler) -> list[str]:
    try:
        engine = crawler.engine
    except RuntimeError:
        # Without an engine there is a part of Scrapy at work that never needs a slot.
        return []
    slot = getattr(engine, "_slot", None)
    if slot is None:
        return [f"{type(engine).__name__}._slot"]
    return [f"{type(slot).__name__}.{name}" for name in SLOT if not hasattr(slot, name)]


def have_handlers(settings: BaseSettings, ours: Mapping[str, str | None]) -> None:
    """Have *ours*, by scheme, download what the project has no handler of its own for.

    Without a Twisted reactor, Scrapy writes handlers into the base, which win over what has a lower
    priority than settings of a project.
    """
    handlers = settings.getdict("DOWNLOAD_HANDLERS")
    for scheme, handler in ours.items():
        handlers.setdefault(scheme, handler)
    has_reactor = settings.getbool("TWISTED_REACTOR_ENABLED")
    least = 0 if has_reactor else SETTINGS_PRIORITIES["project"]
    priority = max(least, settings.getpriority("DOWNLOAD_HANDLERS") or 0)
    settings.set("DOWNLOAD_HANDLERS", handlers, priority)


def requests_in_progress(crawler: Crawler) -> Collection[Request]:
    """Return the requests that are downloaded, or whose responses callbacks are reading."""
    progress: Collection[Request] = _slot(crawler).inprogress
    return progress


def is_closing(crawler: Crawler) -> bool:
    """Tell whether the spider of *crawler* is being closed."""
    slot: Any = crawler.engine._slot  # noqa: SLF001  # as in `_slot`, in each turn of the loop
    return not crawler.crawling or (slot is not None and slot.closing is not None)


def wake(crawler: Crawler) -> None:
    """Have the engine poll its scheduler for requests soon, and not only at its next heartbeat."""
    if (slot := _slot(crawler)) is not None:
        slot.nextcall.schedule()


def _slot(crawler: Crawler) -> Any:
    """Return the slot of the engine; None where no spider is open."""
    return crawler.engine._slot  # noqa: SLF001  # looked for by `check`


_NOTHING: dict[object, list[object]] = {}


class Signaller:
    """Sends signals in the name of *crawler*."""

    def __init__(self, crawler: Crawler) -> None:
        self._send = crawler.signals.send_catch_log
        # The tables of the dispatcher go by the identity of the sender, and of `Any` for every sender.
        self._senders = (id(crawler.signals.sender), id(dispatcher.Any))

    def is_heard(self, signals: frozenset[object]) -> bool:
        """Tell whether any component listens to one of *signals*."""
        for sender in self._senders:
            listeners = dispatcher.connections.get(sender, _NOTHING)
            if dispatcher.Any in listeners or not listeners.keys().isdisjoint(signals):
                return True
        return False

    def send(self, signal: object, **arguments: Any) -> None:
        """Send *signal* to its listeners, as `SignalManager.send_catch_log` does."""
        for sender in self._senders:
            listeners = dispatcher.connections.get(sender, _NOTHING)
            if signal in listeners or dispatcher.Any in listeners:
                self._send(signal, **arguments)
                return


class EngineControls(Protocol):
    """The side of an engine that steers it."""

    def wake(self) -> None:
        """Have the scheduler give requests soon."""

    def pause(self) -> None:
        """Start nothing more until `resume`."""

    def resume(self) -> None:
        """Start requests again."""

    def close(self, reason: str) -> bool:
        """Drain and close the crawl for *reason*; False where it is closing already."""


class ScrapyEngine:
    """The engine of *crawler*, which exists from the moment that its spider is opened."""

    def __init__(self, crawler: Crawler, *, pauses: bool) -> None:
        """*pauses* tells whether the engine itself has to be paused: our scheduler pauses by itself."""
        self._crawler = crawler
        self._pauses = pauses
        self._closing: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Have the scheduler give requests soon, and not only at the engine's next heartbeat."""
        if self._engine is not None:
            wake(self._crawler)

    def pause(self) -> None:
        """Have nothing more taken from Scrapy's own scheduler."""
        if self._pauses and self._engine is not None:
            self._engine.pause()

    def resume(self) -> None:
        """Have it polled again."""
        if self._pauses and self._engine is not None:
            self._engine.unpause()

    def close(self, reason: str) -> bool:
        """Close the spider for *reason*; False where it is closing already."""
        if self._closing is not None or is_closing(self._crawler):
            return False
        self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))
        return True

    @property
    def _engine(self) -> ExecutionEngine | None:
        try:
            return self._crawler.engine
        except RuntimeError:
            return None
