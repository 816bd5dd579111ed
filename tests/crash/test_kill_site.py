"""Crawls of a site killed at random moments: no page is lost that only another page leads to.

`AMICRAWL_CRASH_ROUNDS` sets how many crawls there are; the short form in the suite is 6, of half the
site.
"""

from __future__ import annotations

import hashlib
import os
import random
from typing import TYPE_CHECKING

from archive_reading import check_sealed, rows
from crash.killing import is_killed
from loopback import RawServer, crawl_site, page, site_command

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = min(int(os.environ.get("AMICRAWL_CRASH_ROUNDS", "6")), 100)
PAGES = 3000 if ROUNDS > 6 else 1500
INFLIGHT = 8
SETTINGS = {
    "AMICRAWL_INFLIGHT_MAX": str(INFLIGHT),
    "AMICRAWL_PER_HOST": str(INFLIGHT),
    "AMICRAWL_WARC_SIZE": "300000",
}


def respond(head: bytes) -> bytes:
    """Each page leads to two others, one of them through a redirect, and to a style sheet."""
    path = head.split(b" ")[1].decode()
    kind, _, name = path[1:].partition("/")
    if kind == "css":
        return page(b"body{}", "Content-Type: text/css")
    if kind == "r":
        return page(b"", f"Location: /p/{name}", status="302 Found")
    number = int(name or 0)
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
    text = "".join(f'<a href="/{"rp"[child % 2]}/{child}">x</a>' for child in children)
    text += f'<link rel=stylesheet href="/css/{number % 50}">'
    text += hashlib.shake_128(path.encode()).hexdigest(500)
    return page(text.encode(), "Content-Type: text/html")


def everything(url: str) -> set[str]:
    paths = {f"/p/{n}" for n in range(1, PAGES)} | {f"/r/{n}" for n in range(2, PAGES, 2)}
    return {url + path for path in paths | {"/"} | {f"/css/{n}" for n in range(50)}}


def test_a_site_that_is_crawled_with_kills_is_there_whole_in_the_end(tmp_path: Path) -> None:
    out, dice, kills = tmp_path / "out", random.Random(20261122), 0
    with RawServer(respond, keep_open=True) as server:
        start = f"{server.url}/"
        for _ in range(ROUNDS):
            durability = {"AMICRAWL_DURABILITY": dice.choice(["none", "normal", "full"])}
            line = site_command(start, out, settings={**SETTINGS, **durability})
            if not is_killed(line, server, after=dice.uniform(0.0, 0.7)):
                break
            kills += 1
        last = crawl_site(start, out, settings=SETTINGS)
    assert last.returncode == 0, last.stderr
    assert kills, "no crawl was killed: this says nothing"
    found = [row["url"] for row in rows(out)]
    assert set(found) == everything(server.url)
    assert len(found) - len(set(found)) <= kills * INFLIGHT
    for path in out.glob("*.warc.gz"):
        check_sealed(path)
