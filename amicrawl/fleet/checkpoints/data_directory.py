"""Jobs on disk: the data directory of a pipeline, and in it a directory for each job.

    DATA/.amicrawl-store      a UUID: pipelines that find the same one share the directory
    DATA/STOP                 made or touched: the pipeline takes no more jobs, and ends
    DATA/alive                touched once a second by what works here, for a probe that looks at its age
    DATA/BASE/                the crawl directory of a job; BASE is SLUG-YYYYMMDD-HHMMSS-IDENT, five
                              characters of the ident
    DATA/BASE/fence.json      {"unit": ..., "token": ...}: the claim under which it may be written to
    DATA/BASE/job.json        what the crawl remembers of its job, for a Redis that was emptied
    DATA/BASE/console.log     what the crawl printed
    DATA/BASE.json            the job in short, for programs that collect the files (`record.py`)

A fence only goes up: a crawl that finds a higher token in it than its own stops without writing.

`job.json` has these fields, which are checked when they are read, since others may write there:

    format          1
    unit, token     what is crawled, and by which claim
    epoch           the text under `amicrawl:epoch` when it was last seen: a database that was emptied
                    has another
    record          fields of the record by name; those that figures go to are left out
    ignores         expressions
    desired         live settings that ArchiveBot has no field for
    claim           fields of the claim
    config          the text of the crawl file that the job was submitted with
    unsent          entries of the log that had not reached Redis when the crawl ended
    reported        whether all that the crawl had to report has reached Redis
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import orjson

from amicrawl.disk import explained, replace_file
from amicrawl.errors import InputError, OutputError, UsageError
from amicrawl.fleet.database import base_name
from amicrawl.fleet.leases import ident_of_unit
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from amicrawl.disk import Disk

STORE_MARK = ".amicrawl-store"
STOP_FILE = "STOP"
ALIVE_FILE = "alive"
CONSOLE = "console.log"
JOB_COPY = "job.json"
COPY_FORMAT = 1

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,180}")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_LENGTH = 100
_COPY_LIMIT = 32 * 1024**2


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


def is_base_of(name: str, ident: str) -> bool:
    """Tell whether *name*, which Redis said, can be that of a crawl directory of the job *ident*."""
    return is_base(name) and name.rpartition("-")[2] in {ident, ident[:5]}


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


@dataclass(slots=True)
class JobCopy:
    """One job as its crawl remembers it."""

    unit: str
    token: int = 0
    epoch: str = ""
    record: dict[str, str] = field(default_factory=dict)
    ignores: list[str] = field(default_factory=list)
    desired: dict[str, str] = field(default_factory=dict)
    claim: dict[str, str] = field(default_factory=dict)
    config: str = ""
    config_fault: str = ""
    """Why the crawl file in Redis could not be read: the job is not crawled without what it says."""
    unsent: list[str] = field(default_factory=list)
    reported: bool = False

    @property
    def ident(self) -> str:
        """The job that the unit is, or is a part of."""
        return ident_of_unit(self.unit)

    def remember(self, fields: Mapping[str, str]) -> None:
        """Take over *fields* of the record; an empty text is a field that is gone."""
        for name, value in fields.items():
            if value:
                self.record[name] = value
            else:
                self.record.pop(name, None)

    def write(self, directory: Path, *, disk: Disk) -> None:
        """Replace `job.json` in *directory*; raises OutputError where the disk fails."""
        write_copy(directory, self.encoded(), disk=disk)

    def encoded(self) -> bytes:
        """Return what `job.json` holds; a lone surrogate, which UTF-8 cannot say, becomes a `?`."""
        content = _clean({"format": COPY_FORMAT, **asdict(self)})
        return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """Return what *directory* remembers, or None where it remembers no job.

        Raises InputError for a file that cannot be read as one.
        """
        path = directory / JOB_COPY
        try:
            with path.open("rb") as file:
                content = file.read(_COPY_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        try:
            return cls._of(parsed(content))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path} is not what a crawl remembers of its job ({error}). Remove it if the job is "
                "known to Redis."
            ) from error

    @classmethod
    def _of(cls, content: Any) -> Self:
        if content["format"] != COPY_FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        return cls(
            unit=_text(content["unit"]),
            token=int(content["token"]),
            epoch=_text(content["epoch"]),
            record=_texts(content["record"]),
            ignores=[_text(pattern) for pattern in content["ignores"]],
            desired=_texts(content["desired"]),
            claim=_texts(content["claim"]),
            config=_text(content["config"]),
            config_fault=_text(content.get("config_fault", "")),
            unsent=[_text(entry) for entry in content.get("unsent", [])],
            reported=content.get("reported", False) is True,
        )


def write_copy(directory: Path, content: bytes, *, disk: Disk) -> None:
    """Replace `job.json` in *directory* by *content*; raises OutputError where the disk fails."""
    replace_file(directory / JOB_COPY, content, disk=disk)


def _texts(value: Any) -> dict[str, str]:
    return {_text(name): _text(text) for name, text in value.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(name): _clean(text) for name, text in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value
