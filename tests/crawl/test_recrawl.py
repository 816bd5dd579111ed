"""Recrawls: what is due is requested again, with what is known of it, and only news is stored."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import warm_processes
from ageing import grow_old
from archive_reading import check_by_warcio, record, rows
from loopback import (
    PROJECT,
    RawServer,
    crawl,
    environment,
    page,
    recrawl,
    recrawl_command,
    write_lines,
)

from amicrawl.errors import ExitCode
from amicrawl.meguri.opening import load
from amicrawl.reading import Members

if TYPE_CHECKING:
    from pathlib import Path

FAR = "before=2100-01-01"


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode()


def by_path(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of the index by path, oldest first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows(out), key=lambda row: row["fetched_at"]):
        found.setdefault("/" + row["url"].split("/", 3)[3], []).append(row)
    return found


def frontier_rows(out: Path) -> dict[str, dict[str, int]]:
    """The rows of the frontier by path."""
    partition = load(out / "frontier")
    arena = bytes(partition.arena)
    found = {}
    for number, reference in enumerate(partition.urls["url_ref"].tolist()):
        length = arena[reference]
        url = arena[reference + 1 : reference + 1 + length].decode()
        found["/" + url.split("/", 3)[3]] = {
            name: column[number].item() for name, column in partition.urls.items()
        }
    return found


def respond(head: bytes) -> bytes:
    path = path_of(head)
    if path == "/etag":
        if b'If-None-Match: "v1"' in head:
            return b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
        return page(b"with a tag", 'ETag: "v1"')
    if path == "/dated":
        if b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT" in head:
            return b"HTTP/1.1 304 Not Modified\r\n\r\n"
        return page(b"with a date", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT")
    if path == "/missing":
        return page(b"no", status="404 Not Found")
    return page(b"always the same")


def test_equal_error_pages_and_redirects_of_an_earlier_index_are_not_stored_again(
    tmp_path: Path,
) -> None:
    responses = {
        "/missing": page(b"not there", status="404 Not Found"),
        "/broken": page(b"sorry", status="500 Internal Server Error"),
        "/moved": page(b"over there", "Location: /broken", status="302 Found"),
    }
    first, second = tmp_path / "first", tmp_path / "second"
    with RawServer(lambda head: responses[path_of(head)]) as server:
        crawl(write_lines(tmp_path / "s.txt", [f"{server.url}{path}" for path in responses]), first)
        crawl(first / "captures.parquet", second)
    for path, (row, *further) in by_path(second).items():
        assert not further
        assert row["unchanged"], path
        assert record(second, row)[0]["WARC-Type"] == "revisit", path


def test_what_has_not_changed_becomes_a_revisit_of_the_first_capture_however_often(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with RawServer(respond) as server:
        urls = [f"{server.url}/{name}" for name in ("etag", "dated", "same", "missing")]
        assert crawl(write_lines(tmp_path / "s.txt", urls), out).returncode == ExitCode.DONE
        for _ in range(2):
            done = recrawl(out, arguments=[FAR])
            assert done.returncode == ExitCode.DONE, done.stderr
    for path, captures in by_path(out).items():
        first, *later = captures
        original, _ = record(out, first)
        assert len(later) == 2
        for row in later:
            fields, _ = record(out, row)
            if path == "/missing":
                assert fields["WARC-Type"] == "response"
                continue
            assert fields["WARC-Type"] == "revisit", path
            assert fields["WARC-Refers-To-Date"] == original["WARC-Date"]
            assert fields["WARC-Refers-To-Target-URI"] == original["WARC-Target-URI"]
            assert row["unchanged"]
            assert row["digest"] == first["digest"]
    for file in out.glob("*.warc.gz"):
        check_by_warcio(file)
    known = frontier_rows(out)
    assert known["/etag"]["crawl_count"] == 3
    assert known["/etag"]["no_change_streak"] == 2
    assert known["/same"]["change_count"] == 0


def test_what_has_changed_is_stored_and_counted_as_a_change(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"take %d" % len(server.requests))) as server:
        out = tmp_path / "out"
        crawl(write_lines(tmp_path / "s.txt", [f"{server.url}/a"]), out)
        recrawl(out, arguments=[FAR])
        recrawl(out, arguments=[FAR])
    assert [record(out, row)[0]["WARC-Type"] for row in by_path(out)["/a"]] == ["response"] * 3
    row = frontier_rows(out)["/a"]
    assert (row["crawl_count"], row["change_count"], row["no_change_streak"]) == (3, 2, 0)


def test_nothing_is_requested_before_it_is_due(tmp_path: Path) -> None:
    with RawServer(respond) as server:
        out = tmp_path / "out"
        crawl(write_lines(tmp_path / "s.txt", [f"{server.url}/same"]), out)
        requested = len(server.requests)
        done = recrawl(out)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert len(server.requests) == requested
    assert '"pending": 0' in done.stderr


def test_what_is_as_old_as_requested_is_fetched_again_and_nothing_else(tmp_path: Path) -> None:
    """A day in general, and two hours for what changes often; the longest pattern that matches counts.

    Ages are counted in hours of the clock: one may begin between a crawl and the next.
    """
    ages = '{"*": "1d", "/news/*": "2h", "/news/old/*": "4w"}'
    with RawServer(respond) as server:
        out = tmp_path / "out"
        paths = ["/same", "/news/today", "/news/old/1", "/missing"]
        crawl(write_lines(tmp_path / "s.txt", [server.url + path for path in paths]), out)
        requested: dict[int, list[str]] = {}
        for hours in (0, 3, 30):
            grow_old(out, hours=hours)
            server.requests.clear()
            done = recrawl(out, settings={"AMICRAWL_RECRAWL_AFTER": ages})
            assert done.returncode == ExitCode.DONE, done.stderr
            requested[hours] = sorted({path_of(head) for head in server.requests} & set(paths))
    assert requested == {0: [], 3: ["/news/today"], 30: ["/missing", "/news/today", "/same"]}


def test_all_of_a_recrawl_that_was_ended_early_is_fetched_once(tmp_path: Path) -> None:
    with RawServer(respond) as server:
        out = tmp_path / "out"
        paths = [f"/{number}" for number in range(9)]
        crawl(write_lines(tmp_path / "s.txt", [server.url + path for path in paths]), out)
        grow_old(out, hours=3)
        server.requests.clear()
        few = {"AMICRAWL_STOP_PAGES": "3", "AMICRAWL_PER_HOST": "1"}
        for _ in range(3):
            recrawl(out, arguments=["after=2h"], settings=few)
        requested = [path for head in server.requests if (path := path_of(head)) in paths]
        assert sorted(requested) == paths
        server.requests.clear()
        recrawl(out, arguments=["after=0h"])
        assert sorted(path_of(head) for head in server.requests if path_of(head) in paths) == paths


@pytest.mark.parametrize("which", [FAR, "after=0h"])
def test_what_a_recrawl_had_in_flight_when_the_power_went_is_not_settled_by_what_was_there_before(
    tmp_path: Path, which: str
) -> None:
    """The rows of its captures were on disk, and their records were not."""
    may_respond = threading.Event()
    may_respond.set()

    def held(head: bytes) -> bytes:
        if path_of(head) == "/held":
            may_respond.wait(60)
        return page(b"x")

    with RawServer(held) as server:
        hosts = [f"http://127.0.0.{host}:{server.port}" for host in range(1, 10)]
        urls = [f"{host}/p" for host in hosts[1:]] + [f"{hosts[0]}/held"]
        out = tmp_path / "out"
        crawl(write_lines(tmp_path / "s.txt", urls), out)
        grow_old(out, hours=3)
        may_respond.clear()
        with warm_processes.Popen(
            recrawl_command(out, arguments=[which]), cwd=PROJECT, env=environment()
        ) as killed:
            journal, unsealed = out / "captures-00001.open", out / "ami-00001.warc.gz.open"
            for _ in range(1200):
                # Rows go to the disk before their records do.
                is_begun = unsealed.exists() and unsealed.stat().st_size > 0
                if is_begun and journal.read_bytes().count(b"\n") >= len(urls) - 1:
                    break
                time.sleep(0.05)
            killed.kill()
        may_respond.set()
        with unsealed.open("rb") as stream:
            os.truncate(unsealed, next(iter(Members(stream))).length)
        server.requests.clear()
        done = recrawl(out, arguments=[which])
        assert done.returncode == ExitCode.DONE, done.stderr
        requested = [path_of(head) for head in server.requests if b"robots.txt" not in head]
    assert sorted(requested) == ["/held", *["/p"] * (len(urls) - 1)], done.stderr


@pytest.mark.parametrize(
    ("arguments", "settings", "complaint"),
    [
        (
            ["after=soon"],
            {},
            "Argument after='soon': it must be a number and m, h, d or w, such as 30m,",
        ),
        (["after=1d", "before=2030-01-01"], {}, "Give one of them"),
        ([], {"AMICRAWL_RECRAWL_AFTER": '{"/a/*": 3}'}, "AMICRAWL_RECRAWL_AFTER is 3: it must be text"),
        ([], {"AMICRAWL_RECRAWL_AFTER": '{"/a/*": '}, "AMICRAWL_RECRAWL_AFTER"),
    ],
)
def test_an_age_that_is_none_is_refused(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], complaint: str
) -> None:
    done = recrawl(tmp_path, arguments=arguments, settings=settings)
    assert done.returncode == ExitCode.USAGE
    assert complaint in done.stderr


def test_the_target_of_a_redirect_is_due_on_its_own(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        if path_of(head) == "/old":
            return page(b"", "Location: /new", status="301 Moved Permanently")
        return page(b"here")

    with RawServer(respond) as server:
        out = tmp_path / "out"
        crawl(write_lines(tmp_path / "s.txt", [f"{server.url}/old"]), out)
        recrawl(out, arguments=[FAR])
    assert {path: len(captures) for path, captures in by_path(out).items()} == {"/old": 2, "/new": 2}
    known = frontier_rows(out)
    assert known["/old"]["redirect_ref"] != 0
    assert known["/new"]["source"] == 3


def test_a_directory_without_a_frontier_is_refused(tmp_path: Path) -> None:
    done = recrawl(tmp_path / "nothing")
    assert done.returncode == ExitCode.INPUT
    assert "holds no frontier" in done.stderr
    assert "finished" not in done.stderr
    assert not (tmp_path / "nothing").exists()


def test_a_date_that_is_none_is_refused(tmp_path: Path) -> None:
    done = recrawl(tmp_path, arguments=["before=soon"])
    assert done.returncode == ExitCode.USAGE
    assert "before='soon' is not a date" in done.stderr


def test_a_recrawl_calls_what_is_captured_due_later_and_not_to_be_retried(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RawServer(respond) as server:
        crawl(write_lines(tmp_path / "s.txt", [f"{server.url}/same", f"{server.url}/etag"]), out)
        done = recrawl(out, settings={"AMICRAWL_LOG_FORMAT": "text"})
    assert "resuming: 2 URLs done, 0 pending, 2 due later" in done.stderr
