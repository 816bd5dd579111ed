"""Whole crawls of servers that send odd bytes: what they sent is what lies in the WARC."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import read_block, record, records, rows
from loopback import crawl, write_lines
from odd_responses import CASES, OddServer

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
