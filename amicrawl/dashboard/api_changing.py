"""What the API changes: each function is one operation, its docstring the description of it.

What is allowed and what a change means is the jobs' own affair (`amicrawl.jobs.verbs`); here a request
becomes a call, and a refusal a status.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from amicrawl.dashboard.problems import Problem
from amicrawl.dashboard.users import Role
from amicrawl.errors import UsageError
from amicrawl.jobs import queues, verbs
from amicrawl.jobs.pipeline_record import tell_to_drain
from amicrawl.jobs.submission import DELAY, JobExistsError, Submission, submit

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.dashboard.operations import Call
    from amicrawl.jobs.connection import JobStore

_LIVE = frozenset({"queued", "running", "paused", "aborting"})
_MOST_LIVE = 5000
_ENDED = frozenset({"completed", "aborted", "failed"})
STARTED_IN = "dashboard"
"""Where a job that was submitted here says it was."""


def submit_job(call: Call) -> Any:
    """Submit a job."""
    body = call.body
    _check_limit(call)
    delay = None
    if body.delay_min is not None or body.delay_max is not None:
        least = body.delay_min if body.delay_min is not None else min(DELAY[0], body.delay_max)
        delay = least, body.delay_max if body.delay_max is not None else max(DELAY[1], least)
    wanted = Submission(
        url=body.url,
        depth="shallow" if body.shallow else "inf",
        is_list=body.is_list or body.lines is not None,
        lines=body.lines,
        note=body.note or "",
        pipeline=body.pipeline or "",
        large=body.large,
        user_agent=body.user_agent or "",
        delay=delay,
        concurrency=body.concurrency,
        offsite_links=not body.no_offsite_links,
        ignore_sets=tuple(body.ignore_sets),
        ignores=tuple(body.ignores),
        started_by=_name(call),
        started_in=STARTED_IN,
        again="ended" if body.again else "never",
    )
    store = call.site.store
    try:
        with store.answering():
            done = submit(store, wanted, now=time.time())
    except JobExistsError as error:
        detail = str(error).replace("Use --force to", "Say `again` to")
        raise Problem(409, detail, ident=error.record.ident) from error
    return {
        "ident": done.ident,
        "created": True,
        "job": call.site.board.job_or_none(done.ident),
        "warnings": list(done.warnings),
    }


def abort_job(call: Call) -> Any:
    """Abort a job: one that waits is taken out of its queue, one that runs is asked to end."""
    said = {
        verbs.Aborted.REMOVED: "The job is out of its queue, and counts as aborted.",
        verbs.Aborted.ASKED: "The crawl was asked to end.",
        verbs.Aborted.AGAIN: "The crawl had been asked to end before, and was asked again.",
    }
    return _done(call, lambda store, ident: said[verbs.abort(store, ident, now=time.time())])


def pause_job(call: Call) -> Any:
    """Let the crawl of a job ask for nothing new until it is resumed."""

    def pause(store: JobStore, ident: str) -> str:
        verbs.pause(store, ident)
        return "The crawl was asked to pause."

    return _done(call, pause)


def resume_job(call: Call) -> Any:
    """Let a paused crawl go on."""

    def resume(store: JobStore, ident: str) -> str:
        return "The crawl was asked to continue." if verbs.resume(store, ident) else "It was not paused."

    return _done(call, resume)


def add_ignore(call: Call) -> Any:
    """Add an ignore expression to a job; what waits and is ignored now is dropped."""

    def add(store: JobStore, ident: str) -> str:
        added = verbs.ignore(store, ident, [call.body.pattern])
        return "The expression was added." if added else "The expression was there already."

    return _done(call, add)


def remove_ignore(call: Call) -> Any:
    """Remove an ignore expression from a job, by its exact text."""

    def remove(store: JobStore, ident: str) -> str:
        removed = verbs.unignore(store, ident, [call.body.pattern])
        return "The expression was removed." if removed else "There is no such expression."

    return _done(call, remove)


def add_ignore_set(call: Call) -> Any:
    """Add all expressions of a shipped set to a job."""

    def add(store: JobStore, ident: str) -> str:
        added = verbs.add_ignore_sets(store, ident, [call.body.name])
        return f"{added} expressions were added."

    return _done(call, add)


def set_delay(call: Call) -> Any:
    """Set how long the crawl of a job waits between two requests."""

    def change(store: JobStore, ident: str) -> str:
        verbs.delay(store, ident, call.body.min, call.body.max)
        return f"The delay is {call.body.min} to {call.body.max} ms now."

    return _done(call, change)


def set_concurrency(call: Call) -> Any:
    """Set how many requests the crawl of a job makes at once."""

    def change(store: JobStore, ident: str) -> str:
        verbs.concurrency(store, ident, call.body.workers)
        return f"The concurrency is {call.body.workers} now."

    return _done(call, change)


def set_note(call: Call) -> Any:
    """Set the note that is shown with a job, or take it away."""

    def change(store: JobStore, ident: str) -> str:
        verbs.note(store, ident, call.body.note)
        return "The note was changed."

    return _done(call, change)


def set_reports(call: Call) -> Any:
    """Say whether the log of a job tells of URLs that are ignored."""

    def change(store: JobStore, ident: str) -> str:
        if call.body.on:
            verbs.show_ignores(store, ident)
            return "The log tells of ignored URLs now."
        verbs.hide_ignores(store, ident)
        return "The log is silent on ignored URLs now."

    return _done(call, change)


def expire_job(call: Call) -> Any:
    """Forget a job that has ended; what it fetched stays where it is."""

    def expire(store: JobStore, ident: str) -> str:
        verbs.expire(store, ident)
        return "The job is forgotten."

    return _done(call, expire)


def move_pending(call: Call) -> Any:
    """Put a job that waits elsewhere in its queue, or into another."""
    return _queues(
        call,
        lambda store: queues.move(
            store, call.body.ident, place=call.body.position + 1, queue=call.body.queue
        ),
    )


def remove_pending(call: Call) -> Any:
    """Abort a job that waits: it is taken out of its queue."""

    def remove(store: JobStore) -> None:
        waiting = queues.waiting(store, [call.body.queue])
        if call.body.ident not in {entry.ident for entry in waiting}:
            raise Problem(409, "The job waits no longer in that queue.")
        verbs.abort(store, call.body.ident, now=time.time())

    return _queues(call, remove)


def drain_pipeline(call: Call) -> Any:
    """Tell a pipeline to take no more jobs, and to give back those it runs for others to resume."""
    store = call.site.store
    key = store.keys.pipeline(call.path["id"])
    if not call.body.on:
        raise Problem(
            409, "A pipeline that drains cannot be asked to continue. Start it again when it has ended."
        )
    with store.answering():
        tell_to_drain(store, key)
    for pipeline in call.site.board.pipelines():
        if store.keys.prefix + pipeline["id"] == key:
            return {"pipeline": pipeline}
    raise Problem(404, "There is no such pipeline any more.")


def _done(call: Call, change: Callable[[JobStore, str], str]) -> Any:
    store, ident = call.site.store, call.path["ident"]
    try:
        with store.answering():
            sentence = change(store, ident)
    except UsageError as error:
        job = call.site.board.job_or_none(ident)
        is_over = job is not None and (job["state"] in _ENDED or "has not ended" in str(error))
        raise Problem(409 if is_over else 422, str(error)) from error
    job = call.site.board.job_or_none(ident)
    return {
        "ident": ident,
        "sentence": sentence,
        "settings_age": None if job is None else job["settings_age"],
        "job": job,
        "warnings": [],
    }


def _queues(call: Call, change: Callable[[JobStore], object]) -> Any:
    store = call.site.store
    try:
        with store.answering():
            change(store)
    except UsageError as error:
        raise Problem(409, str(error)) from error
    return {"queues": call.site.board.queues()}


def _check_limit(call: Call) -> None:
    """Raise Problem where the user has as many jobs as one may; admins may have any number."""
    most, visitor = call.site.jobs_per_user, call.visitor
    if not most or visitor is None or visitor.role is Role.admin:
        return
    live = call.site.board.jobs(_LIVE, most=_MOST_LIVE)
    own = sum(job["started_by"] == visitor.name for job in live)
    if own >= most:
        raise Problem(
            409,
            f"{own} jobs of {visitor.name} wait or run, and --jobs-per-user is {most}. Wait for one to "
            "end, or abort one.",
        )


def _name(call: Call) -> str:
    return (call.visitor.name if call.visitor is not None else "") or STARTED_IN
