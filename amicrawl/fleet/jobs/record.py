"""The record of a job, as its hash in Redis says it: texts in, a `JobRecord` out. And its info JSON.

Any client may have written the hash, so every value is hostile until parsed: one that is not a number
where a number belongs counts as absent, and `JobRecord.faults` says so. Flags are presence: any text but
the empty one is true. `docs/jobs.md` says what the counters count.

The info JSON says what a job was, beside its files and in `finish_notifications`. The eight fields that
ArchiveBot declares are there with its types; a bot announces a finished job by them. Others are ours.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import orjson

from amicrawl.fleet.database import is_ident

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from amicrawl.fleet.leases import Claim

LONGEST_TEXT = 16_384
"""Characters of a field; what is longer is cut, and named among the faults."""
RESPONSES = ("r1xx", "r2xx", "r3xx", "r4xx", "r5xx", "runk")
"""The counters of responses by class of status; `runk`: no status, or none of these."""

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_FRACTION = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,2})?|inf)")
_MOST_FURTHER = 100
_LONGEST_STEP = 100


class JobState(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    ABORTING = "aborting"
    """It was asked to abort, and is still queued or running."""
    COMPLETED = "completed"
    ABORTED = "aborted"
    FAILED = "failed"

    @property
    def phrase(self) -> str:
        """The state as the predicate of a sentence: `is queued`, `has failed`."""
        return _PHRASES.get(self, f"is {self}")


_PHRASES = {
    JobState.ABORTING: "is being aborted",
    JobState.COMPLETED: "has completed",
    JobState.ABORTED: "was aborted",
    JobState.FAILED: "has failed",
}
ENDED = frozenset({JobState.COMPLETED, JobState.ABORTED, JobState.FAILED})
LIVE = frozenset(JobState) - ENDED
"""States of jobs that are queued or running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job. Numbers that are absent, or none, are None; texts that are absent are empty."""

    ident: str
    url: str = ""
    """Normalised; of the list file for a list job. A record without one is not a job."""
    url_file: str = ""
    """The same for a list job."""
    fetch_depth: str = ""
    """`inf` or `shallow`."""
    slug: str = ""
    user_agent: str = ""
    """Empty for the default."""
    started_by: str = ""
    started_in: str = ""
    note: str = ""
    pipeline_id: str = ""
    """The whole key of the record of its pipeline."""
    log_key: str = ""
    ignore_patterns_set_key: str = ""
    youtube_dl: bool = False
    no_offsite_links: bool = False
    suppress_ignore_reports: bool = False
    abort_requested: bool = False
    paused: bool = False
    """Whether it is asked to pause: a live setting beside the hash."""
    aborted: bool = False
    failed: bool = False
    delay_min: int | None = None
    """Milliseconds."""
    delay_max: int | None = None
    """Milliseconds."""
    concurrency: int | None = None
    settings_age: int | None = None
    """Grows with every change of a setting."""
    heartbeat: int | None = None
    log_score: int | None = None
    """The number of the last log entry."""
    bytes_downloaded: int | None = None
    items_downloaded: int | None = None
    """URLs taken out of the queue."""
    items_queued: int | None = None
    """URLs ever put into the queue."""
    error_count: int | None = None
    """Responses of 500 and above, and fetches without one."""
    r1xx: int | None = None
    r2xx: int | None = None
    r3xx: int | None = None
    r4xx: int | None = None
    r5xx: int | None = None
    runk: int | None = None
    death_timer: int | None = None
    last_acknowledged_heartbeat: int | None = None
    queued_at: float | None = None
    """Unix seconds, as the four that follow."""
    started_at: float | None = None
    finished_at: float | None = None
    ts: float | None = None
    """When a log entry was last broadcast."""
    recorded_at: float | None = None
    last_analyzed_log_entry: float | None = None
    last_broadcasted_log_entry: float | None = None
    last_trimmed_log_entry: float | None = None
    """The number up to which entries are gone; infinite once all were trimmed."""
    further: Mapping[str, str]
    """Fields that are not ArchiveBot's, or are no longer."""
    faults: tuple[str, ...] = ()
    """What of the hash could not be read."""

    @classmethod
    def parse(cls, fields: Mapping[str, str], *, ident: str = "", paused: bool = False) -> Self:
        """Return the record in *fields*. Never raises: what cannot be read is in `faults`."""
        faults: list[str] = []
        if not is_ident(ident):
            faults.append("its name is not an ident")
        values: dict[str, Any] = {
            name: read(name, fields.get(name, ""), faults) for name, read in STORED.items()
        }
        further: dict[str, str] = {}
        for name in sorted(fields.keys() - STORED.keys()):
            if len(further) == _MOST_FURTHER:
                faults.append(f"it has more than {_MOST_FURTHER} unknown fields")
                break
            key = _text("the name of a field", name, faults)
            further[key[:100]] = _text(key[:100], fields[name], faults)
        return cls(ident=ident, **values, paused=paused, further=further, faults=tuple(faults))

    @property
    def exists(self) -> bool:
        """Whether there is such a job; a hash without `url` is what a late writer left behind."""
        return bool(self.url)

    @property
    def state(self) -> JobState:
        """Where the job is in its life."""
        if self.failed:
            return JobState.FAILED
        if self.aborted:
            return JobState.ABORTED
        if self.finished_at is not None:
            return JobState.COMPLETED
        if self.abort_requested:
            return JobState.ABORTING
        if self.started_at is None:
            return JobState.QUEUED
        return JobState.PAUSED if self.paused else JobState.RUNNING

    @property
    def step(self) -> str:
        """How far the end of a job is whose crawl has finished, as `uploading 3 of 7, 41 %`."""
        return "" if self.has_ended else self.further.get("amicrawl_step", "")[:_LONGEST_STEP]

    @property
    def ended_at(self) -> float | None:
        """When it ended, in Unix seconds; ArchiveBot has no field for the end of a job that failed."""
        if self.finished_at is not None or not self.failed:
            return self.finished_at
        return _fraction("amicrawl_failed_at", self.further.get("amicrawl_failed_at", ""), [])

    @property
    def has_ended(self) -> bool:
        """Whether it is over; one that is being aborted has not ended yet."""
        return self.finished_at is not None or self.failed

    @property
    def requested(self) -> int:
        """Requests that have ended, with a response or without one."""
        return sum(getattr(self, name) or 0 for name in RESPONSES)

    @property
    def responses(self) -> int:
        """Responses of the five classes: what `runk` counts had none, or one that is none of these."""
        return self.requested - (self.runk or 0)

    @property
    def in_queue(self) -> int:
        """URLs that wait in the crawl, those in flight not among them."""
        return max((self.items_queued or 0) - (self.items_downloaded or 0), 0)

    def job_data(self) -> dict[str, Any]:
        """Return the fixed object, with numbers, by which ArchiveBot's JSON pages tell of a job."""
        return {
            "aborted": self.aborted,
            "finished": self.finished_at is not None,
            "depth": self.fetch_depth,
            "ident": self.ident,
            "url": self.url,
            "note": self.note or None,
            "pipeline_id": self.pipeline_id or None,
            "started_by": self.started_by,
            "started_in": self.started_in,
            "queued_at": self.queued_at,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "bytes_downloaded": self.bytes_downloaded or 0,
            "items_downloaded": self.items_downloaded or 0,
            "items_queued": self.items_queued or 0,
            "error_count": self.error_count or 0,
            "warc_size": _whole("warc_size", self.further.get("warc_size", ""), []) or 0,
            "suppress_ignore_reports": self.suppress_ignore_reports,
            "concurrency": self.concurrency or 0,
            "delay_min": self.delay_min or 0,
            "delay_max": self.delay_max or 0,
            **{name: getattr(self, name) or 0 for name in RESPONSES},
        }


def _text(name: str, value: str, faults: list[str]) -> str:
    if len(value) > LONGEST_TEXT:
        faults.append(f"{name} has {len(value)} characters")
        value = value[:LONGEST_TEXT]
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        faults.append(f"{name} is not UTF-8")
        value = value.encode("utf-8", "replace").decode()
    return value


def _whole(name: str, value: str, faults: list[str]) -> int | None:
    if not value:
        return None
    if _WHOLE.fullmatch(value) is None:
        faults.append(f"{name}: {value[:40]!r} is not a whole number")
        return None
    return int(value)


def _fraction(name: str, value: str, faults: list[str]) -> float | None:
    if not value:
        return None
    number = float(value) if _FRACTION.fullmatch(value) is not None else math.nan
    # An infinite time could not be made a date; a log may be trimmed to its end.
    if math.isnan(number) or (math.isinf(number) and name != "last_trimmed_log_entry"):
        faults.append(f"{name}: {value[:40]!r} is not a number")
        return None
    return number


def _flag(_name: str, value: str, _faults: list[str]) -> bool:
    return bool(value)


_READERS: Mapping[str, Callable[[str, str, list[str]], Any]] = {
    "str": _text,
    "bool": _flag,
    "int | None": _whole,
    "float | None": _fraction,
}
STORED = {
    each.name: _READERS[str(each.type)]
    for each in dataclasses.fields(JobRecord)
    if each.name not in {"ident", "paused", "further", "faults"}
}
"""What reads each field of the hash, by its name."""

_INFO_FIELDS = ("fetch_depth", "pipeline_id", "queued_at", "started_by", "started_in", "url")
_INFO_FURTHER = ("started_at", "note", "slug", "user_agent", *(f"r{n}xx" for n in range(1, 6)), "runk")
_INFO_COUNTS = ("bytes_downloaded", "items_downloaded", "items_queued", "error_count")


def info_of(
    record: Mapping[str, str], claim: Claim | None, *, exit_code: int | None = None
) -> dict[str, Any]:
    """Return the info of a job by its *record* and the *claim* it ran under, if it ever did."""
    info: dict[str, Any] = {name: _writable(record.get(name, "")) for name in _INFO_FIELDS}
    info["aborted"] = bool(record.get("aborted"))
    info["url_file"] = _writable(record["url_file"]) if record.get("url_file") else None
    for name in (*_INFO_FURTHER, *_INFO_COUNTS):
        if record.get(name):
            info[name] = _writable(record[name])
    if claim is not None:
        info.update(ident=claim.unit, attempt=claim.attempt)
        info.update(run_id=_writable(claim.run_id), directory=_writable(claim.directory))
        if claim.resumed:
            info["resumed"] = _writable(claim.resumed)
    if exit_code is not None:
        info["exit_code"] = exit_code
    return info


def encoded_info(info: Mapping[str, Any]) -> str:
    """Return *info* as the text that goes into Redis."""
    return orjson.dumps(dict(info), option=orjson.OPT_SORT_KEYS).decode()


def _writable(value: str) -> str:
    # Bytes that are not UTF-8 came as lone surrogates, which JSON has no way to write.
    return value[:LONGEST_TEXT].encode("utf-8", "replace").decode()
