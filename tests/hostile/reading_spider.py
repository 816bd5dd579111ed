"""A list crawl whose callback reads every response, as spiders of a project do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import TextResponse

from amicrawl.spiders.seeds import SeedsSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class ReadingSpider(SeedsSpider):
    """Takes text, title and links of every page."""

    name = "reading"
    reads_responses = True

    def parse(  # type: ignore[override]  # the parent's yields nothing
        self, response: Response, **_: Any
    ) -> Iterator[dict[str, object]]:
        """Yield what was read."""
        title = links = ""
        if isinstance(response, TextResponse):
            title = response.css("title::text").get(default="")
            links = str(len(response.css("a::attr(href)").getall()))
        yield {"url": response.url, "size": len(response.body), "title": title, "links": links}
