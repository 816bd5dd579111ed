"""`amicrawl frontier rebuild`: make the frontier of a crawl anew from what was archived."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.config import Identity
from amicrawl.disk import DirectoryLock, Disk
from amicrawl.errors import InputError
from amicrawl.record.crawl_json import read_crawl_json
from amicrawl.record.repair import repair_locked
from amicrawl.seed import open_seed
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.seed import Fault

Directory = Annotated[Path, typer.Argument(help="The output directory of a crawl.")]
Seeds = Annotated[
    list[Path] | None,
    typer.Option(help="A seed list to offer, too; without one, that of the crawl if it is still there."),
]
IdentityName = Annotated[
    Identity | None, typer.Option(help="URL identity, if the crawl does not record it.")
]


def rebuild(
    directory: Directory,
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
    from amicrawl.crawl.rebuilding import NAME, rebuild as rebuild_frontier  # noqa: I001, PLC0415

    if directory.name == NAME and not (directory / NAME).is_dir():
        directory = directory.parent
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory. Give the output directory of a crawl.")
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


def _say_of_fault(fault: Fault) -> None:
    typer.echo(harmless(str(fault)), err=True)


def _lists_of(crawl: Mapping[str, Any]) -> list[Path]:
    """Return the seed list that *crawl* was asked for, if it is a file that is still there."""
    name = crawl.get("asked", {}).get("file")
    return [Path(name)] if isinstance(name, str) and name != "-" and Path(name).is_file() else []


def _identity_of(crawl: Mapping[str, Any]) -> Identity:
    named = crawl.get("settings", {}).get("identity")
    if named in set(Identity):
        return Identity(named)
    # Those that read a list tell every line apart; those that follow links, pages.
    return Identity.EXACT if "url" not in crawl.get("asked", {}) else Identity.CANONICAL
