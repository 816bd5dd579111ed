"""ArchiveBot's own endpoints, for tools that read those: what they answer, without their pages.

They only read. Unlike there, no other site's pages may read them (CORS is closed), and they take
signing in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import PlainTextResponse, Response

from amicrawl.dashboard.problems import Problem
from amicrawl.dashboard.texts import plain
from amicrawl.jobs import lookup
from amicrawl.jobs.ident import is_ident
from amicrawl.jobs.keys import PENDING, PENDING_LARGE, PENDING_SHALLOW

if TYPE_CHECKING:
    from starlette.requests import Request

    from amicrawl.dashboard.site import Site

_MOST_RECENT = 10
_MOST_IDENTS = 50
_OURS = frozenset({"score", "link"})
_COUNTED_ALONE = (PENDING, PENDING_SHALLOW)


def recent_logs(site: Site, request: Request) -> Response:
    """`/logs/recent?count=1..10`: the last entries of every job that runs, each with its job."""
    said = request.query_params.get("count", str(_MOST_RECENT))
    if not said.isascii() or not said.isdigit() or not 1 <= int(said[:5]) <= _MOST_RECENT:
        raise Problem(400, f"count is a number from 1 to {_MOST_RECENT}.")
    running = site.board.running()
    with site.store.answering():
        records = lookup.jobs(site.store, running)
    entries = site.board.recent(list(records), most=int(said))
    told = [
        {
            **{name: value for name, value in entry.items() if name not in {"score", "link"}},
            "job_data": data,
        }
        for ident, data in ((ident, _job_data(record)) for ident, record in records.items())
        for entry in entries[ident]
        if entry["type"] != "unknown"
    ]
    return _json(told)


def status(site: Site, _request: Request) -> Response:
    """`/status`: how many jobs wait, run and have ended."""
    totals = site.board.totals(viewers=0)
    queues = totals["queues"]
    others = {name: count for name, count in queues.items() if name not in _COUNTED_ALONE}
    return _json(
        {
            "pending": queues.get(PENDING, 0),
            "pending-ao": queues.get(PENDING_SHALLOW, 0),
            "pending-others": sum(others.values()),
            "pending-others-details": {PENDING_LARGE: 0, **others},
            "working": totals["running"],
            "completed": totals["completed"],
            "aborted": totals["aborted"],
            "failed": totals["failed"],
        }
    )


def pipelines(site: Site, _request: Request) -> Response:
    """`/pipelines` for whoever asks for JSON: the records as they are, all values texts."""
    with site.store.answering():
        records = site.board.pipeline_records()
    return _json(
        {"pipelines": [{name: plain(value) for name, value in record.items()} for record in records]}
    )


def pending(site: Site, _request: Request) -> Response:
    """`/pending` for whoever asks for no HTML: each queue, and its jobs numbered."""
    lines = []
    for queue in site.board.queues():
        lines.append(f"{queue['name']}: {len(queue['jobs'])}")
        lines += [
            f"{number}. {job['url']} ({job['ident']})"
            for number, job in enumerate(queue["jobs"], start=1)
        ]
        lines.append("")
    return PlainTextResponse("\n".join(lines))


def finished(site: Site, _request: Request) -> Response:
    """`/finished` for whoever asks for JSON: the jobs that have ended."""
    with site.store.answering():
        records = lookup.finished(site.store)
    return _json([_job_data(record) for record in records])


def ignores(site: Site, request: Request) -> Response:
    """`/ignores/IDENT[,IDENT]`: a line for each expression, the ident and a tab before it."""
    idents = request.path_params["idents"].split(",")
    if len(idents) > _MOST_IDENTS or not all(map(is_ident, idents)):
        raise Problem(400, f"Name up to {_MOST_IDENTS} idents with commas between.")
    with site.store.answering():
        lines = [
            f"{ident}\t{plain(pattern)}\n"
            for ident in idents
            for pattern in lookup.ignores(site.store, ident)
        ]
    return PlainTextResponse("".join(lines))


def _job_data(record: Any) -> dict[str, Any]:
    data: dict[str, Any] = record.job_data()
    return {name: plain(value) if isinstance(value, str) else value for name, value in data.items()}


def _json(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
