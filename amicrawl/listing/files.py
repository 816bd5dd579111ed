"""The files of a crawl: what WARC files are called, and what is known of a finished file.

    ami-00000.warc.gz         the prefix, a hyphen, the number, `.warc.gz`
    ami-00000.warc.gz.open    while it is written; a repair sets aside `.tail`

A prefix may change from one crawl of a directory to the next, and with the time it always does. So
numbers are counted over all prefixes: no number comes twice in a directory, and a tool that looks for
whole files looks at how their names end. What is not whole may be another tool's: `repair` checks whose
it is.

A file cut between two gzip members passes every validator; only its size, its count of records and its
SHA-256, kept elsewhere (`SealedFile`), say that something is gone.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import InputError, UsageError
from amicrawl.reading import Members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path


DEFAULT_PREFIX = "ami"
SUFFIX = ".warc.gz"
TAIL_SUFFIX = ".tail"
"""What a repair sets aside behind the whole records of a file."""
LONGEST = 178
"""Characters of a prefix. With a number of 12 digits a name has 199: what an upload takes, and what a
disk takes with `.tail.open` behind it."""

_RUN, _HOST = 122, 40
"""Characters that are kept of a run and of a machine: a job's directory, the time and a machine fit."""
_PLACEHOLDER = re.compile(r"\{(run|time|host)\}")
_PROCESS = re.compile(r"[0-9]{1,3}")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_NUMBERED = re.compile(r".*-([0-9]{5,12})" + re.escape(SUFFIX))
_UNSEALED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)-[0-9]{5,12}" + re.escape(SUFFIX + OPEN_SUFFIX))


def expanded(written: str, *, run: str, started: datetime, host: str) -> str:
    """Return the prefix *written* with its placeholders filled in.

    *run* and *host* may be any text; what cannot stand in a name becomes a hyphen. Raises UsageError
    where the prefix becomes too long.
    """
    values = {
        "run": _fit(run)[-_RUN:].lstrip("-._") or "crawl",
        "time": f"{started.astimezone(UTC):%Y%m%d%H%M%S}",
        "host": _fit(host)[:_HOST] or "unnamed",
    }
    prefix = _PLACEHOLDER.sub(lambda match: values[match[1]], written)
    if len(prefix) > LONGEST:
        raise UsageError(
            f"AMICRAWL_WARC_PREFIX is {written!r}, which stands for {prefix!r} here. That has "
            f"{len(prefix)} characters, and a file's name has room for {LONGEST}: choose a shorter one."
        )
    return prefix


def warc_name(prefix: str, number: int) -> str:
    """Return the name of the file *number*."""
    return f"{prefix}-{number:05d}{SUFFIX}"


def number_in(name: str) -> int | None:
    """Return the number of the WARC file *name*, whatever its prefix and whatever follows `.warc.gz`.

    None where it is not a name that a crawl gives.
    """
    match = _NUMBERED.match(name)
    return int(match[1]) if match else None


def unsealed_prefix(name: str) -> str | None:
    """Return the prefix of *name*, if a WARC file that is not finished may be called so; else None."""
    match = _UNSEALED.fullmatch(name)
    return match[1] if match else None


def _fit(text: str) -> str:
    return _UNFIT.sub("-", text).strip("-._")


TABLE_NAME = "captures.parquet"
"""The index, among the files of a crawl."""
PROCESSES = "processes"
"""The directory of a crawl in several processes that has one for each of them until it has ended."""
PLAN_NAME = "plan.json"
"""The file in it that says how the hosts are assigned: what is there without it is of no use."""
EARLIER_TABLE = "captures-before.parquet"
"""The file in it that has the rows of earlier crawls, while those of now are joined to them."""
NO_EARLIER_TABLE = f"{EARLIER_TABLE}.none"
"""The file in it that says that there were none."""


def process_directories(directory: Path) -> list[Path]:
    """Return the directories of the processes of the crawl in *directory*, by number.

    Empty where one process crawls it, and where the crawl of several has ended.
    """
    folder = directory / PROCESSES
    if not (folder / PLAN_NAME).is_file():
        return []
    found = [path for path in folder.iterdir() if _PROCESS.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name))


def check_gathered(directory: Path) -> None:
    """Raise InputError where *directory* lacks what the processes of a killed crawl have."""
    parts = process_directories(directory)
    if parts:
        raise InputError(
            f"{directory} has a crawl in {len(parts)} processes that has not ended. Start its command "
            "again, which resumes it and puts the directory together, and then this."
        )


def check_tables(directory: Path, tables: Iterable[str]) -> None:
    """Raise InputError where one of *tables*, relative to *directory*, is of such a killed crawl.

    The rows of its processes, and of earlier crawls, may be in several of them.
    """
    for name in tables:
        above, _, below = f"/{name}".partition(f"/{PROCESSES}/")
        if below:
            check_gathered(directory / above.removeprefix("/"))


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A finished file: its line in `crawl.json`."""

    name: str
    size: int
    """Bytes."""
    records: int
    """WARC records of any type, or rows of a table."""
    sha256: str
    """Lower-case hex."""


def described(path: Path, *, records: int) -> SealedFile:
    """Read the file *path*, which holds *records* records, and describe it."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return SealedFile(path.name, path.stat().st_size, records, digest.hexdigest())


def described_warc(path: Path) -> SealedFile:
    """Read the WARC file *path*, and describe it."""
    with path.open("rb") as stream:
        records = sum(1 for _ in Members(stream))
    return described(path, records=records)
