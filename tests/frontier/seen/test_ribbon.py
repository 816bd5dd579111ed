"""The ribbon filter agrees with the reference to the bit, and never forgets a key."""

from __future__ import annotations

import tracemalloc
from struct import pack
from typing import TYPE_CHECKING

import numpy as np
import pytest
from frontier.seen.seen_vectors import BOTH, blob_of, key, keys_of, lines, pairs, probes_of, random_keys
from google_crc32c import value as crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.seen import BlockedBloom, Ribbon, read_filter

if TYPE_CHECKING:
    from pathlib import Path

WORD = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1), st.just(2**64 - 1))
KEYS = st.lists(st.tuples(WORD, WORD), max_size=200)


@BOTH
def test_a_ribbon_is_the_reference_s_to_the_bit_and_answers_as_it_does(directory: Path) -> None:
    for line in lines(directory, "ribbon"):
        keys = keys_of(line)
        ribbon = Ribbon.build(*keys, fingerprint_bits=line["fingerprint_bits"])
        assert (ribbon.seed, ribbon.slots) == (line["hash_seed"], line["slots"]), line["name"]
        blob = blob_of(line, directory)
        assert (len(blob), f"0x{crc32c(blob):08x}") == (line["blob_size"], line["blob_crc32c"])
        assert ribbon.to_blob() == blob, line["name"]
        assert ribbon.bits_per_key == line["bits_per_key"]
        for same in (ribbon, read_filter(blob)):
            probes = probes_of(line, keys)
            assert "".join("01"[one] for one in same.maybe_many(*probes).tolist()) == line["maybe"]
            assert "".join("01"[same.maybe(*one)] for one in pairs(probes)) == line["maybe"]


@BOTH
def test_equations_are_derived_as_the_reference_derives_them(directory: Path) -> None:
    for line in lines(directory, "ribbon"):
        ribbon = Ribbon(line["slots"], line["fingerprint_bits"], seed=line["hash_seed"], added=0)
        for derived in line["derivations"] or ():
            host, path = key(derived["key"])
            expected = (derived["start"], int(derived["coefficients"], 0), derived["fingerprint"])
            assert ribbon.row(host, path) == expected
            rows = ribbon.rows(np.array([host], np.uint64), np.array([path], np.uint64))
            assert tuple(int(column[0]) for column in rows) == expected


@settings(max_examples=50)
@given(keys=KEYS, strangers=KEYS, bits=st.integers(1, 16))
def test_no_key_is_ever_forgotten_and_one_by_one_equals_in_bulk(
    keys: list[tuple[int, int]], strangers: list[tuple[int, int]], bits: int
) -> None:
    records = np.array(keys, [("host", "<u8"), ("path", "<u8")])
    ribbon = Ribbon.build(records["host"], records["path"], fingerprint_bits=bits)
    assert all(ribbon.maybe(*one) for one in keys)
    asked = np.array(keys + strangers, np.uint64).reshape(-1, 2)
    answers = ribbon.maybe_many(asked[:, 0], asked[:, 1])
    assert answers.tolist() == [ribbon.maybe(*one) for one in keys + strangers]
    blob = ribbon.to_blob()
    assert Ribbon.from_blob(memoryview(blob)).to_blob() == blob


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 4096, 4097, 30_000])
def test_ribbons_of_all_sizes_know_their_keys_and_few_others(count: int) -> None:
    keys = random_keys(count, count)
    ribbon = Ribbon.build(*keys)
    read = Ribbon.from_blob(ribbon.to_blob())
    for same in (ribbon, read):
        assert same.maybe_many(*keys).all()
        assert same.maybe_many(*random_keys(987_654_321, 50_000)).mean() < 1.2 / 2**7
    assert read.to_blob() == ribbon.to_blob()
    assert (read.added, read.slots, read.seed) == (ribbon.added, ribbon.slots, ribbon.seed)


class Stubborn(Ribbon):
    """Its equations have no solution in fewer than 200 slots; no keys are known to be like that."""

    def _solve(self, hosts: np.ndarray, paths: np.ndarray) -> bool:
        return self.slots >= 200 and super()._solve(hosts, paths)


class Unsolvable(Ribbon):
    def _solve(self, hosts: np.ndarray, paths: np.ndarray) -> bool:
        return False


def test_a_ribbon_that_no_seed_solves_is_made_larger_step_by_step_until_it_is_given_up() -> None:
    keys = random_keys(1, 100)
    ribbon = Stubborn.build(*keys)
    assert (ribbon.slots, ribbon.seed) == (128 + 6 + 64 + 9 + 64, 0)
    assert ribbon.maybe_many(*keys).all()
    with pytest.raises(ValueError, match="No ribbon can be built for these 100 keys"):
        Unsolvable.build(*keys)


def test_fingerprints_have_1_to_16_bits() -> None:
    for bits in (0, 17):
        with pytest.raises(ValueError, match="1 to 16"):
            Ribbon.build(*random_keys(1, 1), fingerprint_bits=bits)


@pytest.mark.parametrize(
    ("bits", "slots"),
    [(7, 2**60), (7, 2**64 - 1), (7, 63), (7, 0), (0, 128), (17, 128), (255, 128), (7, 2**61 + 128)],
)
@pytest.mark.parametrize("size", [0, 56, 112])
def test_a_hostile_header_is_refused_without_room_being_made_for_it(
    bits: int, slots: int, size: int
) -> None:
    blob = pack("<BBBBIQQ", 1, 1, bits, 0, 0, 1, slots) + bytes(size)
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            read_filter(blob)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_filter_of_one_kind_is_not_read_as_the_other() -> None:
    ribbon, bloom = Ribbon.build(*random_keys(1, 10)).to_blob(), BlockedBloom(2, 8).to_blob()
    with pytest.raises(Malformed):
        Ribbon.from_blob(bloom)
    with pytest.raises(Malformed):
        BlockedBloom.from_blob(ribbon)
