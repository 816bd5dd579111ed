"""One crawl in several processes of one machine: `-a processes=N`, `amicrawl crawl --processes N`.

    specification   what the parent is to do, and which process a child is
    parent      starts the children, carries links between them, ends them together, joins what they made
    child       a fork of the parent: a crawl of the hosts of one shard, in DIR/processes/NUMBER
    lone_child  the parent of one child, whose siblings are on other machines
    dealing     the directory: one frontier dealt to the children, and theirs made one again

Hosts are dealt by `shard_of`, and links travel as in a crawl over several machines: they are in an
outbox on disk before their page is settled, and leave it once the other process has them in its
frontier. Only the carrier differs: a socket to the parent instead of Redis.
"""

from __future__ import annotations

import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawl.arguments import JOB_ARGUMENT
from amicrawl.crawl.event_loop import loop_runs
from amicrawl.crawl.processes.specification import Order, is_child
from amicrawl.crawl.start import START, start_anew
from amicrawl.crawl.watching.screen import start_line
from amicrawl.disk import explained
from amicrawl.errors import UsageError
from amicrawl.listing import PLAN_NAME, PROCESSES, expanded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.arguments import SeedArguments, SiteArguments

    Arguments = TypeVar("Arguments", SeedArguments, SiteArguments)

_REFUSED = ("bucket", "webhooks", "metrics", "max_urls")
"""Settings that hold for one process and have no meaning yet for several."""


def as_process(crawler: Crawler, arguments: Arguments, given: Mapping[str, object]) -> Arguments:
    """Return *arguments* as this process follows them; become the parent where several are wanted.

    *given* is what they were parsed from. Raises UsageError where several processes cannot be had.
    """
    # What is imported here is large, and most crawls are one process.
    if is_child():
        from amicrawl.crawl.processes.child import as_child  # noqa: PLC0415

        return as_child(arguments, crawler.settings)
    settings = crawler.settings
    out = Path(arguments.out or settings.get("AMICRAWL_OUT") or CrawlConfig.model_fields["out"].default)
    job = "" if arguments.out else str(given.get(JOB_ARGUMENT, ""))
    run_id = arguments.run_id or settings.get("AMICRAWL_RUN_ID") or job
    directory = out / run_id if run_id else out
    with explained(directory, "used"):
        has_plan = (directory / PROCESSES / PLAN_NAME).exists()
    # One process gathers what several have left before it begins.
    if arguments.count > 1 or has_plan:
        order = _order(arguments, settings, directory=directory)
        if loop_runs():
            start_anew(order.arguments, as_parent=True)
        from amicrawl.crawl.processes.parent import become_parent  # noqa: PLC0415

        become_parent(order)
    return arguments


def _order(
    arguments: SeedArguments | SiteArguments, settings: BaseSettings, *, directory: Path
) -> Order:
    """Return what the parent of a crawl into *directory* is to do. Raises UsageError."""
    config = CrawlConfig.from_settings(
        {name: settings[name] for name in settings if name.startswith(PREFIX)}
    )
    for name in _REFUSED if arguments.count > 1 else ():
        if getattr(config, name):
            raise UsageError(
                f"{PREFIX}{name.upper()} does not go with processes={arguments.processes}. Leave one of "
                "the two away."
            )
    return Order(
        arguments=[*_command_line(), *_with_one_log(settings)],
        directory=directory.absolute(),
        processes=arguments.count,
        # Once for all: a child would take its own directory for the run.
        prefix=expanded(
            config.warc_prefix,
            run=directory.absolute().name,
            started=datetime.now(UTC),
            host=socket.gethostname(),
        ),
        config=config,
        file=arguments.file or "",
        format=arguments.format,
        fresh=arguments.fresh,
        start=start_line(
            config,
            asked={"file": arguments.file or "", "url": " ".join(getattr(arguments, "url", ()))},
            directory=directory,
            processes=arguments.count,
        ),
    )


def _with_one_log(settings: BaseSettings) -> list[str]:
    """Return the words that have all processes add to one log, which is emptied here if it is to be."""
    name = settings.get("LOG_FILE")
    if not name or settings.getbool("LOG_FILE_APPEND"):
        return []
    with explained(Path(name), "written to"), Path(name).open("wb"):
        return ["-s", "LOG_FILE_APPEND=True"]


def _command_line() -> list[str]:
    """Return the words behind `crawl` with which this process was started; raises UsageError."""
    if START in sys.orig_argv:
        return sys.orig_argv[sys.orig_argv.index(START) + 1 :]
    if "crawl" in sys.orig_argv:
        # Scrapy has taken the name of its command out of these.
        return sys.argv[1:]
    raise UsageError(
        "Argument processes= is for the commands `scrapy crawl` and `amicrawl crawl`: a script that "
        "runs a crawler has only its own process. Leave it away, or start the command."
    )
