"""Differences: rows paired by key, strings by content, each difference found and none invented."""

from __future__ import annotations

import json
import mmap
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meguri.format.frontier_files import empty_partition
from meguri.format.golden_dumps import partition_of, selected

from amicrawl.meguri.format.difference import RowDifference, head_differences, row_differences
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.operations import compact
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Partition, columns_of
from amicrawl.meguri.format.strings import ArenaBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Key = tuple[int, int]


def partition(rows: Sequence[tuple[Key, bytes, bytes | None]], *, shared: bool = True) -> Partition:
    """Return rows of a key, a URL and an annex."""
    strings = ArenaBuilder(shared=shared)
    records = np.zeros(len(rows), ROW)
    for at, (key, url, annex) in enumerate(rows):
        records["host_key"][at], records["path_key"][at] = key
        records["url_ref"][at] = strings.add(url, annex)
    found = empty_partition()
    found.urls, found.arena = columns_of(records), strings.arena()
    return found


def golden() -> Partition:
    return partition_of(json.dumps(selected("ops/input.meguri")["dump"]))


def test_a_partition_does_not_differ_from_itself_compacted() -> None:
    whole = golden()
    assert list(row_differences(whole, compact(whole, drop_gone=False))) == []
    assert head_differences(whole, whole) == {}


def test_strings_behind_the_first_four_gigabytes_are_told_apart(tmp_path: Path) -> None:
    """Two strings lie just 2^32 octets apart, and are compared with one and the same."""
    strings = ArenaBuilder()
    first = strings.add(b"http://a/1")
    old, new = (partition([((1, n), b"http://a/1", None) for n in (1, 2)]) for _ in range(2))
    path = tmp_path / "arena"
    with path.open("wb") as file:
        file.write(strings.arena())
        file.seek(first + 2**32)
        file.write(b"\x0ahttp://a/2")
    with path.open("rb") as read, mmap.mmap(read.fileno(), 0, access=mmap.ACCESS_READ) as arena:
        with memoryview(arena) as view:
            old.arena = view
            old.urls["url_ref"][1] = first + 2**32
            assert list(row_differences(old, new)) == [RowDifference("urls", 1, 1, ("url_ref",))]
        old.arena = b""


def test_dropped_rows_are_found_as_removed_and_added() -> None:
    whole = golden()
    gone = np.flatnonzero(whole.urls["status"] == 6).tolist()
    kept = compact(whole)
    assert list(row_differences(whole, kept)) == [RowDifference("urls", at, None, ()) for at in gone]
    assert list(row_differences(kept, whole)) == [RowDifference("urls", None, at, ()) for at in gone]
    assert set(head_differences(whole, kept)) == {"seen_filter"}


@pytest.mark.parametrize(
    "name", [name for name in ROW.names or () if name not in ("host_key", "path_key")]
)
def test_each_field_of_a_row_is_compared(name: str) -> None:
    whole, other = golden(), golden()
    values = other.urls[name].copy()
    values[7] = 3 if name.endswith("_ref") else values[7] + 1
    other.urls = {**other.urls, name: values}
    (found,) = row_differences(whole, other)
    assert (found.table, found.old, found.new) == ("urls", 7, 7)
    assert name in found.fields


@pytest.mark.parametrize("name", [name for name in HOST_ROW.names or () if name != "host_key"])
def test_each_field_of_a_host_is_compared(name: str) -> None:
    whole, other = golden(), golden()
    values = other.hosts[name].copy()
    values[2] = 3 if name.endswith("_ref") else b"\1" * 16 if name == "resolved_ip" else values[2] + 1
    other.hosts = {**other.hosts, name: values}
    assert list(row_differences(whole, other)) == [RowDifference("hosts", 2, 2, (name,))]


def test_floats_differ_in_their_bits() -> None:
    whole, other = golden(), golden()
    for side, bits in ((whole, (0x7FC00001, 0x80000000)), (other, (0x7FC00001, 0))):
        values = side.urls["lambda"].copy()
        values[:2] = np.array(bits, np.uint32).view("<f4")
        side.urls = {**side.urls, "lambda": values}
    assert list(row_differences(whole, other)) == [RowDifference("urls", 1, 1, ("lambda",))]


def test_an_annex_is_compared_as_a_column_of_its_own() -> None:
    old = partition([((1, 1), b"u", b"{}"), ((1, 2), b"v", None)])
    new = partition([((1, 1), b"u", None), ((1, 2), b"v", None)])
    assert list(row_differences(old, new)) == [RowDifference("urls", 0, 0, ("url_annex",))]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_differences_are_those_of_the_sorted_lists(data: st.DataObject) -> None:
    """Keys beside a byte of 0 or 255, repeated too, against pairing them one by one."""
    halves = st.sampled_from((0, 1, 255, 256, 2**63, 2**64 - 1))
    rows = st.lists(st.tuples(st.tuples(halves, halves), st.sampled_from((b"", b"u", b"ab", b"ac"))))
    old, new = (sorted(data.draw(rows), key=lambda row: row[0]) for _ in "on")
    expected = _by_hand(old, new)
    left, right = (
        partition([(key, url, None) for key, url in side], shared=shared)
        for side, shared in ((old, True), (new, False))
    )
    assert sorted(row_differences(left, right), key=repr) == sorted(expected, key=repr)


def _by_hand(old: list[tuple[Key, bytes]], new: list[tuple[Key, bytes]]) -> list[RowDifference]:
    def numbered(side: list[tuple[Key, bytes]]) -> dict[tuple[Key, int], int]:
        seen: Counter[Key] = Counter()
        places = {}
        for at, (key, _) in enumerate(side):
            places[key, seen[key]] = at
            seen[key] += 1
        return places

    ours, theirs = numbered(old), numbered(new)
    found = []
    for key in {**ours, **theirs}:
        left, right = ours.get(key), theirs.get(key)
        if left is None or right is None:
            found.append(RowDifference("urls", left, right, ()))
        elif old[left][1] != new[right][1]:
            found.append(RowDifference("urls", left, right, ("url_ref",)))
    return found


@pytest.mark.parametrize("step", [1, 0])
def test_many_rows_are_compared_in_stretches(step: int) -> None:
    """With a step of 0 all 150,000 have one key, which no stretch may divide."""
    records = np.zeros(150_000, ROW)
    records["path_key"] = np.arange(len(records)) * step
    old, new = empty_partition(), empty_partition()
    old.urls = columns_of(records)
    changed = np.delete(records, 70_000)
    changed["depth"][100_000] = 1
    new.urls = columns_of(changed)
    found = list(row_differences(old, new))
    if step:
        assert found == [
            RowDifference("urls", 70_000, None, ()),
            RowDifference("urls", 100_001, 100_000, ("depth",)),
        ]
    else:
        assert found == [
            RowDifference("urls", 100_000, 100_000, ("depth",)),
            RowDifference("urls", 149_999, None, ()),
        ]


def test_overlapping_strings_are_not_compared_for_ever() -> None:
    arena = bytes([0x80, 0x80, 0x20]) * 350_000 + bytes(1 << 20)
    records = np.zeros(300_000, ROW)
    records["path_key"] = np.arange(len(records))
    records["url_ref"] = np.arange(3, 900_003, 3)
    hostile = empty_partition()
    hostile.urls, hostile.arena = columns_of(records), arena
    with pytest.raises(Malformed, match="overlap"):
        list(row_differences(hostile, hostile))
