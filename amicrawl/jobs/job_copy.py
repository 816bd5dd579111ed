"""JobCopy: what a crawl remembers of its own job, so that it can be written to a Redis that was emptied.

It lies as `job.json` in the crawl directory and in the memory of the crawl:

    format          1
    unit, token     what is crawled, and by which claim
    epoch           the text under `amicrawl:epoch` when it was last seen: a database that was emptied
                    has another
    record          fields of the record by name; those that figures go to are left out
    ignores         expressions
    desired         live settings that ArchiveBot has no field for
    claim           fields of the claim
    config          the text of the crawl file that the job was submitted with

What is read back is checked: the file lies where others may write.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import orjson

from amicrawl.disk import replace_file
from amicrawl.errors import InputError
from amicrawl.jobs import lookup, redis_values
from amicrawl.jobs.lease import ident_of_unit
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.jobs.connection import JobStore

FILE_NAME = "job.json"
FORMAT = 1
SIZE_LIMIT = 32 * 1024**2

_NOT_REMEMBERED = frozenset({"finished_at", "aborted", "failed", "last_broadcasted_log_entry", "ts"})


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
        content = _clean({"format": FORMAT, **asdict(self)})
        return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """Return what *directory* remembers, or None where it remembers no job.

        Raises InputError for a file that cannot be read as one.
        """
        path = directory / FILE_NAME
        try:
            with path.open("rb") as file:
                content = file.read(SIZE_LIMIT + 1)
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
        if content["format"] != FORMAT:
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
        )


def write_copy(directory: Path, content: bytes, *, disk: Disk) -> None:
    """Replace `job.json` in *directory* by *content*; raises OutputError where the disk fails."""
    replace_file(directory / FILE_NAME, content, disk=disk)


def fetched_copy(store: JobStore, unit: str, *, token: int) -> JobCopy:
    """Return what Redis holds of *unit*; the record is empty where there is none.

    Raises RedisUnavailable; what is of a wrong type, or too large, counts as absent.
    """
    keys, ident = store.keys, ident_of_unit(unit)
    with store.answering():
        record, claim = redis_values.hashes_at(store, [keys.job(ident), keys.claim(unit)])
        return JobCopy(
            unit=unit,
            token=token,
            epoch=redis_values.text_at(store, keys.own("epoch"), longest=100) or "",
            record=record if record.get("url") else {},
            ignores=lookup.ignores(store, ident),
            desired=lookup.desired(store, ident),
            claim=claim,
            config=lookup.config(store, ident) or "",
        )


def restore(store: JobStore, copy: JobCopy, *, lease_ms: int, epoch: str) -> bool:
    """Write *copy* into a Redis that has forgotten the job; False where another owner has it now.

    *epoch* is the text that begins a new one where there is none. Raises as `store` does.
    """
    keys, ident = store.keys, copy.ident
    record = {name: value for name, value in copy.record.items() if name not in _NOT_REMEMBERED}
    # A reader of ArchiveBot's that finds no mark begins at a number that is none.
    record.setdefault("last_broadcasted_log_entry", "0")
    claim = {name: value for name, value in copy.claim.items() if name not in {"token", "state"}}
    pairs = [text for each in (record, claim, copy.desired) for pair in each.items() for text in pair]
    queue = keys.queue(copy.claim.get("queue") or "pending")
    with store.answering():
        args: list[str | int] = [copy.unit, copy.token, lease_ms, epoch, keys.updates, copy.config]
        args += [len(record), len(claim), len(copy.desired), *pairs, *copy.ignores]
        done, copy.epoch = store.scripts(
            "restore",
            keys=[
                *(keys.job(ident), keys.ignores(ident), keys.claim(copy.unit), keys.lease(copy.unit)),
                *(keys.desired(ident), keys.config(ident), keys.own("epoch"), keys.token_counter),
                *(keys.working, queue),
            ],
            args=args,
        )
    return bool(done)


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
