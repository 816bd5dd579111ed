"""When a crawl is due again, and where it goes: a decision about what `crawl.json` says. Mostly pure.

`last_crawls` reads; `plan` decides. A crawl that ended cleanly rests for `every`, from its end on. One
that was interrupted, killed, or ended by a limit of its own with URLs left, is resumed in its own
directory until `every` has passed since it began; then a new one begins where `run_id` names new
directories.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.directory_lock import is_locked
from amicrawl.errors import DamagedFileError
from amicrawl.listing import FILE_NAME, read_crawl_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SAMPLE = datetime(2027, 1, 31, 18, 30, 5, tzinfo=UTC)
"""A moment at which a `run_id` is tried out."""
_CODE = re.compile(r"%[-_0^#]*[0-9]*[EO]?[A-Za-z%]")
"""A code of strftime, with the flags of glibc."""
_NUMERIC = frozenset("CFGHIMSUVWYdefgjklmsuwy")
"""Codes that give digits, with hyphens between them at most."""
_NUMBERS, _WORDS = r"[0-9][0-9-]*", r"[A-Za-z0-9._-]+"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CLEAN_STATE = "finished"
_NOT_CLEAN = frozenset(
    {"shutdown", "stopped at once", "stop-file", "output_failed", "limit-errors", "limit-disk"}
)
_LIMITED = frozenset({"limit-pages", "limit-bytes", "limit-time"})
"""Finish reasons of a crawl that is finished only if nothing was left."""


@dataclass(frozen=True, slots=True)
class CrawlSchedule:
    """What a crawl file says of when."""

    every: timedelta | None = None
    """How long after its end a finished crawl is due again; None: always."""
    recrawl: bool = False
    """Whether it is then requested again in place."""

    @property
    def every_text(self) -> str:
        """`every` in its largest unit, as `duration_of` reads it: in another, digits may not suffice."""
        assert self.every is not None
        whole = {unit: timedelta(**{name: 1}) for unit, name in _UNITS.items()}
        unit = [unit for unit, span in whole.items() if not self.every % span][-1]
        return f"{self.every // whole[unit]}{unit}"


class LastCrawl(NamedTuple):
    """What a directory's `crawl.json` says of the latest crawl into it."""

    run_id: str
    started: datetime
    finished: datetime | None
    """When it ended cleanly; None where it did not."""
    is_running: bool = False


class Action(StrEnum):
    """What is to be done now."""

    CRAWL = "crawl"
    RECRAWL = "recrawl"
    WAIT = "wait"


class Plan(NamedTuple):
    """What is to be done now, and where."""

    action: Action
    run_id: str
    sentence: str = ""
    """Why nothing is to be done."""


def duration_of(text: str) -> timedelta:
    """Return the span that *text* names: `30m`, `12h`, `7d`, `4w`."""
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def run_id_at(pattern: str, moment: datetime) -> str:
    """Return *pattern* with the codes of strftime in it replaced, in UTC."""
    return moment.astimezone(UTC).strftime(pattern) if "%" in pattern else pattern


def plan(schedule: CrawlSchedule, run_id: str, crawls: Sequence[LastCrawl], *, now: datetime) -> Plan:
    """Return what is to be done at *now*, given the latest *crawls* by this file, in any order.

    *run_id* may hold codes of strftime.
    """
    fresh = run_id_at(run_id, now)
    latest = max(crawls, key=lambda crawl: crawl.started, default=None)
    if schedule.every is None or latest is None:
        return Plan(Action.CRAWL, fresh)
    if latest.is_running:
        return Plan(Action.WAIT, latest.run_id, "The crawl is still running.")
    if latest.finished is None:
        goes_on = now < _after(latest.started, schedule.every) or "%" not in run_id
        return Plan(Action.CRAWL, latest.run_id if goes_on else fresh)
    due = _after(latest.finished, schedule.every)
    if now < due:
        moment = due.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
        return Plan(Action.WAIT, latest.run_id, f"Nothing to do: the next crawl is due at {moment} UTC.")
    return Plan(Action.RECRAWL, latest.run_id) if schedule.recrawl else Plan(Action.CRAWL, fresh)


def _after(moment: datetime, span: timedelta) -> datetime:
    """Return the moment that is *span* later, or the last there is: 999999 weeks are 19,165 years."""
    try:
        return moment + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def last_crawls(out: Path, run_id: str) -> list[LastCrawl]:
    """Return the latest crawl of every directory below *out* that *run_id* may have named.

    Raises DamagedFileError where a `crawl.json` is none.
    """
    if "%" not in run_id:
        names = [run_id]
    else:
        names = [
            path.parent.name for path in out.glob(f"*/{FILE_NAME}") if _is_of(path.parent.name, run_id)
        ]
    found = (_last_crawl(out / name if name else out, name) for name in names)
    return [crawl for crawl in found if crawl is not None]


def _is_of(name: str, pattern: str) -> bool:
    """Return whether *pattern*, which `run_id_at` takes, can have given *name*."""
    # strptime does not know all codes: neither %F, nor weeks of ISO without a day.
    literals = _CODE.split(pattern)
    codes = [_NUMBERS if code[-1] in _NUMERIC else _WORDS for code in _CODE.findall(pattern)]
    parts = [re.escape(literals[0])]
    for code, literal in zip(codes, literals[1:], strict=True):
        parts += [code, re.escape(literal)]
    return re.fullmatch("".join(parts), name) is not None


def _last_crawl(directory: Path, run_id: str) -> LastCrawl | None:
    found = read_crawl_json(directory)
    if not found:
        return None
    try:
        started = datetime.fromisoformat(found["started"])
        reason = found["finish_reason"]
        is_cut = reason in _NOT_CLEAN or (reason in _LIMITED and found.get("unfinished") is not False)
        ended = found["state"] == _CLEAN_STATE and not is_cut
        finished = datetime.fromisoformat(found["finished"]) if ended else None
        if None in (started.tzinfo, (finished or started).tzinfo):
            raise ValueError("a time without its zone")
    except (ValueError, KeyError, TypeError) as error:
        reason = "not a crawl.json of this program; move it away and start again"
        raise DamagedFileError(directory / FILE_NAME, 0, reason) from error
    return LastCrawl(run_id, started, finished, is_running=is_locked(directory))
