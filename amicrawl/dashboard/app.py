"""The application: the routes of pages, API and files behind the guard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from amicrawl.dashboard.api import OPERATIONS
from amicrawl.dashboard.board import Board
from amicrawl.dashboard.guard import BODY_LIMIT, Guard
from amicrawl.dashboard.hub import Hub
from amicrawl.dashboard.operations import PREFIX, routes
from amicrawl.dashboard.pages import Pages
from amicrawl.dashboard.problems import Problem
from amicrawl.dashboard.site import Site
from amicrawl.dashboard.summaries import Summaries
from amicrawl.dashboard.visitors import Visitors

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from amicrawl.dashboard.hosts import Hosts
    from amicrawl.dashboard.users import Users
    from amicrawl.jobs.connection import JobStore


AWAY_AFTER = 15.0
"""Seconds without an answer of Redis after which the dashboard counts as unhealthy."""


def site_of(
    store: JobStore, *, users: Users | None, archives: Path | None, jobs_per_user: int = 0
) -> Site:
    """Return the site over the jobs of *store*; its hub is not started yet."""
    summaries = Summaries(archives)
    return Site(
        store=store,
        board=Board(store, has_summary=summaries.has),
        hub=Hub(store, has_summary=summaries.has),
        visitors=Visitors(users),
        summaries=summaries,
        jobs_per_user=jobs_per_user,
    )


def application(site: Site, *, hosts: Hosts) -> ASGIApp:
    """Return the application that serves *site* under the names of *hosts*."""
    pages = Pages(site)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        problem = Problem(error.status_code, _detail(error.status_code), headers=headers)
        if request.url.path.startswith(f"{PREFIX}/"):
            return problem.response()
        return await pages.problem(request, problem)

    async def broken(request: Request, _error: Exception) -> Response:
        problem = Problem(500, "Something went wrong here; the log of the dashboard says what.")
        if request.url.path.startswith(f"{PREFIX}/"):
            return problem.response()
        return await pages.problem(request, problem)

    app = Starlette(
        routes=[*routes(OPERATIONS, site), Route(f"{PREFIX}/{{rest:path}}", _nowhere), *pages.routes()],
        exception_handlers={HTTPException: refused, 500: broken},
    )
    hub = site.hub
    return Guard(app, hosts=hosts, is_healthy=lambda: time.monotonic() - hub.answered_at < AWAY_AFTER)


async def _nowhere(_request: Request) -> Response:
    return Problem(
        404, "The API has nothing of that name; /api/v1/openapi.json lists what there is."
    ).response()


def _detail(status: int) -> str:
    if status == 404:
        return "There is nothing here."
    if status == 413:
        return f"A body has at most {BODY_LIMIT} bytes."
    if status == 405:
        return "That cannot be done here."
    return "The request cannot be followed."
