"""Shards: every host has one, the same today and tomorrow."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.crawl.processes.dealing import even_salt
from amicrawl.urls import seed_key, shard_of

VECTORS = Path(__file__).parents[1] / "data" / "vectors" / "map.jsonl"
HOSTS = st.integers(0, 2**64 - 1)


@given(host=HOSTS, shards=st.integers(1, 5000))
def test_a_host_belongs_to_one_of_the_shards(host: int, shards: int) -> None:
    shard = shard_of(host, shards)
    assert 0 <= shard < shards


@given(host=HOSTS, shards=st.integers(1, 100))
def test_one_more_shard_takes_hosts_and_moves_none_between_the_others(host: int, shards: int) -> None:
    assert shard_of(host, shards + 1) in {shard_of(host, shards), shards}


def test_hosts_are_dealt_out_evenly() -> None:
    counts = Counter(shard_of(host * 0x9E37_79B9_7F4A_7C15 % 2**64, 8) for host in range(8000))
    assert set(counts) == set(range(8))
    assert max(counts.values()) < 1.2 * min(counts.values())


@pytest.mark.parametrize(
    ("host", "shards", "shard"),
    [
        (0, 8, 0),
        (1, 2, 0),
        (1, 8, 6),
        (42, 3, 2),
        (0x2883BA7DC9AA3289, 2, 1),
        (0x2883BA7DC9AA3289, 100, 51),
        (0xFFFF_FFFF_FFFF_FFFF, 1000, 313),
    ],
)
def test_the_shard_of_a_host_is_pinned(host: int, shards: int, shard: int) -> None:
    assert shard_of(host, shards) == shard


@given(weights=st.dictionaries(HOSTS, st.integers(1, 1000), max_size=50), shards=st.integers(1, 9))
def test_no_shard_has_more_by_the_even_salt_than_the_largest_has_without(
    weights: dict[int, int], shards: int
) -> None:
    def largest(salt: int) -> int:
        sums = Counter[int]()
        for host, weight in weights.items():
            sums[shard_of(host, shards, salt)] += weight
        return max(sums.values(), default=0)

    salt = even_salt(weights, shards)
    assert largest(salt) <= largest(0)
    assert salt == 0 or largest(salt) < largest(0), "the common rule where none is better"


@pytest.mark.parametrize(("hosts", "shards", "most"), [(2, 2, 1), (6, 2, 3), (20, 2, 10), (200, 4, 51)])
def test_few_hosts_are_dealt_out_evenly_by_a_salt(hosts: int, shards: int, most: int) -> None:
    keys = [seed_key(f"http://{number}.example/").host for number in range(hosts)]
    salt = even_salt(dict.fromkeys(keys, 7), shards)
    counts = Counter(shard_of(key, shards, salt) for key in keys)
    assert max(counts.values()) <= most


def test_a_partition_map_of_another_implementation_deals_out_alike() -> None:
    lines = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    jumps = [line for line in lines if line["kind"] == "jump"]
    assert len(jumps) > 50
    for jump in jumps:
        found = [shard_of(int(jump["key"], 0), count) for count in jump["counts"]]
        assert found == jump["buckets"], jump["key"]
