"""Requisites of requisites: what a page needs to be shown, wherever it lies and whatever names it."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import rows
from loopback import RawServer, crawl_site, environment, page, site_command
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

HTML = "Content-Type: text/html; charset=utf-8"
CSS = "Content-Type: text/css"
SVG = "Content-Type: image/svg+xml"


class Site:
    """A site below /site/ on 127.0.0.1 whose style sheets, frames and pictures lie on 127.0.0.2."""

    def __init__(self) -> None:
        self.server = RawServer(self._respond, keep_open=True)
        self.requested: list[str] = []

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        off = f"http://127.0.0.2:{self.server.port}"
        name = f"{'cdn' if b'127.0.0.2' in head else ''}{path}"
        self.requested.append(name)
        redirect = f"Location: http://127.0.0.3:{self.server.port}/m/real.css"
        pages = {
            "/site/": page(
                f'<link rel=stylesheet href="{off}/a.css"><link rel=stylesheet href="/up/u.css">'
                f'<link rel=stylesheet href="{off}/moved.css"><img src="{off}/p.svg">'
                f'<iframe src="{off}/frame.html"></iframe>'
                f'<a href="{off}/x">x</a><a href=two>2</a>'.encode(),
                HTML,
            ),
            "/site/two": page(b"<img src=two.png>", HTML),
            "/up/u.css": page(b"i{background:url(u.png)}", CSS),
            "cdn/a.css": page(b"@import 'i/b.css';", CSS),
            "cdn/i/b.css": page(b"@font-face{src:url(f.woff2)}@import '../a.css';", CSS),
            "cdn/moved.css": page(b"", redirect, status="302 Found"),
            "/m/real.css": page(b"b{background:url(m.png)}", CSS),
            "cdn/p.svg": page(b"<svg><image href=q.png></image><use href='s.svg#x'/></svg>", SVG),
            "cdn/frame.html": page(
                b"<link rel=stylesheet href=c1.css><a href=/far>away</a><img src=d.png>", HTML
            ),
            # A chain that would go on for ever: the frame is one hop from the page, so c4 is the fifth.
            **{f"cdn/c{n}.css": page(f"@import 'c{n + 1}.css';".encode(), CSS) for n in range(1, 20)},
        }
        return pages.get(name, page(name.encode(), "Content-Type: image/png"))


NEEDED = {"cdn/a.css", "cdn/i/b.css", "cdn/i/f.woff2", "/up/u.css", "/up/u.png", "cdn/moved.css"}
NEEDED |= {"/m/real.css", "/m/m.png", "cdn/p.svg", "cdn/q.png", "cdn/s.svg", "cdn/frame.html"}
NEEDED |= {"cdn/d.png", "cdn/c1.css", "cdn/c2.css", "cdn/c3.css", "cdn/c4.css"}


@pytest.mark.parametrize(
    ("arguments", "settings", "taken"),
    [
        ([], {}, NEEDED | {"/site/", "/site/two", "/site/two.png"}),
        (["depth=shallow"], {}, NEEDED | {"/site/"}),
        ([], {"AMICRAWL_REQUISITES_OFF_SITE": "0"}, {"/site/", "/site/two", "/site/two.png"}),
    ],
)
def test_a_page_has_what_its_requisites_need_wherever_it_lies(
    arguments: list[str], settings: dict[str, str], taken: set[str], tmp_path: Path
) -> None:
    site = Site()
    with site.server as server:
        done = crawl_site(
            f"{server.url}/site/", tmp_path / "out", arguments=arguments, settings=settings
        )
    assert done.returncode == ExitCode.DONE, done.stderr
    assert {name for name in site.requested if not name.endswith("/robots.txt")} == taken
    assert len(rows(tmp_path / "out")) == len(site.requested)


def test_a_chain_of_requisites_is_as_long_as_its_setting(tmp_path: Path) -> None:
    site = Site()
    with site.server as server:
        done = crawl_site(
            f"{server.url}/site/", tmp_path / "out", settings={"AMICRAWL_MAX_REQUISITE_HOPS": "2"}
        )
    assert done.returncode == ExitCode.DONE, done.stderr
    assert {"cdn/i/b.css", "cdn/c1.css", "/m/m.png"} < set(site.requested)
    assert not {"cdn/i/f.woff2", "cdn/c2.css"} & set(site.requested)
    counts = json.loads((tmp_path / "out" / "crawl.json").read_text())["links"]
    assert counts["kept_out/requisites"] == 2


def test_a_page_brings_as_many_requisites_as_its_setting_those_of_its_requisites_included(
    tmp_path: Path,
) -> None:
    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if not path.endswith(".css"):
            more = b"<a href=/page2></a>" if path == "/page1" else b""
            return page(b"<link rel=stylesheet href=%b.css>" % path.encode() + more, HTML)
        names = "".join(f"@import '{path[:-4]}{letter}.css';" for letter in "abc")
        return page(names.encode(), CSS)

    settings = {"AMICRAWL_MAX_PAGE_REQUISITES": "6", "AMICRAWL_HOSTS": "127.0.0.1"}
    with RawServer(respond) as server:
        done = crawl_site(f"{server.url}/page1", tmp_path / "out", settings=settings)
    assert done.returncode == ExitCode.DONE, done.stderr
    sheets = [row["url"].rpartition("/")[2] for row in rows(tmp_path / "out")]
    for name in ("page1", "page2"):
        assert sum(sheet.startswith(name) for sheet in sheets) == 1 + 6
    counts = json.loads((tmp_path / "out" / "crawl.json").read_text())["links"]
    assert counts["kept_out/requisites"] > 10


def test_every_page_that_needs_what_is_lost_is_counted_as_not_whole(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        sheets = {"/a.css": b"@import 'b.css';", "/b.css": b"i{background:url(lost.png)}"}
        if path in sheets:
            return page(sheets[path], CSS)
        if path == "/lost.png":
            return page(b"", status="404 Not Found")
        next_page = "".join(f"<a href=/{int(path[1:]) + 1}>on</a>" for _ in path if path < "/4")
        sheet = "" if path == "/3" else "<link rel=stylesheet href=/a.css>"
        return page(f"{sheet}{next_page}".encode(), HTML)

    with RawServer(respond) as server:
        # One request at a time, as by default: then what a page needs is known before the next page.
        settings = {"AMICRAWL_ROBOTS": "ignore", "AMICRAWL_PER_HOST": "1"}
        done = crawl_site(f"{server.url}/1", tmp_path / "out", settings=settings)
    assert "not whole: 3 pages lack 1 of what they need to be shown (status 404 1)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("requested", [2, 4, 6])
def test_a_chain_goes_on_where_it_was_killed(requested: int, tmp_path: Path) -> None:
    """Killed before the response to so many requests, one of each page and sheet."""
    out = tmp_path / "out"

    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if path == "/":
            return page(b"<link rel=stylesheet href=/1.css>", HTML)
        while len(server.requests) == requested and not child_is_dead:
            time.sleep(0.01)
        return page(f"@import '/{int(path[1:-4]) + 1}.css';".encode(), CSS)

    child_is_dead = False
    with RawServer(respond) as server:
        line = site_command(f"{server.url}/", out, arguments=["depth=shallow"])
        child = warm_processes.Popen(line, env=environment(), stderr=subprocess.DEVNULL)
        while len(server.requests) < requested:
            time.sleep(0.01)
        child.kill()
        child.wait(30)
        child_is_dead = True
        done = crawl_site(f"{server.url}/", out, arguments=["depth=shallow"])
        found = [row["url"].replace(server.url, "") for row in rows(out)]
    assert done.returncode == ExitCode.DONE, done.stderr
    assert found == ["/", *(f"/{n}.css" for n in range(1, 6))]


def test_explain_names_the_chain_and_the_rule_that_ends_it(tmp_path: Path) -> None:
    site, out = Site(), tmp_path / "out"
    with site.server as server:
        crawl_site(f"{server.url}/site/", out, arguments=["depth=shallow"])
        off = f"http://127.0.0.2:{server.port}"
        told = CliRunner().invoke(app, ["explain", f"{off}/c4.css", "--dir", str(out)]).stdout
        way = [
            line.partition("first found on ")[2] for line in told.splitlines() if "first found" in line
        ]
        assert way == [
            *(f"{off}/c{n}.css" for n in (3, 2, 1)),
            f"{off}/frame.html",
            f"{server.url}/site/",
        ]
        assert "5 of at most 5 steps from its page" in told
        assert "now: a link to it is taken" in told
        requested = [
            "explain",
            f"{off}/c5.css",
            "--requisite",
            "--from",
            f"{off}/c4.css",
            "--dir",
            str(out),
        ]
        told = CliRunner().invoke(app, requested).stdout
    assert "6 steps from its page, more than 5" in told
    assert "now: a link to it is kept out by requisites" in told


def test_a_page_has_all_that_it_needs_before_the_next_page_of_its_host_is_fetched(
    tmp_path: Path,
) -> None:
    pages = {
        "/": page(b"<link rel=stylesheet href=1.css><a href=a>a</a><a href=b>b</a>", HTML),
        "/1.css": page(b"@import '2.css';", CSS),
        "/2.css": page(b"p{background:url(3.png)}", CSS),
        "/a": page(b"<img src=a.png>", HTML),
    }

    def respond(head: bytes) -> bytes:
        return pages.get(head.split(b" ")[1].decode(), page(b"", HTML))

    with RawServer(respond) as server:
        done = crawl_site(f"{server.url}/", tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1"})
    assert done.returncode == ExitCode.DONE, done.stderr
    requested = [row["url"].replace(server.url, "") for row in rows(tmp_path / "out")]
    assert requested == ["/", "/1.css", "/2.css", "/3.png", "/a", "/a.png", "/b"]
