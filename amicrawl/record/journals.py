"""The journals of a directory, by their names, and which of them `captures.parquet` has taken in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amicrawl.disk import explained, remove_durably
from amicrawl.record.sealed import TABLE_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk

JOURNAL_NAME = "captures-{:05d}"
LAST_JOURNAL = b"amicrawl.last_journal"
"""The key in the metadata of `captures.parquet` that names the last journal which it holds."""

_JOURNAL = re.compile(r"captures-(\d{5,12})\.open")


def journals(directory: Path) -> list[Path]:
    """Return the journals in *directory* that `captures.parquet` has not taken in, oldest first."""
    return [path for number, path in _numbered_journals(directory) if number > _last_taken_in(directory)]


def next_journal(directory: Path) -> int:
    """Return the number of the next journal in *directory*."""
    numbers = [number for number, _ in _numbered_journals(directory)]
    return 1 + max(numbers, default=_last_taken_in(directory))


def remove_taken_in(directory: Path, *, disk: Disk) -> None:
    """Remove the journals that `captures.parquet` holds."""
    last = _last_taken_in(directory)
    for number, path in _numbered_journals(directory):
        if number <= last:
            remove_durably(path, disk=disk)


def _numbered_journals(directory: Path) -> list[tuple[int, Path]]:
    with explained(directory, "read"):
        matches = [(_JOURNAL.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted((int(match[1]), path) for match, path in matches if match)


def _last_taken_in(directory: Path) -> int:
    """Return the number of the last journal that `captures.parquet` holds; -1 where there is none."""
    path = directory / TABLE_NAME
    if not path.exists():
        return -1
    # Arrow takes longer to load than a new crawl to open, and a new crawl has no table.
    from amicrawl.record.table_reader import opened_index  # noqa: PLC0415

    with opened_index(path) as table:
        value = table.metadata.get(LAST_JOURNAL, b"-1")
    return int(value) if re.fullmatch(rb"-?\d{1,12}", value) else -1
