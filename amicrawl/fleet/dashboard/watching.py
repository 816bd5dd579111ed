"""The page of one crawl: its directory is all that it reads, and the control files all that it writes.

    control/status.json     how it stands: state, queue, hosts, what is in force     a second old
    history.jsonl           how it went
    journals of the index   what came, counted as it comes; then captures.parquet

Of a crawl in several processes, each has these in a directory of its own, and the page adds them up. The
guard, the token against forged requests, the templates and styles are those of the dashboard; the
charts are those of a report.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from amicrawl import __version__
from amicrawl.archive.report import LiveFigures, crawl_sections
from amicrawl.directory_lock import is_locked
from amicrawl.disk import explained
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError, UsageError
from amicrawl.fleet.dashboard.app import AccessGuard
from amicrawl.fleet.dashboard.pages import StaticAssets, chart_sheet, page_templates, static_directory
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.shown_pages import ShownPages, picture_of
from amicrawl.fleet.dashboard.users import Role
from amicrawl.fleet.dashboard.visitors import Visitor, Visitors
from amicrawl.fleet.dashboard.wording import fraction, plain, text_of, whole
from amicrawl.jsontext import parsed_file
from amicrawl.listing import process_directories, read_crawl_json, read_history

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from amicrawl.fleet.dashboard.app import Hosts

    WriteControl = Callable[[Path, str, str | None], None]
    """Writes the control file of that name in a crawl's directory; None removes it."""

_SUMMED = ("waiting", "in_flight", "inflight_limit", "concurrency", "concurrency_max", "memory")
_FASTEST = 1.0
"""Seconds for which what was read is shown again: several browsers cost as much as one."""
_LOCAL_USER = Visitor("", Role.admin)
"""Who reaches the page may steer the crawl: it is served to this machine alone."""
_SETTINGS = ("delay", "per_host", "concurrency")


class WatchedCrawl:
    """What is shown of the crawl in one directory. For several threads."""

    def __init__(self, directory: Path, *, write: WriteControl) -> None:
        self.directory = directory
        self._write = write
        self._live = LiveFigures(directory)
        self._pages = ShownPages(directory)
        self._lock = threading.Lock()
        self._changing = threading.Lock()
        self._shown: dict[str, Any] = {}
        self._shown_at = float("-inf")

    def now(self) -> dict[str, Any]:
        """Return what the page shows; raises AmicrawlError where the index cannot be read."""
        with self._lock:
            if time.monotonic() - self._shown_at > _FASTEST:
                self._shown = self._read()
                self._shown_at = time.monotonic()
            return self._shown

    def picture(self, key: str) -> bytes | None:
        """Return the screenshot of the page with *key*, among those that are shown; None without one."""
        with self._lock:
            return self._pages.picture(key)

    def change(self, verb: str, value: str) -> None:
        """Do *verb* by the control files: pause, resume, stop, delay, per_host, concurrency, ignore.

        An empty *value* of a setting has the configured one count again. Raises AmicrawlError for what
        the crawl would not follow, Problem for an unknown verb.
        """
        if verb not in {"pause", "resume", "stop", "ignore", *_SETTINGS}:
            raise Problem(404, "There is nothing of that name that can be changed.")
        directory, said = self.directory, value.strip()
        # One at a time: two that add a pattern to the same file would each leave out the other's.
        with self._changing:
            if verb == "resume":
                self._write(directory, "pause", None)
            elif verb in ("pause", "stop"):
                self._write(directory, verb, "")
            elif verb in _SETTINGS:
                if verb == "concurrency":
                    self._refuse_beyond(said)
                self._write(directory, verb, f"{said}\n" if said else None)
            else:
                self._write(directory, "ignores", f"{self._ignores_before(said)}{said}\n")
        self._shown_at = float("-inf")

    def _refuse_beyond(self, wanted: str) -> None:
        """Raise UsageError for more requests at once than the crawl was made ready for."""
        most = _sum([_status(each) for each in self._parts()], "concurrency_max")
        if most is not None and wanted.isascii() and wanted.isdecimal() and int(wanted[:10]) > most:
            raise UsageError(
                f"This crawl has {most:,} requests in flight at most: start it with a greater "
                "AMICRAWL_INFLIGHT_MAX for more."
            )

    def _ignores_before(self, pattern: str) -> str:
        """Return the lines behind which *pattern* is to stand; raises AmicrawlError."""
        if not pattern or pattern.startswith("#"):
            raise UsageError(
                "An empty pattern, or one that begins with #, ignores nothing. Write a regular "
                "expression, [#] for the character."
            )
        path = self.directory / "control" / "ignores"
        try:
            with explained(path, "read"):
                before = path.read_text("utf-8").strip() if path.exists() else ""
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text. Correct it, or remove it.") from error
        return f"{before}\n" if before else ""

    def _parts(self) -> list[Path]:
        """Return the directories of the processes of the crawl: that of the crawl where it is one."""
        return process_directories(self.directory) or [self.directory]

    def _read(self) -> dict[str, Any]:
        figures = self._live.update()
        try:
            figures.crawl = read_crawl_json(self.directory)
        except DamagedFileError as error:
            figures.crawl = {}
            figures.notes = [f"crawl.json is {error.reason}"]
        figures.history = read_history(self.directory)
        status = _joined([_status(each) for each in self._parts()])
        if links := status["links"]:
            figures.crawl = {**figures.crawl, "links": links, "ignored": status["ignored"]}
        is_held = is_locked(self.directory)
        state = status["state"] if is_held else "finished"
        reason = str(figures.crawl.get("finish_reason") or "")
        return {
            "state": state if state != "finished" else "ended",
            "is_running": is_held and state != "finished",
            "why": ", ".join(status["paused_by"]) if is_held else reason or "killed",
            "asked": _asked(figures.crawl.get("asked")),
            "figures": figures,
            "status": status,
            "rates": _rates(figures.history.moments[-2:]) if is_held else (None, None),
            "elapsed": _elapsed(figures.history.runs, is_held=is_held),
            "latest": [_line(row) for row in reversed(self._live.latest.rows)],
            "pages": self._pages.of(self._live.latest.pages),
            "sections": crawl_sections(figures),
        }


def _asked(said: object) -> str:
    """Return the URL or the file that the crawl was begun with, as `crawl.json` *said*."""
    of = said if isinstance(said, dict) else {}
    return " ".join(filter(None, (text_of(of, name) for name in ("url", "file"))))


def _status(directory: Path) -> dict[str, Any]:
    try:
        said = parsed_file(directory / "control" / "status.json")
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _joined(statuses: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the *statuses* of all processes say together; unknown numbers are None."""
    joined: dict[str, Any] = {name: _sum(statuses, name) for name in _SUMMED}
    joined["memory"] = joined["memory"] or None  # 0 where a process does not know its own
    states = [text_of(said, "state") for said in statuses]
    first = next((said for said in statuses if said), {})
    joined["state"] = next((state for state in states if state not in ("", "finished")), "finished")
    reasons = (each for said in statuses for each in _listed(said.get("paused_by")))
    joined["paused_by"] = sorted({plain(str(each)) for each in reasons} - {"processes"})
    joined |= {name: fraction(first.get(name)) for name in ("delay", "per_host", "free")}
    joined["patterns"] = [plain(str(each)) for each in _listed(first.get("ignores"))[:200]]
    for name in ("links", "ignored", "failures", "urls"):
        counts = Counter[str]()
        for said in statuses:
            found = said.get(name)
            for key, value in found.items() if isinstance(found, dict) else ():
                counts[plain(str(key))] += whole(value) or 0
        joined[name] = dict(counts)
    hosts = [_host(host) for said in statuses for host in _listed(said.get("hosts"))]
    hosts.sort(key=lambda host: (-(host["in_flight"] or 0), -(host["waiting"] or 0)))
    joined["hosts"] = hosts[:40]
    return joined


def _sum(statuses: list[dict[str, Any]], name: str) -> int | None:
    known = [number for said in statuses if (number := whole(said.get(name))) is not None]
    return sum(known) if known else None


def _host(said: object) -> dict[str, Any]:
    of = said if isinstance(said, dict) else {}
    numbers = {name: whole(of.get(name)) for name in ("in_flight", "waiting", "pages")}
    waits = {name: fraction(of.get(name)) for name in ("delay", "opens_in")}
    return {"name": text_of(of, "name"), "reason": text_of(of, "reason"), **numbers, **waits}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _rates(moments: list[Any]) -> tuple[float | None, float | None]:
    """Return pages and bytes a second between the last two *moments* of one run."""
    if len(moments) < 2 or moments[0].run != moments[1].run:
        return None, None
    before, after = moments
    seconds = max(after.at - before.at, 0.001)
    rows = sum(after.numbers[name] - before.numbers[name] for name in _REQUESTED)
    return rows / seconds, (after.numbers["bytes"] - before.numbers["bytes"]) / seconds


_REQUESTED = ("ok", "unchanged", "redirect", "client_error", "server_error", "failed")
"""The classes of rows that are requests."""


def _elapsed(runs: list[Any], *, is_held: bool) -> float | None:
    if not runs:
        return None
    ended = time.time() if is_held else runs[-1].ended
    return None if ended is None else ended - runs[-1].started


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    at = row["fetched_at"] / 1000
    said = str(row["status"]) if row["status"] else str(row["error"]).partition(":")[0]
    return {"at": at, "said": plain(said), "url": plain(row["url"]), "is_bad": not row["status"]}


class WatchPages:
    """What serves each path of the page of one crawl."""

    def __init__(self, crawl: WatchedCrawl) -> None:
        self._crawl = crawl
        self._visitors = Visitors(None)
        self._templates = page_templates()

    def routes(self) -> list[BaseRoute]:
        """Return every path, what serves it, and what a visitor has to be allowed for it."""
        return [
            Route("/", self._page("watch.html")),
            Route("/live", self._page("_watched.html")),
            Route("/control", self._change, methods=["POST"]),
            Route("/pictures/{key}", self._served(self._picture, Role.view)),
            Route("/charts.css", chart_sheet),
            Mount("/static", StaticAssets(directory=static_directory())),
        ]

    def _page(self, template: str) -> Callable[[Request], Any]:
        """Return what renders *template* with the figures of the crawl."""
        return self._served(lambda _: self._rendered(template), Role.view)

    def _served(
        self, respond: Callable[[Request], Response], role: Role
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return what serves *respond* from a thread to visitors with *role*, and problems as such."""

        def checked(request: Request) -> Response:
            self._visitors.require(request, role)
            return respond(request)

        async def serve(request: Request) -> Response:
            try:
                return await run_in_threadpool(checked, request)
            except Problem as problem:
                return problem.response()
            except AmicrawlError as error:
                return Problem(409, str(error)).response()

        return serve

    def _rendered(self, template: str) -> HTMLResponse:
        text = self._templates.get_template(template).render(
            version=__version__,
            page="watch",
            user=_LOCAL_USER.facts,
            users_exist=False,
            csrf=self._visitors.sessions.csrf(""),
            now=time.time(),
            directory=plain(str(self._crawl.directory)),
            **self._crawl.now(),
        )
        return HTMLResponse(text)

    def _picture(self, request: Request) -> Response:
        return picture_of(self._crawl.picture(request.path_params["key"]))

    async def _change(self, request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=10)
        said = {name: value for name, value in form.items() if isinstance(value, str)}

        def change(_: Request) -> Response:
            self._crawl.change(said.get("verb", ""), said.get("value", ""))
            return JSONResponse({"done": True})

        return await self._served(change, Role.operate)(request)


def watch_application(crawl: WatchedCrawl, *, hosts: Hosts) -> ASGIApp:
    """Return the application that shows *crawl* under the names of *hosts*."""
    app = Starlette(routes=WatchPages(crawl).routes(), exception_handlers={HTTPException: _refused})
    return AccessGuard(app, hosts=hosts, is_healthy=lambda: True)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Problem(error.status_code, "There is nothing here.").response()
