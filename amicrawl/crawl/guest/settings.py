"""What the add-on sets in the settings of a guest: a handler, a downloader, two pipelines, and no more.

Everything else stays as the project has it. An `AMICRAWL_*` setting that says what one of Scrapy's says,
is written there, unless Scrapy's own has at least its priority; one that only amicrawl's own spiders
follow is refused.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import Scheduler
from scrapy.utils.misc import load_object

from amicrawl.config import PREFIX, CrawlConfig, Robots, TlsPolicy
from amicrawl.crawl.extensions import Closing
from amicrawl.crawl.internals import have_handlers
from amicrawl.crawl.pipelines import CapturesPipeline, WarcPipeline
from amicrawl.crawl.uploading import Uploading
from amicrawl.crawl.watching.metrics import MetricsEndpoint
from amicrawl.crawl.watching.stopping import DiskRoom, StopConditions
from amicrawl.crawl.watching.webhooks import Webhooks
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.settings import BaseSettings

HANDLER = "amicrawl.crawl.guest.handler.GuestHandler"
_DOWNLOADER = "amicrawl.crawl.guest.downloader.GuestDownloader"
_BROWSER = "amicrawl.browser.guest.BrowserOfGuest"
_SCHEDULER = "amicrawl.crawl.guest.scheduler.KeptScheduler"


def _same(value: Any) -> Any:
    return value


def _obeys(value: Robots) -> bool:
    if value is Robots.REQUISITES:
        raise UsageError(
            f"AMICRAWL_ROBOTS is {value.value}, which only amicrawl's own spiders follow. In this "
            "project, set ROBOTSTXT_OBEY."
        )
    return value is Robots.OBEY


_SCRAPYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "delay": ("DOWNLOAD_DELAY", _same),
    "per_host": ("CONCURRENT_REQUESTS_PER_DOMAIN", _same),
    "inflight_max": ("CONCURRENT_REQUESTS", _same),
    "timeout": ("DOWNLOAD_TIMEOUT", _same),
    "max_retries": ("RETRY_TIMES", _same),
    "max_body": ("DOWNLOAD_MAXSIZE", int),
    "robots": ("ROBOTSTXT_OBEY", _obeys),
    "tls": ("DOWNLOAD_VERIFY_CERTIFICATES", lambda value: value is TlsPolicy.VERIFY),
}
"""By field of the configuration, the setting of Scrapy that says the same, and how."""

_FOLLOWED = frozenset({
    "out", "run_id", "warc_size", "warc_prefix", "store_unchanged", "warc_metadata", "dedup",
    "durability", "operator", "browser_proxy",
    "connect_timeout", "max_header", "spool_above", "allow_private", "dns_servers", "proxy", "cookies",
    "stop_pages", "stop_bytes", "stop_time", "stop_errors", "stop_free", "pause_free", "bucket",
    "remove_uploaded", "metrics", "webhooks", "webhook_secret", "log_format", "redis_prefix",
})  # fmt: skip
"""Fields that mean for a guest what they mean for every crawl."""


def set_for_guest(settings: BaseSettings, config: CrawlConfig) -> None:
    """Set in *settings* what archives a guest, by *config*.

    Raises UsageError for an `AMICRAWL_*` setting that it cannot follow.
    """
    _translate(settings, config)
    have_handlers(settings, {"http": HANDLER, "https": HANDLER})
    settings.set("DOWNLOADER", _DOWNLOADER, "addon")
    if settings["JOBDIR"] and load_object(settings["SCHEDULER"]) is Scheduler:
        settings.set("SCHEDULER", _SCHEDULER, settings.getpriority("SCHEDULER") or 0)
    pipelines = settings.getwithbase("ITEM_PIPELINES").values()
    if all(number is None for number in pipelines) and not settings.getpriority("CONCURRENT_ITEMS"):
        # Scrapy starts as many tasks for each response, a third of what a page costs. Where no pipeline
        # of the project works on an item, none waits for another. Not 1: the requests that a response
        # yields are enqueued before the engine takes one of them, as long as there is a task for each.
        settings.set("CONCURRENT_ITEMS", 16, "addon")
    place = settings.setdefault_in_component_priority_dict
    place("ITEM_PIPELINES", WarcPipeline, 900)
    place("ITEM_PIPELINES", CapturesPipeline, 910)
    for extension, number in (
        (Closing, 0), (DiskRoom, 0), (StopConditions, 0),
        (Uploading, 10), (MetricsEndpoint, 10), (Webhooks, 20),
    ):  # fmt: skip
        place("EXTENSIONS", extension, number)
    if config.browser_proxy:
        missing = [name for name in ("playwright", "h11", "cryptography") if find_spec(name) is None]
        if missing:
            raise UsageError(
                f"AMICRAWL_BROWSER_PROXY needs {missing[0]}, which is not installed. It comes with the "
                "extra `browser`: pip install 'amicrawl[browser]'."
            )
        place("EXTENSIONS", load_object(_BROWSER), -1)


def _translate(settings: BaseSettings, config: CrawlConfig) -> None:
    """Write what *config* was given into the settings of Scrapy that say the same."""
    for name in config.model_fields_set:
        ours = PREFIX + name.upper()
        priority = settings.getpriority(ours)
        if name in _FOLLOWED or priority is None:
            continue
        value = getattr(config, name)
        if name in _SCRAPYS:
            theirs, said_as = _SCRAPYS[name]
            said = said_as(value)
            if priority > (settings.getpriority(theirs) or 0):
                settings.set(theirs, said, priority)
            if name == "delay" and not settings.getpriority("DOWNLOAD_DELAY_JITTER"):
                # It is the least time between two requests, and Scrapy's is what they have on average.
                settings.set("DOWNLOAD_DELAY_JITTER", 0, "addon")
        elif value and value != CrawlConfig.model_fields[name].default:
            raise UsageError(
                f"{ours} is followed by amicrawl's own spiders only, and this spider is not one. "
                "Leave it out; docs/own-projects.md says what Scrapy has instead."
            )
