"""Crawls in a browser killed at random moments: the crawl, the browser, a page, its driver, or all.

What was in the index when something was killed is there in the end, and nothing was requested again but
what was in flight. `AMICRAWL_CRASH_ROUNDS` sets how many kills there are, 100 at most; the short form in
the suite is 4.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import psutil
import warm_processes
from archive_reading import check_sealed, record, records, rows
from browser.browsing_site import SETTINGS, needs_chromium, path_of, response
from loopback import PROJECT, RawServer, crawl_site, environment, site_command

from amicrawl.errors import ExitCode
from amicrawl.record import capture_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "4")), 100)
SEED = int(os.environ.get("AMICRAWL_CRASH_SEED", "1"))
PAGES = 6 * ROUNDS
AT_ONCE, IN_FLIGHT = 2, 4
"""Pages that are open at once; and those that may be open, or on their way into the archive."""
MARKS = {"page": "--type=renderer", "browser": "--user-data-dir", "driver": "run-driver"}
"""Words in the command lines of what is killed besides the crawl."""
APP = b"""fetch("/api" + location.pathname).then((found) => found.json()).then((data) => {
  document.title = data.title;
  document.body.innerHTML = data.links.map((to) => `<a href="${to}">${to}</a>`).join(" ");
});"""

pytestmark = needs_chromium


def site(head: bytes) -> bytes:
    path = path_of(head)
    if path == "/app.js":
        return response(APP, "text/javascript")
    if path.startswith("/api"):
        links = [f"/{n}" for n in range(PAGES)] if path == "/api/" else []
        return response(json.dumps({"title": path, "links": links}).encode(), "application/json")
    return response(b"<body><script src=/app.js></script>" + path.encode())


def test_a_crawl_in_a_browser_with_kills_is_there_whole_in_the_end(tmp_path: Path) -> None:
    out, dice = tmp_path / "out", random.Random(SEED)
    kills, known = Counter[str](), set[str]()
    settings = {**SETTINGS, "AMICRAWL_BROWSER_PAGES": str(AT_ONCE), "AMICRAWL_PER_HOST": str(IN_FLIGHT)}
    with RawServer(site, pause=0.05) as server:
        while kills.total() < ROUNDS:
            durability = {"AMICRAWL_DURABILITY": dice.choice(["normal", "full"])}
            line = site_command(f"{server.url}/", out, settings={**settings, **durability})
            ended = _crawled_with_kills(line, server, dice, kills)
            if ended is not None:
                assert ended is ExitCode.DONE
                break
            known |= _acknowledged(out)
        last = crawl_site(f"{server.url}/", out, settings=settings)
        requested = Counter(path_of(head) for head in server.requests)
    assert last.returncode == ExitCode.DONE, last.stderr
    assert kills, "nothing was killed: this says nothing"
    found = rows(out)
    assert known <= {row["record_id"] for row in found}
    paths = {"/", *(f"/{number}" for number in range(PAGES))}
    titles = {
        each.rec_headers["WARC-Target-URI"].removeprefix(f"urn:text:{server.url}"): (
            each.content_stream().readline()
        )
        for each in records(out)
        if each.rec_headers.get("WARC-Target-URI", "").startswith("urn:text:")
    }
    pages = {row["url"].removeprefix(server.url): row for row in found if row["page"] == row["url"]}
    # One that lost its browser twice says so.
    lost = {path for path in paths if "page_fault" in pages[path]["meta_json"]}
    assert len(lost) <= AT_ONCE * (kills.total() - kills["crawl"]) // 2, (lost, kills)
    assert {pages[path]["meta_json"] for path in lost} <= {
        '{"page_fault":"it crashed"}', '{"page_fault":"its browser died"}'
    }  # fmt: skip
    assert {path: titles.get(path) for path in paths - lost} == {
        path: f"/api{path}\n".encode() for path in paths - lost
    }
    # Pages that were open when the crawl was killed, or being written, are opened again, and no others.
    again = Counter({path: requested[path] - 1 for path in paths if requested[path] > 1})
    assert again.total() <= kills["crawl"] * IN_FLIGHT, (again, kills)
    # What a page requests is requested again with it, also where its browser died.
    data = sum(requested[f"/api{path}"] - 1 for path in paths)
    assert data <= kills.total() * AT_ONCE, (data, kills)
    assert requested["/app.js"] <= 1 + kills["crawl"]
    for path in out.glob("*.warc.gz"):
        check_sealed(path)
    for row in found:
        if row["warc_file"]:
            record(out, row)


def _crawled_with_kills(
    line: list[str], server: RawServer, dice: random.Random, kills: Counter[str]
) -> ExitCode | None:
    """Run *line*, kill some of it once or more; return how it ended, None where it was killed itself."""
    requested = len(server.requests)
    crawl = warm_processes.Popen(
        line, cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _wait_until(lambda: len(server.requests) > requested or crawl.poll() is not None)
    # A page that loses its process twice is given up, and the first has the links to all others.
    _wait_until(
        lambda: crawl.poll() is not None or any(path_of(h)[1:].isdigit() for h in server.requests)
    )
    while kills.total() < ROUNDS:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return ExitCode(crawl.wait(dice.uniform(0.0, 4.0)))
        below = _below(crawl.pid)
        what = dice.choice(["crawl", "crawl", "all", *MARKS])
        kills["crawl" if what == "all" else what] += 1
        if what in {"crawl", "all"}:
            for each in [crawl, *(below if what == "all" else ())]:
                with contextlib.suppress(psutil.Error):
                    each.kill()
            crawl.wait(30)
            # Nothing of the browser outlives its crawl.
            _wait_until_gone(below)
            return None
        for each in below:
            with contextlib.suppress(psutil.Error):
                if MARKS[what] in " ".join(each.cmdline()):
                    each.kill()
    return ExitCode(crawl.wait(300))


def _acknowledged(out: Path) -> set[str]:
    """Return the records that the index in *out* names at the moment."""
    found: set[str] = set()
    for batch in capture_batches(out):
        column: list[Any] = batch.column(batch.schema.get_field_index("record_id")).to_pylist()
        found.update(column)
    return found - {""}


def _below(parent: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(parent).children(recursive=True)
    return []


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _wait_until_gone(processes: list[psutil.Process]) -> None:
    _wait_until(lambda: not [each for each in processes if _is_alive(each)])


def _wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 100
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
