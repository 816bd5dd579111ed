"""Builds what a crawl takes of its pages, from its configuration and its start URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.crawl.following import Following
from amicrawl.discovery.configured import has_scope, make_selection

if TYPE_CHECKING:
    from amicrawl.crawl.run import Run


def make_following(run: Run, spider: Any) -> Following:
    """Return what the crawl of *spider*, which has `starts` and a `depth`, takes of its pages.

    Raises UsageError as `make_selection` does.
    """
    starts = [seed.url for seed in spider.starts]
    return Following(
        make_selection(run.config, starts, depth=spider.depth),
        key_of=run.key_of,
        starts=starts,
        depth=spider.depth,
        widens=not has_scope(run.config),
        max_urls=run.config.max_urls,
        max_host_urls=run.config.max_host_urls,
    )
