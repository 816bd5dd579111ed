"""Stock Scrapy with scrapy-webarchive, set up as well as settings allow.

64 requests at once, 8 to a host, no delay, and everything off that this crawl has no use for. uvloop and
other reactors were tried and brought nothing. Runs in an environment of its own: see requirements.in.
"""

from __future__ import annotations

SPIDER_MODULES = ["list_spider"]
EXTENSIONS = {"scrapy_webarchive.extensions.WaczExporter": 543}

CONCURRENT_REQUESTS = 64
CONCURRENT_REQUESTS_PER_DOMAIN = 8
DOWNLOAD_DELAY = 0
# Workers per response for the items that a spider yields. This one yields none, and the default of 100
# costs a third of the pages per second.
CONCURRENT_ITEMS = 1

ROBOTSTXT_OBEY = False
COOKIES_ENABLED = False
RETRY_ENABLED = False
REDIRECT_ENABLED = False
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "WARNING"
USER_AGENT = "benchmark"

SW_WACZ_TITLE = "benchmark"
SW_WACZ_DESCRIPTION = "benchmark"
