"""Scrapy's own commands in a project with the add-on: what is for looking archives nothing."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import check_sealed, rows
from loopback import PROJECT, QUICK, RawServer, environment, page

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.timeout(400)

SETTINGS = """from amicrawl.settings import *

BOT_NAME = "team"
SPIDER_MODULES = [*SPIDER_MODULES, "team.spiders"]
NEWSPIDER_MODULE = "team.spiders"
AMICRAWL_OPERATOR = "mailto:team@example.org"
"""
SINGLE_FILE = """import scrapy


class Single(scrapy.Spider):
    name = "single"
    start_urls = ["{url}/"]

    def parse(self, response):
        yield {{"title": response.css("title::text").get()}}
"""


def respond(head: bytes) -> bytes:
    path = head.split(b" ")[1]
    if path == b"/":
        port = head.partition(b"Host: 127.0.0.1:")[2].partition(b"\r")[0].decode()
        body = (
            '<title>Front</title><a href="/a">A</a> <a href="/b#part">B</a> <img src="/i.png">'
            f'<a href="http://localhost:{port}/elsewhere">E</a>'
        )
        return page(body.encode(), "Content-Type: text/html")
    if path == b"/i.png":
        return page(b"\x89PNG", "Content-Type: image/png")
    if path == b"/moved":
        return page(b"", "Location: /a", status="302 Found")
    return page(b"<title>" + path[1:] + b'</title><a href="/">up</a>', "Content-Type: text/html")


@dataclass(frozen=True)
class Ran:
    """What the commands said, by name, and where they ran."""

    said: dict[str, subprocess.CompletedProcess[str]]
    project: Path
    server: RawServer


def scrapy(directory: Path, *line: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Scrapy in *directory*."""
    return warm_processes.run(
        [sys.executable, "-m", "scrapy", *line],
        cwd=directory,
        env={**environment(), "PYTHONPATH": str(PROJECT), "BROWSER": "echo %s"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def bench(project: Path) -> subprocess.CompletedProcess[str]:
    """Run `scrapy bench`, whose server is always at the same port: one at a time on this machine."""
    with (Path(tempfile.gettempdir()) / f"amicrawl-bench-{os.getuid()}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return scrapy(project, "bench", "-s", "CLOSESPIDER_TIMEOUT=1", "-L", "INFO")


def quick(*more: str) -> list[str]:
    """Return the options under which a crawl of the loopback server waits for nothing."""
    given = [f"{name}={value}" for name, value in QUICK.items()]
    return [word for setting in [*given, *more] for word in ("-s", setting)]


def make_project(directory: Path) -> Path:
    """Make a team's project, which keeps amicrawl's settings and adds a room for its own spiders."""
    spiders = directory / "team" / "spiders"
    spiders.mkdir(parents=True)
    (spiders / "__init__.py").touch()
    (directory / "team" / "__init__.py").touch()
    (directory / "team" / "settings.py").write_text(SETTINGS)
    (directory / "scrapy.cfg").write_text("[settings]\ndefault = team.settings\n")
    return directory


def crawl_twice(project: Path) -> list[subprocess.CompletedProcess[str]]:
    """Run the generated spider, and again into the same directory."""
    return [scrapy(project, "crawl", "demo", *quick("AMICRAWL_OUT=demo-out")) for _ in range(2)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Run every command once, two at a time."""
    directory = tmp_path_factory.mktemp("commands")
    project = make_project(directory / "project")
    foreign = PROJECT / "tests" / "foreign_project"
    with RawServer(respond) as server:
        front = f"{server.url}/"
        single = directory / "single_spider.py"
        single.write_text(SINGLE_FILE.format(url=server.url))
        out = f"AMICRAWL_OUT={directory / 'foreign-out'}"
        first = {"generate": scrapy(project, "genspider", "-t", "archive", "demo", front)}
        lines: dict[str, tuple[Path, Sequence[str]]] = {
            "list": (PROJECT, ["list"]),
            "check": (PROJECT, ["check"]),
            "setting": (PROJECT, ["settings", "--get", "AMICRAWL_DELAY", "-s", "AMICRAWL_DELAY=7"]),
            "templates": (project, ["genspider", "-l"]),
            "generate basic": (project, ["genspider", "plain", "example.org"]),
            "check generated": (project, ["check", "demo"]),
            "shell": (
                project,
                ["shell", front, "--spider", "demo", "-c", "(spider.name, response.status)"],
            ),
            "fetch": (project, ["fetch", "--headers", f"{server.url}/moved"]),
            "view": (project, ["view", front]),
            "parse": (project, ["parse", "--nocolour", "--spider", "demo", front]),
            "runspider": (project, ["runspider", str(single), *quick("AMICRAWL_OUT=single-out")]),
            "foreign": (
                foreign,
                ["parse", front, "--spider", "stories", "-a", f"site={server.url}", "-s", out],
            ),
        }
        with ThreadPoolExecutor(2) as pool:
            twice = pool.submit(crawl_twice, project)
            benched = pool.submit(bench, project)
            waiting = {name: pool.submit(scrapy, where, *line) for name, (where, line) in lines.items()}
            said = first | {name: future.result() for name, future in waiting.items()}
            said["crawl"], said["crawl again"] = twice.result()
            said["bench"] = benched.result()
        yield Ran(said, project, server)


@pytest.mark.parametrize(
    "name",
    [
        *("list", "check", "setting", "templates", "generate", "generate basic", "check generated"),
        *("crawl", "crawl again", "runspider", "shell", "fetch", "view", "parse"),
        *("bench", "foreign"),
    ],
)
def test_a_command_ends_well_and_quietly(ran: Ran, name: str) -> None:
    done = ran.said[name]
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_list_names_the_spiders(ran: Ran) -> None:
    assert {"recrawl", "seeds"} <= set(ran.said["list"].stdout.split())


def test_check_has_nothing_to_complain_of(ran: Ran) -> None:
    assert ran.said["check"].stderr.rstrip().endswith("OK")


def test_settings_shows_what_was_set(ran: Ran) -> None:
    assert ran.said["setting"].stdout == "7\n"


def test_our_template_is_offered_beside_those_of_scrapy(ran: Ran) -> None:
    names = ran.said["templates"].stdout.split()[2:]
    assert {"archive", "basic", "crawl", "csvfeed", "xmlfeed"} <= set(names)


def test_a_template_of_scrapy_is_used_as_before(ran: Ran) -> None:
    text = (ran.project / "team" / "spiders" / "plain.py").read_text()
    assert 'start_urls = ["https://example.org"]' in text


def test_a_generated_spider_archives_its_domain_and_nothing_else(ran: Ran) -> None:
    out = ran.project / "demo-out"
    port = ran.server.port
    pages = [f"http://127.0.0.1:{port}/{path}" for path in ("", "a", "b", "i.png")]
    urls = [row["url"] for row in rows(out)]
    assert sorted(urls[:4]) == pages
    assert urls[4:] == pages[:1], "a second crawl looked for news on the front page, and found none"
    assert {row["status"] for row in rows(out)} == {200}
    for path in out.glob("*.warc.gz"):
        check_sealed(path)


def test_a_generated_spider_is_typed_and_tidy(ran: Ran) -> None:
    spider = ran.project / "team" / "spiders" / "demo.py"
    tools = Path(sys.executable).parent
    for line in (
        ["ruff", "check", "--isolated", "--select=F,I,D,ANN,TC", "--ignore=D203,D213,ANN401"],
        ["ruff", "format", "--isolated", "--check", "--line-length=105"],
    ):
        done = warm_processes.run(
            [str(tools / line[0]), *line[1:], str(spider)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_generated_spider_has_a_contract_that_is_tried(ran: Ran) -> None:
    assert "Ran 1 contract " in ran.said["check generated"].stderr
    assert ran.said["check generated"].stderr.rstrip().endswith("OK")


def test_the_shell_shows_a_page_through_a_spider(ran: Ran) -> None:
    assert ran.said["shell"].stdout.strip() == "('demo', 200)"


def test_fetch_follows_redirects_and_requests_as_scrapy_does(ran: Ran) -> None:
    said = ran.said["fetch"].stdout
    assert "> User-Agent: Scrapy/" in said
    assert "< Content-Type: text/html" in said


def test_view_opens_a_browser(ran: Ran) -> None:
    assert ran.said["view"].stdout.startswith("file://")


def test_parse_shows_the_requests_that_a_callback_makes_and_sends_none_of_them(ran: Ran) -> None:
    said = ran.said["parse"].stdout
    assert f"<GET {ran.server.url}/a>" in said
    assert f"<GET {ran.server.url}/i.png>" in said


def test_a_spider_in_a_file_of_its_own_archives(ran: Ran) -> None:
    assert [row["url"] for row in rows(ran.project / "single-out")] == [f"{ran.server.url}/"]


def test_a_look_leaves_no_directory_behind(ran: Ran) -> None:
    left = {path.name for path in ran.project.iterdir()} - {"scrapy.cfg", "team"}
    assert left == {"demo-out", "single-out"}
    assert not (ran.project.parent / "foreign-out").exists(), "the add-on alone is enough for that"
