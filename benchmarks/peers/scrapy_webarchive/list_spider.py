"""A stock Scrapy spider that fetches a list; archiving it is scrapy-webarchive's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class ListSpider(scrapy.Spider):
    """Fetches every URL of *file*, one a line, once."""

    name = "list"

    def __init__(self, file: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._file = Path(file)

    def start_requests(self) -> Iterator[scrapy.Request]:
        """Yield a request for each line of the file."""
        with self._file.open() as lines:
            for line in lines:
                yield scrapy.Request(line.strip(), dont_filter=True)

    def parse(self, response: Response) -> None:
        """Leave the page as it is."""
