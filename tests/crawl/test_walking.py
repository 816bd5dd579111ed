"""An ordinary spider that follows links: what it had still to fetch outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    from pathlib import Path

_PAGES = 12


def site(head: bytes) -> bytes:
    """Answer as a front page with links, and pages without."""
    if head.split(b" ")[1] != b"/":
        return page(b"<html>a page</html>", "Content-Type: text/html")
    links = "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES))
    return page(f"<html>{links}</html>".encode(), "Content-Type: text/html")


def command(out: Path, *arguments: str) -> list[str]:
    """Return the command that walks into *out*, one page at a time."""
    settings = {**QUICK, "AMICRAWL_PER_HOST": "1", "AMICRAWL_ROBOTS": "ignore", "AMICRAWL_OUT": str(out)}
    line = [sys.executable, "-m", "scrapy", "runspider", "tests/crawl/walking_spider.py", *arguments]
    for name, value in settings.items():
        line += ["-s", f"{name}={value}"]
    return line


def test_links_that_waited_when_the_spider_was_killed_are_followed_by_the_next_run(
    tmp_path: Path,
) -> None:
    out, items = tmp_path / "out", tmp_path / "items.jsonl"
    with RawServer(site, pause=0.3) as server:
        walk = command(out, "-a", f"site={server.url}/")
        first = subprocess.Popen(
            walk, cwd=PROJECT, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True
        )
        while len(server.requests) < 4:
            assert first.poll() is None
            time.sleep(0.02)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        before = len(server.requests)
        second = subprocess.run(
            command(out, "-o", str(items), "--nolog"),
            cwd=PROJECT,
            env=environment(),
            capture_output=True,
            check=True,
        )
        asked = server.requests
    assert second.stderr == b"", "whoever wants no log wants no progress either"
    assert {head.split(b" ")[1] for head in asked} == {
        b"/",
        *(b"/%d" % number for number in range(_PAGES)),
    }
    later = asked[before:]
    assert len(later) <= _PAGES
    assert all(b"\r\nReferer: " + server.url.encode() + b"/\r\n" in head for head in later)
    read = [json.loads(line)["url"] for line in items.read_text().splitlines()]
    assert len(read) == len(later)
