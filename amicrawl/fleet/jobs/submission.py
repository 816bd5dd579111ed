"""Submitting a job: ArchiveBot's record and its steps in ArchiveBot's order, but all at once.

A job is there if its record has a `url`. What else is under its name was left behind by a client that
wrote too late, and is removed. Whether an ended job may be crawled again is the submitter's `again`; one
that waits or runs never is. Counters begin at 0, because pages of ArchiveBot reckon with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from amicrawl.discovery import ignore_set
from amicrawl.errors import UsageError
from amicrawl.fleet.database import (
    PENDING,
    PENDING_LARGE,
    PENDING_SHALLOW,
    TAGGED,
    ident_of,
    normalised,
    slug_of,
)
from amicrawl.fleet.jobs import lookup
from amicrawl.fleet.jobs.job_settings import SETTINGS, submitted
from amicrawl.fleet.jobs.live_settings import checked_pattern
from amicrawl.fleet.jobs.queues import checked_tag
from amicrawl.fleet.jobs.record import RESPONSES, JobRecord
from amicrawl.urls import Refused, fetchable, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs.job_settings import JobSetting, Value

GLOBAL_SET = "global"
"""The ignore set that every job gets, as ArchiveBot's do. A job without ignores is shown by no page."""
_OF_FTP = {"concurrency": 1}
"""Defaults of a job for FTP."""
_WRITTEN_FIRST = "user_agent"
"""A setting that is among the first fields, even where it is empty."""

_COUNTERS = (
    *("bytes_downloaded", "items_downloaded", "items_queued", "error_count", *RESPONSES),
    *("last_analyzed_log_entry", "last_broadcasted_log_entry", "last_trimmed_log_entry"),
)
_AT_ONCE = 500


class JobExistsError(UsageError):
    """The URL has a job already; how to replace it is the caller's to say."""

    def __init__(self, message: str, record: JobRecord) -> None:
        super().__init__(message)
        self.record = record


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is to be crawled, and how."""

    url: str
    """Where to begin; of a list job, the URL of the list."""
    depth: Literal["inf", "shallow"] = "inf"
    """The whole site, or the page with what it needs to be shown."""
    is_list: bool = False
    """Whether `url` is a list of URLs to begin at, one a line."""
    lines: str | None = None
    """The list itself, where it can be had at no URL; `url` is a name for it then."""
    config: str | None = None
    """The text of a crawl file, checked before it is submitted."""
    settings: Mapping[str, Value] = field(default_factory=dict)
    """Values by field of the record, of the settings declared in `job_settings`."""
    pipeline: str = ""
    """Part of the nickname of the pipelines that may take it; empty for any."""
    large: bool = False
    """Whether only pipelines for large jobs may take it."""
    ignore_sets: tuple[str, ...] = ()
    """Besides the global one."""
    ignores: tuple[str, ...] = ()
    """Ignore patterns besides those of the sets."""
    started_by: str = ""
    started_in: str = ""
    again: Literal["never", "ended"] | int = "never"
    """Whether a job that has ended and has a record is crawled again: never, always, or if it ended that
    many seconds ago."""


class Submitted(NamedTuple):
    """What became of a submission."""

    ident: str
    url: str
    """As normalised."""
    queue: str
    again: bool
    """Whether an earlier job of that URL was forgotten for it."""
    warnings: tuple[str, ...]


def submit(
    store: JobStore,
    submission: Submission,
    *,
    now: float,
    declared: Sequence[JobSetting] = SETTINGS,
) -> Submitted:
    """Queue a job, with those of its settings that are *declared*; *now* in Unix seconds.

    Raises UsageError, saying what is wrong, and writes nothing for what cannot be followed;
    JobExistsError where the job is there.
    """
    url = normalised(submission.url)
    if without_userinfo(url) != url:
        raise UsageError(
            "The URL has a user name or a password in it, and whatever is crawled is archived. Give it "
            "without, and what it takes to sign in as auth in a crawl file."
        )
    ident = ident_of(url)
    queue = queue_of(submission)
    steps = _steps(store, submission, url, ident, list(submitted(declared)))
    args: list[str | int] = [ident, _policy(submission.again), int(now), store.keys.job_channel(ident)]
    args.append(len(steps))
    for kind, *texts in steps:
        args += [kind, len(texts), *texts]
    keys = [
        *store.keys.of_job(ident),
        store.keys.queue(queue),
        *store.keys.ours_of_job(ident),
        store.keys.claim(ident),
    ]
    done, *more = store.scripts("submit", keys=keys, args=args)
    if done == "known":
        record = JobRecord.parse(dict(zip(more[0][::2], more[0][1::2], strict=True)), ident=ident)
        raise JobExistsError(_exists(submission, record), record)
    if done in {"odd", "odd queue"}:
        key = store.keys.job(ident) if done == "odd" else store.keys.queue(queue)
        raise UsageError(f"Key {key} in Redis is a {more[0]}, which no job made. Remove it by hand.")
    return Submitted(ident, url, queue, done == "again", tuple(_warnings(store, submission, url, now)))


def queue_of(submission: Submission) -> str:
    """Return the name of the queue for *submission*; raises UsageError where its wishes contradict."""
    shallow = submission.depth == "shallow"
    if submission.large and (submission.pipeline or shallow):
        other = "a pipeline" if submission.pipeline else "a single page"
        raise UsageError(f"A job is for pipelines that take large jobs, or for {other}: not both.")
    if submission.pipeline:
        return TAGGED + checked_tag(submission.pipeline)
    if shallow:
        return PENDING_SHALLOW
    return PENDING_LARGE if submission.large else PENDING


Step = tuple[str, ...]


def _steps(
    store: JobStore, submission: Submission, url: str, ident: str, declared: Sequence[JobSetting]
) -> list[Step]:
    """Return what is written, in the order in which ArchiveBot's bot writes it."""
    steps: list[Step] = [("set", *_first_fields(store, submission, url, ident))]
    if submission.is_list:
        steps.append(("set", "url_file", url))
    steps.append(("set", *(text for name in _COUNTERS for text in (name, "0"))))
    steps += _defaults(declared, is_ftp=url.startswith("ftp:"))
    steps += _wanted(declared, submission.settings)
    for name in dict.fromkeys(submission.ignore_sets):
        if name != GLOBAL_SET:
            steps += _ignoring([entry.expression for entry in ignore_set(name)])
    steps += _ignoring([checked_pattern(pattern) for pattern in submission.ignores])
    steps += _ignoring([entry.expression for entry in ignore_set(GLOBAL_SET)])
    steps += [("set", "suppress_ignore_reports", "true"), ("publish",)]
    if submission.config is not None:
        _check_size("The crawl file", submission.config, lookup.LARGEST_CONFIG)
        steps.append(("keep", store.keys.config(ident), submission.config))
    if submission.lines is not None:
        _check_size("The list", submission.lines, lookup.LARGEST_LIST)
        steps.append(("keep", store.keys.url_list(ident), submission.lines))
    return steps


def _first_fields(store: JobStore, submission: Submission, url: str, ident: str) -> tuple[str, ...]:
    fields = {
        "url": url,
        "fetch_depth": submission.depth,
        "log_key": store.keys.log(ident),
        _WRITTEN_FIRST: _line("The user agent", str(submission.settings.get(_WRITTEN_FIRST, ""))),
        "ignore_patterns_set_key": store.keys.ignores(ident),
        "slug": slug_of(url, depth=submission.depth, is_list=submission.is_list),
        "started_by": _line("The name of who submits", submission.started_by),
        "started_in": _line("Where it is submitted", submission.started_in),
    }
    return tuple(text for pair in fields.items() for text in pair)


def _defaults(declared: Sequence[JobSetting], *, is_ftp: bool) -> Iterator[Step]:
    for setting in declared:
        usual = {
            each.name: _OF_FTP.get(each.name, each.default) if is_ftp else each.default
            for each in setting.fields
        }
        pairs = [(name, str(value)) for name, value in usual.items() if value is not None]
        if pairs:
            yield ("set", *(text for pair in pairs for text in pair))
            yield ("age",)


def _wanted(declared: Sequence[JobSetting], values: Mapping[str, Value]) -> Iterator[Step]:
    for setting in declared:
        if setting.name == _WRITTEN_FIRST or not any(each.name in values for each in setting.fields):
            continue
        pairs = [(name, text) for name, text in setting.stored(setting.checked(values)) if text]
        if pairs:
            yield ("set", *(text for pair in pairs for text in pair))
        if any(each.default is not None for each in setting.fields):
            yield ("publish",)


def _ignoring(patterns: list[str]) -> list[Step]:
    """Return the steps that add *patterns*: a call of Redis from a script takes only so many."""
    if not patterns:
        return []
    batches = [patterns[at : at + _AT_ONCE] for at in range(0, len(patterns), _AT_ONCE)]
    return [*(("ignore", *batch) for batch in batches), ("publish",)]


def _policy(again: str | int) -> str | int:
    return {"never": "refuse", "ended": "force"}[again] if isinstance(again, str) else max(again, 0)


def _exists(submission: Submission, record: JobRecord) -> str:
    message = f"There is a job for {record.url} already: {record.ident} {record.state.phrase}."
    if record.fetch_depth != submission.depth or bool(record.url_file) != submission.is_list:
        was = (
            "a list"
            if record.url_file
            else "a single page"
            if record.fetch_depth == "shallow"
            else "a site"
        )
        message += f" It is for {was}; one URL can have one job, whatever its depth."
    return message


def _warnings(store: JobStore, submission: Submission, url: str, now: float) -> list[str]:
    warnings = []
    if isinstance(fetchable(url), Refused):
        warnings.append(
            "amicrawl's pipelines do not fetch FTP: the job stays queued for one of ArchiveBot's."
        )
    if submission.pipeline:
        live = lookup.live_nicknames(store, now)
        if not any(submission.pipeline in nickname for nickname in live):
            there = ", ".join(live) or "none"
            warnings.append(
                f"No running pipeline has {submission.pipeline!r} in its nickname (running: {there}). "
                "The job stays queued until one does."
            )
    if submission.lines is not None:
        warnings.append("The list is kept in Redis, where only amicrawl's pipelines find it.")
    return warnings


def _line(what: str, text: str) -> str:
    if len(text) > 500 or not text.isprintable():
        raise UsageError(f"{what} is {text[:60]!r}: at most 500 printable characters are possible.")
    return text


def _check_size(what: str, text: str, largest: int) -> None:
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > largest:
        raise UsageError(
            f"{what} has {size:,} bytes; Redis keeps at most {largest:,}. Put it on a web server and "
            "give its URL instead."
        )
