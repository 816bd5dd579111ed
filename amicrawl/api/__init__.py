"""The Python interface: what `import amicrawl` offers to scripts and notebooks, and commands use.

`archive` reads what a crawl left, `frontier` what is known of its URLs, `crawling` starts crawls, and
`products` makes indexes, tables, summaries and packages. Everything else of the package is internal.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.api.archive import Archive, Capture
    from amicrawl.api.archive import open_archive as open  # noqa: A004  # its name in `amicrawl`
    from amicrawl.api.crawling import Crawl, crawl
    from amicrawl.api.frontier import Frontier, FrontierRow, open_frontier
    from amicrawl.api.messages import Headers, Request, Response
    from amicrawl.api.products import index, index_by, index_jobs, summary, table, wacz
    from amicrawl.errors import AmicrawlError
else:
    _load = lazy_exports(
        __name__,
        Archive="archive",
        Capture="archive",
        Crawl="crawling",
        Frontier="frontier",
        FrontierRow="frontier",
        Headers="messages",
        Request="messages",
        Response="messages",
        crawl="crawling",
        index="products",
        index_by="products",
        index_jobs="products",
        open_archive="archive",
        open_frontier="frontier",
        summary="products",
        table="products",
        wacz="products",
    )

    def __getattr__(name):  # noqa: ANN001, ANN202
        if name == "AmicrawlError":
            from amicrawl.errors import AmicrawlError  # noqa: PLC0415

            return AmicrawlError
        return _load("open_archive" if name == "open" else name)


__all__ = [
    "AmicrawlError",
    "Archive",
    "Capture",
    "Crawl",
    "Frontier",
    "FrontierRow",
    "Headers",
    "Request",
    "Response",
    "crawl",
    "index",
    "index_by",
    "index_jobs",
    "open",
    "open_frontier",
    "summary",
    "table",
    "wacz",
]
