"""`amicrawl share work`: partitions of a shared crawl, crawled on this machine."""

from __future__ import annotations

import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from amicrawl.cli.options import Settings, grouped
from amicrawl.cli.project import (
    OUR_SETTINGS,
    SETTINGS_MODULE,
    options_of_crawls,
    settings_module,
)
from amicrawl.cli.redis_options import RedisOptions
from amicrawl.cli.share.creation import Name, refuse_programs
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError
from amicrawl.fleet.database import connect
from amicrawl.fleet.leases import LEASE
from amicrawl.fleet.sharing import (
    Share,
    ShareWorker,
    checked_name,
    child_command,
    starts_of,
    written_once,
)

_END = {
    ExitCode.DONE: "The crawl has ended.",
    ExitCode.STOPPED: "Stopped; the partitions that were held here wait for another worker.",
    ExitCode.OUR_ERROR: "The crawl has ended, but for what was given up.",
}

_LEASE = LEASE.total_seconds()

Data = Annotated[Path, typer.Option("--data", help="Directory for what is crawled here.")]
Slots = Annotated[int, typer.Option("--slots", min=1, help="Partitions crawled at once.")]
Lease = Annotated[float, typer.Option("--lease", min=1.0, help="Duration of a lease in seconds.")]
Turn = Annotated[
    float,
    typer.Option(
        "--turn", min=0.0, help="Seconds after which a partition gives way to waiting ones; 0: never."
    ),
]


@grouped
def work(
    name: Name,
    *,
    data: Data,
    slots: Slots = 1,
    lease: Lease = _LEASE,
    turn: Turn = 0.0,
    settings: Settings = None,
    redis: RedisOptions,
) -> None:
    """Work on the shared crawl NAME until it has ended.

    Each partition is crawled into DATA/NAME/part-NNN by `scrapy crawl site -a share=NAME` (`seeds` for
    a list). On the first signal the crawls here stop in order, and their partitions wait for another
    worker. Example:
    amicrawl share work gov --slots 4 --data /var/crawls
    """
    checked_name(name)
    given = options_of_crawls(settings)
    way = redis.settings()
    store = connect(way)
    share, disk = Share.open(store, name), Disk()
    _arguments_of(share, data / name, disk=disk)

    def command(number: int, directory: Path) -> list[str]:
        # Anew for each crawl: start URLs may have been added, which make the scope.
        further = [*_arguments_of(share, data / name, disk=disk), *given]
        return child_command(share.record, number, directory.absolute(), further)

    worker = ShareWorker(
        share,
        data,
        command=command,
        environment={**way.environment(), SETTINGS_MODULE: settings_module() or OUR_SETTINGS},
        slots=slots,
        ttl=timedelta(seconds=lease),
        turn=timedelta(seconds=turn),
        disk=disk,
        tell=lambda sentence: typer.echo(sentence, err=True),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.signalled())
    try:
        worker.run()
    finally:
        store.close()
    typer.echo(_END.get(worker.code, f"Ended with code {worker.code}."), err=True)
    sys.exit(worker.code)


def _arguments_of(share: Share, directory: Path, *, disk: Disk) -> list[str]:
    """Return the arguments of every child, with the files that they name written to *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    record = share.record
    # What a crawl file says of starts is not meant here: they come in batches.
    further = ["-a", "file="] if record.is_list else ["-a", f"depth={record.depth}", "-a", "url="]
    if record.config:
        path = written_once(directory / "crawl.toml", record.config.encode("utf-8"), disk=disk)
        # A client that may write to Redis must not have a program run here.
        from amicrawl.crawlfile import read_crawl_file  # noqa: PLC0415  # as above

        of_crawl = f"The crawl file of the shared crawl {record.name}"
        refuse_programs(read_crawl_file(path, needs_operator=False).settings, what=of_crawl)
        further += ["-a", f"config={path.absolute()}"]
    if record.is_list:
        return further
    if record.scoped:
        further += ["-a", "file="]
    else:
        urls = starts_of(share)
        if not urls:
            raise InputError(
                f"The start URLs of {record.name} are not in Redis yet. Wait until `amicrawl share "
                "create` has ended; if it was broken off, repeat it with --add."
            )
        path = written_once(
            directory / "starts.txt",
            "".join(f"{url}\n" for url in urls).encode("utf-8", "surrogatepass"),
            disk=disk,
        )
        further += ["-a", f"file={path.absolute()}", "-a", "format=lines"]
    return further
