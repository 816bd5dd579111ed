"""Leaves out of Scrapy what a crawl has no use for, before it is imported.

Each component costs 20 to 100 microseconds a page, together more than the fetch itself, and some bring
a web server, a terminal or the list of public suffixes with them. They are taken out of Scrapy's own
lists, by their paths: a project that names one in its settings keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies

from amicrawl.config import Headers

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy.settings import BaseSettings

_SETTINGS: dict[str, object] = {
    # The frontier tries again by itself; cookies and refreshed pages belong to a browsing spider.
    "RETRY_ENABLED": False,
    "COOKIES_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "DOWNLOADER_STATS": False,
    "COMPRESSION_ENABLED": False,
}

_OF_CALLBACKS = {
    # The handler of a spider without callbacks sends the default fields by itself.
    "DOWNLOADER_MIDDLEWARES_BASE": {
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware",
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware",
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",
    },
    # All of these look at what a callback yields, or at statuses on the way to one.
    "SPIDER_MIDDLEWARES_BASE": {
        "scrapy.spidermiddlewares.depth.DepthMiddleware",
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware",
        "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware",
        "scrapy.spidermiddlewares.referer.RefererMiddleware",
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware",
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware",
    },
    "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats"},
}

_REPLACED = {
    "DOWNLOADER_MIDDLEWARES_BASE": {
        "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware",
        "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware",
    }
}
"""In their place are components of ours."""

_SWITCHES = {
    "TELNETCONSOLE_ENABLED": ("EXTENSIONS_BASE", "scrapy.extensions.telnet.TelnetConsole"),
    "REMOTE_CONTROL_ENABLED": ("EXTENSIONS_BASE", "scrapy.extensions.remote_control.RemoteControl"),
    "COOKIES_ENABLED": (
        "DOWNLOADER_MIDDLEWARES_BASE",
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware",
    ),
}
"""The setting that switches a component of Scrapy, and the list that has it."""

_FIELDS = {
    Headers.FAST: {"Accept": "*/*"},
    Headers.BROWSER: {
        "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept-Language": "en-US,en;q=0.5",
    },
}


def default_headers(headers: str) -> dict[str, str]:
    """Return the fields that a value of `AMICRAWL_HEADERS` stands for; none for any other value."""
    return next((dict(fields) for word, fields in _FIELDS.items() if word.value == headers), {})


def trim_to_archiving(settings: BaseSettings, headers: Headers) -> None:
    """Switch off in *settings* what only serves callbacks, and have *headers* sent by default."""
    settings.set("DEFAULT_REQUEST_HEADERS", _FIELDS[headers], "addon")
    for name, value in _SETTINGS.items():
        settings.set(name, value, "addon")
    if not getproxies():
        settings.set("HTTPPROXY_ENABLED", value=False, priority="addon")
    for components, paths in _OF_CALLBACKS.items():
        _leave_out(settings, components, paths)


def leave_out_replaced(settings: BaseSettings) -> None:
    """Take out of *settings* the components of Scrapy in whose place are ours."""
    for components, paths in _REPLACED.items():
        _leave_out(settings, components, paths)


def leave_out_switched(settings: BaseSettings) -> None:
    """Take out of *settings* what is switched off: Scrapy would import it to find that out."""
    for switch, (components, path) in _SWITCHES.items():
        if not settings.getbool(switch):
            _leave_out(settings, components, {path})


def _leave_out(settings: BaseSettings, components: str, paths: Collection[str]) -> None:
    left = {key: place for key, place in settings.getdict(components).items() if key not in paths}
    settings.set(components, left, "addon")
