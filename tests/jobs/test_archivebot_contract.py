"""A job of ours as ArchiveBot's bot, cogs and dashboard see it: by its stored bytes, and in which order.

One job is submitted, taken by a pipeline, told of by its crawl, and finished. What stands here as a
reader (`as_the_bot_finds`, `as_the_page_reckons`) does what ArchiveBot's programs are known to do.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from job_changes import change

from amicrawl.fleet.database.connection import connect
from amicrawl.fleet.database.ident import ident_of, normalised
from amicrawl.fleet.jobs import lookup, queues, verbs
from amicrawl.fleet.jobs.link import CrawlLink, Fed
from amicrawl.fleet.jobs.pipeline_record import PipelineIdentity, PipelineRecord
from amicrawl.fleet.jobs.record import encoded_info, info_of
from amicrawl.fleet.jobs.restoring import fetched_copy
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.fleet.leases.lease import Claims, Happened
from amicrawl.fleet.logs.job_log import parsed

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

URL = "HTTP://Example.com:80/a b"
NOW = 1_700_000_000.75
MEASURED = {"mem_usage": "12.5", "disk_available": "1000", "disk_usage": "40.1"}
AROUND = {"HELLO", "CLIENT", "SELECT", "SCRIPT", "EVALSHA"}
"""Commands that may stand around a script."""
INTEGER = re.compile(r"[0-9]+")


@dataclass
class Seen:
    """The database at one moment, as bytes decoded, and what was done since the last."""

    types: dict[str, str]
    hashes: dict[str, dict[str, str]]
    lists: dict[str, list[str]]
    sets: dict[str, set[str]]
    log: list[tuple[str, float]]
    counts: dict[str, str]
    ttls: dict[str, int]
    commands: list[list[str]]
    published: list[tuple[str, str]]

    @property
    def record(self) -> dict[str, str]:
        return self.hashes[ident_of(normalised(URL))]


@dataclass
class Life:
    ident: str
    queued: Seen
    running: Seen
    done: Seen


def seen(client: Any, ident: str, commands: list[list[str]], heard: Any) -> Seen:
    keys = [str(key) for key in client.scan_iter()]
    types = {key: str(client.type(key)) for key in keys}

    def of(kind: str, read: Callable[[str], Any]) -> dict[str, Any]:
        return {key: read(key) for key in keys if types[key] == kind}

    published = []
    while (message := heard.get_message(timeout=0.05)) is not None:
        if message["type"] == "pmessage":
            published.append((message["channel"], message["data"]))
    return Seen(
        types=types,
        hashes=of("hash", client.hgetall),
        lists=of("list", lambda key: client.lrange(key, 0, -1)),
        sets=of("set", client.smembers),
        log=client.zrange(f"{ident}_log", 0, -1, withscores=True),
        counts=of("string", client.get),
        ttls={key: client.ttl(key) for key in keys},
        commands=commands,
        published=published,
    )


def monitored(client: Any, act: Callable[[], object]) -> list[list[str]]:
    """Return the commands that scripts run while *act* does; there must be no others."""
    commands: list[list[str]] = []
    with client.monitor() as monitor:
        act()
        client.echo("that was it")
        for told in monitor.listen():
            # Parts with blanks in them fall apart; none of the first ones has any.
            parts = told["command"].split(" ")
            if parts[0].upper() == "ECHO":
                return commands
            if told["client_type"] == "lua":
                commands.append([parts[0].upper(), *parts[1:]])
            else:
                assert parts[0].upper() in AROUND, "all is done in one step"
    raise AssertionError("unreachable")


@pytest.fixture(scope="module")
def life(shared_redis: RedisServer) -> Life:
    client: Any = shared_redis.client()
    client.flushall()
    store = connect({"REDIS_URL": shared_redis.url})
    heard = client.pubsub(ignore_subscribe_messages=True)
    heard.psubscribe("*")
    ident = ident_of(normalised(URL))

    submission = Submission(
        url=URL,
        settings={"delay_min": 500, "delay_max": 600, "note": "why not"},
        started_by="nick",
        started_in="#x",
    )
    queued = seen(client, ident, monitored(client, lambda: submit(store, submission, now=NOW)), heard)

    pipeline = PipelineRecord(store, PipelineIdentity("h", "h.example", 7, "blue-1"))
    pipeline.report("Running", NOW, MEASURED, slots=1, running=0)
    claim = Claims(store).reserve(["pending"], pipeline.key, timedelta(minutes=1))
    assert claim is not None
    link = CrawlLink(
        store,
        fetched_copy(store, ident, token=claim.token),
        ttl=timedelta(minutes=1),
        on_reply=lambda _: None,
    )
    link.inbox.download("http://example.com/a%20b", 404, "OK")
    link.inbox.ignore("http://example.com/c", "c$")
    link.inbox.tell("a line")
    link.start()
    figures: dict[str, str | int] = {"bytes_downloaded": 10, "items_queued": 3, "items_downloaded": 1}
    assert link.finish(Fed(figures={**figures, "r4xx": 1}), patience=10)
    running = seen(client, ident, [], heard)

    info = encoded_info(info_of(running.record, claim))
    ending = monitored(client, lambda: Claims(store).finish(ident, claim.token, info=info))
    done = seen(client, ident, ending, heard)
    store.close()
    heard.close()
    client.close()
    return Life(ident, queued, running, done)


def as_the_bot_finds(seen: Seen, ident: str) -> str:
    """Look a job up as the bot does: by the ident of the URL that its record holds."""
    return ident_of(normalised(seen.hashes[ident]["url"]))


def test_the_bot_finds_the_record_under_the_ident_of_its_url(life: Life) -> None:
    assert life.queued.record["url"] == "http://example.com/a%20b"
    assert as_the_bot_finds(life.queued, life.ident) == life.ident


def test_a_new_job_has_every_field_that_a_pipeline_of_archivebot_reads(life: Life) -> None:
    record = life.queued.record
    assert (record["fetch_depth"], record["user_agent"]) == ("inf", "")
    assert record["log_key"] == f"{life.ident}_log"
    assert record["ignore_patterns_set_key"] == f"{life.ident}_ignores"
    assert (record["slug"], record["note"]) == ("example.com-inf", "why not")
    assert (record["started_by"], record["started_in"]) == ("nick", "#x")
    assert record["queued_at"] == "1700000000", "whole seconds, as the bot writes"
    assert (record["delay_min"], record["delay_max"], record["concurrency"]) == ("500", "600", "3")
    assert "url_file" not in record


def test_the_page_reckons_with_numbers_from_the_start(life: Life) -> None:
    names = ("bytes_downloaded", "items_queued", "items_downloaded", "concurrency")
    classes = ("r1xx", "r2xx", "r3xx", "r4xx", "r5xx", "runk", "error_count")
    for name in (*names, *classes, "delay_min", "delay_max", "settings_age"):
        assert INTEGER.fullmatch(life.queued.record[name]), name
    for name in ("analyzed", "broadcasted", "trimmed"):
        assert life.queued.record[f"last_{name}_log_entry"] == "0", "consumers request what is above it"


def test_flags_are_there_or_not(life: Life) -> None:
    assert life.queued.record["suppress_ignore_reports"] == "true"
    flags = ("aborted", "abort_requested", "no_offsite_links", "youtube_dl", "failed", "finished_at")
    assert not set(flags) & set(life.queued.record)


def test_ignores_lie_under_their_literal_name_and_are_never_empty(life: Life) -> None:
    assert life.queued.types[f"{life.ident}_ignores"] == "set"
    assert life.queued.sets[f"{life.ident}_ignores"]


def test_the_record_is_written_in_the_order_of_the_bot_and_queued_last(life: Life) -> None:
    ours = [command for command in life.queued.commands if "amicrawl" not in " ".join(command[1:2])]
    done = [(command[0], *command[1:3]) for command in ours]
    record, ignores, channel = life.ident, f"{life.ident}_ignores", f"archivebot:job:{life.ident}"
    ages = [
        ("HSET", record, "url"),
        ("HSET", record, "delay_min"),
        ("HINCRBY", record, "settings_age"),
        ("HSET", record, "concurrency"),
        ("HINCRBY", record, "settings_age"),
        ("HSET", record, "note"),
        ("HSET", record, "delay_min"),
        ("HINCRBY", record, "settings_age"),
        ("PUBLISH", channel, "3"),
        ("SADD", ignores),
        ("HINCRBY", record, "settings_age"),
        ("PUBLISH", channel, "4"),
        ("HSET", record, "suppress_ignore_reports"),
        ("HINCRBY", record, "settings_age"),
        ("PUBLISH", channel, "5"),
        ("LPUSH", "pending", record),
        ("HSET", record, "queued_at"),
    ]
    at = 0
    for wanted in ages:
        while done[at][: len(wanted)] != wanted:
            at += 1
            assert at < len(done), f"{wanted} is missing, or comes too early"
        at += 1


def test_a_running_job_is_in_working_and_started_with_a_fraction(life: Life) -> None:
    assert life.running.types["working"] == "list"
    assert life.running.lists["working"] == [life.ident]
    assert "pending" not in life.running.types
    assert re.fullmatch(r"[0-9]+\.[0-9]+", life.running.record["started_at"])


def test_the_pipeline_is_where_the_record_says(life: Life) -> None:
    key = life.running.record["pipeline_id"]
    assert re.fullmatch(r"pipeline:[0-9a-f]{32}", key)
    pipeline = life.running.hashes[key]
    assert pipeline["id"] == key
    for name in ("nickname", "version", "mem_usage", "disk_available", "disk_usage", "ts"):
        assert pipeline[name], name
    assert life.running.sets["pipelines"] == {key}
    assert ("archivebot:pipeline_updates", key) in life.running.published


def test_log_entries_have_their_shapes_and_growing_numbers(life: Life) -> None:
    assert life.running.types[f"{life.ident}_log"] == "zset"
    texts = [json.loads(text) for text, _ in life.running.log]
    assert {text["type"] for text in texts} == {"download", "ignore", "stdout"}
    for text, _ in life.running.log:
        parsed(text)
    download = next(text for text in texts if text["type"] == "download")
    assert {*download} == {"ts", "url", "response_code", "wget_code", "is_error", "is_warning", "type"}
    assert (download["response_code"], download["is_error"], download["is_warning"]) == (
        404,
        False,
        True,
    )
    scores = [score for _, score in life.running.log]
    assert scores == sorted(set(scores))
    assert life.running.record["log_score"] == f"{scores[-1]:.0f}"


def test_every_batch_is_followed_by_its_ident_on_updates(life: Life) -> None:
    assert ("updates", life.ident) in life.running.published


def test_the_heartbeat_grows_with_the_crawl(life: Life) -> None:
    assert int(life.running.record["heartbeat"]) > 0


def test_an_analyzer_of_archivebot_does_not_count_our_entries_again(life: Life) -> None:
    record = life.running.record
    assert record["r4xx"] == "1"
    assert float(record["last_analyzed_log_entry"]) == float(record["log_score"])


def test_the_end_has_the_effects_of_archivebots_script_in_its_order(life: Life) -> None:
    record = life.done.record
    assert INTEGER.fullmatch(record["finished_at"]), "whole seconds"
    assert "working" not in life.done.types
    assert life.done.counts["jobs_completed"] == "1"
    for key in (life.ident, f"{life.ident}_ignores", f"{life.ident}_log"):
        assert 172_700 < life.done.ttls[key] <= 172_800
    assert life.done.published[-1] == ("updates", life.ident)
    done = [command[0] for command in life.done.commands]
    order = [done.index(name) for name in ("LREM", "INCR", "RPUSH", "PUBLISH")]
    assert order == sorted(order)


def test_the_notice_has_the_eight_fields_of_the_info_file(life: Life) -> None:
    assert life.done.types["finish_notifications"] == "list"
    (text,) = life.done.lists["finish_notifications"]
    info = json.loads(text)
    assert info["aborted"] is False
    assert info["url_file"] is None
    assert (info["url"], info["fetch_depth"]) == ("http://example.com/a%20b", "inf")
    assert (info["started_by"], info["started_in"]) == ("nick", "#x")
    assert info["pipeline_id"] == life.done.record["pipeline_id"]
    assert info["queued_at"] == "1700000000"


def test_no_key_of_ours_looks_like_one_of_archivebots(life: Life) -> None:
    known = {"pending", "working", "pipelines", "finish_notifications", "jobs_completed"}
    own = (life.ident, f"{life.ident}_ignores", f"{life.ident}_log")
    for seen_ in (life.queued, life.running, life.done):
        for key in seen_.types:
            foreign = key in known or key in own or re.fullmatch(r"pipeline:[0-9a-f]{32}", key)
            assert foreign or key.startswith("amicrawl:"), key
            assert foreign or not key.endswith(("_ignores", "_log"))


def test_an_aborted_job_ends_as_archivebots_do(redis_server: RedisServer) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    ident = submit(store, Submission(url=URL), now=NOW).ident
    claims = Claims(store)
    claim = claims.reserve(["pending"], f"pipeline:{'a' * 32}", timedelta(minutes=1))
    assert claim is not None
    verbs.abort(store, ident, now=NOW)
    assert store.client.hget(ident, "abort_requested") == "true"
    assert claims.mark_aborted(ident)
    record: Any = store.client.hgetall(ident)
    assert record["aborted"] == "true"
    claims.finish(ident, claim.token, info=encoded_info(info_of(record, claim)))
    assert (store.client.get("jobs_aborted"), store.client.get("jobs_completed")) == ("1", None)
    for key in (ident, f"{ident}_ignores"):
        assert 0 < store.client.ttl(key) <= 5
    (notice,) = store.client.lrange("finish_notifications", 0, -1)
    assert json.loads(notice)["aborted"] is True
    store.close()


def test_what_archivebots_bot_queues_is_a_job_here(redis_server: RedisServer) -> None:
    """Its record has no counters, no marks, and an empty user agent."""
    store = connect({"REDIS_URL": redis_server.url})
    ident = ident_of("http://example.com/")
    fields = {
        "url": "http://example.com/",
        "fetch_depth": "shallow",
        "log_key": f"{ident}_log",
        "user_agent": "",
        "ignore_patterns_set_key": f"{ident}_ignores",
        "slug": "example.com-shallow",
        "started_by": "nick",
        "started_in": "#channel",
        "delay_min": "250",
        "delay_max": "375",
        "concurrency": "3",
        "settings_age": "4",
        "suppress_ignore_reports": "true",
        "queued_at": "1700000000",
    }
    store.client.hset(ident, items=[text for pair in fields.items() for text in pair])
    store.client.sadd(f"{ident}_ignores", "global$")
    store.client.lpush("pending-ao", ident)
    record = lookup.job(store, ident)
    assert (record.faults, str(record.state), record.further) == ((), "queued", {})
    assert record.job_data()["r2xx"] == 0
    assert [entry.ident for entry in queues.waiting(store)] == [ident]
    change(store, ident, "concurrency", 5)
    claim = Claims(store).reserve(["pending-ao"], f"pipeline:{'a' * 32}", timedelta(minutes=1))
    assert claim is not None
    assert claim.unit == ident
    assert str(lookup.job(store, ident).state) == "running"
    store.close()


def the_bot_queues(client: Any, url: str, *, queued_at: int) -> str:
    """Register and queue *url* as the bot does where it finds no key of that ident."""
    ident = ident_of(url)
    assert client.keys(ident) == [], "else the bot responds that the job is there"
    first = {"url": url, "fetch_depth": "inf", "log_key": f"{ident}_log", "user_agent": ""}
    names = {"ignore_patterns_set_key": f"{ident}_ignores", "slug": "example.com-inf"}
    who = {"started_by": "nick", "started_in": "#channel"}
    client.hset(ident, mapping={**first, **names, **who})
    client.hset(ident, mapping={"delay_min": 250, "delay_max": 375, "concurrency": 3})
    client.hincrby(ident, "settings_age", 2)
    client.sadd(f"{ident}_ignores", "global$")
    client.hset(ident, "suppress_ignore_reports", "true")
    with client.pipeline() as both:
        both.lpush("pending", ident).hset(ident, "queued_at", queued_at).execute()
    return ident


def the_bot_expires(client: Any, ident: str) -> None:
    """Forget a job as `!expire` does: its three keys, if the record has a time to live."""
    assert client.ttl(ident) >= 0
    for key in (ident, f"{ident}_ignores", f"{ident}_log"):
        client.expire(key, 0)


def the_console_fails(client: Any, ident: str) -> None:
    """Mark a job as failed as the operator's console does; five seconds later it is gone."""
    client.hset(ident, "failed", "true")
    client.incr("jobs_failed")
    client.lrem("pending", 0, ident)
    client.lrem("working", 0, ident)
    client.delete(ident, f"{ident}_ignores", f"{ident}_log")


@pytest.mark.parametrize("end", ["completed", "failed", "left by a pipeline that was killed"])
def test_a_url_that_the_bot_queues_again_is_crawled_from_its_start_without_the_old_crawl_file(
    store: JobStore, end: str
) -> None:
    client: Any = store.client
    keys, claims, soon = store.keys, Claims(store, failures_borne=1), timedelta(minutes=1)
    url = "http://example.com/"
    ident = submit(store, Submission(url=url, config="depth: 0", lines="http://x/"), now=NOW).ident
    claim = claims.reserve(["pending"], "pipeline:a", soon)
    assert claim is not None
    claims.settle(ident, claim.token, directory="example.com-inf-1", store="here")
    client.hset(keys.facts(ident), "host", "{}")
    verbs.pause(store, ident)
    if end == "completed":
        claims.finish(ident, claim.token, info="{}")
        the_bot_expires(client, ident)
    elif end == "failed":
        claims.give_back(ident, claim.token, Happened.CRASHED)
        the_bot_expires(client, ident)
    else:
        client.delete(keys.lease(ident))
        the_console_fails(client, ident)
    the_bot_queues(client, url, queued_at=int(NOW) + 7)
    again = claims.reserve(["pending"], "pipeline:b", soon)
    assert again is not None
    assert (again.attempt, again.directory, again.resumed) == (1, "", "")
    assert again.token > claim.token, "the crawl that was first is fenced off"
    copy = fetched_copy(store, ident, token=again.token)
    assert (copy.config, copy.desired, lookup.url_list(store, ident)) == ("", {}, None)
    assert not client.exists(keys.facts(ident))


def test_live_settings_for_a_job_that_waits_are_kept_when_it_is_taken(store: JobStore) -> None:
    url = "http://example.com/"
    claims, soon = Claims(store), timedelta(minutes=1)
    ident = the_bot_queues(store.client, url, queued_at=1)
    claim = claims.reserve(["pending"], "pipeline:a", soon)
    assert claim is not None
    claims.finish(ident, claim.token, info="{}")
    the_bot_expires(store.client, ident)
    the_bot_queues(store.client, url, queued_at=2)
    verbs.pause(store, ident)
    assert claims.reserve(["pending"], "pipeline:a", soon) is not None
    assert lookup.desired(store, ident) == {"paused": "1"}


def test_a_job_that_goes_back_into_its_queue_keeps_its_claim_and_its_crawl_file(store: JobStore) -> None:
    claims, soon = Claims(store), timedelta(minutes=1)
    ident = submit(store, Submission(url=URL, config="depth: 0"), now=NOW).ident
    claim = claims.reserve(["pending"], "pipeline:a", soon)
    assert claim is not None
    claims.settle(ident, claim.token, directory="d", store="here")
    claims.give_back(ident, claim.token, Happened.DRAINED)
    again = claims.reserve(["pending"], "pipeline:b", soon)
    assert again is not None
    assert (again.attempt, again.directory) == (2, "d")
    assert lookup.config(store, ident) == "depth: 0"


def test_the_state_of_a_job_says_that_it_is_paused_or_to_be_aborted(store: JobStore) -> None:
    ident = the_bot_queues(store.client, "http://example.com/", queued_at=1)
    claims = Claims(store, failures_borne=1)
    claim = claims.reserve(["pending"], "pipeline:a", timedelta(minutes=1))
    assert claim is not None
    verbs.pause(store, ident)
    assert str(lookup.job(store, ident).state) == "paused"
    verbs.resume(store, ident)
    assert str(lookup.job(store, ident).state) == "running"
    claims.give_back(ident, claim.token, Happened.DRAINED)
    store.client.hset(ident, "abort_requested", "true")
    assert str(lookup.job(store, ident).state) == "aborting"


def test_a_job_that_failed_has_an_end_that_archivebot_does_not_take_for_a_completion(
    store: JobStore,
) -> None:
    ident = the_bot_queues(store.client, "http://example.com/", queued_at=1)
    claims = Claims(store, failures_borne=1)
    claim = claims.reserve(["pending"], "pipeline:a", timedelta(minutes=1))
    assert claim is not None
    claims.give_back(ident, claim.token, Happened.CRASHED)
    record = lookup.job(store, ident)
    assert (str(record.state), record.finished_at) == ("failed", None)
    assert record.ended_at is not None
    assert abs(record.ended_at - float(claim.since)) < 60


def test_a_change_is_written_then_aged_then_published(redis_server: RedisServer) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    ident = submit(store, Submission(url=URL), now=NOW).ident
    with redis_server.client() as client:
        commands = monitored(client, lambda: change(store, ident, "delay", 1, 2))
        channel = f"archivebot:job:{ident}"
        writes = [c for c in commands if c[0] in {"HSET", "HINCRBY", "PUBLISH"}]
        assert [c[0] for c in writes] == ["HSET", "HSET", "HINCRBY", "PUBLISH"]
        assert writes[-1][1:] == [channel, str(client.hget(ident, "settings_age"))]
    store.close()
