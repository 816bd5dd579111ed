"""Every private part of Scrapy that is used here.

There is no public way to these. All of them are looked for before a crawl begins, since a crawl that
misses one of them later would lose requests, or wait without an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.core.scheduler import Scheduler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import BaseRedirectMiddleware

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

CLASSES: dict[type, tuple[str, ...]] = {
    Scheduler: ("_dqpush",),
    HttpCompressionMiddleware: ("_handle_encoding",),
    BaseRedirectMiddleware: ("_redirect", "_engine_started"),
}
"""Methods that are overridden or called, by class."""
SLOT = ("inprogress", "closing", "nextcall")
"""What is used of the slot of an engine, which has it as `_slot` while a spider is open."""


def check(crawler: Crawler, *, classes: Mapping[type, tuple[str, ...]] = CLASSES) -> None:
    """Raise UsageError where Scrapy lacks what is used of it; to be called when a spider is open."""
    missing = [
        f"{each.__name__}.{name}"
        for each, names in classes.items()
        for name in names
        if not hasattr(each, name)
    ]
    missing += _missing_of_engine(crawler)
    if missing:
        raise UsageError(
            f"Scrapy {scrapy.__version__} has no {', '.join(missing)}, which amicrawl needs. "
            "Install a version of Scrapy that this version of amicrawl supports, see pyproject.toml."
        )


def _missing_of_engine(crawler: Crawler) -> list[str]:
    try:
        engine = crawler.engine
    except RuntimeError:
        # Without an engine there is a part of Scrapy at work that never asks for a slot.
        return []
    slot = getattr(engine, "_slot", None)
    if slot is None:
        return [f"{type(engine).__name__}._slot"]
    return [f"{type(slot).__name__}.{name}" for name in SLOT if not hasattr(slot, name)]


def requests_in_progress(crawler: Crawler) -> Collection[Request]:
    """Return the requests that are downloaded, or whose responses callbacks are reading."""
    progress: Collection[Request] = _slot(crawler).inprogress
    return progress


def is_closing(crawler: Crawler) -> bool:
    """Tell whether the spider of *crawler* is being closed."""
    slot = _slot(crawler)
    return not crawler.crawling or (slot is not None and slot.closing is not None)


def wake(crawler: Crawler) -> None:
    """Have the engine ask its scheduler for requests soon, and not only at its next heartbeat."""
    if (slot := _slot(crawler)) is not None:
        slot.nextcall.schedule()


def _slot(crawler: Crawler) -> Any:
    """Return the slot of the engine; None where no spider is open."""
    return crawler.engine._slot  # noqa: SLF001  # asked for by `check`
