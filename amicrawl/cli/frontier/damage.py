"""`amicrawl frontier verify`, `rebuild` and `retry`: damaged frontiers, and URLs that failed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.frontier.rows import AnyPath, hour_now
from amicrawl.cli.options import AsJson, CrawlDirectory, check_directory, json_text, print_lines
from amicrawl.config import Identity
from amicrawl.crawl import request_again
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.errors import DamagedFileError, ExitCode, InputError, UsageError
from amicrawl.listing import process_directories, read_crawl_json
from amicrawl.meguri import STATUSES, WAITING, Status, find_damage, frontier_directory
from amicrawl.record import repair_locked
from amicrawl.seed import open_seed
from amicrawl.terminal import counted, harmless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amicrawl.seed import SeedFault


def verify(path: AnyPath, *, as_json: AsJson = False) -> None:
    """Verify all of PATH and report every fault; exit code 5 if there is any.

    Of a directory every snapshot is read, and what they and the logs give together. A note is about what
    a kill leaves, or what the format allows and a frontier of ours never has.
    Example: amicrawl frontier verify ami-out
    """
    found = find_damage(path)
    name = harmless(str(path))
    if as_json:
        facts = {"path": str(path), "sound": not found.damage}
        facts |= {"findings": list(map(_facts, found.damage)), "notes": found.notes}
        print_lines([json_text(facts)])
    else:
        print_lines(harmless(str(error)) for error in found.damage)
        print_lines(f"note: {harmless(note)}" for note in found.notes)
        count = len(found.damage)
        print_lines([f"{name} is damaged: {count} finding(s)" if count else f"{name} is sound"])
    if found.damage:
        raise typer.Exit(ExitCode.DAMAGED)


def _facts(error: DamagedFileError) -> dict[str, Any]:
    return {
        "path": str(error.path),
        "byte": error.offset,
        "reason": error.reason,
        "region": getattr(error, "region", None),
        "fault": getattr(error, "fault", None),
    }


_FAILED = (*WAITING, Status.GONE, Status.EXCLUDED, Status.WITHHELD)

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


def retry(
    directory: CrawlDirectory, *, status: Statuses = None, host: Host = None, as_json: AsJson = False
) -> None:
    """Queue URLs that returned no page again, for the next crawl into DIRECTORY.

    Those are all that failed, are gone, are forbidden by robots.txt or were withheld. No crawl may be
    running in DIRECTORY. Example: amicrawl frontier retry ami-out --status 503
    """
    states, http_statuses = _chosen(status or [])
    number = request_again(
        frontier_directory(directory),
        statuses=states,
        http_statuses=http_statuses,
        host=host,
        hour=hour_now(),
        disk=Disk(),
    )
    facts = {"path": str(directory), "urls": number}
    print_lines([json_text(facts) if as_json else harmless(_sentence(number, directory))])


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
        elif name.isascii() and name.isdigit() and len(name) == 3 and int(name) >= 100:
            http_statuses.append(int(name))
        else:
            raise UsageError(
                f"--status {name} is neither a state nor an HTTP status. Give a number like 503, or one "
                f"of {', '.join(STATUSES)}."
            )
    return states, http_statuses


Seeds = Annotated[
    list[Path] | None,
    typer.Option(help="A seed list to offer, too; without one, that of the crawl if it is still there."),
]
IdentityName = Annotated[
    Identity | None, typer.Option(help="URL identity, if the crawl does not record it.")
]


def rebuild(
    directory: CrawlDirectory,
    *,
    seeds: Seeds = None,
    identity: IdentityName = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the frontier in DIRECTORY from the archive; the old one is kept beside it.

    For a frontier that cannot be opened or lacks a journal. What can be read of it is taken over, every
    capture of the index (or record, without an index) settles its URL, and seeds are offered: nothing
    that is archived is fetched again. No crawl may be running there.
    Example: amicrawl frontier rebuild ami-out
    """
    # Loading Scrapy takes a second, which no other command of this group should wait for.
    from amicrawl.crawl import rebuild as rebuild_frontier  # noqa: PLC0415
    from amicrawl.crawl.rebuilding import NAME  # noqa: PLC0415

    if directory.name == NAME and not (directory / NAME).is_dir():
        directory = directory.parent
    check_directory(directory)
    found = any(_is_of_a_crawl(path.name) for path in directory.iterdir())
    if not (found or process_directories(directory)):
        raise InputError(f"{directory} holds no crawl. Give the output directory of one.")
    disk = Disk()
    with ExitStack() as stack:
        stack.enter_context(DirectoryLock(directory))
        repair_locked(directory, disk=disk)
        crawl = read_crawl_json(directory)
        readers = [
            stack.enter_context(open_seed(str(path), on_fault=_say_of_fault))
            for path in seeds or _lists_of(crawl)
        ]
        made = rebuild_frontier(
            directory,
            disk=disk,
            identity=identity or _identity_of(crawl),
            seeds=(seed for reader in readers for seed in reader),
        )
    print_lines([json_text(asdict(made)) if as_json else harmless(made.sentence())])
    for cut in filter(None, (reader.cut for reader in readers)):
        raise cut


def _is_of_a_crawl(name: str) -> bool:
    """Return whether *name* is that of a part of a crawl, from which a frontier can be rebuilt."""
    return name.startswith(("frontier", "captures", "crawl.json")) or ".warc" in name


def _say_of_fault(fault: SeedFault) -> None:
    typer.echo(harmless(str(fault)), err=True)


def _lists_of(crawl: Mapping[str, Any]) -> list[Path]:
    """Return the seed list that *crawl* was started with, if it is a file that is still there."""
    name = crawl.get("asked", {}).get("file")
    return [Path(name)] if isinstance(name, str) and name != "-" and Path(name).is_file() else []


def _identity_of(crawl: Mapping[str, Any]) -> Identity:
    named = crawl.get("settings", {}).get("identity")
    if named in set(Identity):
        return Identity(named)
    # Those that read a list tell every line apart; those that follow links, pages.
    return Identity.EXACT if "url" not in crawl.get("asked", {}) else Identity.CANONICAL
