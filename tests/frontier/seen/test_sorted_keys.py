"""Keys in the sorted columns of a file are found where they lie."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.format.schema import ROW
from amicrawl.frontier.seen.sorted_keys import SortedKeys

if TYPE_CHECKING:
    from pathlib import Path

TOP = 2**64 - 1
WORD = st.one_of(st.integers(0, 5), st.integers(0, TOP), st.integers(TOP - 2, TOP))
KEYS = st.lists(st.tuples(WORD, WORD), max_size=300, unique=True)


def rows_of(keys: list[tuple[int, int]]) -> np.ndarray:
    rows = np.zeros(len(keys), ROW)
    halves = np.array(keys, np.uint64).reshape(-1, 2)
    rows["host_key"], rows["path_key"] = halves[:, 0], halves[:, 1]
    return rows


def check(found: SortedKeys, keys: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    assert len(found) == len(keys)
    numbers = {one: number for number, one in enumerate(keys)}
    assert [found.find(*one) for one in keys] == list(range(len(keys)))
    assert [found.find(*one) for one in others] == [numbers.get(one) for one in others]


@given(keys=KEYS, others=KEYS)
def test_rows_are_found_and_others_are_not(
    keys: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    keys.sort()
    rows = rows_of(keys)
    check(SortedKeys(rows["host_key"], rows["path_key"]), keys, others)
    columns = np.ascontiguousarray(rows["host_key"]), np.ascontiguousarray(rows["path_key"])
    check(SortedKeys(*columns), keys, others)


@pytest.mark.parametrize("count", [511, 512, 513, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("hosts", [1, 3, 2000])
def test_rows_are_found_across_stretches(count: int, hosts: int) -> None:
    draw = random.Random(count * hosts)
    keys = sorted({(draw.randrange(hosts) * 5, draw.getrandbits(64)) for _ in range(count)})
    neighbours = [(host, max(path - 1, 0)) for host, path in keys[::7]]
    others = [(host + 1, path) for host, path in keys[::50]] + [(0, 0), (TOP, TOP)]
    rows = rows_of(keys)
    found = SortedKeys(rows["host_key"], rows["path_key"])
    check(found, keys, neighbours)
    assert [found.find(*one) for one in others] == [None] * len(others)


def test_a_mapped_file_is_neither_copied_nor_written_to(tmp_path: Path) -> None:
    draw = random.Random(1).getrandbits
    keys = sorted({(draw(8), draw(64)) for _ in range(100_000)})
    rows_of(keys).tofile(tmp_path / "rows")
    rows = np.memmap(tmp_path / "rows", ROW, "r")
    tracemalloc.start()
    try:
        found = SortedKeys(rows["host_key"], rows["path_key"])
        assert tracemalloc.get_traced_memory()[1] < 40_000
    finally:
        tracemalloc.stop()
    assert [found.find(*keys[number]) for number in range(0, len(keys), 97)] == list(
        range(0, len(keys), 97)
    )


def test_it_keeps_the_memory_it_reads() -> None:
    keys = [(number, number) for number in range(2000)]
    rows = rows_of(keys)
    found = SortedKeys(rows["host_key"], rows["path_key"])
    del rows
    assert [found.find(*one) for one in keys] == list(range(2000))


def test_of_columns_that_are_not_sorted_nothing_wrong_is_found() -> None:
    draw = random.Random(1).getrandbits
    keys = [(draw(4), draw(64)) for _ in range(3000)]
    rows = rows_of(keys)
    found = SortedKeys(rows["host_key"], rows["path_key"])
    for number, one in enumerate(keys):
        assert found.find(*one) in (None, number)


def test_other_columns_are_refused() -> None:
    words = np.arange(4, dtype=np.uint64)
    with pytest.raises(ValueError, match="one length"):
        SortedKeys(words, words[:3])
    with pytest.raises(ValueError, match="little-endian uint64"):
        SortedKeys(words.astype(np.int64), words.astype(np.int64))
    with pytest.raises(ValueError, match="ascending addresses"):
        SortedKeys(words[::-1], words[::-1])
