"""Arguments that name archive files: the files themselves, and directories that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.archive.lines import ARCHIVE_ENDINGS, archive_files, files_in, refuse_collection
from amicrawl.archive.location import Location, PathFacts, is_uri, reachable
from amicrawl.disk import explained
from amicrawl.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

ArchiveFiles = Annotated[list[Path], typer.Argument(help="WARC or ARC files, or directories of them.")]

CDXJ_ENDINGS = (".cdxj", ".cdxj.gz")
"""How the names of CDXJ files end."""


def placed_files(named: Sequence[str]) -> dict[Path, tuple[Location, PathFacts]]:
    """Return the files in *named*, paths and URIs, with what is known of each, by `Location.as_path`.

    InputError as `archive_files`.
    """
    found: dict[Path, tuple[Location, PathFacts]] = {}
    for name in named:
        if not is_uri(name):
            for path in archive_files([Path(name)]):
                location = Location.of(path)
                facts = location.facts()
                found[location.as_path] = (location, facts or PathFacts(0, 0))
            continue
        location = Location.of(name)
        with reachable(location):
            facts = location.facts()
            below = {} if facts is not None else location.files()
        if facts is not None:
            found[location.as_path] = (location, facts)
        within = {
            location.below(file): its for file, its in below.items() if file.endswith(ARCHIVE_ENDINGS)
        }
        if facts is None and not within:
            raise InputError(f"{name}: no WARC or ARC file is there. Check the name.")
        found |= {each.as_path: (each, its) for each, its in within.items()}
    return found


def placed_lines(named: Sequence[str], *, suffixes: tuple[str, ...] = CDXJ_ENDINGS) -> list[Location]:
    """Return the files of lines in *named*, paths and URIs; of a directory those that end in *suffixes*.

    InputError where there is none; errors of paths as `files_in`.
    """
    found: list[Location] = []
    for name in named:
        location = Location.of(name)
        if not is_uri(name):
            found += map(Location.of, files_in([Path(name)], suffixes=suffixes))
            continue
        with reachable(location):
            if location.facts() is not None:
                found.append(location)
                continue
            names = [file for file in location.files() if file.endswith(suffixes)]
        refuse_collection(name, names)
        within = [location.below(file) for file in names]
        if not within:
            raise InputError(f"{name} holds no file that ends in {' or '.join(suffixes)}.")
        found += within
    return list(dict.fromkeys(found))


def make_directory(path: Path) -> None:
    """Make the directory *path* where it is not there; OutputError where it cannot be made."""
    with explained(path, "created"):
        path.mkdir(parents=True, exist_ok=True)


def check_output_file(path: Path, *, option: str) -> None:
    """See that *path*, named with *option*, can become a file, before there is work that would be lost.

    OutputError where it is a directory, or in none.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a directory. Name a file with {option}.")
    if not (parent := path.absolute().parent).is_dir():
        raise OutputError(
            f"{path} cannot be written: there is no directory {parent}. Make it, or name another place "
            f"with {option}."
        )
