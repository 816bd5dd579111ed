"""The HTTP API: what it reports, and the table of all operations with their roles, input and output.

Each function is one operation, its docstring the description of it. Those that change something are in
`api_changing.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.discovery import IgnoreSet, ignore_set, set_names
from amicrawl.errors import UsageError
from amicrawl.fleet.dashboard import api_changing as changing
from amicrawl.fleet.dashboard import bodies, shapes
from amicrawl.fleet.dashboard.job_choice import JobChoice
from amicrawl.fleet.dashboard.operations import Call, Operation, document
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.stream import events, stream, types_in
from amicrawl.fleet.dashboard.users import Role
from amicrawl.fleet.jobs import JobState, checked_pattern, job_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import BaseModel


_TRIED = 1000
_SHOWN = 100


def session(call: Call) -> Any:
    """Report the user, and the token that changes need."""
    visitors = call.site.visitors
    visitor = visitors.of(call.request)
    if visitor is None:
        return {"user": visitors.signed_out, "users_exist": True, "csrf": visitors.sessions.csrf("")}
    return {
        "user": visitor.facts,
        "users_exist": visitors.users is not None,
        "csrf": visitors.sessions.csrf(visitor.session),
    }


def status(call: Call) -> Any:
    """Report all jobs in figures."""
    return call.site.board.totals(viewers=call.site.hub.viewers)


def list_jobs(call: Call) -> Any:
    """List jobs by state, search, submitter and pipeline; without a state, those queued or running."""
    wanted = frozenset(call.query.state.split(","))
    if "running" in wanted:
        wanted |= {"paused", "aborting"}
    if not wanted <= set(JobState):
        raise Problem(422, f"A state is one of {', '.join(JobState)}.")
    query = call.query
    choice = JobChoice(search=query.search, by=query.by, pipeline=query.pipeline, sort=query.sort)
    return {"jobs": call.site.board.jobs(wanted, choice, most=query.limit)}


def show_job(call: Call) -> Any:
    """Report everything about one job."""
    return call.site.board.detail(call.path["ident"])


def show_log(call: Call) -> Any:
    """Report a part of the log of a job."""
    types = types_in(call.query.type)
    log = call.site.board.log(
        call.path["ident"], after=call.query.after, before=call.query.before, most=call.query.limit
    )
    return {**log, "entries": [entry for entry in log["entries"] if entry["type"] in types]}


def show_ignores(call: Call) -> Any:
    """List the ignore patterns of a job, with the number of URLs that each has excluded."""
    return {"ignores": call.site.board.ignores(call.path["ident"])}


def test_pattern(call: Call) -> Any:
    """Test an ignore pattern without adding it."""
    job = call.site.board.job(call.path["ident"])
    ignores = IgnoreSet()
    try:
        ignores.add(checked_pattern(call.body.pattern))
    except UsageError as error:
        return {"valid": False, "why": str(error), "tested": 0, "matched": 0, "urls": []}
    urls = call.body.urls
    if urls is None:
        log = call.site.board.log(job["ident"], after=None, before=None, most=_TRIED)
        urls = [entry["url"] for entry in log["entries"] if "url" in entry]
    tried = list(dict.fromkeys(urls))
    matched = [url for url in tried if ignores.match(url, primary=job["url"]) is not None]
    return {
        "valid": True,
        "why": None,
        "tested": len(tried),
        "matched": len(matched),
        "urls": matched[:_SHOWN],
    }


def list_pipelines(call: Call) -> Any:
    """List the pipelines, with their load, disk and jobs."""
    return {"pipelines": call.site.board.pipelines()}


def list_pending(call: Call) -> Any:
    """List the queues, the next job of each first."""
    return {"queues": call.site.board.queues()}


def list_finished(call: Call) -> Any:
    """List the jobs that have ended: those with a record, then the results of earlier ones."""
    board, most = call.site.board, call.query.limit
    remembered = board.ended(most=most)
    return {"jobs": [*remembered, *board.past(remembered, most=most)][:most]}


def list_dead_letters(call: Call) -> Any:
    """List the dead letters: values in Redis that could not be used."""
    return {"letters": call.site.board.letters()}


def list_ignore_sets(_call: Call) -> Any:
    """List the sets of ignore patterns that come with amicrawl."""
    return {"sets": [{"name": name, "patterns": len(ignore_set(name))} for name in set_names()]}


def openapi(call: Call) -> Any:
    """Describe this API."""
    return document(operations(call.site.job_settings))


def _get(
    path: str,
    run: Callable[[Call], Any],
    response: Any,
    *,
    role: Role | None = Role.view,
    query: type[BaseModel] = bodies.Nothing,
    serve: Callable[[Call], Any] | None = None,
) -> Operation:
    return Operation("GET", path, run, response, role, query=query, serve=serve)


def _post(
    path: str,
    run: Callable[[Call], Any],
    response: Any,
    body: type[BaseModel] = bodies.Nothing,
    *,
    role: Role = Role.operate,
    status: int = 200,
) -> Operation:
    return Operation("POST", path, run, response, role, body=body, status=status)


def _verb(name: str, run: Callable[[Call], Any], body: type[BaseModel] = bodies.Nothing) -> Operation:
    return _post(f"/jobs/{{ident}}/{name}", run, shapes.Done, body)


_OPERATIONS = (
    _get("/session", session, shapes.SessionFacts, role=None),
    _get("/openapi.json", openapi, dict[str, Any], role=None),
    _get("/status", status, shapes.Totals),
    _get("/events", events, str, query=bodies.EventsQuery, serve=stream),
    _get("/jobs", list_jobs, shapes.Jobs, query=bodies.JobsQuery),
    _get("/jobs/{ident}", show_job, shapes.JobDetail),
    _get("/jobs/{ident}/log", show_log, shapes.Log, query=bodies.LogQuery),
    _get("/jobs/{ident}/ignores", show_ignores, shapes.Ignores),
    _post(
        "/jobs/{ident}/test-pattern",
        test_pattern,
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
    _verb("expire", changing.expire_job),
    _get("/pipelines", list_pipelines, shapes.Pipelines),
    _post("/pipelines/{id}/drain", changing.drain_pipeline, shapes.Drained, bodies.Switch),
    _get("/pending", list_pending, shapes.Queues),
    _post("/pending/move", changing.move_pending, shapes.Queues, bodies.Move),
    _post("/pending/remove", changing.remove_pending, shapes.Queues, bodies.Waiting),
    _get("/finished", list_finished, shapes.Jobs, query=bodies.FinishedQuery),
    _get("/dead", list_dead_letters, shapes.DeadLetters),
    _get("/ignore-sets", list_ignore_sets, shapes.IgnoreSets),
    _get("/users", changing.list_users, shapes.KnownUsers, role=Role.admin),
    _post("/users", changing.put_user, shapes.KnownUsers, bodies.NewUser, role=Role.admin),
    _post("/users/{name}/token", changing.add_token, shapes.NewToken, role=Role.admin),
    _post("/users/{name}/remove", changing.remove_user, shapes.KnownUsers, role=Role.admin),
)
"""Those that have nothing to do with settings of jobs."""


def operations(
    settings: Sequence[job_settings.JobSetting] = job_settings.SETTINGS,
) -> tuple[Operation, ...]:
    """Return every operation, in the order of the document; jobs have *settings*."""
    return (
        *_OPERATIONS,
        _post("/jobs", changing.submit_job, shapes.Submitted, bodies.submit_body(settings), status=201),
        *(
            _verb(each.verb, changing.setting_change(each), bodies.setting_body(each))
            for each in job_settings.live(settings)
        ),
    )
