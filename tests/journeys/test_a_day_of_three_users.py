"""A day of three users: what each types, and what each would check at every step, messages included.

The commands are run as a user runs them, each in a process of its own, against a site on this machine.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import warm_processes
from archive_reading import rows
from loopback import PROJECT, RawServer, environment, page

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)
"""A dozen processes one after the other, each of which takes seconds to start on a busy machine."""

HERE = ("-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8")
QUICK = ("--delay", "0", "-s", "AMICRAWL_LOG_FORMAT=text", *HERE)


class Site:
    """Five pages in a chain, a picture, one page that is busy until it is told otherwise."""

    def __init__(self) -> None:
        self.is_busy = True
        self.server = RawServer(self._respond)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def fetched(self) -> list[str]:
        """The paths that were requested since the last look, robots.txt left out."""
        paths = [head.split(b" ")[1].decode() for head in self.server.requests]
        self.server.requests.clear()
        return sorted(path for path in paths if path != "/robots.txt")

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if path == "/robots.txt":
            return page(b"User-agent: *\nDisallow: /private/\n", "Content-Type: text/plain")
        if path == "/busy" and self.is_busy:
            return page(b"later", status="503 Service Unavailable")
        if path in {"/busy", "/list/1", "/list/2"}:
            return page(path.encode(), "Content-Type: text/plain")
        number = int(path.removeprefix("/page") or 0) if path != "/" else 0
        links = '<a href="/private/diary">x</a>' if not number else ""
        links += f'<a href="/page{number + 1}">next</a>' if number < 4 else ""
        return page(f"<html>{links}</html>".encode(), "Content-Type: text/html")


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    with made.server:
        yield made


class User:
    """Somebody at a shell in *directory*."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def types(self, *words: str, ends_with: int = ExitCode.DONE) -> str:
        """Run `amicrawl WORDS`, check its exit code, and return what it printed."""
        done = warm_processes.run(
            [sys.executable, "-m", "amicrawl", *words],
            cwd=self.directory,
            env={**environment(), "PYTHONPATH": str(PROJECT), "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        said: str = done.stdout + done.stderr
        assert done.returncode == ends_with, said
        assert "Traceback" not in said
        return said


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_an_archivist_captures_a_site_deepens_it_and_comes_back(site: Site, user: User) -> None:
    crawl = ("crawl", f"{site.url}/", "-o", "archive")
    out = user.directory / "archive"

    said = user.types(*crawl, ends_with=ExitCode.UNREACHED)
    assert "nothing was reached" in said
    assert "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8" in said
    assert site.fetched == []

    said = user.types(*crawl, *QUICK, "--depth", "1")
    assert site.fetched == ["/", "/page1"]
    assert "1 robots-denied" in said
    assert "output in archive" in said
    assert "rows" in user.types("inspect", "archive")

    said = user.types(*crawl, *QUICK)
    assert "changed since the last crawl here: depth" in said
    assert site.fetched == ["/page2", "/page3", "/page4"]

    said = user.types(*crawl, *QUICK)
    assert site.fetched == []
    assert "nothing to fetch: all 6 URLs known are settled: 5 captured, 1 denied by robots" in said
    assert "`amicrawl recrawl archive --all`" in said
    assert "`amicrawl frontier retry archive`" in said

    said = user.types("explain", f"{site.url}/private/diary", "--dir", "archive")
    assert "robots" in said

    user.types("recrawl", "archive", "--all", *HERE, "-s", "AMICRAWL_DELAY=0")
    assert site.fetched == ["/", "/page1", "/page2", "/page3", "/page4"]
    pages = [row for row in rows(out) if row["status"] == 200 and "robots" not in row["url"]]
    assert sorted(row["unchanged"] for row in pages) == [False] * 5 + [True] * 5

    said = user.types("recrawl", "archive", "--before", "2100-01-01", ends_with=ExitCode.UNREACHED)
    assert "address-refused" in said
    assert re.search(r"withheld +[56]", user.types("frontier", "stats", "archive"))
    assert site.fetched == []
    user.types("recrawl", "archive", "--before", "2100-01-01", *HERE, "-s", "AMICRAWL_DELAY=0")
    assert site.fetched == ["/", "/page1", "/page2", "/page3", "/page4"]


def test_a_data_engineer_fetches_a_table_and_what_failed_of_it_again(site: Site, user: User) -> None:
    seeds = [
        {"url": f"{site.url}{path}", "rank": number, "score": number / 4, "tags": ["a", path]}
        for number, path in enumerate(("/list/1", "/list/2", "/busy"))
    ]
    pq.write_table(pa.Table.from_pylist(seeds), user.directory / "seeds.parquet")

    said = user.types("crawl", "seeds.parquet", "-o", "out", *QUICK)
    assert "1 URL will be retried by the same command when due" in said
    assert "`amicrawl frontier retry out`" in said
    meta = {row["url"]: row["meta_json"] for row in rows(user.directory / "out")}
    assert json.loads(meta[f"{site.url}/list/2"]) == {
        "rank": "1",
        "score": "0.25",
        "tags": '["a","/list/2"]',
    }
    assert site.fetched == ["/busy", "/list/1", "/list/2"]

    for name in ("retry.jsonl", "retry.json", "retry.parquet"):
        user.types("query", "out", "captures_seeds_to_retry", "-o", name)
        user.types("crawl", name, "-o", f"out-{name}", *QUICK)
        assert site.fetched == ["/busy"], name
        again = [row for row in rows(user.directory / f"out-{name}") if "robots" not in row["url"]]
        assert [row["meta_json"] for row in again] == [meta[f"{site.url}/busy"]], name

    site.is_busy = False
    said = user.types("crawl", "seeds.parquet", "-o", "out", *QUICK)
    assert "nothing to fetch now" in said
    assert site.fetched == []
    assert "1 URL is due now" in user.types("frontier", "retry", "out", "--status", "503")
    user.types("crawl", "seeds.parquet", "-o", "out", *QUICK)
    assert site.fetched == ["/busy"]

    user.types("crawl", "out/captures.parquet", "-o", "second", *QUICK)
    assert site.fetched == ["/busy", "/list/1", "/list/2"]
    robots = [row for row in rows(user.directory / "second") if row["url"].endswith("/robots.txt")]
    assert len(robots) == 1


CRAWL_FILE = """\
public = false
[seeds]
url = "{url}/"
[output]
out = "weekly"
[politeness]
delay = 0
[request]
allow_private = ["127.0.0.0/8"]
[schedule]
every = "7d"
"""


def test_a_team_lead_keeps_a_crawl_as_a_file_and_runs_it_by_the_hour(site: Site, user: User) -> None:
    path = user.directory / "weekly.toml"
    path.write_text("".join(CRAWL_FILE.format(url=site.url).splitlines(keepends=True)[1:]))
    assert "no operator" in user.types("check", "weekly.toml", ends_with=ExitCode.USAGE)
    path.write_text(CRAWL_FILE.format(url=site.url))
    assert "good" in user.types("check", "weekly.toml")

    said = user.types("crawl", "weekly.toml", "-s", "delay=10", ends_with=ExitCode.USAGE)
    assert "Did you mean AMICRAWL_DELAY?" in said

    said = user.types("crawl", "weekly.toml", "--max-pages", "3", ends_with=ExitCode.LIMIT)
    assert "stopped (limit-pages) after" in said
    assert "not fetched; to resume, run the same command again" in said
    assert json.loads((user.directory / "weekly" / "crawl.json").read_bytes())["unfinished"] is True

    user.types("crawl", "weekly.toml")
    assert site.fetched == ["/", "/page1", "/page2", "/page3", "/page4"]
    assert "Nothing to do: the next crawl is due" in user.types("crawl", "weekly.toml")

    quiet = user.types("crawl", "weekly.toml", "--now", "-q")
    assert quiet == ""
