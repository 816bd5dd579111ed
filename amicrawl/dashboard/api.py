"""The table of the HTTP API: what there is, who may, what goes in and what comes out."""

from __future__ import annotations

from typing import Any

from amicrawl.dashboard import api_changing as changing
from amicrawl.dashboard import api_reading as reading
from amicrawl.dashboard import api_users as users
from amicrawl.dashboard import bodies, shapes
from amicrawl.dashboard.openapi import document
from amicrawl.dashboard.operations import Call, Operation
from amicrawl.dashboard.stream import events, stream
from amicrawl.dashboard.users import Role

_JOB = "/jobs/{ident}"


def openapi(_call: Call) -> Any:
    """Describe this API."""
    return document(OPERATIONS)


def _verb(name: str, run: Any, body: Any = bodies.Nothing) -> Operation:
    return Operation(
        "POST",
        f"{_JOB}/{name}",
        run,
        shapes.Done,
        Role.operate,
        body=body,
        problems=(409,),
    )


OPERATIONS = (
    Operation("GET", "/session", reading.session, shapes.SessionFacts, None),
    Operation("GET", "/openapi.json", openapi, dict[str, Any], None),
    Operation("GET", "/status", reading.status, shapes.Totals, Role.view),
    Operation("GET", "/events", events, str, Role.view, query=bodies.EventsQuery, serve=stream),
    Operation("GET", "/jobs", reading.list_jobs, shapes.Jobs, Role.view, query=bodies.JobsQuery),
    Operation(
        "POST",
        "/jobs",
        changing.submit_job,
        shapes.Submitted,
        Role.operate,
        body=bodies.Submit,
        status=201,
        problems=(409,),
    ),
    Operation("GET", _JOB, reading.show_job, shapes.JobDetail, Role.view),
    Operation("GET", f"{_JOB}/log", reading.show_log, shapes.Log, Role.view, query=bodies.LogQuery),
    Operation("GET", f"{_JOB}/ignores", reading.show_ignores, shapes.Ignores, Role.view),
    Operation(
        "POST",
        f"{_JOB}/test-pattern",
        reading.test_pattern,
        shapes.Tested,
        Role.view,
        body=bodies.TestPattern,
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
    Operation("GET", "/pipelines", reading.list_pipelines, shapes.Pipelines, Role.view),
    Operation(
        "POST",
        "/pipelines/{id}/drain",
        changing.drain_pipeline,
        shapes.Drained,
        Role.operate,
        body=bodies.Switch,
        problems=(404,),
    ),
    Operation("GET", "/pending", reading.list_pending, shapes.Queues, Role.view),
    Operation(
        "POST",
        "/pending/move",
        changing.move_pending,
        shapes.Queues,
        Role.operate,
        body=bodies.Move,
        problems=(409,),
    ),
    Operation(
        "POST",
        "/pending/remove",
        changing.remove_pending,
        shapes.Queues,
        Role.operate,
        body=bodies.Waiting,
        problems=(409,),
    ),
    Operation(
        "GET",
        "/finished",
        reading.list_finished,
        shapes.Jobs,
        Role.view,
        query=bodies.FinishedQuery,
    ),
    Operation("GET", "/dead", reading.list_dead_letters, shapes.DeadLetters, Role.view),
    Operation("GET", "/ignore-sets", reading.list_ignore_sets, shapes.IgnoreSets, Role.view),
    Operation("GET", "/users", users.list_users, shapes.KnownUsers, Role.admin, problems=(409,)),
    Operation(
        "POST",
        "/users",
        users.put_user,
        shapes.KnownUsers,
        Role.admin,
        body=bodies.NewUser,
        problems=(409,),
    ),
    Operation(
        "POST",
        "/users/{name}/token",
        users.add_token,
        shapes.NewToken,
        Role.admin,
        body=bodies.Nothing,
        problems=(409,),
    ),
    Operation(
        "POST",
        "/users/{name}/remove",
        users.remove_user,
        shapes.KnownUsers,
        Role.admin,
        body=bodies.Nothing,
        problems=(409,),
    ),
)
"""Every operation, in the order of the document."""
