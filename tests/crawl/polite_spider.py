"""A spider outside the project, with overrides for single hosts; run by `test_crawl_politeness`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

from amicrawl.crawl.run import run_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class PoliteSpider(Spider):
    """Crawls *port* on several loopback addresses; writes the sitemaps it is given to *told*."""

    name = "polite"
    reads_responses = False
    custom_settings = {  # noqa: RUF012  # Scrapy's own form
        "AMICRAWL_ROBOTS": "obey-but-fetch-requisites",
        "AMICRAWL_HOST_OVERRIDES": {
            "127.0.0.3": {"robots": "ignore"},
            "127.0.0.4": {"robots": "obey"},
            "127.0.0.5": {"delay": 0.4, "per_host": 1},
        },
    }

    def __init__(self, *args: Any, port: str, told: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.port = port
        self.told = Path(told)

    async def start(self) -> AsyncIterator[Request]:
        """Request a page and a requisite of three hosts, and four pages of a fourth one."""
        run_of(self.crawler).on_sitemaps.append(self._note)
        for host in (2, 3, 4):
            yield Request(f"http://127.0.0.{host}:{self.port}/page")
            yield Request(
                f"http://127.0.0.{host}:{self.port}/look.css", meta={"amicrawl_requisite": True}
            )
        for page in range(4):
            yield Request(f"http://127.0.0.5:{self.port}/free/{page}")

    def _note(self, sitemaps: list[str], robots: str) -> None:
        with self.told.open("a") as file:
            file.write(" ".join(sitemaps) + "\n")
