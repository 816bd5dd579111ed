"""The order of a crawl by several processes: made of its arguments, executed by the parent."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pydantic import BaseModel

from amicrawl.config import PREFIX, CrawlConfig, LogFormat
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.arguments import SeedArguments, SiteArguments

_PARENT = "amicrawl.crawl.processes.parent"
_REFUSED = ("bucket", "webhooks", "metrics", "max_urls")
"""Settings that hold for one process and have no meaning yet for several."""


class Order(BaseModel, frozen=True):
    """What the parent is to do."""

    command: list[str]
    """The command line of the crawl, from the interpreter on."""
    directory: Path
    processes: int
    prefix: str
    file: str = ""
    """The seed list, where there is one."""
    stop_pages: int = 0
    stop_bytes: int = 0
    stop_errors: int = 0
    stop_time: float = 0.0
    drain_time: float = 20.0
    progress_every: float = 0.0
    log_format: LogFormat = LogFormat.TEXT
    fresh: bool = False


def become_parent(
    arguments: SeedArguments | SiteArguments, settings: BaseSettings, *, directory: Path
) -> NoReturn:
    """Replace this process by the parent of a crawl into *directory*.

    Raises UsageError where that cannot be.
    """
    config = CrawlConfig.from_settings(
        {name: settings[name] for name in settings if name.startswith(PREFIX)}
    )
    for name in _REFUSED if arguments.count > 1 else ():
        if getattr(config, name):
            raise UsageError(
                f"{PREFIX}{name.upper()} does not go with processes={arguments.processes}. Leave one of "
                "the two away."
            )
    if not {"crawl", "amicrawl.crawl.start"} & set(sys.orig_argv):
        raise UsageError(
            "Argument processes= is for the commands `scrapy crawl` and `amicrawl crawl`: a script that "
            "runs a crawler has only its own process. Leave it away, or start the command."
        )
    order = Order(
        # The standard error of a process is a pipe: only the parent knows whether there is a terminal.
        command=[*sys.orig_argv, "-s", f"{PREFIX}LOG_FORMAT={config.log_format}"],
        directory=directory.absolute(),
        processes=arguments.count,
        prefix=config.warc_prefix,
        file=arguments.file or "",
        stop_pages=config.stop_pages,
        stop_bytes=config.stop_bytes,
        stop_errors=config.stop_errors,
        stop_time=config.stop_time,
        drain_time=config.drain_time,
        progress_every=config.progress_every,
        log_format=config.log_format,
        fresh=arguments.fresh,
    )
    line = [sys.executable, "-P", "-m", _PARENT, order.model_dump_json()]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(line[0], line, os.environ)  # noqa: S606  # a list, and no shell
