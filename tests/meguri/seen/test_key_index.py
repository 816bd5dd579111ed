"""The index gives every key its first row, and a seen-set made of it agrees with the reference."""

from __future__ import annotations

import random
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meguri.seen.seen_vectors import VECTOR_FILES, add_one, key, lines, random_keys, results_of

from amicrawl.meguri.seen import BlockedBloom, KeyIndex, sizing

WORD = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1), st.just(2**64 - 1))
ROW = st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1), st.just(2**32 - 1))


@given(
    entries=st.lists(st.tuples(WORD, WORD, ROW), max_size=400),
    strangers=st.lists(st.tuples(WORD, WORD), max_size=50),
)
def test_it_behaves_as_a_dict_does(
    entries: list[tuple[int, int, int]], strangers: list[tuple[int, int]]
) -> None:
    index, model = KeyIndex(), dict[tuple[int, int], int]()
    for host, path, row in entries:
        assert index.add(host, path, row) == model.get((host, path))
        model.setdefault((host, path), row)
        assert len(index) == len(model)
    for host, path in [(host, path) for host, path, _ in entries] + strangers:
        assert index.get(host, path) == model.get((host, path))


def test_a_hundred_thousand_keys_keep_their_rows_and_no_other_has_one() -> None:
    draw = random.Random(1).getrandbits
    rows = {(draw(16), draw(64)): row for row in range(100_000)}
    index = KeyIndex()
    assert {index.add(*one, row) for one, row in rows.items()} == {None}
    assert [index.get(*one) for one in rows] == list(rows.values())
    assert [index.add(*one, 7) for one in rows] == list(rows.values())
    assert len(index) == len(rows)
    strangers = {(draw(16), draw(64)) for _ in range(20_000)} - set(rows)
    assert {index.get(*one) for one in strangers} == {None}


def test_a_key_is_not_found_across_the_border_of_two_entries() -> None:
    """Entries lie one behind the other: bytes that span two of them are no key."""
    index = KeyIndex()
    index.add(0, 0, 0)
    index.add(1, 0, 0)
    index.add(0, 1, 0)
    # Four bytes of row, then the first twelve of the key behind it.
    assert index.get(0, 1 << 32) is None
    assert index.get(1 << 32, 0) is None
    assert index.add(0, 1 << 32, 5) is None
    assert index.get(0, 1 << 32) == 5


def test_halves_of_a_key_are_not_interchangeable() -> None:
    index = KeyIndex()
    index.add(1, 2, 0)
    assert index.get(2, 1) is None


@pytest.mark.parametrize("entry", [(2**64, 0, 0), (0, -1, 0), (0, 0, 2**32), (0, 0, -1)])
def test_what_does_not_fit_is_an_error_and_leaves_nothing(entry: tuple[int, int, int]) -> None:
    index = KeyIndex()
    with pytest.raises(struct.error):
        index.add(*entry)
    assert len(index) == 0


def test_a_key_costs_less_than_thirty_bytes() -> None:
    draw = random.Random(1).getrandbits
    tracemalloc.start()
    try:
        index = KeyIndex()
        for row in range(50_000):
            index.add(draw(64), draw(64), row)
        assert tracemalloc.get_traced_memory()[0] / len(index) < 30
    finally:
        tracemalloc.stop()


class ReferenceSeenSet:
    """The reference's pair of filter and exact set, made of our parts.

    Its exact set is sorted arrays in buckets by host: a host with many URLs makes each insert as long as
    the host is large, and 16 bytes a key stay in memory for ever. The product looks keys up in
    `KeyIndex` since the last checkpoint and `SortedKeys` for those in the file; which keys are known is
    the same.
    """

    def __init__(self, capacity: int = 2**12, rate: float = 0.01) -> None:
        self.filter = BlockedBloom(*sizing(capacity, rate), capacity=capacity)
        self.exact = KeyIndex()
        self.keys: list[tuple[int, int]] = []

    def maybe(self, host: int, path: int) -> bool:
        return self.filter.maybe(host, path)

    def contains(self, host: int, path: int) -> bool:
        return self.maybe(host, path) and self.exact.get(host, path) is not None

    def seen(self, host: int, path: int) -> bool:
        if self.contains(host, path):
            return True
        add_one(self.filter, host, path)
        self.exact.add(host, path, len(self.exact))
        self.keys.append((host, path))
        return False

    def insert(self, host: int, path: int) -> int:
        self.seen(host, path)
        return len(self.exact)


def test_filter_and_exact_set_together_decide_as_the_reference_does() -> None:
    for line in lines(VECTOR_FILES, "operations"):
        pair = ReferenceSeenSet(line["capacity"], line["fp_rate"])
        for operation, halves, result in line["ops"]:
            assert getattr(pair, operation)(*key(halves)) == result, (operation, halves)
        assert len(pair.exact) == line["final_count"]
        assert pair.filter.to_blob() == bytes.fromhex(line["filter_blob"])
        assert pair.filter.blocks * 512 / pair.filter.added == line["bits_per_key"]
        assert sorted(pair.keys) == [key(halves) for halves in line["exact_keys_in_order"]]
        sizes = line["bucket_sizes"]
        buckets = [host * len(sizes) >> 64 for host, _ in pair.keys]
        assert [buckets.count(number) for number in range(len(sizes))] == sizes


def test_a_batch_gets_the_verdicts_that_the_reference_gives() -> None:
    for line in lines(VECTOR_FILES, "batch"):
        pair = ReferenceSeenSet()
        for batch in line["rounds"]:
            assert verdicts(pair, batch["keys"]) == batch["verdicts_sorted"]
            assert len(pair.exact) == batch["count_after"]


def verdicts(pair: ReferenceSeenSet, keys: list[Any]) -> list[Any]:
    """Return whether each key of a batch is new, sorted by key, the new one first."""
    new = [(*key(halves), not pair.seen(*key(halves))) for halves in keys]
    order = sorted(new, key=lambda verdict: (verdict[0], verdict[1], not verdict[2]))
    return [[f"0x{host:016x}", f"0x{path:016x}", is_new] for host, path, is_new in order]


def test_no_false_positive_of_an_overfull_filter_drops_a_url() -> None:
    """At sixteen times its capacity the filter says "perhaps" of all; each key is still new once."""
    pair = ReferenceSeenSet(capacity=500)
    keys = np.stack(random_keys(1, 8000), axis=1).tolist()
    assert [pair.seen(*one) for one in keys] == [False] * 8000
    assert [pair.seen(*one) for one in keys] == [True] * 8000
    assert sum(results_of(pair.filter, *random_keys(2, 5000))) > 0.95 * 5000
    assert not any(pair.contains(*one) for one in np.stack(random_keys(2, 5000), axis=1).tolist())
