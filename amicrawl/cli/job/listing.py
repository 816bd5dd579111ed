"""`amicrawl job status`, `ls`, `pending`, `dead`, `show`, `where`: what Redis holds of jobs."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.options import AsJson, print_table
from amicrawl.cli.redis_options import with_store
from amicrawl.fleet.dashboard import JobChoice, past_view
from amicrawl.fleet.database import (
    checked_ident,
    clear_dead_letters,
    dead_letters,
    ident_of,
    normalised,
)
from amicrawl.fleet.jobs import ENDED, RESPONSES, JobState, lookup, pipelines, queues, verbs
from amicrawl.terminal import counted, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.fleet.dashboard import Job
    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.jobs import JobRecord


EVERY = 0.5
"""Seconds between two looks at a job."""


_GONE_AFTER = 10.0
"""Seconds: the crawl of a job that Redis has lost, or its pipeline, writes it again before."""


class Absence:
    """For how long Redis has known nothing of a job that it knew."""

    def __init__(self) -> None:
        self._since: float | None = None

    def is_final(self, record: JobRecord | None) -> bool:
        """Tell whether the job, just looked up as *record*, is not going to be written again."""
        if record is not None:
            self._since = None
            return False
        now = time.monotonic()
        self._since = self._since or now
        return now - self._since >= _GONE_AFTER

    def interrupted(self) -> None:
        """Count anew: Redis did not respond."""
        self._since = None


def ident_in(job: str) -> str:
    """Return the ident that *job* is, or that the URL *job* has; raises UsageError for neither."""
    return ident_of(normalised(job)) if "://" in job else checked_ident(job)


JobArgument = Annotated[
    str,
    typer.Argument(metavar="JOB", help="Its ident, or its URL.", show_default=False, callback=ident_in),
]
"""A job; the command is given its ident."""


def moment(seconds: float | None) -> str:
    """Return Unix *seconds* as people read a time, in UTC; a dash where there is none."""
    if seconds is None or not 0 <= seconds < 4e9:
        return "-"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


_URL_SHOWN = 60


JobOrNone = Annotated[
    str | None, typer.Argument(metavar="JOB", help="An ident, or a URL; without one, totals.")
]
Finished = Annotated[bool, typer.Option("--finished", help="Include the last thousand that have ended.")]
Search = Annotated[
    str, typer.Option(metavar="WORDS", help="Only jobs with all WORDS in URL, ident, note or submitter.")
]
OfState = Annotated[JobState | None, typer.Option("--state", help="Only jobs in this state.")]
OfSubmitter = Annotated[str, typer.Option("--by", metavar="NAME", help="Only jobs that NAME submitted.")]
OfPipeline = Annotated[
    str, typer.Option("--pipeline", metavar="NAME", help="Only jobs of this pipeline, or in this queue.")
]
Clear = Annotated[bool, typer.Option("--clear", help="Delete them.")]


@with_store
def status(store: JobStore, job: JobOrNone = None, *, as_json: AsJson = False) -> None:
    """Print the state of a job in a line, or the number of jobs.

    Example: amicrawl job status https://example.org/
    """
    if job is not None:
        record = lookup.job(store, ident_in(job))
        typer.echo(json.dumps(facts_of(record)) if as_json else _sentence(record))
        return
    ended = lookup.counts(store)
    lengths = queues.lengths(store)
    totals = {**ended._asdict(), "working": len(lookup.working(store)), "queues": lengths}
    totals["dead_letters"] = len(dead_letters(store))
    if as_json:
        typer.echo(json.dumps(totals))
        return
    queued = "; ".join(f"{name} {number:,}" for name, number in lengths.items() if number)
    typer.echo(
        f"Jobs: {ended.completed:,} completed, {ended.aborted:,} aborted, {ended.failed:,} failed, "
        f"{totals['working']:,} running, {sum(lengths.values()):,} queued"
        + (f" ({queued})." if queued else ".")
    )
    if totals["dead_letters"]:
        typer.echo(f"{counted(totals['dead_letters'], 'dead letter')}: amicrawl job dead")


@with_store
def ls(
    store: JobStore,
    *,
    finished: Finished = False,
    search: Search = "",
    state: OfState = None,
    by: OfSubmitter = "",
    pipeline: OfPipeline = "",
    as_json: AsJson = False,
) -> None:
    """List running and queued jobs, those that run first, then in the order of their queues.

    Example: amicrawl job ls --state running --search example.org
    """
    found = everything = _listed(store, finished=finished or state in ENDED)
    if search or state or by or pipeline:
        choice = JobChoice(search=search, state=state or "", by=by, pipeline=pipeline)
        nicknames = {each.get("id", ""): each.get("nickname", "") for each in pipelines(store)}
        queue_of = {entry.ident: entry.queue for entry in queues.waiting(store)}
        found = [record for record in found if choice.takes(_seen(record, nicknames, queue_of))]
    if as_json:
        for record in found:
            typer.echo(json.dumps(facts_of(record)))
        return
    rows = [_row(record) for record in found]
    print_table(
        ("ident", "state", "since", "received", "responses", "queue", "URL"),
        rows,
        right=(False, False, False, True, True, True, False),
        otherwise=_none_of(len(everything), finished=finished),
    )


def _none_of(jobs: int, *, finished: bool) -> str:
    """Return what is said in place of an empty list, where there are so many *jobs* to choose from."""
    if jobs:
        return (
            "No job fits what was given with --search, --state, --by and --pipeline "
            f"({counted(jobs, 'job')} without them)."
        )
    if finished:
        return "No jobs. Submit one with `amicrawl job submit URL`."
    return (
        "No job is queued or running. Submit one with `amicrawl job submit URL`, or list those that "
        "have ended with `amicrawl job ls --finished`."
    )


@with_store
def pending(store: JobStore, *, as_json: AsJson = False) -> None:
    """List the queued jobs of every queue, the next one first.

    Example: amicrawl job pending --json
    """
    waiting = queues.waiting(store)
    records = lookup.jobs(store, [entry.ident for entry in waiting])
    if as_json:
        for entry in waiting:
            record = records.get(entry.ident)
            typer.echo(json.dumps({**entry._asdict(), "url": record.url if record else None}))
        return
    rows = []
    for entry in waiting:
        record = records.get(entry.ident)
        url = (
            harmless(record.url, limit=_URL_SHOWN) if record else "(no record: no pipeline will take it)"
        )
        rows.append((entry.queue, str(entry.place), entry.ident, url))
    print_table(
        ("queue", "place", "ident", "URL"),
        rows,
        right=(False, True, False, False),
        otherwise="No job is queued.",
    )


@with_store
def dead(store: JobStore, *, clear: Clear = False, as_json: AsJson = False) -> None:
    """List values in Redis that could not be parsed, newest first: key, reason, and first bytes.

    Example: amicrawl job dead --json
    """
    if clear:
        typer.echo(f"{counted(clear_dead_letters(store), 'dead letter')} deleted.")
        return
    found = dead_letters(store)
    for letter in found:
        if as_json:
            typer.echo(json.dumps(letter._asdict()))
        else:
            excerpt = f": {harmless(letter.excerpt, limit=80)}" if letter.excerpt else ""
            typer.echo(
                f"{moment(letter.seen)}  {harmless(letter.where)}: {harmless(letter.why)}{excerpt}"
            )


def facts_of(record: JobRecord) -> dict[str, Any]:
    """Return a job for `--json`: ArchiveBot's object, and what that leaves out."""
    return {
        **record.job_data(),
        "state": str(record.state),
        "step": record.step or None,
        "url_file": record.url_file or None,
        "slug": record.slug,
        "user_agent": record.user_agent or None,
        "no_offsite_links": record.no_offsite_links,
        "abort_requested": record.abort_requested,
        "failed": record.failed,
        "ended_at": record.ended_at,
        "heartbeat": record.heartbeat,
        "settings_age": record.settings_age,
        "attempt": record.further.get("amicrawl_attempt"),
        "faults": list(record.faults),
    }


def _listed(store: JobStore, *, finished: bool) -> list[JobRecord]:
    idents = lookup.working(store)
    idents += [entry.ident for entry in queues.waiting(store)]
    found = lookup.jobs(store, idents)
    if finished:
        remembered = lookup.finished(store)
        known = {(record.ident, record.ended_at) for record in remembered}
        past = [record for record in lookup.past(store) if (record.ident, record.ended_at) not in known]
        return [*found.values(), *(each for each in remembered if each.ident not in found), *past]
    return list(found.values())


def _row(record: JobRecord) -> tuple[str, ...]:
    since = record.ended_at if record.state in ENDED else record.started_at or record.queued_at
    return (
        record.ident,
        _state(record),
        moment(since),
        human_size(max(record.bytes_downloaded or 0, 0)),
        f"{record.responses:,}",
        f"{record.in_queue:,}",
        harmless(record.url, limit=_URL_SHOWN),
    )


def _seen(record: JobRecord, nicknames: Mapping[str, str], queue_of: Mapping[str, str]) -> Job:
    """Return *record* as the dashboard has it, whose rules choose."""
    job = past_view(record, pipeline=nicknames.get(record.pipeline_id, ""))
    return {**job, "queue": queue_of.get(record.ident)}


def _state(record: JobRecord) -> str:
    return f"{record.state}: {harmless(record.step)}" if record.step else str(record.state)


def _sentence(record: JobRecord) -> str:
    said = [f"{record.ident} {record.state.phrase}: {harmless(record.url)}"]
    if record.step:
        said.append(harmless(record.step))
    if record.started_by:
        said.append(f"submitted by {harmless(record.started_by, limit=60)}")
    if record.note:
        said.append(f"note: {harmless(record.note)}")
    if record.started_at is not None:
        said.append(
            f"{human_size(max(record.bytes_downloaded or 0, 0))}, "
            f"{counted(record.responses, 'response')}, {counted(record.error_count or 0, 'error')}, "
            f"{record.in_queue:,} in queue"
        )
    said.append(f"concurrency {record.concurrency or 0:,}, delay {delay_text(record)}")
    if record.abort_requested and not record.aborted:
        said.append("it is asked to abort")
    return "; ".join(said)


def delay_text(record: JobRecord) -> str:
    """Return how long a job waits between two requests: `none`, `250 ms`, `250 to 375 ms`."""
    least, most = record.delay_min, record.delay_max
    if least is None or most is None:
        return "unknown"
    if least == most:
        return f"{least:,} ms" if least else "none"
    return f"{least:,} to {most:,} ms"


_CLASSES = {"unk": "without a status"}


@with_store
def show(store: JobStore, job: JobArgument, *, as_json: AsJson = False) -> None:
    """Print all data of a job, including its ignore patterns.

    Example: amicrawl job show https://example.org/ --json
    """
    record = lookup.job(store, job)
    ignores = lookup.ignores(store, record.ident)
    desired = lookup.desired(store, record.ident)
    place = verbs.where(store, record.ident)
    config = lookup.config(store, record.ident)
    facts = {
        **facts_of(record),
        "paused": bool(desired.get("paused")),
        "pipeline": place.nickname or None,
        "directory": place.directory or None,
        "further": dict(record.further),
        "config": config,
        "ignores": ignores,
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    for name, value in _lines(record, place):
        typer.echo(f"{name:<15}{value}")
    if facts["paused"]:
        typer.echo(f"{'paused':<15}yes")
    for fault in record.faults:
        typer.echo(f"{'cannot be read':<15}{harmless(fault)}")
    typer.echo(f"{'ignores':<15}{len(ignores):,}")
    for pattern in ignores:
        typer.echo(f"  {harmless(pattern, limit=2_000)}")


@with_store
def where(store: JobStore, job: JobArgument, *, as_json: AsJson = False) -> None:
    """Say which pipeline crawls a job, and into which directory.

    Example: amicrawl job where https://example.org/
    """
    place = verbs.where(store, job)
    if as_json:
        typer.echo(json.dumps({"ident": job, **place._asdict()}))
    elif not place.pipeline_id:
        typer.echo(f"No pipeline has taken {job} yet.")
    else:
        on = f" on {harmless(place.hostname)}" if place.hostname else ""
        typer.echo(
            f"{harmless(place.nickname) or 'A pipeline that is gone'}{on}: {harmless(place.pipeline_id)}"
            + (f", in {harmless(place.directory)}" if place.directory else "")
        )


def _lines(record: JobRecord, place: verbs.Where) -> list[tuple[str, str]]:
    counts = {name.removeprefix("r"): getattr(record, name) or 0 for name in RESPONSES}
    classes = ", ".join(f"{counts[name]:,} {_CLASSES.get(name, name)}" for name in counts)
    depths = {"inf": "whole site", "shallow": "page with its requisites"}
    depth = depths.get(record.fetch_depth) or harmless(record.fetch_depth) or "?"
    lines = [
        ("ident", record.ident),
        ("state", _state(record)),
        ("URL", harmless(record.url, limit=2_000)),
        ("depth", depth + (" of each URL of a list" if record.url_file else "")),
        ("note", harmless(record.note)),
        ("submitted by", f"{harmless(record.started_by)} in {harmless(record.started_in)}"),
        ("queued", moment(record.queued_at)),
        ("started", moment(record.started_at)),
        ("ended", moment(record.ended_at)),
        ("pipeline", " ".join(filter(None, map(harmless, (place.nickname, record.pipeline_id))))),
        ("directory", harmless(place.directory)),
        ("attempt", harmless(record.further.get("amicrawl_attempt", ""))),
        ("files", harmless(record.slug)),
        ("user agent", harmless(record.user_agent)),
        ("off-site links", "no" if record.no_offsite_links else "yes"),
        ("delay", delay_text(record)),
        ("concurrency", str(record.concurrency)),
        ("ignored URLs", "not logged" if record.suppress_ignore_reports else "logged"),
        ("settings age", str(record.settings_age)),
        ("received", human_size(max(record.bytes_downloaded or 0, 0))),
        ("responses", classes),
        ("errors", f"{record.error_count or 0:,}"),
        ("in queue", f"{record.in_queue:,} of {record.items_queued or 0:,} ever queued"),
    ]
    return [(name, value) for name, value in lines if value]
