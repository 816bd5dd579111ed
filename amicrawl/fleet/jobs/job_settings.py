"""The settings of a job that its record has, each declared once, with bounds, words and fields. Pure.

What else there is of a setting is derived from `SETTINGS`: the fields of a submission and their check,
the fields that a crawl reads while it runs, the options and verbs of `amicrawl job`, bodies, operations
and document of the HTTP API, the form and the dialogs of the dashboard, and the tables of docs/jobs.md.
What a crawl does with a value is in `crawl/specification.py` or `crawl/live_job_settings.py`.

The record is ArchiveBot's, so a value is a text, and a flag is there or not. Any client may write it:
`read` reports what cannot be followed. What our own commands store is refused beforehand instead
(`JobSetting.checked`), outside the ranges of ArchiveBot's commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Value = int | str | bool
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A whole number."""

    least: int
    most: int
    most_followed: int
    """The greatest that a crawl follows where another client wrote it."""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class LineKind:
    """A line of printable text."""

    longest: int
    """Characters."""


@dataclass(frozen=True, slots=True)
class FlagKind:
    """On or off."""

    stored_for: bool = True
    """The value for which the field is in the record."""
    words: tuple[str, str] = ("on", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingField:
    """One field of the record."""

    name: str
    """In the record, and of a submission over HTTP."""
    argument: str
    """Of the verb that changes it, over HTTP and on the command line."""
    kind: NumberKind | LineKind | FlagKind
    label: str
    """In a form."""
    meaning: str
    """One sentence."""
    default: int | None = None
    """What a submission without it stores; None for nothing."""
    placeholder: str = ""

    def read(self, record: Mapping[str, str], faults: list[str]) -> Value | None:
        """Return what *record* says; None where that cannot be followed, which *faults* gets."""
        text = record.get(self.name, "")
        if isinstance(self.kind, FlagKind):
            return bool(text) is self.kind.stored_for
        if isinstance(self.kind, LineKind):
            return text
        if not text:
            return None
        most = self.kind.most_followed
        if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most:
            return int(text)
        faults.append(f"{self.name}: {text[:_SHOWN]!a} is not a whole number from 0 to {most}")
        return None

    def stored(self, value: Value) -> str:
        """Return *value* as the record has it; empty where the field is absent then."""
        if isinstance(self.kind, FlagKind):
            return "true" if value is self.kind.stored_for else ""
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetting:
    """One setting: a field of the record, or two that are the ends of a range."""

    name: str
    """Of its option and its verb."""
    fields: tuple[SettingField, ...]
    title: str
    """What is set, as a heading."""
    word: str = ""
    """On the button that changes it."""
    meaning: str
    """One sentence: what setting it does."""
    example: str = ""
    """Arguments of its verb."""
    is_live: bool = False
    """Whether it can change while the job waits or runs."""
    is_submitted: bool = True
    """Whether a submission may say it."""

    @property
    def is_range(self) -> bool:
        """Whether its two fields are the least and the greatest."""
        return len(self.fields) > 1

    @property
    def verb(self) -> str:
        """The name that changes it: of a command, a path of the API and a dialog."""
        return self.name.replace("_", "-")

    @property
    def noun(self) -> str:
        """Its name in a sentence."""
        return self.name.replace("_", " ")

    def checked(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of its fields, from *values* by field; UsageError where they cannot be had.

        The end of a range that *values* lacks is its default, or the other end if that is beyond it.
        """
        if not self.is_range:
            field = self.fields[0]
            return {field.name: self._checked(field, values[field.name])}
        least, greatest = self.fields
        low, high = values.get(least.name), values.get(greatest.name)
        low = min(least.default or 0, int(high or 0)) if low is None else int(low)
        high = max(greatest.default or 0, low) if high is None else int(high)
        assert isinstance(greatest.kind, NumberKind)
        if not 0 <= low <= high <= greatest.kind.most:
            raise UsageError(
                f"A {self.noun} of {low} to {high} {greatest.kind.unit} is not a range: the minimum "
                f"must not exceed the maximum, and both are from 0 to {greatest.kind.most}."
            )
        return {least.name: low, greatest.name: high}

    def _checked(self, field: SettingField, value: Value) -> Value:
        kind = field.kind
        if isinstance(kind, NumberKind):
            if not kind.least <= int(value) <= kind.most:
                raise UsageError(
                    f"A {self.noun} of {value} is out of range: {kind.least} to {kind.most}."
                )
        elif isinstance(kind, LineKind):
            value = str(value).strip()
            if len(value) > kind.longest or not value.isprintable():
                raise UsageError(
                    f"A {self.noun} is one line of at most {kind.longest} printable characters."
                )
        return value

    def stored(self, values: Mapping[str, Value]) -> list[tuple[str, str]]:
        """Return the fields for checked *values*, with an empty text for one that is removed."""
        return [(field.name, field.stored(values[field.name])) for field in self.fields]

    def said(self, values: Mapping[str, Value]) -> str:
        """Return the sentence that reports a change to checked *values*."""
        first = self.fields[0]
        value = values[first.name]
        if isinstance(first.kind, LineKind):
            return f"The {self.noun} was {'changed' if value else 'removed'}."
        if isinstance(first.kind, FlagKind):
            return f"{self.title}: {first.kind.words[not value]}."
        ends = " to ".join(str(values[field.name]) for field in self.fields)
        return f"The {self.noun} is {' '.join(filter(None, (ends, first.kind.unit)))} now."


_LONGEST_FOLLOWED = 24 * 3600 * 1000
"""Milliseconds of the longest delay that is followed."""
_DELAY = NumberKind(0, 9_999_999, _LONGEST_FOLLOWED, unit="ms")

SETTINGS: tuple[JobSetting, ...] = (
    JobSetting(
        name="note", title="Note", word="Note",
        meaning="Set the note that is shown with a job; an empty one removes it.",
        example="'closes on 31 January'", is_live=True,
        fields=(
            SettingField(name="note", argument="note", kind=LineKind(1000), label="Note",
                         meaning="Shown with the job.", placeholder="why this is archived"),
        ),
    ),
    JobSetting(
        name="user_agent", title="User agent",
        meaning="Set what a crawl calls itself.",
        fields=(
            SettingField(name="user_agent", argument="user_agent", kind=LineKind(500),
                         label="User agent", meaning="User-Agent of its requests.",
                         placeholder="as configured"),
        ),
    ),
    JobSetting(
        name="delay", title="Delay between two requests", word="Delay",
        meaning="Set how long the crawl of a job waits between two requests, in milliseconds.",
        example="500 2000", is_live=True,
        fields=(
            SettingField(name="delay_min", argument="min", kind=_DELAY, label="Minimum delay (ms)",
                         meaning="Least milliseconds between two requests.", default=250),
            SettingField(name="delay_max", argument="max", kind=_DELAY, label="Maximum delay (ms)",
                         meaning="Greatest milliseconds between two requests.", default=375),
        ),
    ),
    JobSetting(
        name="concurrency", title="Concurrent requests", word="Concurrency",
        meaning="Set how many requests the crawl of a job makes at once.",
        example="3", is_live=True,
        fields=(
            SettingField(name="concurrency", argument="workers", kind=NumberKind(1, 99, 10_000),
                         label="Concurrent requests", meaning="Requests at once.", default=3),
        ),
    ),
    JobSetting(
        name="no_offsite_links", title="Pages of other sites",
        meaning="Leave out pages of other sites.",
        fields=(
            SettingField(name="no_offsite_links", argument="on", kind=FlagKind(),
                         label="Do not fetch pages of other sites that it links to",
                         meaning="Leave out pages of other hosts."),
        ),
    ),
    JobSetting(
        name="reports", title="Ignored URLs in the log", word="Ignore reports",
        meaning="Set whether the log of a job reports ignored URLs.",
        example="off", is_live=True, is_submitted=False,
        fields=(
            SettingField(name="suppress_ignore_reports", argument="on",
                         kind=FlagKind(stored_for=False, words=("shown", "hidden")),
                         label="Ignored URLs in the log", meaning="Whether ignored URLs are logged."),
        ),
    ),
)  # fmt: skip
"""Every setting, in the order in which a submission stores them."""


def live(settings: Sequence[JobSetting] = SETTINGS) -> Iterator[JobSetting]:
    """Yield those of *settings* that can change while a job waits or runs."""
    return (setting for setting in settings if setting.is_live)


def submitted(settings: Sequence[JobSetting] = SETTINGS) -> Iterator[JobSetting]:
    """Yield those of *settings* that a submission may say."""
    return (setting for setting in settings if setting.is_submitted)


def fields(settings: Iterable[JobSetting]) -> list[SettingField]:
    """Return the fields of *settings*."""
    return [field for setting in settings for field in setting.fields]


def described(settings: Sequence[JobSetting] = SETTINGS) -> list[dict[str, Any]]:
    """Return *settings* as JSON, for forms and dialogs."""
    return [
        {
            "name": setting.verb,
            "title": setting.title,
            "word": setting.word,
            "isLive": setting.is_live,
            "isSubmitted": setting.is_submitted,
            "fields": [
                {
                    "name": field.name,
                    "argument": field.argument,
                    "label": field.label,
                    "default": field.default,
                    "placeholder": field.placeholder or str(field.default or ""),
                    "kind": type(field.kind).__name__.removesuffix("Kind").lower(),
                    **_bounds(field.kind),
                }
                for field in setting.fields
            ],
        }
        for setting in settings
    ]


def _bounds(kind: NumberKind | LineKind | FlagKind) -> dict[str, Any]:
    if isinstance(kind, NumberKind):
        return {"least": kind.least, "most": kind.most, "unit": kind.unit}
    if isinstance(kind, LineKind):
        return {"longest": kind.longest}
    return {"words": kind.words}
