"""The whole way: dashboard, pipeline and crawls as processes, steered in a browser and nowhere else."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from typing import TYPE_CHECKING

import psutil
import warm_processes
from dashboard.browsing import PATIENCE, expect, open_page, visit
from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from redis_server import RedisServer

AT_ONCE = 2
"""Requests in flight: what an ignore may come too late for."""


def site(head: bytes) -> bytes:
    """Each page leads to the next two of its kind, for ever: only an operator ends this."""
    kind, _, number = head.split(b" ")[1].decode().strip("/").partition("/")
    at = int(number or 0)
    kinds = [kind] if kind else ["article", "calendar"]
    links = "".join(f'<a href="/{one}/{2 * at + more}">x</a>' for one in kinds for more in (1, 2))
    return page(links.encode(), "Content-Type: text/html")


@contextlib.contextmanager
def process(arguments: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `amicrawl` with *arguments*; it and what it started are gone at the end."""
    line = [sys.executable, "-m", "amicrawl", *arguments]
    with log.open("ab") as output:
        child = warm_processes.Popen(line, cwd=PROJECT, env=environment(), stdout=output, stderr=output)
        try:
            yield child
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                family = psutil.Process(child.pid).children(recursive=True)
                for one in (psutil.Process(child.pid), *family):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()
            child.wait(30)


def address_in(log: Path, dashboard: subprocess.Popen[bytes]) -> str:
    """Return where the dashboard says it is."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not (found := re.search(r"The dashboard is at (http://\S+?),", log.read_text())):
        assert dashboard.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found[1]


def submit(page: Page, address: str, url: str, note: str) -> str:
    """Submit *url* by the form; return the ident of the job."""
    visit(page, f"{address}/")
    page.get_by_role("link", name="Submit", exact=True).click()
    page.wait_for_url(re.compile("/submit"))
    page.locator("html[data-ready]").wait_for()
    page.get_by_label("URL", exact=True).fill(url)
    page.get_by_label("Note", exact=True).fill(note)
    page.get_by_label("Minimum delay (ms)").fill("30")
    page.get_by_label("Maximum delay (ms)").fill("30")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile("/jobs/"))
    return page.url.rpartition("/")[2]


def requested_for(web: RawServer, host: str, what: str) -> Callable[[], int]:
    return lambda: sum(
        f"Host: {host}".encode() in head and f" /{what}/".encode() in head for head in list(web.requests)
    )


def test_a_job_is_submitted_watched_steered_and_another_is_aborted(
    browser: Browser, redis_server: RedisServer, tmp_path: Path
) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    data.mkdir()
    serving = ["dashboard", "--port", "0", "--redis", redis_server.url, "--archives", str(data)]
    working = ["pipeline", "--slots", "2", "--name", "here-1", "--data", str(data), "--min-free", "0"]
    working += ["--redis", redis_server.url]
    for setting, value in {**QUICK, "AMICRAWL_PER_HOST": str(AT_ONCE)}.items():
        working += ["-s", f"{setting}={value}"]
    with (
        RawServer(site) as web,
        process(serving, log) as dashboard,
        process(working, log),
        open_page(browser) as shown,
    ):
        address = address_in(log, dashboard)
        first, second = f"http://127.0.0.2:{web.port}/", f"http://127.0.0.3:{web.port}/"
        other = submit(shown, address, second, "to be aborted")
        ident = submit(shown, address, first, "to be watched")

        # Watched: on its own page, then among all.
        shown.locator('#job [data-state="running"]').wait_for()
        shown.locator("#log li", has_text="/calendar/").first.wait_for()
        shown.locator('[data-t="downloaded"]:not(:text-is("0"))').wait_for()
        shown.locator("#hosts", has_text="127.0.0.2").wait_for()

        # An ignore: what waits is dropped, what comes is left out, and the page says how often.
        shown.locator("#pattern").fill("/calendar/")
        shown.locator("#tested", has_text=re.compile(r"Found in [1-9]")).wait_for()
        shown.locator("#tester").get_by_role("button", name="Add").click()
        shown.locator("dialog").get_by_role("button", name="Ignore").click()
        row = shown.locator("#ignores tr", has_text="/calendar/")
        row.wait_for()
        row.get_by_text(re.compile(r"^[1-9][\d,]*$")).wait_for()
        calendar, article = (requested_for(web, "127.0.0.2", what) for what in ("calendar", "article"))
        known, went_on = calendar(), article()
        deadline = time.monotonic() + PATIENCE / 1000
        while article() < went_on + 20:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        assert calendar() <= known + AT_ONCE, "ignored, but requested"

        # The other one is aborted, among all jobs; this one goes on.
        visit(shown, address)
        shown.locator("#link", has_text="live").wait_for()
        shown.locator(f'tr[data-ident="{other}"]').focus()
        shown.locator("#job-verbs").get_by_role("button", name="Abort").wait_for()
        shown.keyboard.press("x")
        shown.get_by_role("button", name="Abort the job").click()
        shown.locator(f'tr[data-ident="{other}"]').wait_for(state="detached")
        expect(shown.locator(f'tr[data-ident="{ident}"] [data-f="state"]')).to_have_text("running")
        visit(shown, f"{address}/finished")
        shown.locator(f'tr[data-ident="{other}"] [data-state="aborted"]').wait_for()
        report = shown.locator(f'tr[data-ident="{other}"]').get_by_role("link", name="Report")
        shown.goto(address + str(report.get_attribute("href")))
        shown.get_by_role("heading", name=f"Summary of {second}").wait_for()
        visit(shown, f"{address}/pipelines")
        shown.locator("#pipelines", has_text="here-1").wait_for()
    assert sorted(path.suffix for path in data.rglob("*.warc.gz"))[:1] == [".gz"]
