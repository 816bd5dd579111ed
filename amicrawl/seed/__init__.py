"""Seeds: URLs to fetch, with what their producer knows of them, and the lists they are read from.

`open_seed` reads lines, JSON Lines, Parquet (an earlier crawl's `captures.parquet` among them) and
sitemaps, from a file, a pipe or standard input, packed or not. What cannot be read of a list is a
`Fault`, handed to a callback and counted; nothing in a list can raise, only a list that gives nothing at
all.

    with open_seed("seeds.jsonl.gz", on_fault=print) as seeds:
        for seed in seeds:
            ...
    print(seeds.read, seeds.bad)

Which URLs are the same, and whether they can be fetched at all, is not decided here.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.seed.formats import SeedFormat
    from amicrawl.seed.reader import BatchReader, SeedReader, count_entries, open_seed
    from amicrawl.seed.seed import Fault, Seed
    from amicrawl.seed.sitemap_tree import SitemapLimits
else:
    __getattr__ = lazy_exports(
        __name__,
        BatchReader="reader",
        Fault="seed",
        Seed="seed",
        SeedFormat="formats",
        SeedReader="reader",
        SitemapLimits="sitemap_tree",
        count_entries="reader",
        open_seed="reader",
    )

__all__ = [
    "BatchReader",
    "Fault",
    "Seed",
    "SeedFormat",
    "SeedReader",
    "SitemapLimits",
    "count_entries",
    "open_seed",
]
