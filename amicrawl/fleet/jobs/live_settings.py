"""Live settings: what can change while a crawl runs, parsed from Redis, and checked before it is stored.

Any client may write anything into the database, so each value is taken by itself: an invalid one is
reported, and what was in force stays so. The settings are declared in `job_settings`; ignore patterns
and the pause are beside the record. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amicrawl.discovery import IgnoreSet
from amicrawl.errors import UsageError
from amicrawl.fleet.jobs.job_settings import SETTINGS, fields, live

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amicrawl.fleet.jobs.job_settings import JobSetting, Value


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What Redis says of how a job is to be crawled; None where it says nothing that can be followed."""

    age: str = ""
    values: Mapping[str, Value | None] = field(default_factory=dict)
    """By field of the record (`job_settings`)."""
    ignores: frozenset[str] | None = None
    paused: bool | None = None
    faults: tuple[str, ...] = ()
    """What cannot be followed, one sentence each."""


@dataclass(frozen=True, slots=True)
class FlushReply:
    """What Redis said to one flush."""

    what: str
    """`OK`, `LOST`, `GONE`, `ENDED` or `ODD`; `flush.lua` says when."""
    epoch: str = ""
    regained: bool = False
    age: str = ""
    abort: bool = False
    failed: bool = False
    log_score: str = ""
    faults: tuple[str, ...] = ()
    settings: LiveSettings | None = None
    """None where there is nothing new."""
    raw: dict[str, str] = field(default_factory=dict)
    """The fields of the record that the settings were read from."""

    @classmethod
    def read(cls, reply: Sequence[Any]) -> FlushReply:
        """Read what `flush.lua` returned."""
        what, regained, epoch, *more = reply
        if not more:
            return cls(what, epoch=epoch)
        (age, abort, failed, log_score), faults, *news = more
        settings, raw = None, {}
        if news:
            raw = dict(zip(FIELDS, news[0], strict=True))
            settings = live_settings(age, raw, news[1], news[2], faults=faults)
        return cls(
            what,
            epoch=epoch,
            regained=bool(regained),
            age=age,
            abort=bool(abort),
            failed=bool(failed),
            log_score=log_score,
            faults=tuple(faults),
            settings=settings,
            raw=raw,
        )


FIELDS = tuple(field.name for field in fields(live()))
"""Fields of the record that can change while a crawl runs."""


def live_settings(
    age: str,
    raw: dict[str, str],
    ignores: Sequence[str] | None,
    wishes: Sequence[str] | None,
    *,
    faults: Sequence[str] = (),
    declared: Sequence[JobSetting] = SETTINGS,
) -> LiveSettings:
    """Return what the fields *raw* of a record, its *ignores* and its desired settings mean.

    Of *declared*, those that can change while a crawl runs are read.
    """
    wrong = list(faults)
    values: dict[str, Value | None] = {}
    for setting in live(declared):
        values |= {each.name: each.read(raw, wrong) for each in setting.fields}
        if setting.is_range:
            _order(setting, values, wrong)
    if values.get("concurrency") == 0:
        wrong.append("concurrency: 0 requests cannot be set; pause the job to stop it for a while")
        values["concurrency"] = None
    desired = {} if wishes is None else dict(zip(wishes[::2], wishes[1::2], strict=False))
    return LiveSettings(
        age=age,
        values=values,
        ignores=None if ignores is None else frozenset(p for p in ignores if p),
        paused=None if wishes is None else bool(desired.get("paused")),
        faults=tuple(wrong),
    )


def _order(setting: JobSetting, values: dict[str, Value | None], faults: list[str]) -> None:
    """Have the greatest of a range in *values* not below its least."""
    least, greatest = (each.name for each in setting.fields)
    low, high = values[least], values[greatest]
    if low is not None and high is not None and int(high) < int(low):
        faults.append(f"{greatest}: {high} is less than {least}, {low}")
        values[greatest] = low


LONGEST_PATTERN = 2_000
"""Bytes of an ignore pattern."""


def checked_pattern(pattern: str) -> str:
    """Return *pattern*; raises UsageError, saying why, where no crawl could ignore by it."""
    if not pattern or not pattern.isprintable():
        raise UsageError(
            f"{pattern[:60]!r} is not an ignore pattern, which is one line of printable text."
        )
    if len(pattern.encode()) > LONGEST_PATTERN:
        raise UsageError(f"The ignore pattern has more than {LONGEST_PATTERN} bytes. Shorten it.")
    IgnoreSet().add(pattern)
    return pattern
