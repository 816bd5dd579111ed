"""A shop's spider: list pages, things with arguments and errbacks, a redirect. Run by `test_reading`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

THINGS = 6


class ReadingSpider(Spider):
    """Reads the shop at *site* and writes what it finds to the file *notes*, a line at once.

    In the callback of the page *dies_in* it is killed, unless that has happened before.
    """

    name = "reading"

    def __init__(self, *args: Any, site: str, notes: str, dies_in: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.start_urls = [f"{site}/"]
        self.notes = Path(notes)
        self.dies_in = dies_in
        self.noted = 0
        self.all_else = asyncio.Event()

    def parse(self, response: Any) -> Iterator[Any]:
        """Read the front page."""
        for number in range(3):
            yield response.follow(f"/list/{number}", self.parse_list, cb_kwargs={"number": number})

    async def parse_list(self, response: Any, number: int) -> AsyncIterator[Any]:
        """Read a list, and where the spider is to be killed, only half of it."""
        for thing in range(THINGS):
            if thing == THINGS // 2 and self.dies_in and response.url.endswith(self.dies_in):
                await self.all_else.wait()
                # Shortly it is on disk, too.
                await asyncio.sleep(1)
                os.kill(os.getpid(), signal.SIGKILL)
            yield response.follow(
                f"/thing/{number}-{thing}",
                self.parse_thing,
                errback=self.missed,
                cb_kwargs={"labels": {"list": number, "of": [thing]}},
                headers={"Accept": "text/x-thing"},
            )

    def parse_thing(self, response: Any, labels: dict[str, Any]) -> None:
        """Read one thing."""
        self.note(
            url=response.url,
            labels=labels,
            hops=response.meta.get("redirect_times", 0),
            depth=response.meta["depth"],
        )

    def missed(self, failure: Any) -> None:
        """Hear of a thing that cannot be had."""
        self.note(missed=failure.request.url, why=type(failure.value).__name__)

    def note(self, **said: Any) -> None:
        """Write down what was found."""
        self.noted += 1
        if self.noted == 2 * THINGS + THINGS // 2:
            self.all_else.set()
        with self.notes.open("a") as file:
            file.write(json.dumps(said) + "\n")
