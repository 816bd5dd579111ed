"""The application: the parts of one dashboard, and the routes of pages, API and files behind a guard.

The guard is the outermost layer: names of hosts, size of bodies, headers that tell a browser what it may
do. Signing in and the token against forged requests belong to the routes (`visitors`).

A page of another site can have its own name lead to this machine (DNS rebinding), and then talks to the
dashboard as if they were one site. What it cannot do is change the Host header: so only known names are
served. Numbers are not names: a page that was loaded from the address of this machine is the
dashboard's own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from amicrawl.fleet.dashboard.api import operations
from amicrawl.fleet.dashboard.board import Board
from amicrawl.fleet.dashboard.hub import Hub
from amicrawl.fleet.dashboard.operations import PREFIX, routes
from amicrawl.fleet.dashboard.pages import Pages
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.shown_pages import JobPages
from amicrawl.fleet.dashboard.summaries import Summaries
from amicrawl.fleet.dashboard.visitors import Visitors
from amicrawl.fleet.jobs import job_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from amicrawl.fleet.dashboard.users import Users
    from amicrawl.fleet.database import JobStore

LOCAL = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_.-]{1,253}))(?::[0-9]{1,5})?\Z"
)


class Hosts:
    """Which hosts a dashboard that is bound to *bound* serves: that, local names and *further*."""

    def __init__(self, bound: str, further: Iterable[str] = ()) -> None:
        self._names = {name.casefold().rstrip(".") for name in (*LOCAL, bound, *further)}
        self._any_address = bound in {"0.0.0.0", "::"}  # noqa: S104  # compared, not bound to

    def allows(self, host: str) -> bool:
        """Tell whether a request with the Host header *host* is for this dashboard."""
        found = _HOST.match(host)
        if found is None:
            return False
        name = (found["six"] or found["name"]).casefold().rstrip(".")
        return name in self._names or (self._any_address and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


HEALTH = "/healthz"
"""Serves any host, without signing in: `ok`, or 503 while Redis is away. It says nothing else."""
BODY_SECONDS = 30.0
"""Seconds in which a body must have come."""
BODY_LIMIT = 256 * 1024
"""Bytes of the largest body that is taken."""
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'; img-src 'self' data:"
)
"""No script and no style but those of our own files; nothing may frame a page."""
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With `no-referrer` browsers send forms with the origin "null", which is refused.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Sent with every response, unless the route has said otherwise."""
_ENCODED = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]


class AccessGuard:
    """Lets a request through to *app*, or responds to it itself."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Hosts,
        is_healthy: Callable[[], bool],
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._is_healthy = is_healthy
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a web socket: there is none here

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in _ENCODED if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if scope["path"] == HEALTH:
            # A kubelet connects to the address of the pod, and has no password.
            await self._health()(scope, receive, guarded)
            return
        problem = self._problem_of(scope)
        if problem is None:
            await self._app(scope, _limited(receive, self._body_seconds), guarded)
        else:
            await problem.response()(scope, receive, guarded)

    def _health(self) -> Response:
        if self._is_healthy():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("Redis does not respond\n", status_code=503)

    def _problem_of(self, scope: Scope) -> Problem | None:
        headers = scope["headers"]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._hosts.allows(hosts[0]):
            return Problem(
                421,
                "This dashboard does not serve that host. Use the address it was started with, or "
                "start it with --allow-host NAME.",
            )
        for name, value in headers:
            if name == b"content-length" and (not value.isdigit() or int(value) > BODY_LIMIT):
                return Problem(413, f"A body has at most {BODY_LIMIT} bytes.")
        return None


def _limited(receive: Receive, seconds: float) -> Receive:
    taken, is_whole = 0, False
    deadline = asyncio.get_running_loop().time() + seconds

    async def limited() -> Message:
        nonlocal taken, is_whole
        try:
            # Behind the body, an application waits here for as long as a stream lasts.
            async with asyncio.timeout_at(None if is_whole else deadline):
                message: dict[str, Any] = dict(await receive())
        except TimeoutError as error:
            raise HTTPException(408) from error
        is_whole = not message.get("more_body")
        taken += len(message.get("body", b""))
        if taken > BODY_LIMIT:
            # Raised into the route that reads; the application responds with its own page or problem.
            raise HTTPException(413)
        return message

    return limited


AWAY_AFTER = 15.0
"""Seconds without a response of Redis after which the dashboard counts as unhealthy."""


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
        routes=[
            *routes(operations(site.job_settings), site),
            Route(f"{PREFIX}/{{rest:path}}", _nowhere),
            *pages.routes(),
        ],
        exception_handlers={HTTPException: refused, 500: broken},
    )
    hub = site.hub
    return AccessGuard(
        app, hosts=hosts, is_healthy=lambda: time.monotonic() - hub.responded_at < AWAY_AFTER
    )


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
    return "The request is invalid."


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of one dashboard."""

    store: JobStore
    board: Board
    hub: Hub
    visitors: Visitors
    summaries: Summaries
    pages: JobPages
    """What browsers have shown in jobs."""
    jobs_per_user: int = 0
    """Jobs of one user that may be queued or run at once, unless an admin's; 0 for any number."""
    job_settings: Sequence[job_settings.JobSetting] = job_settings.SETTINGS


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
        pages=JobPages(),
        jobs_per_user=jobs_per_user,
    )
