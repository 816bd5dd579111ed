"""Views: jobs, pipelines, log entries and reports of crawls, from Redis to responses of the API. Pure.

Everything in Redis may have been written by any client. An invalid number is 0 or None, an invalid list
is empty, and the fault is in `faults`. Lists and texts have bounds.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import orjson

from amicrawl.fleet.dashboard.wording import fraction, link, plain, text_of, whole
from amicrawl.fleet.database import number_of
from amicrawl.fleet.jobs import (
    RESPONSES,
    JobRecord,
    JobState,
    SeenJob,
    is_silent,
    job_settings,
)
from amicrawl.fleet.jobs.pipeline_record import DRAIN_FIELD
from amicrawl.fleet.logs import LONGEST_ENTRY, NotAnEntryError, Stdout, parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from amicrawl.fleet.dashboard.shapes import (
        FileFacts,
        HistoryPoint,
        HostFacts,
        IgnoreFacts,
        Job,
        JobDetail,
        LogEntry,
        Pipeline,
        SearchedJob,
        State,
    )


def pipeline_view(
    key: str, record: Mapping[str, str], *, jobs: Mapping[str, SeenJob], prefix: str, now: float
) -> Pipeline:
    """Return the pipeline whose *record* is at *key*, with those of *jobs* that it runs.

    *now* is by the clock of Redis, in Unix seconds.
    """
    ts = _number(record.get("ts"))
    return {
        "id": plain(key.removeprefix(prefix), limit=_SHORT),
        "nickname": plain(record.get("nickname", ""), limit=_SHORT),
        "hostname": plain(record.get("hostname", ""), limit=_SHORT),
        "fqdn": plain(record.get("fqdn", ""), limit=_SHORT),
        "pid": _whole(record.get("pid")),
        "version": plain(record.get("version", ""), limit=_SHORT),
        "python": plain(record.get("python", "").replace("\n", " "), limit=_SHORT),
        "status": plain(record.get("status", ""), limit=_SHORT),
        "draining": bool(record.get(DRAIN_FIELD)) or record.get("status") == "Stopping",
        "ts": ts,
        "is_stale": is_silent(record, now),
        "load": [_number(record.get(f"load_average_{n}m")) for n in (1, 5, 15)],
        "mem_usage": _number(record.get("mem_usage")),
        "mem_available": _whole(record.get("mem_available")),
        "disk_usage": _number(record.get("disk_usage")),
        "disk_available": _whole(record.get("disk_available")),
        "slots": _whole(record.get("slots")),
        "jobs": [
            {"ident": ident, "url": plain(seen.record.get("url", ""))}
            for ident, seen in jobs.items()
            if seen.record.get("pipeline_id") == key
        ],
    }


def _number(text: str | None) -> float | None:
    if not text or len(text) > 40:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < 2**60 else None


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


MOST_HOSTS = 100
BUSIEST = 3
"""Hosts of a job that are listed where many jobs are."""
MOST_IGNORES = 5000
MOST_POINTS = 2000
MOST_FILES = 5000
_SHORT = 500
_MOST_FACTS = 100


def job_view(
    ident: str,
    seen: SeenJob,
    *,
    queue: str | None = None,
    pipeline: str = "",
    has_summary: bool = False,
) -> Job:
    """Return the job *ident* as *seen*; *pipeline* is the nickname of its pipeline."""
    return _job(
        JobRecord.parse(seen.record, ident=ident), seen, queue, pipeline, has_summary=has_summary
    )


def past_view(record: JobRecord, *, pipeline: str = "") -> Job:
    """Return a job that has ended and whose *record* is all that is left of it."""
    return _job(record, SeenJob({}), None, pipeline, has_summary=False)


SEARCHED = (
    *("url", "note", "started_by", "pipeline_id"),
    *("finished_at", "failed", "aborted", "amicrawl_failed_at"),
)
"""Fields of a record, by which jobs that have ended are searched and sorted."""


def ended_view(fields: Mapping[str, str], *, pipeline: str, hosts: str | None) -> SearchedJob:
    """Return what is searched of a job that has ended: of its *fields*, with `ident`, and *hosts*."""
    state: State = (
        "failed" if fields.get("failed") else "aborted" if fields.get("aborted") else "completed"
    )
    return {
        "ident": fields["ident"],
        "url": plain(fields.get("url", "")),
        "state": state,
        "note": plain(fields.get("note", ""), limit=_SHORT * 4),
        "started_by": plain(fields.get("started_by", ""), limit=_SHORT),
        "pipeline": pipeline,
        "queue": None,
        "hosts": hosts_view(hosts, most=BUSIEST),
    }


def _job(
    record: JobRecord, seen: SeenJob, queue: str | None, pipeline: str, *, has_summary: bool
) -> Job:
    now = reported(seen.facts.get("now"))
    rates = _rates(record, seen, now.get("rates"))
    attempt, resumed = seen.attempt or record.further.get("amicrawl_attempt", ""), seen.resumed
    return {
        "ident": record.ident,
        "url": plain(record.url),
        "link": link(record.url),
        "state": _state(record, now),
        "step": plain(record.step),
        "note": plain(record.note, limit=_SHORT * 4),
        "depth": cast("Any", record.fetch_depth if record.fetch_depth in {"inf", "shallow"} else ""),
        "is_list": bool(record.url_file),
        "started_by": plain(record.started_by, limit=_SHORT),
        "started_in": plain(record.started_in, limit=_SHORT),
        "queued_at": record.queued_at,
        "started_at": record.started_at,
        "finished_at": record.ended_at,
        "updated_at": fraction(now.get("ts")) or record.ts,
        "queue": None if queue is None else plain(queue, limit=200),
        "place": None,
        "pipeline_id": plain(record.pipeline_id, limit=_SHORT),
        "pipeline": pipeline,
        "attempt": number_of(attempt) or None,
        "resumed": cast("Any", resumed if resumed in {"resumed", "restarted"} else None),
        "bytes": record.bytes_downloaded or 0,
        "downloaded": record.requested,
        "queued": record.items_queued or 0,
        "todo": record.in_queue,
        "errors": record.error_count or 0,
        "responses": cast("Any", {name: getattr(record, name) or 0 for name in RESPONSES}),
        "items_per_s": fraction(rates.get("items")),
        "bytes_per_s": fraction(rates.get("bytes")),
        "concurrency": record.concurrency,
        "delay_min": record.delay_min,
        "delay_max": record.delay_max,
        "reports": not record.suppress_ignore_reports,
        "settings_age": record.settings_age,
        "patterns": seen.ignores,
        "has_summary": has_summary,
        "hosts": hosts_view(seen.facts.get("hosts"), most=BUSIEST),
        "faults": [
            *(plain(fault, limit=_SHORT) for fault in record.faults),
            *_texts(now.get("faults"), most=20),
        ],
    }


def _rates(record: JobRecord, seen: SeenJob, rates: object) -> Mapping[str, object]:
    """Return the *rates* that the crawl of a job reported, where they are current; else none.

    What it reported last says nothing once it has lost its lease. Crawls of ArchiveBot have none.
    """
    is_current = record.state is JobState.RUNNING and (seen.is_leased or not seen.attempt)
    return rates if isinstance(rates, dict) and is_current else {}


def detail_view(job: Job, seen: SeenJob) -> JobDetail:
    """Return *job* with what else is known; the caller adds the long lists, which it has read."""
    record = JobRecord.parse(seen.record, ident=job["ident"])
    now = reported(seen.facts.get("now"))
    return {
        **job,  # type: ignore[typeddict-item]  # mypy requires what need not be there
        "user_agent": plain(record.user_agent, limit=_SHORT * 4),
        "no_offsite_links": record.no_offsite_links,
        "settings": settings_view(seen.record),
        "slug": plain(record.slug, limit=_SHORT),
        "hosts": hosts_view(seen.facts.get("hosts")),
        "facts": {
            plain(name, limit=100): _bounded(value) for name, value in islice(now.items(), _MOST_FACTS)
        },
    }


def settings_view(
    record: Mapping[str, str], declared: Sequence[job_settings.JobSetting] = job_settings.SETTINGS
) -> dict[str, int | str | bool | None]:
    """Return what *record* says of those of the settings *declared* that can change."""
    values = {
        each.name: each.read(record, []) for each in job_settings.fields(job_settings.live(declared))
    }
    return {
        name: plain(value, limit=_SHORT * 4) if isinstance(value, str) else value
        for name, value in values.items()
    }


def hosts_view(text: str | None, *, most: int = MOST_HOSTS) -> list[HostFacts]:
    """Return the hosts that a crawl reported, the busiest first, *most* at most."""
    return [
        {
            "host": text_of(host, "host", limit=_SHORT),
            "in_flight": whole(host.get("in_flight")),
            "pages": whole(host.get("pages")),
            "waiting": whole(host.get("waiting")),
            "delay_ms": fraction(host.get("delay_ms")),
        }
        for host in objects(text, most=most)
    ]


def ignores_view(patterns: Iterable[str], text: str | None) -> list[IgnoreFacts]:
    """Return the expressions *patterns* of a job, with the hits that its crawl reported; most first."""
    hits: dict[str, int | None] = {
        told_of["pattern"]: whole(told_of.get("hits"))
        for told_of in objects(text, most=MOST_IGNORES)
        if isinstance(told_of.get("pattern"), str)
    }
    everything = dict.fromkeys([*patterns][:MOST_IGNORES])
    listed = sorted(everything, key=lambda pattern: (-(hits.get(pattern) or 0), pattern))
    return [{"pattern": plain(pattern), "hits": hits.get(pattern)} for pattern in listed]


def history_view(text: str | None) -> list[HistoryPoint]:
    """Return the figures over time that a crawl reported, oldest first."""
    points: list[HistoryPoint] = [
        {
            "ts": fraction(point.get("ts")) or 0.0,
            "downloaded": whole(point.get("downloaded")) or 0,
            "bytes": whole(point.get("bytes")) or 0,
            "errors": whole(point.get("errors")) or 0,
            "todo": whole(point.get("todo")) or 0,
        }
        for point in objects(text, most=MOST_POINTS)
    ]
    return sorted(points, key=lambda point: point["ts"])


def files_view(text: str | None) -> list[FileFacts]:
    """Return the files that a crawl reported."""
    return [
        {
            "name": text_of(file, "name", limit=_SHORT),
            "bytes": whole(file.get("bytes")),
            "sealed": file.get("sealed") is True,
        }
        for file in objects(text, most=MOST_FILES)
    ]


def entry_view(score: float, text: str) -> LogEntry:
    """Return the log entry *text*; an invalid one is shown as it is, with the type `unknown`."""
    number = whole(score) or 0
    try:
        entry = parsed(text)
    except NotAnEntryError as error:
        return {
            "score": number,
            "ts": None,
            "type": "unknown",
            "message": f"{plain(text, limit=_SHORT)} ({plain(str(error), limit=_SHORT)})",
        }
    fields = {name: plain(v) if isinstance(v, str) else v for name, v in entry.fields().items()}
    if isinstance(entry, Stdout):
        fields["message"] = plain(entry.message, limit=LONGEST_ENTRY)
    else:
        fields["link"] = link(entry.url)
    return cast("LogEntry", {"score": number, **fields})


def reported(text: str | None) -> dict[str, Any]:
    """Return the JSON object in *text*, an empty one where it is none."""
    said = _json(text)
    return said if isinstance(said, dict) else {}


def objects(text: str | None, *, most: int) -> list[dict[str, Any]]:
    """Return the JSON objects of the list in *text*, *most* at most; empty where it is not a list."""
    said = _json(text)
    if not isinstance(said, list):
        return []
    return [item for item in said[:most] if isinstance(item, dict)]


def _state(record: JobRecord, now: Mapping[str, Any]) -> State:
    state = record.state
    if state is JobState.RUNNING:
        return "paused" if now.get("state") == "paused" else "running"
    return cast("State", str(state))


def _json(text: str | None) -> Any:
    if not text:
        return None
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None


def _texts(value: Any, *, most: int) -> list[str]:
    if not isinstance(value, list):
        return []
    return [plain(item, limit=_SHORT) for item in value[:most] if isinstance(item, str)]


def _bounded(value: Any) -> Any:
    """Return what a crawl reported of itself if it is small and can be sent, else None."""
    if isinstance(value, str):
        return plain(value, limit=_SHORT * 4)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return fraction(value) if isinstance(value, float) else whole(value)
    if isinstance(value, list):
        return _texts(value, most=100)
    if isinstance(value, dict) and len(value) <= _MOST_FACTS:
        return {
            plain(str(k), limit=100): _bounded(v) for k, v in value.items() if not isinstance(v, dict)
        }
    return None
