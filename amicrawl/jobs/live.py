"""Live settings: what can change while a crawl runs, parsed from what Redis holds. Pure.

Any client may write anything into the database, so each value is taken by itself: one that means
nothing is reported, and what was in force stays so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_DELAY = 24 * 3600 * 1000
"""Milliseconds of the longest delay that is followed."""
MOST_CONCURRENCY = 10_000
LONGEST_PATTERN = 4096
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
class Answer:
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
    def read(cls, reply: Sequence[Any]) -> Answer:
        """Read what `flush.lua` returned."""
        if len(reply) < 5:
            return cls(str(reply[0]), epoch=str(reply[2]))
        age, abort, failed, log_score = reply[3]
        faults = tuple(map(str, reply[4]))
        answer = cls(
            str(reply[0]),
            epoch=str(reply[2]),
            regained=bool(reply[1]),
            age=age,
            abort=bool(abort),
            failed=bool(failed),
            log_score=log_score,
            faults=faults,
        )
        if len(reply) < 8:
            return answer
        raw = dict(zip(_FIELDS, reply[5], strict=True))
        settings = live_settings(age, raw, reply[6], reply[7], faults=faults)
        return cls(**{name: getattr(answer, name) for name in _PLAIN}, settings=settings, raw=raw)


_FIELDS = ("delay_min", "delay_max", "concurrency", "suppress_ignore_reports", "note")
_PLAIN = ("what", "epoch", "regained", "age", "abort", "failed", "log_score", "faults")


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
    shortest = _number(raw, "delay_min", LONGEST_DELAY, wrong)
    longest = _number(raw, "delay_max", LONGEST_DELAY, wrong)
    if shortest is not None and longest is not None and longest < shortest:
        wrong.append(f"delay_max: {longest} is less than delay_min, {shortest}")
        longest = shortest
    concurrency = _number(raw, "concurrency", MOST_CONCURRENCY, wrong)
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
