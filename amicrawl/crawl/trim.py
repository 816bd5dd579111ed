"""Leaves out of Scrapy what a crawl that reads no responses has no use for.

Each component costs 20 to 100 microseconds a page, together more than the fetch itself. All of it is
set at the add-on's priority: a project that switches something on keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies

from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.extensions.corestats import CoreStats
from scrapy.spidermiddlewares.depth import DepthMiddleware
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from scrapy.spidermiddlewares.metacopy import MetaCopyDetectionMiddleware
from scrapy.spidermiddlewares.referer import RefererMiddleware
from scrapy.spidermiddlewares.start import StartSpiderMiddleware
from scrapy.spidermiddlewares.urllength import UrlLengthMiddleware

from amicrawl.config import Headers

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_SETTINGS: dict[str, object] = {
    # The frontier tries again by itself; cookies and refreshed pages belong to a browsing spider.
    "RETRY_ENABLED": False,
    "COOKIES_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "DOWNLOADER_STATS": False,
    "COMPRESSION_ENABLED": False,
}

# The handler of such a spider sends the default fields by itself.
_DOWNLOADER_MIDDLEWARES = (
    DefaultHeadersMiddleware,
    DownloadTimeoutMiddleware,
    HttpAuthMiddleware,
    OffsiteMiddleware,
    UserAgentMiddleware,
)

# All of these look at what a callback yields, or at statuses on the way to one.
_SPIDER_MIDDLEWARES = (
    DepthMiddleware,
    HttpErrorMiddleware,
    MetaCopyDetectionMiddleware,
    RefererMiddleware,
    StartSpiderMiddleware,
    UrlLengthMiddleware,
)


_FIELDS = {
    Headers.FAST: {"Accept": "*/*"},
    Headers.BROWSER: {
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept-Language": "en-US,en;q=0.5",
    },
}


def default_headers(headers: str) -> dict[str, str]:
    """Return the fields that a value of `AMICRAWL_HEADERS` stands for; none where there is none such."""
    return next((dict(fields) for word, fields in _FIELDS.items() if word.value == headers), {})


def trim_to_archiving(settings: BaseSettings, headers: Headers) -> None:
    """Switch off in *settings* what only serves callbacks, and have *headers* sent by default."""
    settings.set("DEFAULT_REQUEST_HEADERS", _FIELDS[headers], "addon")
    for name, value in _SETTINGS.items():
        settings.set(name, value, "addon")
    if not getproxies():
        settings.set("HTTPPROXY_ENABLED", value=False, priority="addon")
    for middleware in _DOWNLOADER_MIDDLEWARES:
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", middleware, None)
    for spider_middleware in _SPIDER_MIDDLEWARES:
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", spider_middleware, None)
    settings.setdefault_in_component_priority_dict("EXTENSIONS", CoreStats, None)
