"""Crawls in a browser that stand still, as with the lid of a laptop, or cannot write any more."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import psutil
import pytest
import warm_processes
from archive_reading import records, rows
from browser.browsing_site import SETTINGS, needs_chromium, path_of, response
from loopback import PROJECT, RawServer, environment, site_command

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_chromium

PAGE_TIME = 6
PAGE = b"""<title>Slow</title><body><p id=text>not yet</p><script>
setTimeout(() => fetch("/late").then((found) => found.text()).then((text) => {
  document.getElementById("text").textContent = text;
}), 400);
</script>"""


@pytest.mark.parametrize("what", ["the crawl", "all"])
def test_a_page_that_was_open_while_the_crawl_stood_still_is_shown_as_a_whole(
    tmp_path: Path, what: str
) -> None:
    def respond(head: bytes) -> bytes:
        return response(b"here at last", "text/plain") if path_of(head) == "/late" else response(PAGE)

    out = tmp_path / "out"
    settings = {**SETTINGS, "AMICRAWL_BROWSER_PAGE_TIME": str(PAGE_TIME), "AMICRAWL_ROBOTS": "ignore"}
    with RawServer(respond, keep_open=True) as server:
        crawling = warm_processes.Popen(
            site_command(f"{server.url}/", out, settings=settings),
            cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not any(path_of(head) == "/" for head in server.requests):
            assert crawling.poll() is None
            time.sleep(0.01)
        # The page is being opened.
        time.sleep(0.3)
        crawl = psutil.Process(crawling.pid)
        stopped = [crawl, *(crawl.children(recursive=True) if what == "all" else ())]
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        time.sleep(PAGE_TIME + 2)
        for process in stopped:
            process.send_signal(signal.SIGCONT)
        _, said = crawling.communicate(timeout=90)
    assert crawling.returncode == 0, said
    found = {row["url"].removeprefix(server.url): row for row in rows(out)}
    assert found["/late"]["status"] == 200
    assert "page_fault" not in found["/"]["meta_json"]
    [info] = [
        json.loads(each.content_stream().read())
        for each in records(out)
        if each.rec_headers.get("WARC-Target-URI", "") == f"urn:pageinfo:{server.url}/"
    ]
    assert info["ended"] == "quiet"


MANY = b"""<title>Many</title><script>
(async () => { for (let n = 0; n < 40; n++) await fetch("/r" + n).catch(() => 0); })();
</script>"""


def test_an_open_page_requests_nothing_more_once_the_output_has_failed(tmp_path: Path) -> None:
    crawls: list[psutil.Process] = []

    def respond(head: bytes) -> bytes:
        if path_of(head) == "/r3":
            crawls[0].rlimit(psutil.RLIMIT_FSIZE, (1, 1))
        return response(MANY) if path_of(head) == "/" else response(b"more", "text/plain")

    settings = {**SETTINGS, "AMICRAWL_ROBOTS": "ignore"}
    with RawServer(respond, keep_open=True) as server:
        crawling = warm_processes.Popen(
            site_command(f"{server.url}/", tmp_path / "out", settings=settings),
            cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        crawls.append(psutil.Process(crawling.pid))
        _, said = crawling.communicate(timeout=90)
        requested = {path_of(head) for head in server.requests}
    assert crawling.returncode == ExitCode.OUTPUT, said
    assert "/r4" not in requested
