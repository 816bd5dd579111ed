"""What a crawl asks of Scrapy's engine: to look for requests, to pause, to close the spider."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from amicrawl.crawl import internals

if TYPE_CHECKING:
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler


class Engine(Protocol):
    """The side of an engine that steers it."""

    def wake(self) -> None:
        """Have the scheduler asked for requests soon."""

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
        """Have the scheduler asked for requests soon, and not only at the engine's next heartbeat."""
        if self._engine is not None:
            internals.wake(self._crawler)

    def pause(self) -> None:
        """Have Scrapy's own scheduler asked for nothing more."""
        if self._pauses and self._engine is not None:
            self._engine.pause()

    def resume(self) -> None:
        """Have it asked again."""
        if self._pauses and self._engine is not None:
            self._engine.unpause()

    def close(self, reason: str) -> bool:
        """Close the spider for *reason*; False where it is closing already."""
        if self._closing is not None or internals.is_closing(self._crawler):
            return False
        self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))
        return True

    @property
    def _engine(self) -> ExecutionEngine | None:
        try:
            return self._crawler.engine
        except RuntimeError:
            return None


class NoEngine:
    """The engine of a run that no crawler drives."""

    def wake(self) -> None:
        """Do nothing."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""

    def close(self, reason: str) -> bool:  # noqa: ARG002
        """Return False: there is nothing to close."""
        return False
