"""The link between a crawl and a real Redis: what is carried, and what becomes of the lease."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis
from faulty_store import Cable
from job_changes import change
from job_crawling import store_of, submitted

from amicrawl.clock import steady_clock
from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.fleet.checkpoints.data_directory import JobCopy
from amicrawl.fleet.database.connection import connect
from amicrawl.fleet.jobs import verbs
from amicrawl.fleet.jobs.link import CrawlLink, Fed
from amicrawl.fleet.jobs.restoring import fetched_copy, restore
from amicrawl.fleet.leases.lease import Claims, Happened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.jobs.live_settings import FlushReply

TTL = timedelta(seconds=2)


class Crawl:
    """A link of a claimed job, and what it was told."""

    def __init__(self, server: RedisServer, *, ttl: timedelta = TTL) -> None:
        self.store = store_of(server)
        self.client = server.client()
        self.ident = submitted(server, "http://a.example/")
        claim = Claims(self.store).reserve(["pending"], "pipeline:test", ttl)
        assert claim is not None
        self.told: list[FlushReply] = []
        copy = fetched_copy(self.store, claim.unit, token=claim.token)
        self.link = CrawlLink(
            self.store, copy, ttl=ttl, on_reply=self.told.append, renewed=steady_clock()
        )
        self.link.start()

    def key(self, name: str) -> str:
        return f"amicrawl:{name}:{self.ident}"

    def record(self) -> dict[str, str]:
        return self.client.hgetall(self.ident)  # type: ignore[return-value]

    def until(self, condition: Callable[[], object]) -> None:
        """Feed the link until *condition* holds, not for ever."""
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, (self.link.trouble, self.link.lost, self.told)
            self.link.feed(Fed({"r2xx": 3}, {}))
            time.sleep(0.05)

    def end(self) -> None:
        self.link.finish(Fed(), 0.1)
        self.store.close()
        self.client.close()


@pytest.fixture
def crawl(redis_server: RedisServer) -> Iterator[Crawl]:
    made = Crawl(redis_server)
    yield made
    made.end()


def test_one_flush_carries_figures_entries_facts_heartbeat_and_lease(crawl: Crawl) -> None:
    heard = crawl.client.pubsub()  # type: ignore[no-untyped-call]
    heard.subscribe("updates")
    for number in range(3):
        crawl.link.inbox.download(f"http://a.example/{number}", 200, "OK")
    crawl.until(lambda: "heartbeat" in crawl.record())
    crawl.link.feed(Fed({"r2xx": 3, "items_queued": 9}, {"now": '{"a":1}'}))
    crawl.until(lambda: crawl.client.hget(crawl.key("facts"), "now"))
    record = crawl.record()
    assert record["r2xx"] == "3"
    assert int(record["heartbeat"]) >= 1
    scored: list[Any] = crawl.client.zrange(f"{crawl.ident}_log", 0, -1, withscores=True)
    assert [score for _, score in scored] == [1, 2, 3]
    assert record["log_score"] == record["last_analyzed_log_entry"] == "3"
    assert json.loads(scored[0][0])["response_code"] == 200
    assert 0 < crawl.client.pttl(crawl.key("lease")) <= 2000
    assert crawl.link.is_held
    messages = [heard.get_message(timeout=1) for _ in range(3)]
    assert any(each and each["type"] == "message" and each["data"] == crawl.ident for each in messages)
    heard.close()


def test_newer_facts_win_over_those_that_a_failed_call_brings_back(crawl: Crawl) -> None:
    sent = []

    class FailsOnce:
        """Scripts of a Redis that is away for one flush, during which the crawl goes on."""

        def __call__(self, name: str, **given: Any) -> Any:
            if name == "flush" and "first" in given["args"]:
                sent.append(given["args"])
                link.feed(Fed({}, {"now": "second", "more": "kept"}))
                raise redis.ConnectionError("away")
            return crawl.store.scripts(name, **given)

        def script(self, name: str) -> Any:
            return crawl.store.scripts.script(name)

    copy = fetched_copy(crawl.store, crawl.link.copy.unit, token=crawl.link.copy.token)
    store = replace(crawl.store, scripts=FailsOnce())  # type: ignore[arg-type]
    link = CrawlLink(store, copy, ttl=TTL, on_reply=lambda _: None, renewed=steady_clock())
    link.feed(Fed({}, {"now": "first", "old": "kept"}))
    link.start()
    assert link.finish(Fed(), 30.0)
    assert len(sent) == 1
    assert crawl.client.hgetall(crawl.key("facts")) == {"now": "second", "more": "kept", "old": "kept"}


def test_a_crawl_that_feeds_nothing_loses_its_lease_and_gains_it_again(crawl: Crawl) -> None:
    """A hung event loop feeds nothing."""
    crawl.until(lambda: "heartbeat" in crawl.record())
    while crawl.client.exists(crawl.key("lease")):
        time.sleep(0.05)
    assert not crawl.link.is_held
    assert not crawl.link.lost
    crawl.until(lambda: any(response.regained for response in crawl.told))
    assert crawl.link.is_held


def test_what_is_changed_is_told_without_being_fed(crawl: Crawl) -> None:
    """Between two flushes the link hears of it."""
    crawl.until(lambda: crawl.told)
    change(crawl.store, crawl.ident, "delay", 700, 900)
    verbs.pause(crawl.store, crawl.ident)
    deadline = time.monotonic() + 60
    while not (crawl.told[-1].settings and crawl.told[-1].settings.paused):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    settings = crawl.told[-1].settings
    assert settings is not None
    assert (settings.values["delay_min"], settings.values["delay_max"]) == (700, 900)
    assert crawl.link.copy.record["delay_min"] == "700"
    assert crawl.link.copy.desired == {"paused": "1"}


def test_a_job_that_is_somebody_elses_is_lost_and_nothing_of_it_changes(crawl: Crawl) -> None:
    crawl.until(lambda: crawl.told)
    while crawl.client.exists(crawl.key("lease")):
        time.sleep(0.05)
    other = Claims(crawl.store).take(crawl.ident, "pipeline:other")
    assert other is not None
    before = crawl.record()
    crawl.link.inbox.tell("too late")
    crawl.until(lambda: crawl.link.lost)
    assert not crawl.link.is_held
    assert crawl.record() == before
    assert not crawl.client.exists(f"{crawl.ident}_log")
    assert crawl.client.get(crawl.key("lease")) == str(other.token)


def test_a_job_that_was_put_back_into_its_queue_is_not_regained(crawl: Crawl) -> None:
    crawl.until(lambda: crawl.told)
    claims, copy = Claims(crawl.store), crawl.link.copy
    claims.give_back(copy.unit, copy.token, Happened.DRAINED)
    crawl.until(lambda: crawl.link.lost)
    assert not crawl.client.exists(crawl.key("lease"))


def test_a_record_that_was_taken_away_is_not_written_again(crawl: Crawl) -> None:
    crawl.until(lambda: crawl.told)
    crawl.client.delete(crawl.ident)
    crawl.until(lambda: crawl.link.lost)
    assert "taken away" in crawl.link.lost
    assert not crawl.client.exists(crawl.ident)


def test_a_claim_that_is_gone_from_a_redis_that_was_not_emptied_is_lost(crawl: Crawl) -> None:
    crawl.until(lambda: crawl.told)
    crawl.client.delete(crawl.key("claim"))
    crawl.until(lambda: crawl.link.lost)
    assert not crawl.link.is_held


def test_an_emptied_redis_is_told_everything_again(crawl: Crawl) -> None:
    crawl.client.sadd(f"{crawl.ident}_ignores", "a$", "b$")
    crawl.client.hincrby(crawl.ident, "settings_age", 1)
    crawl.until(lambda: "a$" in crawl.link.copy.ignores)
    before = crawl.record()
    crawl.client.flushall()
    # Redis has it a moment before the crawl hears of it.
    crawl.until(lambda: any(response.what == "RESTORED" for response in crawl.told))
    crawl.until(lambda: "r2xx" in crawl.record())
    after = crawl.record()
    assert {name: after[name] for name in ("url", "slug", "queued_at", "log_key")} == {
        name: before[name] for name in ("url", "slug", "queued_at", "log_key")
    }
    assert {"a$", "b$"} <= crawl.client.smembers(f"{crawl.ident}_ignores")
    assert crawl.client.lrange("working", 0, -1) == [crawl.ident]
    assert crawl.client.hget(crawl.key("claim"), "token") == str(crawl.link.copy.token)
    assert int(str(crawl.client.get("amicrawl:token"))) >= crawl.link.copy.token


def test_a_job_that_another_owner_has_taken_since_is_not_written_again(crawl: Crawl) -> None:
    """Redis had lost the job; before its crawl noticed, another one had written and taken it."""
    newer = str(crawl.link.copy.token + 1)
    crawl.client.hset(crawl.key("claim"), "token", newer)
    crawl.client.set(crawl.key("lease"), newer)
    assert not restore(crawl.store, crawl.link.copy, lease_ms=60_000, epoch="another")
    assert crawl.client.hget(crawl.key("claim"), "token") == newer
    assert crawl.client.get(crawl.key("lease")) == newer


def test_a_redis_that_went_back_in_time_is_brought_up_to_date(crawl: Crawl) -> None:
    """As one that starts from an older snapshot: the job waits in its queue, an older claim is there."""
    crawl.until(lambda: crawl.told)
    pipe = crawl.client.pipeline()
    pipe.hset(crawl.key("claim"), mapping={"token": "17", "state": "queued"})
    pipe.delete("working", crawl.key("lease"))
    pipe.lpush("pending", crawl.ident)
    pipe.execute()
    crawl.until(lambda: crawl.client.hget(crawl.key("claim"), "token") == str(crawl.link.copy.token))
    assert crawl.client.lrange("working", 0, -1) == [crawl.ident]
    assert not crawl.client.exists("pending")


def test_a_redis_that_went_back_to_before_the_claim_is_brought_up_to_date(crawl: Crawl) -> None:
    """The epoch is the same, and there is no claim: the last token is older than the crawl's."""
    crawl.until(lambda: crawl.told)
    pipe = crawl.client.pipeline()
    pipe.delete(crawl.key("claim"), crawl.key("lease"), "working")
    pipe.set("amicrawl:token", str(crawl.link.copy.token - 1))
    pipe.lpush("pending", crawl.ident)
    pipe.execute()
    crawl.until(lambda: crawl.link.lost or crawl.client.exists(crawl.key("claim")))
    assert crawl.client.hget(crawl.key("claim"), "token") == str(crawl.link.copy.token)
    assert crawl.client.lrange("working", 0, -1) == [crawl.ident]
    assert not crawl.client.exists("pending")


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("{}_log", "the log is a string"),
        ("{}_ignores", "the ignores are a string"),
        ("amicrawl:desired:{}", "the desired settings are a string"),
    ],
)
def test_a_key_of_a_wrong_type_is_reported_and_stops_nothing(crawl: Crawl, key: str, fault: str) -> None:
    name = key.format(crawl.ident)
    crawl.client.delete(name)
    crawl.client.set(name, "injected")
    crawl.link.inbox.tell("a line")
    crawl.link.read_again()
    crawl.until(lambda: any(fault in each for response in crawl.told for each in response.faults))
    crawl.until(lambda: crawl.record()["r2xx"] == "3")
    assert crawl.link.is_held


def test_a_record_of_a_wrong_type_keeps_nobody_from_the_lease(crawl: Crawl) -> None:
    crawl.until(lambda: crawl.told)
    pipe = crawl.client.pipeline()
    pipe.delete(crawl.ident)
    pipe.set(crawl.ident, "injected")
    pipe.execute()
    crawl.until(lambda: any("the record is a string" in f for a in crawl.told for f in a.faults))
    crawl.client.delete(crawl.key("lease"))
    crawl.until(lambda: crawl.client.exists(crawl.key("lease")))
    assert crawl.link.is_held
    assert crawl.client.get(crawl.ident) == "injected"


def test_a_claim_of_a_wrong_type_is_waited_for(crawl: Crawl) -> None:
    crawl.until(lambda: crawl.told)
    claim: Any = crawl.client.hgetall(crawl.key("claim"))
    key = crawl.key("claim")
    pipe = crawl.client.pipeline()
    pipe.delete(key)
    pipe.lpush(key, "injected")
    pipe.execute()
    crawl.until(lambda: "is not a hash" in crawl.link.trouble)
    crawl.until(lambda: not crawl.link.is_held)
    assert not crawl.link.lost
    pipe.delete(key)
    pipe.hset(key, mapping=claim)
    pipe.execute()
    crawl.until(lambda: crawl.link.is_held)


def test_figures_are_told_as_they_stand_so_that_telling_twice_changes_nothing(crawl: Crawl) -> None:
    for _ in range(3):
        crawl.link.feed(Fed({"r2xx": 3, "items_downloaded": 3}, {}))
        time.sleep(0.3)
    crawl.until(lambda: int(crawl.record().get("heartbeat", 0)) >= 2)
    assert crawl.record()["items_downloaded"] == "3"


def test_the_last_lines_arrive_before_the_link_ends(crawl: Crawl) -> None:
    for number in range(4500):
        crawl.link.inbox.tell(f"line {number}")
    assert crawl.link.finish(Fed({"r2xx": 9}, {}), 10)
    log = f"{crawl.ident}_log"
    last: Any = crawl.client.zrange(log, -1, -1)
    assert crawl.client.zcard(log) == 4500
    assert "line 4499" in last[0]
    assert crawl.record()["r2xx"] == "9"


def test_lines_that_have_not_arrived_are_kept_for_the_process_that_reports_the_end(
    crawl: Crawl, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    kept: list[JobCopy] = []

    def keep(content: bytes) -> None:
        kept.append(JobCopy(**{k: v for k, v in json.loads(content).items() if k != "format"}))

    with Cable(int(redis_server.url.rsplit(":", 1)[1].split("/")[0])) as cable:
        store = connect({"REDIS_URL": f"redis://127.0.0.1:{cable.port}/0"})
        copy = fetched_copy(store, crawl.ident, token=crawl.link.copy.token)
        cut = CrawlLink(store, copy, ttl=TTL, on_reply=lambda _: None, renewed=steady_clock())
        cut.start()
        cable.cut()
        cut.inbox.tell("the end")
        assert not cut.finish(Fed({"r2xx": 9}, {}), 1.0, keep=keep)
        store.close()
        cable.join()
        cut._thread.join(60)
    assert all("the end" in "".join(copy.unsent) and not copy.reported for copy in kept)
    assert "failed" not in caplog.text, "that its caller has given up is no fault of the link"
    kept.clear()
    crawl.link.inbox.tell("the end")
    assert crawl.link.finish(Fed({"r2xx": 9}, {}), 10, keep=keep)
    assert [copy.reported for copy in kept] == [False, True]
    assert kept[-1].unsent == []


def test_oversized_values_are_not_taken_over(crawl: Crawl) -> None:
    client = crawl.client
    client.sadd(f"{crawl.ident}_ignores", "x" * 5000, "kept$")
    client.hset(crawl.ident, mapping={"delay_min": "9" * 100_000, "log_score": "many"})
    crawl.link.inbox.tell("a line")
    crawl.link.read_again()
    crawl.until(lambda: any("an ignore of more than" in f for a in crawl.told for f in a.faults))
    assert "kept$" in crawl.link.copy.ignores
    assert not any(len(pattern) > 4096 for pattern in crawl.link.copy.ignores)
    client.sadd(f"{crawl.ident}_ignores", *(f"p{number}" for number in range(5001)))
    crawl.link.read_again()
    crawl.until(lambda: any("more than 5000 ignores" in f for a in crawl.told for f in a.faults))
    assert "kept$" in crawl.link.copy.ignores
    assert int(crawl.record()["log_score"]) >= 1


def test_what_a_crawl_remembers_reads_back_and_damage_is_a_sentence(tmp_path: Path) -> None:
    copy = JobCopy(
        "abc123.p4",
        7,
        "epoch",
        {"url": "http://a.example/"},
        ["a$"],
        {"paused": "1"},
        {"owner": "x"},
        "[a]",
    )
    copy.write(tmp_path, disk=Disk())
    assert JobCopy.read(tmp_path) == copy
    assert copy.ident == "abc123"
    assert JobCopy.read(tmp_path / "nowhere") is None
    for damage in (b"", b"[]", b'{"format": 2}', b'{"format": 1, "unit": 5}'):
        (tmp_path / "job.json").write_bytes(damage)
        with pytest.raises(InputError, match="is not what a crawl remembers of its job"):
            JobCopy.read(tmp_path)
