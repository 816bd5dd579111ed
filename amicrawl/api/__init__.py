"""The Python interface: what `import amicrawl` offers to scripts and notebooks, and commands use.

`archive` reads what a crawl left, `frontier` what is known of its URLs, `crawling` starts crawls, and
`products` makes indexes, tables, summaries and packages. Everything else of the package is internal.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.api.archive import Archive, Capture
    from amicrawl.api.archive import open_archive as open  # noqa: A004  # its name in `amicrawl`
    from amicrawl.api.crawling import Crawl, crawl
    from amicrawl.api.frontier import Frontier, FrontierRow, open_frontier
    from amicrawl.api.messages import Headers, Request, Response
    from amicrawl.api.products import check_root, index, index_by, index_jobs, summary, table, wacz
    from amicrawl.errors import AmicrawlError
else:
    __getattr__, __all__ = lazy_exports(__spec__)
