"""amicrawl: an archival crawler on Scrapy.

Seeds go in; WARC files with the exact bytes of every exchange, and one Parquet row per fetch, come
out. The folders of this package are the way a URL travels: `urls`, `seed`, `politeness`, `frontier`,
`fetch`, `record`, `crawl`, `spiders`; `archive` and `fleet` are wings that a crawl works without. A
module imports only what stands before it on that way; `docs/architecture.md` draws the house.
"""

__version__ = "0.1.0"
