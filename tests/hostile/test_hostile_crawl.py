"""One crawl over every hostile behaviour at once: it ends by itself, and each has the rows expected.

The caps are short, so that the slowest behaviours are cut within seconds; the rules are those of any
crawl.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import record, rows
from hostile.behaviours import BEHAVIOURS
from hostile.hostile_server import NETWORK, Behaviour, Expected, HostileServer
from hostile.odd_messages import FORGED
from hostile.watched_crawls import MIB, Ended, check_archive, raw_controls, run_watched
from loopback import command, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {
    "AMICRAWL_ALLOW_PRIVATE": NETWORK,
    "AMICRAWL_TIMEOUT": "4",
    "AMICRAWL_CONNECT_TIMEOUT": "3",
    "AMICRAWL_MIN_RATE": "64",
    "AMICRAWL_MIN_RATE_TIME": "2",
    "AMICRAWL_MAX_HEADER": str(128 * 1024),
    "AMICRAWL_MAX_BODY": str(256 * 1024),
    "AMICRAWL_SPOOL_ABOVE": str(16 * 1024),
    "AMICRAWL_MAX_RETRIES": "0",
    "AMICRAWL_PER_HOST": "1",
    "AMICRAWL_INFLIGHT_START": "512",
    "AMICRAWL_PAUSE_FREE": "0",
    "LOG_LEVEL": "DEBUG",
}
"""Caps that a test can wait for, and a log in which everything is said."""

MOST_MEMORY = 320 * MIB
"""The libraries take 190 MiB before anything is fetched. A behaviour may hold its head (128 KiB, twice
while it is sorted), what is not spooled yet (16 KiB) and a receive buffer (64 KiB): 60 MiB for all at
once, and the writer takes batches of 16 MiB. A bomb unpacked or an endless body would be far above."""


@dataclass(frozen=True)
class Crawled:
    ended: Ended
    out: Path
    server: HostileServer
    by_behaviour: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    directory = tmp_path_factory.mktemp("hostile")
    out = directory / "out"
    with HostileServer(BEHAVIOURS) as server:
        seeds = [{"url": url, "behaviour": behaviour.name} for behaviour, url in server.urls()]
        line = command(write_jsonl(directory / "seeds.jsonl", seeds), out, settings=SHORT)
        ended = run_watched(line, log=directory / "log", within=150)
    found: dict[str, list[dict[str, Any]]] = {behaviour.name: [] for behaviour in BEHAVIOURS}
    for row in rows(out):
        found[json.loads(row["meta_json"])["behaviour"]].append(row)
    return Crawled(ended, out, server, found)


def test_there_are_more_than_a_hundred_behaviours_with_a_name_each() -> None:
    assert len({behaviour.name for behaviour in BEHAVIOURS}) == len(BEHAVIOURS) > 100


def test_the_crawl_ends_well_and_by_itself(crawled: Crawled) -> None:
    assert crawled.ended.code == 0, crawled.ended.said[-2000:]
    assert '"reason": "finished"' in crawled.ended.said


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.name)
def test_each_behaviour_has_the_rows_that_are_due_to_it(crawled: Crawled, behaviour: Behaviour) -> None:
    found = [
        Expected(status=row["status"], error=row["error"].partition(":")[0], truncated=row["truncated"])
        for row in crawled.by_behaviour[behaviour.name]
    ]
    assert sorted(found, key=repr) == sorted(behaviour.expected, key=repr)


def test_memory_stays_bounded(crawled: Crawled) -> None:
    assert 0 < crawled.ended.peak < MOST_MEMORY, crawled.ended.peak / MIB


def test_the_archive_is_whole_and_holds_what_was_requested_and_nothing_else(crawled: Crawled) -> None:
    check_archive(crawled.out)


def test_no_address_outside_of_the_allowed_network_is_dialled(crawled: Crawled) -> None:
    assert crawled.server.forbidden == []
    requested = [row for found in crawled.by_behaviour.values() for row in found if row["ip_address"]]
    assert {row["ip_address"].rpartition(".")[0].rpartition(".")[0] for row in requested} == {"127.66"}


def test_a_response_too_many_belongs_to_no_request(crawled: Crawled) -> None:
    for name in ("a-response-too-many", "a-response-too-many-and-late"):
        for row in crawled.by_behaviour[name]:
            _, block = record(crawled.out, row)
            path = row["url"].rpartition("/")[2].encode()
            assert block.count(b"HTTP/1.1 200 OK", 0, len(FORGED)) == 1
            assert b"\r\n\r\ngenuine /" + path in block
            assert not block.startswith(FORGED)


def test_no_header_gets_into_a_request(crawled: Crawled) -> None:
    names = {
        line.partition(b":")[0].lower()
        for request in crawled.server.received
        for line in request.split(b"\r\n")[1:]
        if line
    }
    assert names == {b"host", b"user-agent", b"accept", b"accept-encoding"}
    assert not any(b"\r" in request.replace(b"\r\n", b"") for request in crawled.server.received)


def test_the_log_holds_no_character_that_a_terminal_would_obey(crawled: Crawled) -> None:
    assert raw_controls(crawled.ended.said) == []


def test_the_index_holds_no_character_that_a_terminal_would_obey(crawled: Crawled) -> None:
    for found in crawled.by_behaviour.values():
        for row in found:
            for value in row.values():
                assert not isinstance(value, str) or raw_controls(value) == [], row


def test_no_validator_is_remembered_that_costs_more_than_it_could_save(crawled: Crawled) -> None:
    (row,) = crawled.by_behaviour["validators-of-100-kb"]
    assert (row["etag"], row["last_modified"]) == ("", "")


def test_nothing_that_goes_wrong_out_there_is_taken_for_a_fault_of_the_crawl(crawled: Crawled) -> None:
    told = [
        line for line in crawled.ended.said.splitlines() if " ERROR: " in line or " CRITICAL: " in line
    ]
    assert told == []
