"""When a crawl of several partitions has ended: the rule, in any order of fetch, send, fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.partition import PartitionRest, has_ended

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 4


@dataclass
class Partition:
    """Links by where they are; an outbox keeps its links until they are known to be in the inbox."""

    frontier: int = 0
    outbox: list[int] = field(default_factory=list)
    inbox: int = 0
    is_out: bool = False


def fetch(partitions: list[Partition], number: int, to: int) -> bool:
    """Fetch a page of a partition, which names a link for the partition *to*, unless that is itself."""
    one = partitions[number]
    if one.is_out or not one.frontier:
        return False
    one.frontier -= 1
    if to != number:
        one.outbox.append(to)
    return True


def send(partitions: list[Partition], number: int, _: int) -> bool:
    one = partitions[number]
    if one.is_out or not one.outbox:
        return False
    partitions[one.outbox.pop(0)].inbox += 1
    return True


def keep(partitions: list[Partition], number: int, _: int) -> bool:
    one = partitions[number]
    if one.is_out or not one.inbox:
        return False
    one.inbox, one.frontier = one.inbox - 1, one.frontier + 1
    return True


def fail(partitions: list[Partition], number: int, to: int) -> bool:
    one = partitions[number]
    one.is_out = one.is_out or to == 0
    return False


ACTIONS: list[Callable[[list[Partition], int, int], bool]] = [fetch, send, keep, fail]


def rests(partitions: list[Partition]) -> list[PartitionRest]:
    return [
        PartitionRest(not each.frontier and not each.outbox, each.inbox, each.is_out)
        for each in partitions
    ]


def can_move(partitions: list[Partition]) -> bool:
    return any(not each.is_out and (each.frontier or each.outbox or each.inbox) for each in partitions)


@given(
    starts=st.lists(st.integers(0, 3), min_size=1, max_size=MOST),
    steps=st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, MOST), st.integers(0, MOST)), max_size=60
    ),
)
def test_a_crawl_has_ended_exactly_when_nothing_can_be_done_any_more(
    starts: list[int], steps: list[tuple[Callable[[list[Partition], int, int], bool], int, int]]
) -> None:
    partitions = [Partition(frontier=each) for each in starts]
    for act, number, to in steps:
        had_ended = has_ended(rests(partitions))
        assert had_ended is not can_move(partitions)
        assert not has_ended(rests(partitions), is_seeding=True)
        moved = act(partitions, number % len(partitions), to % len(partitions))
        assert not (had_ended and moved), "what has ended goes on"


def test_a_partition_that_is_out_holds_nobody_up() -> None:
    assert has_ended(
        [PartitionRest(is_idle=True), PartitionRest(is_idle=False, on_their_way=3, is_out=True)]
    )


def test_a_batch_on_its_way_to_an_idle_partition_holds_all_up() -> None:
    assert not has_ended([PartitionRest(is_idle=True), PartitionRest(is_idle=True, on_their_way=1)])
