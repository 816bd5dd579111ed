"""`amicrawl frontier retry`: have URLs asked for again by the next crawl, whenever they would be due."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from amicrawl.cli.frontier.output import STATUSES, hour_now
from amicrawl.cli.frontier.source import frontier_directory
from amicrawl.crawl.policy import read_policy, write_policy
from amicrawl.disk import Disk
from amicrawl.errors import UsageError
from amicrawl.frontier.live import LivePartition
from amicrawl.frontier.requeue import failed, make_due
from amicrawl.frontier.states import WAITING, Status
from amicrawl.terminal import counted
from amicrawl.urls import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence


_FAILED = (*WAITING, Status.GONE, Status.EXCLUDED, Status.WITHHELD)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The output directory of a crawl.")]
Statuses = Annotated[
    list[str] | None,
    typer.Option(
        "--status",
        metavar="STATUS",
        help="Only URLs in this state (gone, withheld, ...) or with this HTTP status; repeatable.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="Only URLs of this host and the hosts under it."),
]


def retry(directory: Directory, *, status: Statuses = None, host: Host = None) -> None:
    """Make URLs that brought no page due at once for the next crawl into DIR.

    Those are all that failed, are gone, are forbidden by robots.txt or were withheld. No crawl may be
    running in DIR. Example: amicrawl frontier retry ami-out --status 503
    """
    states, http_statuses = _chosen(status or [])
    place = frontier_directory(directory)
    hour = hour_now()
    partition = LivePartition(place, disk=Disk(), hour=hour, meta={})
    try:
        numbers = failed(partition, statuses=states, http_statuses=http_statuses)
        if host is not None:
            numbers = numbers[[_is_of(partition, number, host.lower()) for number in numbers.tolist()]]
        make_due(partition, numbers, hour=hour)
        partition.flush()
        known = read_policy(place)
        write_policy(place, known, asked_again=len(numbers) > 0, disk=Disk())
    except BaseException:
        partition.abandon()
        raise
    partition.close(hour)
    typer.echo(_sentence(len(numbers), directory))


def _sentence(number: int, directory: Path) -> str:
    if not number:
        return (
            f"No URL in {directory} matches. `amicrawl frontier stats {directory}` says what there is."
        )
    are = "is" if number == 1 else "are"
    return (
        f"{counted(number, 'URL')} {are} due now. Start the crawl into {directory} again to fetch them."
    )


def _chosen(given: Sequence[str]) -> tuple[list[Status], list[int]]:
    """Return the states and the HTTP statuses that *given* names; raises UsageError."""
    if not given:
        return list(_FAILED), []
    states, http_statuses = [], []
    for name in given:
        if name in STATUSES:
            states.append(Status(STATUSES.index(name)))
        elif name.isascii() and name.isdigit() and 100 <= int(name) <= 999:
            http_statuses.append(int(name))
        else:
            raise UsageError(
                f"--status {name} is neither a state nor an HTTP status. Give a number like 503, or one "
                f"of {', '.join(STATUSES)}."
            )
    return states, http_statuses


def _is_of(partition: LivePartition, number: int, host: str) -> bool:
    url = text_of(partition.texts_at(partition.get(number).url_ref)[0])
    try:
        name = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return False
    return name == host or name.endswith(f".{host}")
