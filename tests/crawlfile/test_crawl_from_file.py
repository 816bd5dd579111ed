"""Crawls from crawl files, by both doors, against real servers; no secret is found anywhere after."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
import warm_processes
from ageing import grow_old
from archive_reading import check_sealed, records, rows
from loopback import PROJECT, RawServer, environment, page
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from amicrawl.crawl.arguments import configured
from amicrawl.errors import ExitCode, UsageError
from amicrawl.spiders.seeds import SeedsSpider

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

TOOLS = Path(sys.executable).parent
PASSWORD = "geheim-Pw7"
COOKIE = "geheim-Keks7"
SECRETS = (PASSWORD.encode(), COOKIE.encode(), base64.b64encode(f"ann:{PASSWORD}".encode())[4:-2])
LOCAL = """
[politeness]
delay = 0
backoff_max = 0
[request]
allow_private = ["127.0.0.0/8"]
operator = "A Library, crawl@library.example"
"""


def run(
    line: list[str], *, cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        line, cwd=cwd, env={**environment(), **(variables or {})}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def amicrawl(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run([str(TOOLS / "amicrawl"), *arguments], cwd=cwd, variables=variables)


def places_of_secrets(directory: Path) -> list[str]:
    """Return the files below *directory* that hold a secret, packed or not."""
    found = []
    for path in sorted(directory.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        if path.suffix == ".gz":
            content += gzip.decompress(content)
        if path.suffix == ".parquet":
            content += repr(pq.read_table(path).to_pylist()).encode()
        if any(secret in content for secret in SECRETS):
            found.append(path.name)
    return found


def secrets_in_process_list() -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if any(secret in line for secret in SECRETS):
            return True
    return False


class ListCrawl:
    """One crawl of a list from a file, with auth and cookies, and all that came of it."""

    def __init__(self, home: Path) -> None:
        listed: list[bool] = []

        def respond(head: bytes) -> bytes:
            listed.append(secrets_in_process_list())
            path = head.split(b" ")[1]
            if path == b"/robots.txt":
                return page(b"", status="404 Not Found")
            if path == b"/away":
                return page(
                    b"moved", f"Location: http://127.0.0.2:{server.port}/elsewhere", status="302 Found"
                )
            return page(b"the page " + path)  # of its own: fastwarc is wrong about revisit records

        with RawServer(respond) as server:
            (home / "seeds.txt").write_text("".join(f"{server.url}/{name}\n" for name in ("a", "away")))
            (home / "auth").write_text(f"ann:{PASSWORD}\n")
            (home / "auth").chmod(0o600)
            (home / "gov.toml").write_text(
                f"{LOCAL}"
                'user_agent = "test/1"\ncookies = "env:JAR"\n'
                '[request.fields]\nFrom = "crawl@library.example"\n'
                '[seeds]\nfile = "seeds.txt"\nstrict = true\n'
                f'[output]\nout = "{home / "out"}"\nrun_id = "at-%Y"\n'
                'dedup = "crawl"\nwarc_size = "8MiB"\n'
                '[host."127.0.0.1"]\nauth = "file:auth"\n'
                f"auth_port = {server.port}\nallow_plain = true\n"
            )
            line = [
                sys.executable,
                "-m",
                "scrapy",
                "crawl",
                "seeds",
                "-a",
                f"config={home / 'gov.toml'}",
            ]
            jar = f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{COOKIE}\n"
            self.done = run(
                [*line, "-s", "AMICRAWL_WARC_SIZE=4MiB", "-s", "LOG_LEVEL=DEBUG"],
                cwd=PROJECT, variables={"JAR": jar},
            )  # fmt: skip
            self.requests = list(server.requests)
        self.secret_was_listed = any(listed)
        (self.directory,) = (home / "out").iterdir()
        self.crawl_json = json.loads((self.directory / "crawl.json").read_text())

    def request_of(self, path: str, host: str) -> str:
        """Return the request for *path* as the server saw it."""
        heads = [head.decode() for head in self.requests]
        (head,) = (h for h in heads if h.startswith(f"GET {path} ") and f"Host: {host}:" in h)
        return head


@pytest.fixture(scope="module")
def list_crawl(tmp_path_factory: pytest.TempPathFactory) -> ListCrawl:
    crawl = ListCrawl(tmp_path_factory.mktemp("list"))
    assert crawl.done.returncode == 0, crawl.done.stderr
    return crawl


def test_a_list_is_crawled_as_its_file_says(list_crawl: ListCrawl) -> None:
    assert re.fullmatch(r"at-20\d\d", list_crawl.directory.name)
    requested, followed = list_crawl.crawl_json["asked"], list_crawl.crawl_json["settings"]
    assert requested["file"].endswith("seeds.txt")
    assert requested["config"].endswith("gov.toml")
    assert requested["strict"] == "True"
    assert (followed["dedup"], followed["delay"]) == ("crawl", 0.0)
    assert {row["url"].rpartition("/")[2] for row in rows(list_crawl.directory)} == {
        "a", "away", "elsewhere", "robots.txt",
    }  # fmt: skip


def test_a_setting_of_the_command_line_wins(list_crawl: ListCrawl) -> None:
    assert list_crawl.crawl_json["settings"]["warc_size"] == 4 * 1024**2


def test_requests_carry_the_fields_of_the_file_before_the_usual_ones(list_crawl: ListCrawl) -> None:
    lines = list_crawl.request_of("/a", "127.0.0.1").split("\r\n")
    assert lines[2:5] == ["User-Agent: test/1", "From: crawl@library.example", "Accept: */*"]


def test_auth_and_cookies_go_to_their_host_and_to_no_other(list_crawl: ListCrawl) -> None:
    token = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    for path in ("/a", "/away", "/robots.txt"):
        head = list_crawl.request_of(path, "127.0.0.1")
        assert f"\r\nAuthorization: Basic {token}\r\n" in head
        assert f"\r\nCookie: sid={COOKIE}\r\n" in head
    elsewhere = list_crawl.request_of("/elsewhere", "127.0.0.2")
    assert "Authorization" not in elsewhere
    assert "Cookie" not in elsewhere


def test_no_secret_is_found_in_output_log_or_process_list(list_crawl: ListCrawl) -> None:
    assert places_of_secrets(list_crawl.directory.parent) == []
    said = (list_crawl.done.stdout + list_crawl.done.stderr).encode()
    assert b"DEBUG" in said
    assert not any(secret in said for secret in SECRETS)
    assert not list_crawl.secret_was_listed


def test_what_is_left_out_of_a_request_record_is_said(list_crawl: ListCrawl) -> None:
    for path in list_crawl.directory.glob("*.warc.gz"):
        check_sealed(path)
    bodies = [(one.rec_type, one.raw_stream.read()) for one in records(list_crawl.directory)]
    requests = [body for kind, body in bodies if kind == "request" and b"127.0.0.1" in body]
    assert len(requests) == 3
    for body in requests:
        assert b"\r\nAuthorization: redacted\r\nCookie: redacted\r\n" in body
    infos = [body for kind, body in bodies if kind == "warcinfo"]
    assert all(
        b"redacted: values of Authorization and Cookie fields in request records\r\n" in body
        for body in infos
    )
    assert infos


def proxied(head: bytes) -> bytes:
    """Respond as a proxy that gets the requests for pages of a site (RFC 9112, 3.2.2)."""
    if b"/robots.txt " in head:
        return page(b"", status="404 Not Found")
    body = b'<a href="/wiki/b">b</a> <a href="/other">o</a>' if b"/wiki/ " in head else b"ok"
    return page(body, "Content-Type: text/html")


def test_a_site_is_crawled_from_outside_of_any_project_when_it_is_due(tmp_path: Path) -> None:
    """Through a proxy with a password; then it rests until it is due, and is recrawled in place."""
    with RawServer(proxied, keep_open=True) as server:
        (tmp_path / "site.toml").write_text(
            'extends = "local.toml"\n[seeds]\nurl = "http://intranet.example/wiki/"\n'
            '[request]\nproxy = "env:PROXY"\n[output]\nout = "out"\n'
            '[schedule]\nevery = "1d"\nrecrawl = true\n'
        )
        (tmp_path / "local.toml").write_text(LOCAL)
        proxy = f"http://ann:{PASSWORD}@127.0.0.1:{server.port}"
        first = amicrawl("crawl", "site.toml", "-s", "LOG_LEVEL=DEBUG", cwd=tmp_path, PROXY=proxy)
        assert first.returncode == 0, first.stderr
        requested = [head.split(b" ")[1].decode() for head in server.requests]
        site = "http://intranet.example"
        assert sorted(requested) == [f"{site}/robots.txt", f"{site}/wiki/", f"{site}/wiki/b"]
        assert all(SECRETS[2] in head for head in server.requests), "the proxy gets its password"
        server.requests.clear()
        second = amicrawl("crawl", "site.toml", cwd=tmp_path)
        assert (second.returncode, server.requests) == (0, [])
        assert second.stdout.startswith("Nothing to do: the next crawl is due at ")
        by_hand = amicrawl("crawl", "site.toml", "--now", "-a", "fresh=1", cwd=tmp_path, PROXY=proxy)
        assert by_hand.returncode == ExitCode.USAGE
        assert "fresh=1 allows none" in by_hand.stderr
        path = tmp_path / "out" / "crawl.json"
        path.write_text(re.sub(r'"finished": "20\d\d', '"finished": "2020', path.read_text()))
        grow_old(tmp_path / "out", hours=25)
        when_due = amicrawl("crawl", "site.toml", cwd=tmp_path, PROXY=proxy)
        assert when_due.returncode == 0, when_due.stderr
        again = [head.split(b" ")[1].decode() for head in server.requests]
        assert sorted({*again} - {f"{site}/robots.txt"}) == [f"{site}/wiki/", f"{site}/wiki/b"]
    told = json.loads(path.read_text())
    assert (told["asked"]["dir"], told["asked"]["config"]) == ("out", "site.toml")
    assert told["settings"]["operator"] == "A Library, crawl@library.example"
    assert len(told["earlier"]) == 1
    assert places_of_secrets(tmp_path / "out") == []
    assert not any(secret in (first.stdout + first.stderr).encode() for secret in SECRETS)


def test_a_file_with_faults_starts_nothing_by_either_door(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("public = false\nx = 1\n[seeds]\nfile = 's'\nsrict = true\n")
    said = (
        "bad.toml, line 2: unknown key x outside of any table.\n"
        "bad.toml, line 5: unknown key srict in [seeds]. Did you mean strict?"
    )
    ours = amicrawl("crawl", "bad.toml", cwd=tmp_path)
    line = [sys.executable, "-m", "scrapy", "crawl", "seeds", "-a", "config=bad.toml"]
    theirs = run(line, cwd=tmp_path, variables={"SCRAPY_SETTINGS_MODULE": "amicrawl.settings"})
    assert (ours.returncode, theirs.returncode) == (ExitCode.USAGE, ExitCode.USAGE)
    assert ours.stderr == theirs.stderr == f"amicrawl: {said}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_a_secret_that_is_not_there_ends_the_crawl_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("http://127.0.0.1:9/\n")
    (tmp_path / "c.toml").write_text(
        "public = false\n[seeds]\nfile = 's'\n[request]\ncookies = 'env:AMICRAWL_TEST_UNSET'\n"
    )
    done = amicrawl("crawl", "c.toml", cwd=tmp_path)
    assert done.returncode == ExitCode.INPUT
    assert ": the environment variable AMICRAWL_TEST_UNSET is not set." in done.stderr
    assert not (tmp_path / "ami-out").exists()


def crawler_of(settings: dict[str, object]) -> Crawler:
    crawler = Crawler(SeedsSpider, Settings({}, priority="project"))
    crawler.settings.update(settings, priority="project")
    return crawler


def test_a_file_stands_above_the_project_and_below_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        "public = false\n[seeds]\nfile = 's'\nformat = 'lines'\n[politeness]\ndelay = 3\nper_host = 3\n"
    )
    crawler = crawler_of({"AMICRAWL_DELAY": 1, "AMICRAWL_PER_HOST": 1})
    crawler.settings.set("AMICRAWL_PER_HOST", 2, "cmdline")
    given = {"config": str(tmp_path / "c.toml"), "format": "jsonl"}
    assert configured(crawler, given, spider="seeds") == {
        "file": str(tmp_path / "s"), "format": "jsonl", "config": str(tmp_path / "c.toml"),
    }  # fmt: skip
    assert crawler.settings["AMICRAWL_DELAY"] == 3
    assert crawler.settings["AMICRAWL_PER_HOST"] == 2


def test_a_file_for_another_spider_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("public = false\n[seeds]\nurl = 'http://a.example/'\n")
    with pytest.raises(UsageError, match="is for the spider `site`: scrapy crawl site -a config="):
        configured(crawler_of({}), {"config": str(tmp_path / "c.toml")}, spider="seeds")
