"""Live settings: what can change while a crawl runs, parsed from Redis, and checked before it is stored.

Any client may write anything into the database, so each value is taken by itself: an invalid one is
reported, and what was in force stays so. What our own commands store is refused beforehand instead,
outside the ranges of ArchiveBot's commands. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amicrawl.discovery import IgnoreSet
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_FOLLOWED = 24 * 3600 * 1000
"""Milliseconds of the longest delay that is followed."""
_MOST_FOLLOWED = 10_000
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What Redis says of how a job is to be crawled; None where it says nothing that can be followed."""

    age: str = ""
    delay_min: int | None = None
    """Milliseconds."""
    delay_max: int | None = None
    """Milliseconds, never below `delay_min`."""
    concurrency: int | None = None
    suppress_ignore_reports: bool = False
    ignores: frozenset[str] | None = None
    paused: bool | None = None
    note: str = ""
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


FIELDS = ("delay_min", "delay_max", "concurrency", "suppress_ignore_reports", "note")
"""Fields of the record that can change while a crawl runs."""


def live_settings(
    age: str,
    raw: dict[str, str],
    ignores: Sequence[str] | None,
    wishes: Sequence[str] | None,
    *,
    faults: Sequence[str] = (),
) -> LiveSettings:
    """Return what the fields *raw* of a record, its *ignores* and its desired settings mean."""
    wrong = list(faults)
    shortest = _number(raw, "delay_min", _LONGEST_FOLLOWED, wrong)
    longest = _number(raw, "delay_max", _LONGEST_FOLLOWED, wrong)
    if shortest is not None and longest is not None and longest < shortest:
        wrong.append(f"delay_max: {longest} is less than delay_min, {shortest}")
        longest = shortest
    concurrency = _number(raw, "concurrency", _MOST_FOLLOWED, wrong)
    if concurrency == 0:
        wrong.append("concurrency: 0 requests cannot be set; pause the job to stop it for a while")
        concurrency = None
    desired = {} if wishes is None else dict(zip(wishes[::2], wishes[1::2], strict=False))
    return LiveSettings(
        age=age,
        delay_min=shortest,
        delay_max=longest,
        concurrency=concurrency,
        suppress_ignore_reports=bool(raw.get("suppress_ignore_reports")),
        ignores=None if ignores is None else frozenset(p for p in ignores if p),
        paused=None if wishes is None else bool(desired.get("paused")),
        note=raw.get("note", ""),
        faults=tuple(wrong),
    )


def _number(raw: dict[str, str], name: str, most: int, faults: list[str]) -> int | None:
    text = raw.get(name, "")
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most:
        return int(text)
    faults.append(f"{name}: {text[:_SHOWN]!a} is not a whole number from 0 to {most}")
    return None


LONGEST_PATTERN = 2_000
"""Bytes of an ignore pattern."""
LONGEST_DELAY = 9_999_999
"""Milliseconds."""
MOST_CONCURRENCY = 99
LONGEST_NOTE = 1_000
"""Characters."""


def checked_delay(least: int, greatest: int) -> tuple[int, int]:
    """Return both, milliseconds; raises UsageError where they do not make a range."""
    if not 0 <= least <= greatest <= LONGEST_DELAY:
        raise UsageError(
            f"A delay of {least} to {greatest} ms is not a range: the minimum must not exceed the "
            f"maximum, and both are from 0 to {LONGEST_DELAY}."
        )
    return least, greatest


def checked_concurrency(number: int) -> int:
    """Return *number*; raises UsageError where it is none of requests at once."""
    if not 1 <= number <= MOST_CONCURRENCY:
        raise UsageError(f"A concurrency of {number} is out of range: 1 to {MOST_CONCURRENCY}.")
    return number


def checked_note(text: str) -> str:
    """Return *text* without blanks around it; raises UsageError where it cannot be shown on one line."""
    note = text.strip()
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise UsageError(f"A note is one line of at most {LONGEST_NOTE} printable characters.")
    return note


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
