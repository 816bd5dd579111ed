"""What the API tells: each function is one operation, its docstring the description of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.dashboard.problems import Problem
from amicrawl.dashboard.viewer import TYPES
from amicrawl.discovery import IgnoreSet
from amicrawl.discovery.named import ignore_set, set_names
from amicrawl.errors import UsageError
from amicrawl.jobs.live_settings import checked_pattern

if TYPE_CHECKING:
    from amicrawl.dashboard.operations import Call

STATES = frozenset({"queued", "running", "paused", "aborting", "completed", "aborted", "failed"})
_TRIED = 1000
_SHOWN = 100


def session(call: Call) -> Any:
    """Tell who asks, and the token that changes need."""
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
    """Tell all jobs in figures."""
    return call.site.board.totals(viewers=call.site.hub.viewers)


def list_jobs(call: Call) -> Any:
    """List jobs by state; those that wait and run, unless asked otherwise."""
    wanted = frozenset(call.query.state.split(","))
    if "running" in wanted:
        wanted |= {"paused", "aborting"}
    if not wanted <= STATES:
        raise Problem(422, f"A state is one of {', '.join(sorted(STATES))}.")
    return {"jobs": call.site.board.jobs(wanted, most=call.query.limit)}


def show_job(call: Call) -> Any:
    """Tell all about one job."""
    return call.site.board.detail(call.path["ident"])


def show_log(call: Call) -> Any:
    """Tell a part of the log of a job."""
    types = types_in(call.query.type)
    log = call.site.board.log(
        call.path["ident"], after=call.query.after, before=call.query.before, most=call.query.limit
    )
    return {**log, "entries": [entry for entry in log["entries"] if entry["type"] in types]}


def show_ignores(call: Call) -> Any:
    """List the ignore expressions of a job, with what they have kept out."""
    return {"ignores": call.site.board.ignores(call.path["ident"])}


def test_pattern(call: Call) -> Any:
    """Try an ignore expression out, without adding it."""
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
    """List the jobs that have ended: those that are remembered, then what became of earlier ones."""
    board, most = call.site.board, call.query.limit
    remembered = board.ended(most=most)
    return {"jobs": [*remembered, *board.past(remembered, most=most)][:most]}


def list_dead_letters(call: Call) -> Any:
    """List what was found in Redis and could not be followed."""
    return {"letters": call.site.board.letters()}


def list_ignore_sets(_call: Call) -> Any:
    """List the sets of ignore expressions that come with amicrawl."""
    return {"sets": [{"name": name, "patterns": len(ignore_set(name))} for name in set_names()]}


def types_in(text: str) -> frozenset[str]:
    """Return the types of log lines in *text*, all where it is empty; Problem where one is none."""
    types = frozenset(filter(None, text.split(",")))
    if not types <= TYPES:
        raise Problem(422, f"A type is one of {', '.join(sorted(TYPES))}.")
    return types or TYPES
