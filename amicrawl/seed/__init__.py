"""Seeds: URLs to fetch, with what their producer knows of them, and the lists they are read from.

`open_seed` reads lines, JSON Lines, Parquet (an earlier crawl's `captures.parquet` among them) and
sitemaps, from a file, a pipe or standard input, packed or not. What cannot be read of a list is a
`SeedFault`, handed to a callback and counted; nothing in a list can raise, only a list that gives
nothing at all.

    with open_seed("seeds.jsonl.gz", on_fault=print) as seeds:
        for seed in seeds:
            ...
    print(seeds.read, seeds.bad)

Which URLs are the same, and whether they can be fetched at all, is not decided here.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.seed.fields import checked_url
    from amicrawl.seed.formats import LIST_ENDINGS, SeedFormat, is_web
    from amicrawl.seed.lines import seed_of_json
    from amicrawl.seed.reader import BatchReader, SeedReader, count_entries, open_seed
    from amicrawl.seed.seed import NotASeedError, Seed, SeedFault
    from amicrawl.seed.sitemap import entries_of
    from amicrawl.seed.sitemap_tree import SitemapLimits
    from amicrawl.seed.source import earlier_indexes
else:
    __getattr__, __all__ = lazy_exports(__spec__)
