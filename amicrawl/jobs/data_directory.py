"""Jobs on disk: the data directory of a pipeline, and in it a directory for each job.

    DATA/.amicrawl-store      a UUID: pipelines that find the same one share the directory
    DATA/STOP                 made or touched: the pipeline takes no more jobs, and ends
    DATA/alive                touched once a second by what works here, for a probe that looks at its age
    DATA/BASE/                the crawl directory of a job; BASE is SLUG-YYYYMMDD-HHMMSS-IDENT, five
                              characters of the ident
    DATA/BASE/fence.json      {"unit": ..., "token": ...}: the claim under which it may be written to
    DATA/BASE/console.log     what the crawl printed
    DATA/BASE.json            the job in short, for programs that collect the files (`record.py`)

A fence only goes up: a crawl that finds a higher token in it than its own stops without writing.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from typing import TYPE_CHECKING

import orjson

from amicrawl.disk import explained, replace_file
from amicrawl.errors import OutputError, UsageError
from amicrawl.jobs.ident import base_name

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from amicrawl.disk import Disk

STORE_MARK = ".amicrawl-store"
STOP_FILE = "STOP"
ALIVE_FILE = "alive"
FENCE = "fence.json"
CONSOLE = "console.log"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,180}")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_LENGTH = 100
_FENCE_LIMIT = 10_000


def opened_store(data: Path, *, disk: Disk) -> str:
    """Return the UUID of the data directory *data*, which is made where it is missing.

    Raises OutputError where it cannot be made or written to, UsageError where its mark holds no UUID.
    """
    mark = data / STORE_MARK
    with explained(data, "used for jobs"):
        data.mkdir(parents=True, exist_ok=True)
        found = _read_mark(mark)
        if found is None:
            own = data / f"{STORE_MARK}-{uuid.uuid4()}"
            replace_file(own, str(uuid.uuid4()).encode() + b"\n", disk=disk)
            # A link is made for one pipeline only, if several begin on an empty directory at once.
            with contextlib.suppress(FileExistsError):
                os.link(own, mark)
            disk.remove(own)
            disk.sync_directory(data)
            found = _read_mark(mark)
    if found is None or _UUID.fullmatch(found) is None:
        raise UsageError(
            f"{mark} holds no UUID. Restore it, or remove it if no job of this directory runs."
        )
    return found


def new_base(slug: str, when: datetime, ident: str, *, data: Path) -> str:
    """Return the name of a crawl directory that is not taken in *data*, and make that directory.

    *slug* may be any text. Raises OutputError where the directory cannot be made.
    """
    fit = _UNFIT.sub("-", slug).strip("-._")[:_SLUG_LENGTH] or "job"
    for base in (base_name(fit, when, ident), f"{base_name(fit, when, ident)}-{ident}"):
        with explained(data / base, "made"):
            try:
                (data / base).mkdir()
            except FileExistsError:
                continue
        return base
    raise OutputError(
        f"{data / base} is there already. Two jobs of one name cannot begin in one second."
    )


def is_base(name: str) -> bool:
    """Tell whether *name*, which Redis said, can be a crawl directory's, and leads nowhere else."""
    return _BASE.fullmatch(name) is not None


def raise_fence(directory: Path, unit: str, token: int, *, disk: Disk) -> bool:
    """Have the claim *token* on *unit* be the one that may write to *directory*.

    False, and nothing changed, where a higher token holds it. Raises OutputError.
    """
    if fenced(directory) > token:
        return False
    path = directory / FENCE
    with explained(path, "written"):
        replace_file(path, orjson.dumps({"unit": unit, "token": token}) + b"\n", disk=disk)
    return True


def fenced(directory: Path) -> int:
    """Return the token in the fence of *directory*; 0 where there is none that can be read."""
    try:
        with (directory / FENCE).open("rb") as file:
            read = orjson.loads(file.read(_FENCE_LIMIT))
        token = read["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return token if isinstance(token, int) else 0


def show_life(data: Path) -> None:
    """Touch the file that says that what works in *data* lives; a disk that refuses is not its fault."""
    with contextlib.suppress(OSError):
        (data / ALIVE_FILE).touch()


def _read_mark(mark: Path) -> str | None:
    try:
        with mark.open("rb") as file:
            return file.read(100).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
