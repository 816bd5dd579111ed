"""The filter of a running crawl forgets nothing as it grows, and stays useful."""

from __future__ import annotations

import numpy as np
import pytest
from frontier.seen.seen_vectors import Keys, pairs, random_keys
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.seen import (
    BlockedBloom,
    GrowingFilter,
    Ribbon,
    merged_blob,
    read_filter,
    sizing,
)

WORD = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1), st.just(2**64 - 1))
KEYS = st.lists(st.tuples(WORD, WORD), max_size=300)
STRANGERS = random_keys(987_654_321, 100_000)


def columns(keys: list[tuple[int, int]]) -> Keys:
    array = np.array(keys, np.uint64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@settings(max_examples=60)
@given(opened=KEYS, lots=st.lists(KEYS, max_size=6), strangers=KEYS, first=st.integers(0, 40))
def test_no_key_is_ever_forgotten(
    opened: list[tuple[int, int]],
    lots: list[list[tuple[int, int]]],
    strangers: list[tuple[int, int]],
    first: int,
) -> None:
    growing = GrowingFilter(capacity=first)
    if opened:
        growing = GrowingFilter.from_blob(merged_blob([columns(opened)], len(opened)), keys=len(opened))
    known = list(opened)
    for lot in lots:
        for host, path in lot:
            growing.add(host, path)
        growing.flush()
        known += lot
        assert len(growing) == len(known)
        assert all(growing.maybe(*one) for one in known)
    asked = known + strangers
    assert growing.maybe_many(*columns(asked)).tolist() == [growing.maybe(*one) for one in asked]


def test_keys_are_flushed_in_lots_and_pending_ones_are_not_answered() -> None:
    growing = GrowingFilter()
    keys = pairs(random_keys(1, 5000))
    for host, path in keys[:4095]:
        growing.add(host, path)
    assert not any(growing.maybe(*one) for one in keys[:4095])
    growing.add(*keys[4095])
    assert all(growing.maybe(*one) for one in keys[:4096])
    for host, path in keys[4096:]:
        growing.add(host, path)
    assert len(growing) == 5000
    growing.flush()
    growing.flush()
    assert all(growing.maybe(*one) for one in keys)
    assert len(growing) == 5000


def test_ten_filters_long_it_takes_two_in_a_hundred_strangers_for_known_at_most() -> None:
    """Ten filters that begin with 2^16 keys hold a thousand million; these begin with 16."""
    growing = GrowingFilter(capacity=16)
    growing.add_many(*random_keys(5, 16 * 3**9))
    assert growing.nbytes * 8 / len(growing) < 17
    assert growing.maybe_many(*STRANGERS).mean() < 0.02


def test_it_costs_two_bytes_a_key_when_full_and_six_when_it_has_just_grown() -> None:
    growing = GrowingFilter(capacity=2**14)
    growing.add_many(*random_keys(5, 2**14 * 9))
    assert growing.nbytes / len(growing) < 2.01
    growing.add_many(*random_keys(6, 1))
    assert growing.nbytes / len(growing) < 6.02


def test_a_crawl_goes_on_with_the_filter_of_its_file() -> None:
    hosts, paths = random_keys(7, 30_000)
    blob = merged_blob(
        ((hosts[at : at + 1000], paths[at : at + 1000]) for at in range(0, 30_000, 1000)), 30_000
    )
    growing = GrowingFilter.from_blob(blob, keys=30_000)
    assert len(growing) == 30_000
    assert growing.nbytes == len(blob) - 32
    growing.add_many(*random_keys(8, 100_000))
    assert growing.maybe_many(hosts, paths).all()
    assert growing.maybe_many(*random_keys(8, 100_000)).all()
    assert growing.maybe_many(*STRANGERS).mean() < 0.02


def test_the_filter_for_a_file_holds_all_keys_in_eleven_bits_each_and_is_soundly_sized() -> None:
    keys = random_keys(9, 23_752)
    blob = merged_blob([keys], 23_752)
    merged = read_filter(blob)
    assert isinstance(merged, BlockedBloom)
    assert (merged.added, merged.capacity, merged.blocks % 2) == (23_752, 23_752, 1)
    assert len(blob) * 8 / 23_752 < 11.1
    assert merged.maybe_many(*keys).all()
    assert merged.maybe_many(*STRANGERS).mean() < 0.01


def test_a_snapshot_without_keys_has_a_filter_too() -> None:
    merged = read_filter(merged_blob([], 0))
    assert not merged.maybe_many(*STRANGERS).any()


def test_an_overfull_or_unlucky_filter_of_the_reference_is_kept_and_not_filled_further() -> None:
    overfull = BlockedBloom(*sizing(500), capacity=500)
    overfull.add_many(*random_keys(1, 4000))
    unlucky = BlockedBloom(512, 8, capacity=23_752)
    unlucky.add_many(*random_keys(1, 23_752))
    for opened in (overfull, unlucky):
        growing = GrowingFilter.from_blob(opened.to_blob(), keys=opened.added)
        before = growing.maybe_many(*STRANGERS).mean()
        growing.add_many(*random_keys(2, 4000))
        assert growing.maybe_many(*random_keys(1, opened.added)).all()
        assert growing.maybe_many(*random_keys(2, 4000)).all()
        assert growing.maybe_many(*STRANGERS).mean() < before + 0.002


def test_a_filter_with_room_is_filled_as_far_as_it_says_but_not_beyond_what_it_bears() -> None:
    roomy = BlockedBloom(*sizing(20_000), capacity=20_000)
    boastful = BlockedBloom(*sizing(20_000), capacity=2**64 - 1)
    for opened in (roomy, boastful):
        growing = GrowingFilter.from_blob(opened.to_blob(), keys=0)
        growing.add_many(*random_keys(1, 19_000))
        assert growing.nbytes == opened.nbytes
        growing.add_many(*random_keys(2, 19_000))
        assert growing.nbytes > opened.nbytes
        assert growing.maybe_many(*STRANGERS).mean() < 0.015


def test_a_ribbon_is_the_first_of_the_chain_and_is_not_added_to() -> None:
    keys = random_keys(1, 500)
    growing = GrowingFilter.from_blob(Ribbon.build(*keys).to_blob(), keys=500)
    more = random_keys(2, 500)
    growing.add_many(*more)
    for known in (keys, more):
        assert growing.maybe_many(*known).all()
        assert all(growing.maybe(*one) for one in pairs(known))
    assert growing.nbytes > Ribbon.build(*keys).nbytes
    assert growing.maybe_many(*STRANGERS).mean() < 0.02


def test_a_filter_that_cannot_hold_all_rows_is_refused() -> None:
    """Its "absent" would be wrong of the rows it lacks, and a known URL would become a second row."""
    blob = merged_blob([random_keys(1, 99)], 99)
    assert len(GrowingFilter.from_blob(blob, keys=99)) == 99
    with pytest.raises(Malformed, match="99 keys, the file 100 rows"):
        GrowingFilter.from_blob(blob, keys=100)


def test_what_is_no_filter_is_refused() -> None:
    with pytest.raises(Malformed):
        GrowingFilter.from_blob(b"", keys=0)
