"""Whole crawls of servers that send odd bytes: what they sent is what lies in the WARC."""

from __future__ import annotations

import zlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import read_block, record, records, rows
from loopback import RawServer, crawl, crawl_site, write_lines
from odd_responses import CASES, OddServer

import amicrawl
from amicrawl.reading import read_records

if TYPE_CHECKING:
    from pathlib import Path

Crawled = tuple["Path", dict[str, "OddServer"], dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("odd")
    with ExitStack() as stack:
        servers = {case.name: stack.enter_context(OddServer(case)) for case in CASES}
        seeds = write_lines(
            directory / "seeds.txt", [f"{server.url}/{name}" for name, server in servers.items()]
        )
        done = crawl(seeds, directory / "out")
        assert done.returncode == 0, done.stderr
    index = {row["url"].rpartition("/")[2]: row for row in rows(directory / "out")}
    return directory / "out", servers, index


def test_there_are_the_39_cases() -> None:
    assert len(CASES) == 39
    assert len({case.name for case in CASES}) == 39


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_record_holds_what_the_server_sent(crawled: Crawled, case: Any) -> None:
    out, _, index = crawled
    row = index[case.name]
    if not case.sent:
        assert (row["status"], row["error"].partition(":")[0]) == (0, "empty-response")
        return
    _, block = record(out, row)
    assert block == case.sent


def test_the_request_records_are_what_the_servers_received(crawled: Crawled) -> None:
    out, servers, index = crawled
    requests = {
        item.rec_headers.get_header("WARC-Target-URI").rpartition("/")[2]: read_block(item)
        for item in records(out)
        if item.rec_type == "request"
    }
    for name, server in servers.items():
        if index[name]["status"]:
            assert requests[name] in server.received, name


@pytest.mark.parametrize("coding", ["deflate, chunked", "deflate"])
def test_a_page_in_a_transfer_coding_is_kept_as_sent_and_read_all_the_same(
    tmp_path: Path, coding: str
) -> None:
    text = b"<title>t</title><a href=/next>next</a>"
    packed = zlib.compress(text)
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed) if "chunked" in coding else packed
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: {coding}\r\n\r\n"
    sent = head.encode() + body
    with RawServer(lambda _: sent) as server:
        done = crawl_site(f"{server.url}/", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    start, *further = sorted(rows(tmp_path / "out"), key=lambda row: row["url"])
    assert [row["url"] for row in further] == [f"{server.url}/next"]
    assert record(tmp_path / "out", start)[1] == sent
    captures = {capture.url: capture for capture in amicrawl.open(tmp_path / "out")}
    response = captures[start["url"]].response
    assert response is not None
    assert (response.raw, response.content) == (sent, text)
    (path,) = (tmp_path / "out").glob("*.warc.gz")
    found = [each for each in read_records(path, on_broken=print) if each.type == "response"]
    assert found[0].content() == text
