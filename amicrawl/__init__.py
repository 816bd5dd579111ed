"""amicrawl: an archival crawler on Scrapy.

Seeds go in; WARC files with the exact bytes of every exchange, and one Parquet row per fetch, come
out. What Python programs may call are the names below (docs/api.md). The folders of this package are the
way a URL travels: `urls`, `seed`, `politeness`, `frontier`, `fetch`, `record`, `crawl`, `spiders`;
`archive` and `fleet` are wings that a crawl works without. A module imports only what stands before it
on that way; `docs/architecture.md` draws the house.
"""

from typing import TYPE_CHECKING

__version__ = "0.3.0"

__all__ = [
    "AmicrawlError",
    "Archive",
    "Capture",
    "crawl",
    "index",
    "open",
    "open_frontier",
    "summary",
    "table",
    "wacz",
]

if TYPE_CHECKING:
    from amicrawl.api import (
        AmicrawlError,
        Archive,
        Capture,
        crawl,
        index,
        open,  # noqa: A004  # as in many packages that read files
        open_frontier,
        summary,
        table,
        wacz,
    )
else:
    from importlib import import_module

    def __getattr__(name: str) -> object:
        if name == "crawl":  # the room, which can be called
            return import_module("amicrawl.crawl")
        if name in __all__:
            return getattr(import_module("amicrawl.api"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
