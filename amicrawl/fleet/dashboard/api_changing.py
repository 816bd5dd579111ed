"""What the API changes: each function is one operation, its docstring the description of it.

What is allowed and what a change means is decided by the jobs themselves (`amicrawl.fleet.jobs.verbs`);
here a request becomes a call, and a refusal a status. Users are changed by admins only, and only where
there is a users file.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.users import LastAdminError, Role, Users
from amicrawl.fleet.jobs import (
    JobExistsError,
    Submission,
    WrongStateError,
    job_settings,
    queues,
    submit,
    tell_to_drain,
    verbs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from amicrawl.fleet.dashboard.operations import Call
    from amicrawl.fleet.dashboard.shapes import KnownUser
    from amicrawl.fleet.database import JobStore

STARTED_IN = "dashboard"
"""Where a job that was submitted here says it was."""


def submit_job(call: Call) -> Any:
    """Submit a job."""
    store, declared = call.site.store, call.site.job_settings
    try:
        with _within_limit(call), store.responding():
            done = submit(store, _wanted(call), now=time.time(), declared=declared)
    except JobExistsError as error:
        advice = (
            "To crawl it again, tick “Crawl it again”, or send `again`."
            if error.record.has_ended
            else "To start over, abort it first."
        )
        raise Problem(409, f"{error} {advice}", ident=error.record.ident) from error
    return {
        "ident": done.ident,
        "created": True,
        "job": call.site.board.job_or_none(done.ident),
        "warnings": list(done.warnings),
    }


def _wanted(call: Call) -> Submission:
    """Return the job that the body of *call* describes."""
    body = call.body
    said = {
        each.name: getattr(body, each.name)
        for each in job_settings.fields(job_settings.submitted(call.site.job_settings))
    }
    return Submission(
        url=body.url,
        depth="shallow" if body.shallow else "inf",
        is_list=body.is_list or body.lines is not None,
        lines=body.lines,
        settings={name: value for name, value in said.items() if value is not None},
        pipeline=body.pipeline or "",
        large=body.large,
        ignore_sets=tuple(body.ignore_sets),
        ignores=tuple(body.ignores),
        started_by=_name(call),
        started_in=STARTED_IN,
        again="ended" if body.again else "never",
    )


def abort_job(call: Call) -> Any:
    """Abort a job: a queued one is removed from its queue, a running one is asked to abort."""
    said = {
        verbs.Aborted.REMOVED: "The job was removed from its queue and is aborted.",
        verbs.Aborted.ASKED: "The crawl was asked to abort.",
        verbs.Aborted.AGAIN: "The crawl was asked to abort before, and was asked again.",
    }

    def abort(store: JobStore, ident: str) -> str:
        done, left = verbs.abort(store, ident, now=time.time())
        return said[done] + (f" What was archived before is {left}." if left else "")

    return _done(call, abort, said="{}")


def pause_job(call: Call) -> Any:
    """Pause the crawl of a job: it requests nothing new until it is resumed."""
    return _done(call, verbs.pause, said="The crawl was asked to pause.")


def resume_job(call: Call) -> Any:
    """Resume a paused crawl."""
    said = {True: "The crawl was asked to continue.", False: "It was not paused."}
    return _done(call, verbs.resume, said=said)


def add_ignore(call: Call) -> Any:
    """Add an ignore pattern to a job; queued URLs that match it are dropped."""
    said = {1: "The pattern was added.", 0: "The pattern was there already."}
    return _done(call, verbs.ignore, [call.body.pattern], said=said)


def remove_ignore(call: Call) -> Any:
    """Remove an ignore pattern from a job, by its exact text."""
    said = {1: "The pattern was removed.", 0: "There is no such pattern."}
    return _done(call, verbs.unignore, [call.body.pattern], said=said)


def add_ignore_set(call: Call) -> Any:
    """Add all patterns of a shipped set to a job."""
    return _done(call, verbs.add_ignore_sets, [call.body.name], said="{} patterns were added.")


def setting_change(setting: job_settings.JobSetting) -> Callable[[Call], Any]:
    """Return the operation that changes *setting* of a job."""

    def change(call: Call) -> Any:
        values = {each.name: getattr(call.body, each.argument) for each in setting.fields}
        return _done(call, verbs.change_setting, setting, values, said="{}")

    change.__name__ = f"set_{setting.name}"
    change.__doc__ = setting.meaning
    return change


def expire_job(call: Call) -> Any:
    """Delete the record of an ended job; its captures are kept."""
    return _done(call, verbs.expire, said="The record of the job was deleted.")


def move_pending(call: Call) -> Any:
    """Move a queued job within its queue, or into another."""
    return _queues(
        call,
        lambda store: queues.move(
            store, call.body.ident, place=call.body.position + 1, queue=call.body.queue
        ),
    )


def remove_pending(call: Call) -> Any:
    """Abort a queued job: it is removed from its queue."""

    def remove(store: JobStore) -> None:
        waiting = queues.waiting(store, [call.body.queue])
        if call.body.ident not in {entry.ident for entry in waiting}:
            raise Problem(409, "The job is no longer in that queue.")
        verbs.abort(store, call.body.ident, now=time.time())

    return _queues(call, remove)


def drain_pipeline(call: Call) -> Any:
    """Drain a pipeline: it takes no more jobs, and gives back those it runs for others to resume."""
    store = call.site.store
    key = store.keys.pipeline(call.path["id"])
    if not call.body.on:
        raise Problem(
            409, "A pipeline that drains cannot be asked to continue. Start it again when it has ended."
        )
    with store.responding():
        tell_to_drain(store, key)
    for pipeline in call.site.board.pipelines():
        if store.keys.prefix + pipeline["id"] == key:
            return {"pipeline": pipeline}
    raise Problem(404, "The pipeline no longer exists.")


def _done(
    call: Call, verb: Callable[..., Any], *arguments: Any, said: str | Mapping[Any, str]
) -> dict[str, Any]:
    """Apply *verb* to the job of *call* and return the response.

    *said* is the sentence for the user, with `{}` for what *verb* returned, or one for each result.
    """
    store, ident = call.site.store, call.path["ident"]
    try:
        with store.responding():
            result = verb(store, ident, *arguments)
    except WrongStateError as error:
        raise Problem(409, str(error)) from error
    job = call.site.board.job_or_none(ident)
    return {
        "ident": ident,
        "sentence": said.format(result) if isinstance(said, str) else said[result],
        "settings_age": None if job is None else job["settings_age"],
        "job": job,
        "warnings": [],
    }


def _queues(call: Call, change: Callable[[JobStore], object]) -> Any:
    store = call.site.store
    try:
        with store.responding():
            change(store)
    except WrongStateError as error:
        raise Problem(409, str(error)) from error
    return {"queues": call.site.board.queues()}


@contextmanager
def _within_limit(call: Call) -> Iterator[None]:
    """Raise Problem where the user has as many jobs as one may; admins may have any number.

    No other request, of any dashboard, submits a job of that user as long as the block lasts.
    """
    most, visitor = call.site.jobs_per_user, call.visitor
    if not most or visitor is None or visitor.role is Role.admin:
        yield
        return
    with call.site.store.locked(call.site.store.keys.submitting(visitor.name)):
        own = call.site.board.live_of(visitor.name)
        if own >= most:
            raise Problem(
                409,
                f"{own} jobs of {visitor.name} are queued or running, and --jobs-per-user is {most}. "
                "Wait for one to end, or abort one.",
            )
        yield


def _name(call: Call) -> str:
    return (call.visitor.name if call.visitor is not None else "") or STARTED_IN


def list_users(call: Call) -> Any:
    """List who may sign in."""
    return {"users": known_users(_users(call))}


def put_user(call: Call) -> Any:
    """Add a user, or give one another role or password."""
    users, body = _users(call), call.body
    with _keeping_an_admin():
        users.put(body.name, role=Role[body.role], password=body.password, keep_admin=True)
    return {"users": known_users(users)}


def add_token(call: Call) -> Any:
    """Make a token for a user; it is shown this once."""
    return {"token": _users(call).add_token(call.path["name"])}


def remove_user(call: Call) -> Any:
    """Remove a user, with all tokens and sessions."""
    users = _users(call)
    with _keeping_an_admin():
        users.remove(call.path["name"], keep_admin=True)
    return {"users": known_users(users)}


@contextmanager
def _keeping_an_admin() -> Iterator[None]:
    try:
        yield
    except LastAdminError as error:
        raise Problem(409, str(error)) from error


def known_users(users: Users) -> list[KnownUser]:
    """Return what may be shown of *users*."""
    return [
        {
            "name": user.name,
            "role": user.role.name,  # type: ignore[typeddict-item]  # one of three
            "has_password": user.password is not None,
            "tokens": len(user.tokens),
        }
        for user in users.all().values()
    ]


def _users(call: Call) -> Users:
    if call.site.visitors.users is None:
        raise Problem(409, "There is no users file. Start the dashboard with --users FILE.")
    return call.site.visitors.users
