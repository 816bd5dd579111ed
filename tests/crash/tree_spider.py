"""A spider that walks a tree of pages by callbacks with arguments. Run by `test_kill_spider`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class TreeSpider(Spider):
    """Reads the tree at *site*, and writes the number of each page that it has read to *notes*."""

    name = "tree"

    def __init__(self, *args: Any, site: str, notes: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.site = site
        self.notes = Path(notes)

    async def start(self) -> AsyncIterator[Request]:
        """Request the root, once in all runs."""
        yield Request(f"{self.site}/p/0", self.parse_page, cb_kwargs={"number": 0, "way": []})

    def parse_page(self, response: Any, number: int, way: list[int]) -> Iterator[Request]:
        """Read a page: note it behind its first link, so that a kill can come between links and note."""
        links = [
            response.follow(link, self.parse_page, cb_kwargs={"number": child, "way": [*way, number]})
            for link in response.css("a")
            for child in [int(link.attrib["href"].rpartition("/")[2])]
        ]
        yield from links[:1]
        with self.notes.open("a") as file:
            file.write(f"{number} {response.url} {' '.join(map(str, way))}\n")
        yield from links[1:]
