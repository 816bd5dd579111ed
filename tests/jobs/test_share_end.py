"""When a shared crawl has ended: a model of its partitions against the scripts, step by random step."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.leases.lease import Claims, Renewal
from amicrawl.fleet.sharing.creation import begin, seeds_given
from amicrawl.fleet.sharing.record import ShareRecord
from amicrawl.fleet.sharing.share import (
    ATTEMPTS,
    NEXT,
    DisturbedError,
    Ended,
    NoPartition,
    Share,
    TakenPartition,
)
from amicrawl.partition import PartitionRest, has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

LONG = timedelta(minutes=5)
HERE = "store-here"


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    store = connect(RedisSettings(url=redis_server.url, prefix="t:"))
    yield store
    store.close()


def shared(store: JobStore, *, partitions: int = 3, inbox: int = 4, seeds: bool = True) -> Share:
    share, token = begin(store, ShareRecord("model", partitions, inbox=inbox))
    if seeds:
        assert (
            share.send(-1, token, [(n, f"seed {n}") for n in range(partitions)])
            == ["taken"] * partitions
        )
    seeds_given(share)
    return share


def taken(share: Share, owner: str = "me", *, data: str = HERE, place: str = "") -> TakenPartition:
    found = share.take(owner, ttl=LONG, data=data, place=place)
    assert isinstance(found, TakenPartition), found
    return found


def batches(share: Share, one: TakenPartition, after: str = NEXT) -> list[str]:
    found = share.receive(one.number, one.token, most=100, after=after)
    assert found is not None
    return [fields["b"] for _, fields in found]


def emptied(share: Share, one: TakenPartition) -> None:
    """Read and acknowledge everything in the inbox of *one*."""
    found = share.receive(one.number, one.token, most=100, after=NEXT)
    assert found is not None
    assert share.acknowledge(one.number, one.token, [name for name, _ in found])


@dataclass
class Partition:
    """What a partition is in the model: its durable state, and what its worker has in memory."""

    token: int | None = None
    frontier: int = 0
    outbox: list[int] = field(default_factory=list)
    read: dict[str, bool] = field(default_factory=dict)
    """Batches that were read: whether their links are in the frontier on disk."""
    after: str = "0"


class Model:
    """Workers that do what the crawl does, in any order, with any deaths between."""

    def __init__(self, share: Share, dice: random.Random) -> None:
        self.share = share
        self.dice = dice
        self.partitions = [Partition() for _ in range(share.record.partitions)]
        self.budget = 60
        self.given: Counter[str] = Counter()
        self.offered: set[str] = set()
        self.ended = False

    def step(self) -> None:
        held = [number for number, partition in enumerate(self.partitions) if partition.token]
        actions = [self.take] + [self.fetch, self.read, self.keep, self.send, self.tick] * bool(held) * 3
        actions += [self.die, self.leave] * bool(held)
        action = self.dice.choice(actions)
        if action == self.take:
            self.take(0)
        else:
            action(self.dice.choice(held))

    def take(self, _: int) -> None:
        found = self.share.take("me", ttl=LONG, data=HERE)
        if isinstance(found, NoPartition):
            self.told_ended(found.why == "ended")
            return
        partition = self.partitions[found.number]
        assert partition.token is None
        partition.token, partition.after, partition.read = found.token, "0", {}

    def fetch(self, number: int) -> None:
        """Fetch a page, which may lead elsewhere; the links are kept before the page is settled."""
        partition = self.partitions[number]
        if partition.frontier:
            if self.budget and self.dice.random() < 0.6:
                self.budget -= 1
                partition.outbox.append(self.dice.randrange(len(self.partitions)))
            partition.frontier -= 1

    def read(self, number: int) -> None:
        partition = self.partitions[number]
        assert partition.token is not None
        found = self.share.receive(number, partition.token, most=2, after=partition.after)
        assert found is not None
        if partition.after != NEXT:
            partition.after = found[-1][0] if found else NEXT
        partition.read |= {name: False for name, _ in found}

    def keep(self, number: int) -> None:
        """Put what was read into the frontier, force it to disk, acknowledge."""
        partition = self.partitions[number]
        assert partition.token is not None
        for name in [name for name, kept in partition.read.items() if not kept]:
            key = f"{number} {name}"
            # The frontier knows a link that comes again.
            partition.frontier += key not in self.offered
            self.offered.add(key)
            partition.read[name] = True
        if self.dice.random() < 0.7:
            assert self.share.acknowledge(number, partition.token, list(partition.read))
            partition.read = {}

    def send(self, number: int) -> None:
        partition = self.partitions[number]
        assert partition.token is not None
        while partition.outbox:
            to = partition.outbox[0]
            response = self.share.send(number, partition.token, [(to, "link")])
            assert response is not None
            if response == ["full"]:
                return
            if self.dice.random() < 0.2 and self.budget:
                # The mark was not written: it is sent again.
                self.budget -= 1
                continue
            partition.outbox.pop(0)

    def tick(self, number: int) -> None:
        partition = self.partitions[number]
        assert partition.token is not None
        idle = not (partition.frontier or partition.outbox or not all(partition.read.values()))
        told = self.share.tick(
            number, partition.token, ttl=LONG, idle=idle, spare=self.dice.random() < 0.3
        )
        assert told.is_ours
        self.told_ended(told.ended)
        if told.give:
            self.leave(number)

    def leave(self, number: int) -> None:
        partition = self.partitions[number]
        assert partition.token is not None
        assert self.share.release(number, partition.token, Ended.ENDED) in {"parked", "ready"}
        partition.token = None

    def die(self, number: int) -> None:
        """Die, and have the lease run out; attempts count as those of different days."""
        if self.dice.random() < 0.7:
            return
        keys = self.share.keys
        self.share.store.client.delete(keys.lease(number))
        self.share.store.client.hset(keys.claim(number), "failures", "0")
        self.partitions[number].token = None

    def told_ended(self, ended: bool) -> None:
        self.ended = self.ended or ended
        if ended:
            for number, partition in enumerate(self.partitions):
                assert partition.frontier == 0, number
                assert partition.outbox == [], number
                assert self.share.store.client.xlen(self.share.keys.links(number)) == 0, number


@pytest.mark.parametrize("seed", range(12))
def test_a_crawl_ends_when_nothing_is_left_and_not_before(store: JobStore, seed: int) -> None:
    dice = random.Random(seed)
    model = Model(shared(store, partitions=dice.randint(1, 5), inbox=dice.choice([1, 2, 8])), dice)
    for _ in range(20_000):
        model.step()
        if model.ended:
            break
    assert model.ended
    for _ in range(50):
        model.step()


def drawn(
    share: Share, dice: random.Random, states: tuple[str, ...], *, but: int = -1
) -> list[PartitionRest]:
    """Put all partitions *but* one into drawn states; return what the rule gets to know of them."""
    client, keys, rests = share.store.client, share.keys, []
    for number in range(share.record.partitions):
        if number == but:
            continue
        state, idle, batches = dice.choice(states), dice.random() < 0.7, dice.choice([0, 0, 0, 2])
        client.delete(keys.links(number))
        client.hset(keys.claim(number), mapping={"state": state, **({"idle": "1"} if idle else {})})
        for _ in range(batches):
            client.xadd(keys.links(number), {"b": "link"})
        if state == "held" and dice.random() < 0.5:
            client.set(keys.lease(number), "1")
        is_idle = state == "parked" or (state == "held" and idle)
        rests.append(PartitionRest(is_idle, batches, is_out=state in {"failed", "limit"}))
    return rests


@pytest.mark.parametrize("seed", range(40))
def test_the_heartbeat_ends_a_crawl_by_the_rule_of_partitions(store: JobStore, seed: int) -> None:
    dice = random.Random(seed)
    share = shared(store, partitions=dice.randint(1, 4))
    one = taken(share)
    emptied(share, one)
    rests = drawn(share, dice, ("held", "parked", "parked", "ready", "failed", "limit"), but=one.number)
    is_seeding, idle = dice.random() < 0.2, dice.random() < 0.8
    if is_seeding:
        store.client.hset(share.keys.record, "seeding", "1")
    told = share.tick(one.number, one.token, idle=idle)
    assert told.ended is has_ended([PartitionRest(idle), *rests], is_seeding=is_seeding)


@pytest.mark.parametrize("seed", range(40))
def test_a_worker_that_finds_nothing_to_take_ends_a_crawl_by_the_same_rule(
    store: JobStore, seed: int
) -> None:
    dice = random.Random(seed)
    share = shared(store, partitions=dice.randint(1, 3), seeds=False)
    rests = drawn(share, dice, ("parked", "parked", "failed", "limit"))
    is_seeding = dice.random() < 0.2
    if is_seeding:
        store.client.hset(share.keys.record, "seeding", "1")
    found = share.take("me", ttl=LONG, data=HERE)
    assert isinstance(found, NoPartition)
    assert (found.why == "ended") is has_ended(rests, is_seeding=is_seeding)


def test_a_crawl_without_seeds_has_ended(store: JobStore) -> None:
    assert shared(store, seeds=False).take("me", data=HERE) == NoPartition("ended")


def test_a_crawl_goes_on_while_its_seeds_are_given(store: JobStore) -> None:
    share, token = begin(store, ShareRecord("model", 1))
    assert share.take("me", data=HERE) == NoPartition("none")
    assert share.send(-1, "somebody else's token", [(0, "seed")]) is None
    assert share.send(-1, token, [(0, "seed")]) == ["taken"]
    one = taken(share)
    emptied(share, one)
    assert not share.tick(0, one.token, idle=True).ended
    seeds_given(share)
    assert share.tick(0, one.token, idle=True).ended


def test_a_batch_under_way_keeps_the_crawl_from_ending(store: JobStore) -> None:
    share = shared(store, partitions=2)
    first, second = taken(share), taken(share)
    for one in (first, second):
        emptied(share, one)
    assert not share.tick(first.number, first.token, idle=True).ended
    assert share.send(second.number, second.token, [(first.number, "link")]) == ["taken"]
    assert not share.tick(second.number, second.token, idle=True).ended
    assert batches(share, first) == ["link"]
    # Read is not kept: idle is not taken at its word while a batch is not acknowledged.
    told = share.tick(first.number, first.token, idle=True)
    assert (told.ended, told.batches) == (False, 1)


def test_a_full_inbox_takes_nothing_and_nothing_is_dropped(store: JobStore) -> None:
    share = shared(store, partitions=2, inbox=2)
    one = taken(share)
    other = 1 - one.number
    assert share.send(one.number, one.token, [(other, str(n)) for n in range(4)]) == [
        "taken",
        "full",
        "full",
        "full",
    ]
    two = taken(share)
    emptied(share, two)
    assert share.send(one.number, one.token, [(other, "later")]) == ["taken"]
    assert batches(share, two) == ["later"]


def test_batches_that_the_owner_before_had_read_come_again(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share)
    assert batches(share, one) == ["seed 0"]
    store.client.delete(share.keys.lease(0))
    two = taken(share, "other")
    assert two.token > one.token
    assert two.lapsed
    assert batches(share, two) == []
    assert batches(share, two, after="0") == ["seed 0"]


def test_without_its_lease_a_worker_can_do_nothing(store: JobStore) -> None:
    share = shared(store, partitions=2)
    one = taken(share)
    store.client.delete(share.keys.lease(one.number))
    other = taken(share, "other")
    while other.number != one.number:
        other = taken(share, "other")
    number, token = one.number, one.token
    assert share.tick(number, token, idle=True).lease == "lost"
    assert share.send(number, token, [(0, "x")]) is None
    assert share.receive(number, token, most=1, after=NEXT) is None
    assert not share.acknowledge(number, token, ["0-1"])
    assert Claims(store).renew(f"model.p{number}", token) is Renewal.LOST
    assert not Claims(store).settle(f"model.p{number}", token, store="elsewhere")
    assert share.release(number, token, Ended.ENDED) == "lost"
    assert share.tick(number, other.token, idle=False).lease == "renewed"


def test_a_worker_that_was_cut_off_regains_its_lease_if_nobody_took_over(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share)
    store.client.delete(share.keys.lease(0))
    assert share.tick(0, one.token, idle=False).lease == "regained"
    assert store.client.get(share.keys.lease(0)) == str(one.token)


def test_tokens_of_partitions_do_not_come_back_when_the_database_is_emptied(store: JobStore) -> None:
    """A lower one would be fenced off by the directory that the partition goes on in."""
    tokens = []
    for _ in range(20):
        tokens.append(taken(shared(store, partitions=1)).token)
        store.client.flushall()
    assert tokens == sorted(set(tokens))
    assert tokens[0] > (time.time() - 3600) * 1_000_000, "in milliseconds two could be equal"


def test_a_lease_that_ran_out_is_left_to_its_owner_for_a_while(store: JobStore) -> None:
    """After an outage of Redis all of them have run out, and no crawl is dead."""
    share, long = shared(store, partitions=1), timedelta(hours=1)
    one = taken(share)
    store.client.delete(share.keys.lease(0))
    assert share.take("other", data=HERE, grace=long) == NoPartition("none", held=1)
    assert share.tick(0, one.token, idle=False).lease == "regained"
    assert "lapsed_at" not in store.client.hgetall(share.keys.claim(0))
    store.client.delete(share.keys.lease(0))
    assert share.take("other", data=HERE, grace=long) == NoPartition("none", held=1)
    assert Claims(store).renew("model.p0", one.token) is Renewal.REGAINED
    assert "lapsed_at" not in store.client.hgetall(share.keys.claim(0))
    store.client.delete(share.keys.lease(0))
    share.take("other", data=HERE, grace=long)
    store.client.hincrby(share.keys.claim(0), "lapsed_at", -3_600_000)
    two = share.take("other", data=HERE, grace=long)
    assert isinstance(two, TakenPartition)
    assert two.lapsed


def test_times_from_before_the_clock_of_redis_was_set_back_hold_nothing_up(store: JobStore) -> None:
    """By an hour, they held a partition back, or had one given up for a worker that is gone, as long."""
    share = shared(store, partitions=3)
    one = taken(share, "a")
    raw: Any = store.client
    later = int(raw.time()[0] * 1000) + 3_600_000
    raw.hset(share.keys.waiting, "gone", f"{later} {HERE} ")
    two = taken(share, "a")
    assert not any(share.tick(each.number, each.token, idle=False).give for each in (one, two))
    store.client.delete(share.keys.lease(one.number))
    raw.hset(share.keys.claim(one.number), "lapsed_at", later)
    hour = timedelta(hours=1)
    taken(share, "b")
    assert isinstance(share.take("b", data=HERE, grace=hour), NoPartition)
    store.client.hincrby(share.keys.claim(one.number), "lapsed_at", -3_600_000)
    again = share.take("b", data=HERE, grace=hour)
    assert isinstance(again, TakenPartition)
    assert again.number == one.number


def test_a_partition_that_crashes_again_and_again_is_given_up_and_can_be_tried_again(
    store: JobStore,
) -> None:
    share = shared(store, partitions=1)
    for attempt in range(ATTEMPTS):
        one = taken(share)
        assert one.failures == attempt
        standing = share.release(0, one.token, Ended.CRASHED)
    assert standing == "failed"
    assert share.take("me", data=HERE) == NoPartition("ended")
    epoch = store.client.hget(share.keys.record, "epoch")
    assert share.retry() == 1
    assert store.client.hget(share.keys.record, "epoch") != epoch
    assert taken(share).failures == 0


def test_all_outboxes_are_sent_once_more_when_that_is_requested(store: JobStore) -> None:
    share = shared(store, partitions=2, seeds=False)
    epoch = store.client.hget(share.keys.record, "epoch")
    assert share.take("me", data=HERE) == NoPartition("ended")
    assert share.retry(resend=True) == 0
    # Also what was parked: its outbox is to be sent.
    one = taken(share)
    told = share.tick(one.number, one.token, idle=False)
    assert told.epoch != epoch
    assert not told.ended


def test_batches_for_a_partition_that_is_out_stay_where_they_are(store: JobStore) -> None:
    share = shared(store, partitions=2)
    one = taken(share)
    assert share.release(one.number, one.token, Ended.LIMIT) == "limit"
    two = taken(share)
    assert share.send(two.number, two.token, [(one.number, "x")]) == ["out"]
    emptied(share, two)
    told = share.tick(two.number, two.token, idle=True)
    assert told.out == (one.number,)
    assert told.ended


def test_a_partition_stays_with_the_machine_that_has_its_directory(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share, data="machine a")
    assert share.release(0, one.token, Ended.ENDED) == "ready"
    assert share.take("b", data="machine b") == NoPartition("none", away=1)
    assert share.take("b", data="machine b", place="file:///x") == NoPartition("none", away=1)
    again = taken(share, data="machine a")
    assert not again.shipped


def test_what_was_shipped_goes_to_whoever_can_fetch_it(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share, data="machine a")
    share.release(0, one.token, Ended.ENDED, place="file:///x")
    two = taken(share, "b", data="machine b", place="file:///x")
    assert two.shipped == str(one.token)
    # It died before it had fetched: what was shipped is still the truth.
    store.client.delete(share.keys.lease(0))
    three = taken(share, "c", data="machine c", place="file:///x")
    assert three.shipped == str(one.token)
    assert Claims(store).settle("model.p0", three.token, store="machine c", place="")
    assert not Claims(store).settle("model.p0", two.token, store="machine b", place="")
    store.client.delete(share.keys.lease(0))
    # From here on what lies there is behind the truth.
    assert share.take("b", data="machine b", place="file:///x") == NoPartition("none", away=1)
    assert not taken(share, "c", data="machine c", place="file:///x").shipped


def test_who_has_more_than_a_fair_share_gives_one_up_to_who_requests_it(store: JobStore) -> None:
    share = shared(store, partitions=4)
    held = [taken(share, "a") for _ in range(4)]
    assert not any(share.tick(one.number, one.token, idle=False).give for one in held)
    assert share.take("b", data=HERE) == NoPartition("none", held=4)
    requested = [one for one in held if share.tick(one.number, one.token, idle=False).give]
    assert len(requested) == 2
    for one in requested:
        share.release(one.number, one.token, Ended.ENDED)
        # Whoever gave it has more still, and does not get it back.
        assert isinstance(share.take("a", data=HERE), NoPartition)
        assert taken(share, "b").number == one.number
        share.take("b", data=HERE)
    assert not any(
        share.tick(one.number, one.token, idle=False).give for one in held if one not in requested
    )


def test_a_partition_with_nothing_to_do_makes_room_for_one_that_waits(store: JobStore) -> None:
    share = shared(store, partitions=2)
    one = taken(share)
    emptied(share, one)
    assert not share.tick(one.number, one.token, idle=False, spare=False).give
    assert share.tick(one.number, one.token, idle=True, spare=True).give
    assert share.release(one.number, one.token, Ended.ENDED) == "parked"


def test_a_turn_ends_when_others_wait(store: JobStore) -> None:
    share = shared(store, partitions=2)
    one = taken(share)
    store.client.hset(share.keys.claim(one.number), "since", "1")
    assert not share.tick(one.number, one.token, idle=False).give
    assert share.tick(one.number, one.token, idle=False, turn=timedelta(seconds=1)).give


def test_stop_and_pause_reach_every_worker(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share)
    share.set_flag("pause", on=True)
    assert share.tick(0, one.token, idle=False).pause
    share.set_flag("pause", on=False)
    assert not share.tick(0, one.token, idle=False).pause
    share.set_flag("stop", on=True)
    assert share.tick(0, one.token, idle=False).stop
    assert share.take("b", data=HERE) == NoPartition("stopped")


def test_what_somebody_else_put_under_our_keys_is_said_in_a_sentence(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share)
    for key in (share.keys.claim(0), share.keys.links(0), share.keys.record, share.keys.waiting):
        before = store.client.dump(key) if store.client.exists(key) else None
        store.client.delete(key)
        store.client.set(key, "not ours")
        for call in (
            lambda: share.take("b", data=HERE),
            lambda: share.tick(0, one.token, idle=True),
            lambda: share.send(0, one.token, [(0, "x")]),
            lambda: share.release(0, one.token, Ended.BUSY),
        ):
            with contextlib.suppress(DisturbedError):
                call()
        store.client.delete(key)
        assert before is None or before
    assert len(share.standings()) == 1


def test_after_redis_was_emptied_a_crawl_hears_so(store: JobStore) -> None:
    share = shared(store, partitions=1)
    one = taken(share)
    store.client.flushall()
    assert not share.tick(0, one.token, idle=True).is_ours
    assert share.take("me", data=HERE) == NoPartition("gone")
    assert not store.client.keys("*")
