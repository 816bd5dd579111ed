"""Somebody else's Scrapy project becomes an archiving one with one line in its settings."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import check_sealed, record, rows
from loopback import RawServer, crawl_foreign, page

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

FRONT = b'<html><title>Front</title><a href="/a">A</a><a href="/b">B</a><a href="/moved">M</a></html>'


def respond(head: bytes) -> bytes:
    path = head.split(b" ")[1]
    if path == b"/front":
        return page(gzip.compress(FRONT, mtime=0), "Content-Type: text/html", "Content-Encoding: gzip")
    if path == b"/moved":
        return page(b"", "Location: /c", status="302 Found")
    if path == b"/gone":
        return page(b"", status="410 Gone")
    if path == b"/search":
        return page(head.split(b" ")[0], "Content-Type: text/plain")
    return page(b"<html><title>story " + path[1:] + b"</title></html>", "Content-Type: text/html")


Ran = tuple["Path", list[dict[str, Any]], RawServer, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    directory = tmp_path_factory.mktemp("foreign")
    items = directory / "items.jsonl"
    with RawServer(respond) as server:
        done = crawl_foreign(
            ["-a", f"site={server.url}", "-o", str(items)],
            settings={"AMICRAWL_OUT": str(directory / "out")},
        )
    return directory / "out", [json.loads(line) for line in items.read_text().splitlines()], server, done


def test_the_spider_scrapes_as_before(ran: Ran) -> None:
    _, items, _, done = ran
    assert done.returncode == 0, done.stderr
    assert sorted((item["section"], item["title"], item["moved"]) for item in items) == [
        ("410", "MISSED", 0),
        ("news", "STORY A", 0),
        ("news", "STORY B", 0),
        ("news", "STORY C", 1),
        ("search", "POST", 0),
    ]


def test_a_second_run_into_the_same_directory_gets_every_page_again(tmp_path: Path) -> None:
    def respond_with_tag(head: bytes) -> bytes:
        assert b"If-None-Match" not in head
        return respond(head).replace(b"\r\n\r\n", b'\r\nETag: "v"\r\n\r\n', 1)

    titles = []
    with RawServer(respond_with_tag) as server:
        for run in ("one", "two"):
            items = tmp_path / f"{run}.jsonl"
            done = crawl_foreign(
                ["-a", f"site={server.url}", "-o", str(items)],
                settings={"AMICRAWL_OUT": str(tmp_path / "out")},
            )
            assert done.returncode == 0, done.stderr
            titles.append(sorted(json.loads(line)["title"] for line in items.read_text().splitlines()))
    assert titles[0] == titles[1]
    assert len(titles[0]) == 5
    for path in ("/front", "/a", "/search"):
        fetched = [row for row in rows(tmp_path / "out") if row["url"].endswith(path)]
        assert len(fetched) == 2, path


def test_its_own_pipeline_never_meets_a_capture(ran: Ran) -> None:
    assert "KeyError" not in ran[3].stderr
    assert "Traceback" not in ran[3].stderr


def test_every_exchange_is_archived_posts_and_hops_included(ran: Ran) -> None:
    out, _, server, _ = ran
    index = rows(out)
    assert sorted(row["url"].rpartition("/")[2] for row in index) == [
        "a",
        "b",
        "c",
        "front",
        "gone",
        "moved",
        "search",
    ]
    assert len(server.requests) == len(index)
    for path in out.glob("*.warc.gz"):
        check_sealed(path)


def test_the_bytes_kept_are_those_of_the_wire_not_what_the_callback_saw(ran: Ran) -> None:
    out, _, _, _ = ran
    front = next(row for row in rows(out) if row["url"].endswith("/front"))
    _, block = record(out, front)
    assert block == respond(b"GET /front HTTP/1.1\r\n\r\n")


def test_what_waits_survives_a_stop_in_its_job_directory(tmp_path: Path) -> None:
    settings = {"AMICRAWL_OUT": str(tmp_path / "out"), "JOBDIR": str(tmp_path / "job")}
    with RawServer(respond) as server:
        site = ["-a", f"site={server.url}"]
        slow = {**settings, "CONCURRENT_REQUESTS": "1", "CLOSESPIDER_PAGECOUNT": "1"}
        first = crawl_foreign(site, settings=slow)
        requested_first = len(server.requests)
        second = crawl_foreign(site, settings=settings)
        requested = {head.split(b" ")[1] for head in server.requests}
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert requested_first < 4
    assert requested == {b"/front", b"/a", b"/b", b"/c", b"/moved", b"/gone", b"/search"}
