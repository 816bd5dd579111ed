"""Keys in the sorted columns of a file are found where they lie."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.meguri.seen import SortedKeys

TOP = 2**64 - 1
WORD = st.one_of(st.integers(0, 5), st.integers(0, TOP), st.integers(TOP - 2, TOP))
KEYS = st.lists(st.tuples(WORD, WORD), max_size=300, unique=True)


def sorted_keys(keys: list[tuple[int, int]]) -> SortedKeys:
    return SortedKeys(len(keys), keys.__getitem__)


def check(found: SortedKeys, keys: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    numbers = {one: number for number, one in enumerate(keys)}
    assert [found.find(*one) for one in keys] == list(range(len(keys)))
    assert [found.find(*one) for one in others] == [numbers.get(one) for one in others]


@pytest.mark.slow
@given(keys=KEYS, others=KEYS)
def test_rows_are_found_and_others_are_not(
    keys: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    keys.sort()
    check(sorted_keys(keys), keys, others)


@pytest.mark.parametrize("count", [511, 512, 513, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("hosts", [1, 3, 2000])
def test_rows_are_found_across_stretches(count: int, hosts: int) -> None:
    draw = random.Random(count * hosts)
    keys = sorted({(draw.randrange(hosts) * 5, draw.getrandbits(64)) for _ in range(count)})
    neighbours = [(host, max(path - 1, 0)) for host, path in keys[::7]]
    others = [(host + 1, path) for host, path in keys[::50]] + [(0, 0), (TOP, TOP)]
    found = sorted_keys(keys)
    check(found, keys, neighbours)
    assert [found.find(*one) for one in others] == [None] * len(others)


def test_a_look_up_reads_few_rows_and_the_directory_is_small() -> None:
    draw = random.Random(1).getrandbits
    keys = sorted({(draw(8), draw(64)) for _ in range(100_000)})
    read: list[int] = []

    def key_at(number: int) -> tuple[int, int]:
        read.append(number)
        return keys[number]

    found = SortedKeys(len(keys), key_at)
    assert len(read) <= len(keys) // 512 + 1
    for number in range(0, len(keys), 97):
        read.clear()
        assert found.find(*keys[number]) == number
        assert len(read) <= 11


def test_of_columns_that_are_not_sorted_nothing_wrong_is_found() -> None:
    draw = random.Random(1).getrandbits
    keys = [(draw(4), draw(64)) for _ in range(3000)]
    found = sorted_keys(keys)
    for number, one in enumerate(keys):
        assert found.find(*one) in (None, number)
