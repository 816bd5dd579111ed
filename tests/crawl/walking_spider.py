"""A spider as anybody writes it: it follows every link. Run by `test_walking`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class WalkingSpider(Spider):
    """Begins at *site*, if one is given, and yields the URL of each page that it reads."""

    name = "walking"

    def __init__(self, *args: Any, site: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.site = site

    async def start(self) -> AsyncIterator[Request]:
        """Ask for the front page; without one there is only what waits."""
        if self.site:
            yield Request(self.site)

    def parse(self, response: Any) -> Iterator[Any]:
        """Follow every link."""
        yield {"url": response.url}
        yield from response.follow_all(css="a")
