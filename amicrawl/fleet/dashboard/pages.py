"""The pages: each reads what it shows first and hands it to a template; scripts keep it fresh.

A template escapes everything by itself and stops at a name that it was not given. Nothing is changed by
a page but by signing in and out.
"""

from __future__ import annotations

import time
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from amicrawl import __version__
from amicrawl.archive.report import TimedValue, chart_styles, series_chart
from amicrawl.discovery import set_names
from amicrawl.errors import AmicrawlError
from amicrawl.fleet.dashboard import archivebot
from amicrawl.fleet.dashboard.api_changing import known_users
from amicrawl.fleet.dashboard.job_choice import JobChoice
from amicrawl.fleet.dashboard.operations import problem_of
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.users import Role
from amicrawl.fleet.dashboard.visitors import COOKIE, SIGNED_OUT, Visitor
from amicrawl.fleet.dashboard.wording import FILTERS, clock, moment, number, size
from amicrawl.fleet.jobs import job_settings
from amicrawl.fleet.jobs.record import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from amicrawl.fleet.dashboard.app import Site
    from amicrawl.fleet.dashboard.shapes import HistoryPoint

LOG_LINES = 200
"""Lines of the log that a job's page begins with."""
FINISHED = 1000
"""Jobs that the page of finished ones shows, of those that have a record still."""
PAST = 10_000
"""The same of those whose record has expired."""
SUMMARY_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox"
)
"""A summary has its styles within. It has no scripts, and could run none."""
_SESSION_LASTS = 7 * 86400


class Pages:
    """The pages of one site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._templates = page_templates()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of all pages and files."""
        return [
            Route("/", self._page("jobs", _jobs)),
            Route("/jobs/{ident}", self._page("job", _job)),
            Route("/jobs/{ident}/history", self._page("_history", _history)),
            Route("/jobs/{ident}/pictures/{key}", self._page("picture", _picture)),
            Route("/pipelines", self._page("pipelines", _pipelines, tools=archivebot.pipelines)),
            Route("/pending", self._page("pending", _pending, tools=archivebot.pending)),
            Route("/submit", self._page("submit", _submit, role=Role.operate)),
            Route("/finished", self._page("finished", _finished, tools=archivebot.finished)),
            Route("/finished/{ident}/summary", self._page("summary", _summary)),
            Route("/users", self._page("users", _users, role=Role.admin)),
            Route("/status", self._page("status", None, tools=archivebot.status)),
            Route("/logs/recent", self._page("logs", None, tools=archivebot.recent_logs)),
            Route("/ignores/{idents}", self._page("ignores", None, tools=archivebot.ignores)),
            *(
                Route(path, self._page("feed", None, tools=archivebot.feed))
                for path in ("/feed", "/feed/archivebot.rss", "/feed/archivebot.atom")
            ),
            Route("/login", self._login, methods=["GET"]),
            Route("/login", self._sign_in, methods=["POST"]),
            Route("/logout", self._sign_out, methods=["POST"]),
            Route("/charts.css", chart_sheet),
            Mount("/static", StaticAssets(directory=static_directory())),
        ]

    async def problem(self, request: Request, problem: Problem) -> Response:
        """Return the page, or the object, that tells *problem*."""
        if not _wants_html(request):
            return problem.response()
        return await run_in_threadpool(self._problem_page, request, problem)

    def _page(
        self,
        name: str,
        show: Callable[[Site, Request, Visitor], dict[str, Any] | Response] | None,
        *,
        role: Role = Role.view,
        tools: Callable[[Site, Request], Response] | None = None,
    ) -> Callable[[Request], Any]:
        """Return what serves the page *name*; *tools* responds to those that accept no HTML, or all."""

        def respond(request: Request) -> Response:
            try:
                visitor = self._site.visitors.require(request, role)
            except Problem as problem:
                if problem.status == 401 and _wants_html(request):
                    return RedirectResponse(f"/login?next={_quoted(request)}", status_code=303)
                raise
            if tools is not None and (show is None or not _wants_html(request)):
                return tools(self._site, request)
            assert show is not None
            shown = show(self._site, request, visitor)
            return shown if isinstance(shown, Response) else self._rendered(name, visitor, shown)

        async def serve(request: Request) -> Response:
            try:
                return await run_in_threadpool(respond, request)
            except Problem as problem:
                return await self.problem(request, problem)
            except AmicrawlError as error:
                return await self.problem(request, problem_of(error))

        return serve

    def _rendered(
        self, name: str, visitor: Visitor | None, variables: dict[str, Any], *, status: int = 200
    ) -> HTMLResponse:
        visitors = self._site.visitors
        text = self._templates.get_template(f"{name}.html").render(
            version=__version__,
            page=name,
            user=SIGNED_OUT if visitor is None else visitor.facts,
            users_exist=visitors.users is not None,
            csrf=visitors.sessions.csrf("" if visitor is None else visitor.session),
            now=time.time(),
            job_settings=job_settings.described(self._site.job_settings),
            **variables,
        )
        return HTMLResponse(text, status_code=status)

    def _problem_page(self, request: Request, problem: Problem) -> Response:
        try:
            visitor = self._site.visitors.of(request)
        except (Problem, AmicrawlError):
            visitor = None
        shown = {"status": problem.status, "title": problem.title, "detail": problem.detail}
        page = self._rendered("error", visitor, shown, status=problem.status)
        page.headers.update(problem.headers)
        return page

    async def _login(self, request: Request) -> Response:
        return await run_in_threadpool(self._login_page, request, "", 200)

    def _login_page(self, request: Request, failed: str, status: int, after: str = "") -> Response:
        after = _own_path(after or request.query_params.get("next", ""))
        if self._site.visitors.users is None:
            return RedirectResponse("/", status_code=303)
        return self._rendered("login", None, {"next": after, "failed": failed}, status=status)

    async def _sign_in(self, request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=10)
        said = {name: value for name, value in form.items() if isinstance(value, str)}

        def sign_in() -> Response:
            visitors = self._site.visitors
            try:
                visitors.check_origin(request, is_change=True)
                visitors.check_csrf(said.get("csrf_token", ""), "")
                key = visitors.sign_in(request, said.get("name", ""), said.get("password", ""))
            except Problem as problem:
                page = self._login_page(request, problem.detail, problem.status, said.get("next", "/"))
                page.headers.update(problem.headers)
                return page
            response = RedirectResponse(_own_path(said.get("next", "")), status_code=303)
            response.set_cookie(
                COOKIE,
                key,
                max_age=_SESSION_LASTS,
                secure=request.url.scheme == "https",
                httponly=True,
                samesite="strict",
            )
            return response

        return await run_in_threadpool(sign_in)

    async def _sign_out(self, request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=10)
        token = form.get("csrf_token")

        def sign_out() -> Response:
            visitors = self._site.visitors
            try:
                visitors.check_origin(request, is_change=True)
                key = request.cookies.get(COOKIE, "")
                visitors.check_csrf(token if isinstance(token, str) else "", key)
            except Problem as problem:
                return self._problem_page(request, problem)
            visitors.sessions.end(key)
            response = RedirectResponse("/login", status_code=303)
            response.delete_cookie(COOKIE, httponly=True, samesite="strict")
            return response

        return await run_in_threadpool(sign_out)


def static_directory() -> str:
    """Return where the files are that pages load."""
    return str(resources.files("amicrawl.fleet.dashboard") / "static")


class StaticAssets(StaticFiles):
    """Our files, which browsers revalidate each time."""

    def file_response(self, *arguments: Any, **keywords: Any) -> Response:
        """Return the response for one file."""
        response = super().file_response(*arguments, **keywords)
        response.headers["cache-control"] = "no-cache"
        return response


def _jobs(site: Site, request: Request, _visitor: Visitor) -> dict[str, Any]:
    found, totals = site.board.overview(viewers=site.hub.viewers)
    jobs = [job for job in found if job["state"] in LIVE]
    choice = JobChoice.of(request.query_params)
    chosen = choice.of_all(jobs)
    choice = choice.page_of(len(chosen))
    return {
        "jobs": chosen[choice.rows],
        "choice": choice,
        "found": len(chosen),
        "all": len(jobs),
        "submitters": sorted({job["started_by"] for job in jobs} - {""}),
        "pipelines": sorted({job["pipeline"] or job["queue"] or "" for job in jobs} - {""}),
        "totals": totals,
    }


def _job(site: Site, request: Request, _visitor: Visitor) -> dict[str, Any]:
    ident = request.path_params["ident"]
    job = site.board.detail(ident)
    log = site.board.log(ident, after=None, before=None, most=LOG_LINES)
    pages = site.pages.of(site.summaries.directory(ident, site.board.seen(ident)))
    drawn = _drawn(job["history"])
    return {"job": job, "entries": log["entries"], "ignore_sets": set_names(), "pages": pages, **drawn}


def _history(site: Site, request: Request, _visitor: Visitor) -> dict[str, Any]:
    return _drawn(site.board.detail(request.path_params["ident"])["history"])


def _drawn(history: list[HistoryPoint]) -> dict[str, Any]:
    return {"history": history, "sections": history_charts(history)}


def page_templates() -> Environment:
    """Return the templates of pages, which escape what they are given and refuse what they are not."""
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    templates.filters.update(FILTERS)
    return templates


async def chart_sheet(_request: Request) -> Response:
    """Return the style sheet of charts that the server draws."""
    return Response(chart_styles(), media_type="text/css")


def _picture(site: Site, request: Request, _visitor: Visitor) -> Response:
    ident, key = request.path_params["ident"], request.path_params["key"]
    return site.pages.picture(site.summaries.directory(ident, site.board.seen(ident)), key)


def _pipelines(site: Site, _request: Request, _visitor: Visitor) -> dict[str, Any]:
    return {"pipelines": site.board.pipelines()}


def _pending(site: Site, _request: Request, _visitor: Visitor) -> dict[str, Any]:
    return {"queues": site.board.queues()}


def _submit(site: Site, _request: Request, _visitor: Visitor) -> dict[str, Any]:
    return {"ignore_sets": set_names(), "pipelines": site.board.pipelines()}


def _finished(site: Site, request: Request, _visitor: Visitor) -> dict[str, Any]:
    choice = JobChoice.of(request.query_params)
    shown = site.board.finished(choice, most=FINISHED, most_past=PAST)
    return {**shown._asdict(), "dead": site.board.letters()}


def _users(site: Site, _request: Request, _visitor: Visitor) -> dict[str, Any]:
    users = site.visitors.users
    return {"users": [] if users is None else known_users(users)}


def _summary(site: Site, request: Request, _visitor: Visitor) -> Response:
    ident = request.path_params["ident"]
    page = site.summaries.page(ident, site.board.seen(ident))
    return HTMLResponse(page, headers={"content-security-policy": SUMMARY_POLICY})


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _own_path(path: str) -> str:
    """Return *path* if it is one of this site, else `/`: no browser is sent to another site."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own and "\\" not in path and len(path) < 2000 else "/"


def _quoted(request: Request) -> str:
    path, query = request.url.path, request.url.query
    return quote(f"{path}?{query}" if query else path, safe="/")


_MOST_BARS = 96
_SHORT_SPAN = 600.0
"""Seconds below which a minute would stand under several bars."""


def history_charts(points: Sequence[HistoryPoint]) -> list[str]:
    """Return a chart of HTML for each series of *points*, oldest first; none below two points.

    The first shows what was done a minute, the others what was reported at the last point of each bar.
    """
    if len(points) < 2:
        return []
    each = -(-(len(points) - 1) // _MOST_BARS)
    ends = [*range(len(points) - 1, 0, -each)][::-1]
    steps = [(points[max(end - each, 0)], points[end]) for end in ends]
    series: Mapping[
        str, tuple[str, Callable[[HistoryPoint, HistoryPoint], int], Callable[[int], str]]
    ] = {
        "pace": ("Pages a minute", _pace, number),
        "downloaded": ("Pages, in all", lambda _, point: point["downloaded"], number),
        "bytes": ("Size in bytes", lambda _, point: point["bytes"], size),
        "todo": ("URLs queued", lambda _, point: point["todo"], number),
        "errors": ("Errors, in all", lambda _, point: point["errors"], number),
    }
    shown = 8 if points[-1]["ts"] - points[0]["ts"] < _SHORT_SPAN else 5
    figures: list[str] = []
    for key, (title, value_of, worded) in series.items():
        values = [(last["ts"], value_of(first, last)) for first, last in steps]
        label = f"{title}, {moment(points[0]['ts'])} to {moment(points[-1]['ts'])} UTC"
        timed = [TimedValue(clock(at)[:shown], moment(at), each, worded(each)) for at, each in values]
        figures.append(series_chart(key, title, label, timed))
    return figures


def _pace(first: HistoryPoint, last: HistoryPoint) -> int:
    """Return pages a minute; 0 where a crawl that started again has fewer than before, or in no time."""
    seconds = last["ts"] - first["ts"]
    # Crawls report once a minute: what is closer together was made up, down to a quotient of infinity.
    return round(60 * max(last["downloaded"] - first["downloaded"], 0) / seconds) if seconds >= 1 else 0
