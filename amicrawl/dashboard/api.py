"""The table of the HTTP API: its operations, the role that each requires, its input and its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.dashboard import api_changing as changing
from amicrawl.dashboard import api_reading as reading
from amicrawl.dashboard import api_users as users
from amicrawl.dashboard import bodies, shapes
from amicrawl.dashboard.operations import Call, Operation, document
from amicrawl.dashboard.stream import events, stream
from amicrawl.dashboard.users import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel


def openapi(_call: Call) -> Any:
    """Describe this API."""
    return document(OPERATIONS)


def _get(
    path: str,
    run: Callable[[Call], Any],
    answer: Any,
    *,
    role: Role | None = Role.view,
    query: type[BaseModel] = bodies.Nothing,
    serve: Callable[[Call], Any] | None = None,
) -> Operation:
    return Operation("GET", path, run, answer, role, query=query, serve=serve)


def _post(
    path: str,
    run: Callable[[Call], Any],
    answer: Any,
    body: type[BaseModel] = bodies.Nothing,
    *,
    role: Role = Role.operate,
    status: int = 200,
) -> Operation:
    return Operation("POST", path, run, answer, role, body=body, status=status)


def _verb(name: str, run: Callable[[Call], Any], body: type[BaseModel] = bodies.Nothing) -> Operation:
    return _post(f"/jobs/{{ident}}/{name}", run, shapes.Done, body)


OPERATIONS = (
    _get("/session", reading.session, shapes.SessionFacts, role=None),
    _get("/openapi.json", openapi, dict[str, Any], role=None),
    _get("/status", reading.status, shapes.Totals),
    _get("/events", events, str, query=bodies.EventsQuery, serve=stream),
    _get("/jobs", reading.list_jobs, shapes.Jobs, query=bodies.JobsQuery),
    _post("/jobs", changing.submit_job, shapes.Submitted, bodies.Submit, status=201),
    _get("/jobs/{ident}", reading.show_job, shapes.JobDetail),
    _get("/jobs/{ident}/log", reading.show_log, shapes.Log, query=bodies.LogQuery),
    _get("/jobs/{ident}/ignores", reading.show_ignores, shapes.Ignores),
    _post(
        "/jobs/{ident}/test-pattern",
        reading.test_pattern,
        shapes.Tested,
        bodies.TestPattern,
        role=Role.view,
    ),
    _verb("abort", changing.abort_job),
    _verb("pause", changing.pause_job),
    _verb("resume", changing.resume_job),
    _verb("ignore", changing.add_ignore, bodies.OnePattern),
    _verb("unignore", changing.remove_ignore, bodies.OnePattern),
    _verb("ignore-set", changing.add_ignore_set, bodies.NamedSet),
    _verb("delay", changing.set_delay, bodies.DelayRange),
    _verb("concurrency", changing.set_concurrency, bodies.Concurrency),
    _verb("note", changing.set_note, bodies.Note),
    _verb("reports", changing.set_reports, bodies.Switch),
    _verb("expire", changing.expire_job),
    _get("/pipelines", reading.list_pipelines, shapes.Pipelines),
    _post("/pipelines/{id}/drain", changing.drain_pipeline, shapes.Drained, bodies.Switch),
    _get("/pending", reading.list_pending, shapes.Queues),
    _post("/pending/move", changing.move_pending, shapes.Queues, bodies.Move),
    _post("/pending/remove", changing.remove_pending, shapes.Queues, bodies.Waiting),
    _get("/finished", reading.list_finished, shapes.Jobs, query=bodies.FinishedQuery),
    _get("/dead", reading.list_dead_letters, shapes.DeadLetters),
    _get("/ignore-sets", reading.list_ignore_sets, shapes.IgnoreSets),
    _get("/users", users.list_users, shapes.KnownUsers, role=Role.admin),
    _post("/users", users.put_user, shapes.KnownUsers, bodies.NewUser, role=Role.admin),
    _post("/users/{name}/token", users.add_token, shapes.NewToken, role=Role.admin),
    _post("/users/{name}/remove", users.remove_user, shapes.KnownUsers, role=Role.admin),
)
"""Every operation, in the order of the document."""
