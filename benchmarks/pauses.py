"""How long the event loop of a crawl is kept from its next turn: an extension of Scrapy.

Between two turns it takes the processor time of the loop's thread, and what of it the garbage collector
took; at the end it writes the longest of both, and how many of each kind were long, to `pauses.json`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

FILE = "pauses.json"
SETTINGS = {"EXTENSIONS": json.dumps({"benchmarks.pauses.Pauses": 900})}
"""The settings of a crawl that has this extension."""
_TURN_S = 0.002
_LONG_S = (0.02, 0.05, 0.1)


class Pauses:
    """Measures while the spider is open."""

    def __init__(self) -> None:
        self._pauses: list[float] = []
        self._collected: list[float] = []
        self._began = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build the extension."""
        made = cls()
        crawler.signals.connect(made.opened, signals.spider_opened)
        crawler.signals.connect(made.closed, signals.spider_closed)
        return made

    def opened(self) -> None:
        """Begin."""
        self._path = Path.cwd() / FILE
        gc.callbacks.append(self._collects)
        self._task = asyncio.get_running_loop().create_task(self._measure())

    def closed(self) -> None:
        """Write what was found."""
        self._task.cancel()
        gc.callbacks.remove(self._collects)
        self._path.write_text(
            json.dumps({"turns": _summary(self._pauses), "collector": _summary(self._collected)})
        )

    async def _measure(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_TURN_S)
            took = time.thread_time() - before
            if took > _LONG_S[0]:
                self._pauses.append(took)

    def _collects(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._collected.append(time.thread_time() - self._began)


def _summary(found: list[float]) -> dict[str, int]:
    long = {f"over {each * 1000:.0f} ms": sum(x > each for x in found) for each in _LONG_S}
    return {"longest ms": round(max(found, default=0.0) * 1000)} | long
