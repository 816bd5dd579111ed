"""One crawl in several processes of one machine: `-a processes=N`, `amicrawl crawl --processes N`.

    order       what is asked for, checked; the process becomes the parent
    parent      starts the children, carries links between them, ends them together, joins what they made
    screen      one progress for all, and the log lines of the children
    child       an ordinary crawl of the hosts of one shard, in DIR/processes/NUMBER
    dealing     the directory: one frontier dealt to the children, and theirs made one again

Hosts are dealt by `shard_of`, and links travel as in a crawl over several machines: they are in an
outbox on disk before their page is settled, and leave it once the other process has them in its
frontier. Only the carrier differs: a socket to the parent instead of Redis.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from amicrawl.config import CrawlConfig
from amicrawl.crawl.processes.specification import FOLDER, is_child

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from amicrawl.crawl.arguments import SeedArguments, SiteArguments

    Arguments = TypeVar("Arguments", SeedArguments, SiteArguments)


def as_process(crawler: Crawler, arguments: Arguments, *, job: str = "") -> Arguments:
    """Return *arguments* as this process follows them; become the parent where several are asked for.

    *job* is the name that scrapyd gave the crawl. Raises UsageError where several processes cannot be
    had.
    """
    # What is imported here is large, and most crawls are one process.
    if is_child():
        from amicrawl.crawl.processes.child import as_child  # noqa: PLC0415

        return as_child(arguments, crawler.settings)
    settings = crawler.settings
    out = Path(arguments.out or settings.get("AMICRAWL_OUT") or CrawlConfig.model_fields["out"].default)
    run_id = arguments.run_id or settings.get("AMICRAWL_RUN_ID") or ("" if arguments.out else job)
    directory = out / run_id if run_id else out
    # One process gathers what several have left before it begins.
    if arguments.count > 1 or (directory / FOLDER).exists():
        from amicrawl.crawl.processes.order import become_parent  # noqa: PLC0415

        become_parent(arguments, settings, directory=directory)
    return arguments
