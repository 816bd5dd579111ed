"""Claims: one owner at a time, tokens that never come back, and nothing lost between two steps."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from redis_server import RedisServer, end, started_server

from amicrawl.errors import UsageError
from amicrawl.fleet.database.connection import JobStore, connect
from amicrawl.fleet.jobs import lookup, verbs
from amicrawl.fleet.jobs.queues import queue_order
from amicrawl.fleet.leases.lease import Claims, Finished, GivenBack, Happened, RefusedEntry, Renewal

if TYPE_CHECKING:
    from collections.abc import Iterator

IDENTS = [f"{'abcdefgh'[n]}1234567890123456789012{n}x" for n in range(6)]
SOON = timedelta(milliseconds=60)
LONG = timedelta(seconds=60)
OWNER = "pipeline:0123"


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    store = connect({"REDIS_URL": redis_server.url})
    yield store
    store.close()


def raw(store: JobStore) -> Any:
    """The client itself; redis-py's own types allow for more responses than there can be."""
    return store.client


def queue(store: JobStore, ident: str, name: str = "pending", **fields: str) -> None:
    raw(store).hset(
        ident, mapping={"url": f"http://{ident}.example/", "log_key": f"{ident}_log", **fields}
    )
    raw(store).zadd(f"{ident}_log", {"{}": 1})
    raw(store).sadd(f"{ident}_ignores", "x")
    raw(store).lpush(name, ident)


def run_out(store: JobStore, ident: str) -> None:
    """Have the lease of *ident* run out, by the clock of Redis."""
    raw(store).pexpire(store.keys.lease(ident), 1)
    while raw(store).exists(store.keys.lease(ident)):
        time.sleep(0.002)


def test_a_job_is_taken_from_its_queue_into_working_with_a_lease_and_a_claim(store: JobStore) -> None:
    queue(store, IDENTS[0], note="n")
    before = time.time()
    claim = Claims(store).reserve(["pending"], OWNER, LONG)
    assert claim is not None
    assert (claim.unit, claim.attempt, claim.queue, claim.owner) == (IDENTS[0], 1, "pending", OWNER)
    assert claim.record["note"] == "n"
    assert raw(store).lrange("working", 0, -1) == [IDENTS[0]]
    assert raw(store).exists("pending") == 0
    assert raw(store).get(store.keys.lease(IDENTS[0])) == str(claim.token)
    assert 0 < raw(store).pttl(store.keys.lease(IDENTS[0])) <= 60_000
    assert raw(store).ttl(store.keys.claim(IDENTS[0])) == -1
    record = raw(store).hgetall(IDENTS[0])
    assert record["pipeline_id"] == OWNER
    assert "." in record["started_at"]
    assert abs(float(record["started_at"]) - before) < 30


def test_queues_are_polled_in_the_order_of_archivebot_and_the_oldest_entry_comes_first(
    store: JobStore,
) -> None:
    for ident, name in zip(
        IDENTS,
        ["pending-ao", "pending", "pending", "pending-large", "pending:fast", "pending:x"],
        strict=True,
    ):
        queue(store, ident, name)
    claims = Claims(store)
    order = queue_order("a-fast-one", large=True)
    taken = [claim.unit for _ in range(6) if (claim := claims.reserve(order, OWNER)) is not None]
    assert taken == [IDENTS[4], IDENTS[3], IDENTS[1], IDENTS[2], IDENTS[0]]
    assert raw(store).lrange("pending:x", 0, -1) == [IDENTS[5]], "there is no x in the nickname"


@pytest.mark.parametrize(
    ("nickname", "options", "expected"),
    [
        ("abc", {}, ["pending:abc", "pending:ab", "pending:bc", "pending:a", "pending:b", "pending:c"]),
        ("abc", {"shallow_only": True}, ["pending-ao"]),
        ("abc", {"shallow_only": True, "large": True}, ["pending-ao", "pending-large"]),
    ],
)
def test_the_order_of_queues_is_the_same_every_time(
    nickname: str, options: dict[str, bool], expected: list[str]
) -> None:
    order = queue_order(nickname, **options)
    assert order[: len(expected)] == expected
    if not options:
        assert order[-3:] == ["pending:", "pending", "pending-ao"]


@pytest.mark.parametrize("nickname", ["", "ab", "a b", "x" * 31, "naïve", "a:b"])
def test_a_nickname_that_is_none_is_refused(nickname: str) -> None:
    with pytest.raises(UsageError, match="--name"):
        queue_order(nickname)


def test_a_job_for_ftp_waits_where_it_is_for_a_pipeline_of_archivebot(store: JobStore) -> None:
    queue(store, IDENTS[0])
    queue(store, IDENTS[1])
    raw(store).hset(IDENTS[0], "url", "ftp://files.example/pub/")
    claim = Claims(store).reserve(["pending"], OWNER)
    assert claim is not None
    assert claim.unit == IDENTS[1]
    assert Claims(store).reserve(["pending"], OWNER) is None
    assert raw(store).lrange("pending", 0, -1) == [IDENTS[0]]
    # The bot only marks it: what ends it is whoever takes it.
    raw(store).hset(IDENTS[0], "abort_requested", "true")
    aborted = Claims(store).reserve(["pending"], OWNER)
    assert aborted is not None
    assert aborted.record["abort_requested"] == "true"


def test_a_job_that_could_not_begin_is_passed_over_until_its_time(store: JobStore) -> None:
    claims = Claims(store)
    queue(store, IDENTS[0])
    queue(store, IDENTS[1])
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    assert claims.give_back(IDENTS[0], claim.token, Happened.UNABLE) is GivenBack.QUEUED
    other = claims.reserve(["pending"], OWNER)
    assert other is not None
    assert other.unit == IDENTS[1]
    assert claims.reserve(["pending"], OWNER) is None
    raw(store).hincrby(store.keys.claim(IDENTS[0]), "not_before", -60)
    again = claims.reserve(["pending"], OWNER)
    assert again is not None
    assert again.unit == IDENTS[0]


def test_what_is_no_job_is_taken_out_of_the_queue_and_told(store: JobStore) -> None:
    queue(store, IDENTS[0])
    raw(store).hset(IDENTS[1], "heartbeat", 3)
    raw(store).set(IDENTS[2], "a text")
    queue(store, IDENTS[3], finished_at="1700000000")
    raw(store).delete("pending")
    raw(store).rpush(
        "pending", IDENTS[0], IDENTS[3], IDENTS[2], IDENTS[1], "working", "../../etc", "x" * 5000, "\x00"
    )
    refused: list[RefusedEntry] = []
    claim = Claims(store, refused=refused.append).reserve(["pending"], OWNER)
    assert claim is not None
    assert claim.unit == IDENTS[0]
    assert [refusal.reason for refusal in refused] == [
        *["it is not an ident"] * 4,
        "its record has no url",
        "there is no record of that name",
        "it has finished",
    ]
    assert {refusal.queue for refusal in refused} == {"pending"}
    assert len(refused[1].entry) == 200
    assert raw(store).exists("pending") == 0


def test_keys_of_a_wrong_type_are_passed_over(store: JobStore) -> None:
    raw(store).set("pending:abc", "no list")
    raw(store).hset("pending:ab", "no", "list")
    raw(store).sadd(store.keys.token_counter, "no count")
    raw(store).set(store.keys.claim(IDENTS[0]), "no hash")
    queue(store, IDENTS[0])
    claim = Claims(store).reserve(queue_order("abc"), OWNER)
    assert claim is not None
    assert claim.unit == IDENTS[0]


def test_an_entry_that_is_there_twice_is_crawled_once(store: JobStore) -> None:
    queue(store, IDENTS[0])
    raw(store).lpush("pending", IDENTS[0])
    refused: list[RefusedEntry] = []
    claims = Claims(store, refused=refused.append)
    assert claims.reserve(["pending"], OWNER) is not None
    assert claims.reserve(["pending"], "pipeline:other") is None
    assert [refusal.reason for refusal in refused] == ["it is running"]
    assert raw(store).lrange("working", 0, -1) == [IDENTS[0]]


def test_jobs_that_are_passed_over_keep_their_places(store: JobStore) -> None:
    for ident in IDENTS[:3]:
        queue(store, ident)
    for ident in IDENTS[:2]:
        raw(store).hset(ident, "url", "ftp://files.example/pub/")
    claim = Claims(store).reserve(["pending"], OWNER)
    assert claim is not None
    assert claim.unit == IDENTS[2]
    assert raw(store).lrange("pending", 0, -1) == [IDENTS[1], IDENTS[0]]


@pytest.mark.parametrize("ahead", [1_000, 2_500, 12_345])
def test_a_job_is_taken_however_many_in_front_of_it_are_passed_over(store: JobStore, ahead: int) -> None:
    """A thousand sites for another program at the head of a queue must not hold up all behind them."""
    claims, pipe = Claims(store), raw(store).pipeline()
    others = [f"{number:024d}x" for number in range(ahead)]
    for number, ident in enumerate(others):
        pipe.hset(ident, "url", "ftp://files.example/pub/")
        pipe.lpush("pending:anna" if number % 3 else "pending", ident)
    pipe.execute()
    before = raw(store).lrange("pending", 0, -1), raw(store).lrange("pending:anna", 0, -1)
    for ident in IDENTS[:2]:
        queue(store, ident)
        tries = 0
        while (claim := claims.reserve(queue_order("anna"), OWNER)) is None:
            tries += 1
            assert tries <= 2
        assert claim.unit == ident
    assert claims.reserve(queue_order("anna"), OWNER) is None
    assert (raw(store).lrange("pending", 0, -1), raw(store).lrange("pending:anna", 0, -1)) == before


def test_a_job_that_was_queued_by_hand_after_its_owner_died_is_in_working_once(store: JobStore) -> None:
    """Twice, the second entry would be there for ever: the end of a job removes one."""
    queue(store, IDENTS[0])
    claims = Claims(store)
    assert claims.reserve(["pending"], OWNER, LONG) is not None
    run_out(store, IDENTS[0])
    raw(store).lpush("pending", IDENTS[0])
    second = claims.reserve(["pending"], "pipeline:other", LONG)
    assert second is not None
    assert raw(store).lrange("working", 0, -1) == [IDENTS[0]]
    assert claims.finish(IDENTS[0], second.token, info="{}") is Finished.COMPLETED
    assert raw(store).exists("working") == 0


def test_a_pause_ends_with_its_job(store: JobStore) -> None:
    """Otherwise the next job of that URL that ArchiveBot's bot submits would begin paused."""
    queue(store, IDENTS[0])
    claims = Claims(store)
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    raw(store).hset(store.keys.desired(IDENTS[0]), "paused", "1")
    assert claims.finish(IDENTS[0], claim.token, info="{}") is Finished.COMPLETED
    assert raw(store).exists(store.keys.desired(IDENTS[0])) == 0


def test_a_claim_that_was_to_expire_stays_once_its_job_is_taken(store: JobStore) -> None:
    """A crawl whose claim is gone stops without writing."""
    queue(store, IDENTS[0])
    claims = Claims(store)
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    assert claims.give_back(IDENTS[0], claim.token, Happened.DRAINED) is GivenBack.QUEUED
    raw(store).expire(store.keys.claim(IDENTS[0]), 60)
    assert claims.reserve(["pending"], OWNER) is not None
    assert raw(store).ttl(store.keys.claim(IDENTS[0])) == -1


def test_a_lease_is_regained_until_somebody_has_taken_the_job_over(store: JobStore) -> None:
    queue(store, IDENTS[0])
    claims = Claims(store)
    first = claims.reserve(["pending"], OWNER, LONG)
    assert first is not None
    assert claims.renew(IDENTS[0], first.token, LONG, beats=1) is Renewal.RENEWED
    assert raw(store).hget(IDENTS[0], "heartbeat") == "1"
    run_out(store, IDENTS[0])
    assert claims.renew(IDENTS[0], first.token, LONG) is Renewal.REGAINED
    assert claims.give_back(IDENTS[0], first.token, Happened.LAPSED) is GivenBack.HELD
    run_out(store, IDENTS[0])
    assert claims.give_back(IDENTS[0], first.token, Happened.LAPSED) is GivenBack.QUEUED
    assert claims.renew(IDENTS[0], first.token, LONG) is Renewal.LOST
    second = claims.reserve(["pending"], "pipeline:other", LONG)
    assert second is not None
    assert second.token > first.token
    assert second.attempt == 2
    assert claims.renew(IDENTS[0], first.token, LONG) is Renewal.LOST
    assert claims.give_back(IDENTS[0], first.token, Happened.CRASHED) is GivenBack.LOST
    assert claims.finish(IDENTS[0], first.token, info="{}") is Finished.LOST
    assert claims.renew(IDENTS[0], second.token, LONG) is Renewal.RENEWED


def test_a_job_that_is_given_back_is_the_next_of_its_queue_and_counts_as_queued(store: JobStore) -> None:
    queue(store, IDENTS[0])
    queue(store, IDENTS[1])
    claims = Claims(store)
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    assert claims.give_back(claim.unit, claim.token, Happened.DRAINED) is GivenBack.QUEUED
    assert claims.give_back(claim.unit, claim.token, Happened.DRAINED) is GivenBack.QUEUED, (
        "a response may have been lost"
    )
    assert raw(store).lrange("pending", 0, -1) == [IDENTS[1], IDENTS[0]]
    assert raw(store).exists("working") == 0
    assert raw(store).hmget(IDENTS[0], "started_at", "pipeline_id") == [None, None]
    again = claims.reserve(["pending"], OWNER)
    assert again is not None
    failures = raw(store).hget(f"amicrawl:claim:{again.unit}", "failures")
    assert (again.unit, failures, again.why) == (IDENTS[0], "0", "drained")


def test_a_job_that_is_given_back_waits_a_while_for_those_who_have_its_files(store: JobStore) -> None:
    queue(store, IDENTS[0])
    queue(store, IDENTS[1])
    claims = Claims(store, kept_for=LONG)
    claim = claims.reserve(["pending"], OWNER, store_id="here")
    assert claim is not None
    claims.settle(claim.unit, claim.token, store="here")
    claims.give_back(claim.unit, claim.token, Happened.DRAINED)
    other = claims.reserve(["pending"], OWNER, store_id="there")
    assert other is not None
    assert other.unit == IDENTS[1]
    assert claims.reserve(["pending"], OWNER, store_id="there") is None
    assert raw(store).lrange("pending", 0, -1) == [IDENTS[0]]
    again = claims.reserve(["pending"], OWNER, store_id="here")
    assert again is not None
    claims.give_back(again.unit, again.token, Happened.DRAINED)
    raw(store).hset(store.keys.claim(again.unit), "kept_until", "1700000000")
    assert claims.reserve(["pending"], OWNER, store_id="there") is not None


@pytest.mark.parametrize(
    ("happened", "fields", "is_kept"),
    [
        (Happened.CRASHED, {}, True),
        (Happened.CRASHED, {"checkpoint": "0"}, False),
        (Happened.CRASHED, {"shipped": "1"}, False),
        (Happened.DRAINED, {}, False),
        (Happened.LAPSED, {}, False),
    ],
)
def test_with_a_bucket_a_job_waits_for_its_files_only_if_a_live_pipeline_alone_has_them(
    store: JobStore, happened: Happened, fields: dict[str, str], *, is_kept: bool
) -> None:
    queue(store, IDENTS[0])
    claims = Claims(store, kept_for=LONG, has_bucket=True)
    claim = claims.reserve(["pending"], OWNER, store_id="here")
    assert claim is not None
    claims.settle(claim.unit, claim.token, store="here", **fields)
    run_out(store, IDENTS[0])
    assert claims.give_back(claim.unit, claim.token, happened) is GivenBack.QUEUED
    assert (claims.reserve(["pending"], OWNER, store_id="there") is None) is is_kept


def test_a_job_that_was_marked_as_failed_is_not_queued_again(store: JobStore) -> None:
    """ArchiveBot's console marks the record, counts it, and lets it expire."""
    queue(store, IDENTS[0])
    claims = Claims(store)
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    raw(store).hset(IDENTS[0], mapping={"failed": "true", "amicrawl_step": "sealed"})
    raw(store).expire(IDENTS[0], 5)
    assert claims.give_back(claim.unit, claim.token, Happened.CRASHED) is GivenBack.FAILED
    assert raw(store).exists("pending", "working", "jobs_failed") == 0
    assert 0 < raw(store).ttl(IDENTS[0]) <= 5
    assert raw(store).hget(IDENTS[0], "amicrawl_step") is None


def test_a_job_that_fails_too_often_counts_as_failed(store: JobStore) -> None:
    queue(store, IDENTS[0])
    claims = Claims(store, failures_borne=3)
    responses = []
    for _ in range(3):
        claim = claims.reserve(["pending"], OWNER)
        assert claim is not None
        responses.append(claims.give_back(claim.unit, claim.token, Happened.CRASHED, why="it fell over"))
    assert responses == [GivenBack.QUEUED, GivenBack.QUEUED, GivenBack.DEAD]
    assert raw(store).hget(IDENTS[0], "failed") == "true"
    assert raw(store).get("jobs_failed") == "1"
    assert raw(store).exists("pending", "working") == 0
    for key in (IDENTS[0], f"{IDENTS[0]}_log", f"{IDENTS[0]}_ignores", store.keys.claim(IDENTS[0])):
        assert 172_000 < raw(store).ttl(key) <= 172_800
    assert raw(store).hget(store.keys.claim(IDENTS[0]), "why") == "it fell over"


def test_an_attempt_that_went_well_begins_the_count_of_failures_anew(store: JobStore) -> None:
    queue(store, IDENTS[0])
    claims = Claims(store, failures_borne=2)
    for _ in range(4):
        claim = claims.reserve(["pending"], OWNER)
        assert claim is not None
        raw(store).hset(store.keys.claim(claim.unit), "since", time.time() - 4000)
        assert claims.give_back(claim.unit, claim.token, Happened.CRASHED) is GivenBack.QUEUED


@pytest.mark.parametrize("aborted", [False, True])
def test_a_job_is_ended_as_by_the_script_of_archivebot(store: JobStore, *, aborted: bool) -> None:
    queue(store, IDENTS[0])
    claims = Claims(store)
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    if aborted:
        assert claims.mark_aborted(IDENTS[0])
    listener = raw(store).pubsub(ignore_subscribe_messages=True)
    listener.subscribe("updates")
    listener.get_message(timeout=5)
    info = json.dumps({"url": "u"})
    response = claims.finish(IDENTS[0], claim.token, info=info)
    assert response is (Finished.ABORTED if aborted else Finished.COMPLETED)
    assert listener.get_message(timeout=5)["data"] == IDENTS[0]
    listener.close()
    assert raw(store).hget(IDENTS[0], "finished_at").isdigit()
    assert raw(store).get("jobs_aborted" if aborted else "jobs_completed") == "1"
    assert raw(store).lrange("finish_notifications", 0, -1) == [info]
    assert raw(store).exists("working", store.keys.lease(IDENTS[0])) == 0
    for key in (IDENTS[0], f"{IDENTS[0]}_log", f"{IDENTS[0]}_ignores", store.keys.claim(IDENTS[0])):
        assert 0 < raw(store).ttl(key) <= (5 if aborted else 172_800)
    claims.finish(IDENTS[0], claim.token, info=info)
    assert raw(store).llen("finish_notifications") == 1, "a response may have been lost"


def test_a_record_that_is_gone_is_not_begun_again(store: JobStore) -> None:
    queue(store, IDENTS[0])
    claims = Claims(store)
    claim = claims.reserve(["pending"], OWNER)
    assert claim is not None
    raw(store).delete(IDENTS[0])
    assert claims.renew(IDENTS[0], claim.token, beats=1) is Renewal.RENEWED
    assert not claims.mark_aborted(IDENTS[0])
    assert claims.settle(IDENTS[0], claim.token, started_at="1.0", directory="d")
    assert claims.finish(IDENTS[0], claim.token, info="{}") is Finished.GONE
    assert raw(store).exists(IDENTS[0]) == 0
    assert claims.give_back(IDENTS[0], claim.token, Happened.CRASHED) is GivenBack.GONE
    assert raw(store).exists(IDENTS[0], "working", store.keys.claim(IDENTS[0])) == 0


def test_a_token_does_not_come_back_when_the_database_is_emptied(store: JobStore) -> None:
    claims = Claims(store)
    first = claims.take(f"{IDENTS[0]}.p1", OWNER)
    raw(store).flushall()
    time.sleep(0.002)
    second = claims.take(f"{IDENTS[0]}.p1", OWNER)
    assert first is not None
    assert second is not None
    assert second.token > first.token


@pytest.mark.parametrize("odd", ["nan", "1e308", str(2**53), "9" * 400, "-7"])
def test_an_odd_counter_gives_no_token_twice(store: JobStore, odd: str) -> None:
    raw(store).set(store.keys.token_counter, odd)
    claims = Claims(store)
    tokens = [claim.token for n in range(3) if (claim := claims.take(f"unit{n}", "owner")) is not None]
    assert len(set(tokens)) == 3
    assert all(10**15 < token < 2**52 for token in tokens)


def test_a_partition_is_held_by_one(store: JobStore) -> None:
    claims = Claims(store)
    unit = f"{IDENTS[0]}.p1"
    first = claims.take(unit, OWNER, LONG)
    assert first is not None
    assert claims.take(unit, "pipeline:other") is None
    raw(store).delete(store.keys.lease(unit))
    second = claims.take(unit, "pipeline:other")
    assert second is not None
    assert claims.renew(unit, first.token) is Renewal.LOST


class Owners(RuleBasedStateMachine):
    """Three owners claim, renew, lose and give back; a model says who holds what."""

    server: RedisServer

    @initialize()
    def empty(self) -> None:
        self.store = connect({"REDIS_URL": self.server.url})
        raw(self.store).flushall()
        self.claims = Claims(self.store, failures_borne=1000)
        self.held: dict[str, int] = {}
        self.lapsed: set[str] = set()
        self.old: set[tuple[str, int]] = set()
        self.last_token = 0
        for ident in IDENTS[:3]:
            queue(self.store, ident)

    @rule(owner=st.sampled_from(["pipeline:a", "pipeline:b", "pipeline:c"]))
    def reserve(self, owner: str) -> None:
        claim = self.claims.reserve(["pending"], owner, LONG)
        free = set(IDENTS[:3]) - set(self.held)
        assert (claim is not None) == bool(free)
        if claim is not None:
            assert claim.unit in free
            assert claim.token > self.last_token
            self.last_token = claim.token
            self.held[claim.unit] = claim.token

    @rule(ident=st.sampled_from(IDENTS[:3]))
    def lapse(self, ident: str) -> None:
        raw(self.store).delete(self.store.keys.lease(ident))
        if ident in self.held:
            self.lapsed.add(ident)

    @rule(ident=st.sampled_from(IDENTS[:3]))
    def renew(self, ident: str) -> None:
        if ident in self.held:
            expected = Renewal.REGAINED if ident in self.lapsed else Renewal.RENEWED
            assert self.claims.renew(ident, self.held[ident], LONG) is expected
            self.lapsed.discard(ident)

    @rule()
    def old_tokens_are_refused(self) -> None:
        for ident, token in self.old:
            assert self.claims.renew(ident, token, LONG) is Renewal.LOST
            assert not self.claims.settle(ident, token, run_id="x")

    @rule(ident=st.sampled_from(IDENTS[:3]), happened=st.sampled_from(Happened))
    def give_back(self, ident: str, happened: Happened) -> None:
        if ident not in self.held:
            return
        response = self.claims.give_back(ident, self.held[ident], happened)
        if happened is Happened.LAPSED and ident not in self.lapsed:
            assert response is GivenBack.HELD
            return
        assert response is GivenBack.QUEUED
        # It may be taken again at once, by the clock of this test.
        raw(self.store).hset(self.store.keys.claim(ident), "not_before", 0)
        self.old.add((ident, self.held.pop(ident)))
        self.lapsed.discard(ident)

    @rule()
    def every_job_is_in_one_place(self) -> None:
        working = raw(self.store).lrange("working", 0, -1)
        pending = raw(self.store).lrange("pending", 0, -1)
        assert sorted(working) == sorted(self.held)
        assert sorted(working + pending) == sorted(IDENTS[:3])

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def test_no_order_of_events_gives_a_job_two_owners() -> None:
    from hypothesis.stateful import run_state_machine_as_test  # noqa: PLC0415

    server = started_server()
    try:

        class Here(Owners):
            pass

        Here.server = server
        run_state_machine_as_test(
            Here, settings=settings(max_examples=25, stateful_step_count=30, deadline=None)
        )
    finally:
        end(server)


@pytest.mark.parametrize("end", ["completed", "failed", "aborted while it waited"])
def test_what_became_of_a_job_is_known_when_its_record_is_gone(store: JobStore, end: str) -> None:
    queue(store, IDENTS[0], note="n", started_by="anna", queued_at="1700000000")
    claims = Claims(store, failures_borne=1)
    if end == "aborted while it waited":
        verbs.abort(store, IDENTS[0], now=1_700_000_100)
    else:
        claim = claims.reserve(["pending"], OWNER)
        assert claim is not None
        raw(store).hset(IDENTS[0], mapping={"r2xx": 7, "bytes_downloaded": 700})
        if end == "completed":
            claims.finish(IDENTS[0], claim.token, info="{}")
        else:
            claims.give_back(IDENTS[0], claim.token, Happened.CRASHED)
    raw(store).delete(IDENTS[0], f"{IDENTS[0]}_ignores")
    (record,) = lookup.past(store)
    assert (record.ident, str(record.state)) == (IDENTS[0], end.partition(" ")[0])
    assert (record.note, record.started_by, record.queued_at) == ("n", "anna", 1_700_000_000)
    assert record.ended_at is not None
    assert record.r2xx == (None if end == "aborted while it waited" else 7)


def test_a_list_of_ended_jobs_that_is_none_is_begun_anew(store: JobStore) -> None:
    raw(store).set(store.keys.ended, "a text")
    assert lookup.past(store) == []
    queue(store, IDENTS[0])
    claim = Claims(store).reserve(["pending"], OWNER)
    assert claim is not None
    assert Claims(store).finish(IDENTS[0], claim.token, info="{}") is Finished.COMPLETED
    raw(store).xadd(store.keys.ended, {"ident": "../x", "url": "http://x/", "finished_at": "1"})
    raw(store).xadd(store.keys.ended, {"x": "y" * 100_000})
    assert [record.ident for record in lookup.past(store)] == [IDENTS[0]]
