"""How long the event loop of a crawl is kept from its next turn: an extension of Scrapy.

Between two turns it takes the processor time of the loop's thread, and what of it the garbage collector
took; every ten seconds it takes the process's memory, open files and tasks. `pauses.json` has the
longest pauses, how many of each kind were long, and the samples (seconds, MiB, files, tasks).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
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
_SAMPLE_S = 10.0
_PAGES_PER_MIB = (1 << 20) // os.sysconf("SC_PAGE_SIZE")


class Pauses:
    """Measures while the spider is open."""

    def __init__(self) -> None:
        self._pauses: list[float] = []
        self._collected: list[float] = []
        self._samples: list[tuple[int, int, int, int]] = []
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
            json.dumps(
                {
                    "turns": _summary(self._pauses),
                    "collector": _summary(self._collected),
                    "samples": self._samples,
                }
            )
        )

    async def _measure(self) -> None:
        opened = sampled = time.monotonic()
        while True:
            now = time.monotonic()
            if now - sampled >= _SAMPLE_S:
                sampled = now
                self._samples.append((round(now - opened), *_sample()))
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


def _sample() -> tuple[int, int, int]:
    """Return the resident memory in MiB, and the numbers of open files and of tasks."""
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return resident // _PAGES_PER_MIB, files, len(asyncio.all_tasks())


def _summary(found: list[float]) -> dict[str, int]:
    long = {f"over {each * 1000:.0f} ms": sum(x > each for x in found) for each in _LONG_S}
    return {"longest ms": round(max(found, default=0.0) * 1000)} | long
