"""Golden vectors of a partition map: what of it is built here, and the reason for what is not."""

from __future__ import annotations

import numpy as np
from urls.vectors import VECTOR_FILES, lines

from amicrawl.meguri.format.schedule import BUCKETS, bucket_of, bucket_starts
from amicrawl.urls import shard_of

VECTORS = VECTOR_FILES / "map.jsonl"

COMPARED_HERE = {"jump", "schedule_bucket", "schedule_start"}
COMPARED_ELSEWHERE = {
    "manifest": "format/test_manifest.py",
    "wheel": "test_due_wheel.py",
}
ALONE = (
    "machines share a crawl by the jump hash alone, each knowing its number and how many there are: "
    "nobody has to place, watch or move anything"
)
RANKED = "rows come up by the priority that they were offered with: importance costs more than it finds"
NOT_BUILT = {
    "combine": ALONE,
    "preference": ALONE,
    "control": ALONE,
    "elasticity": ALONE,
    "owner": "hosts are not pinned to partitions: " + ALONE,
    "router": "nothing is sent between machines yet; its batches are not among the vectors here",
    "opic": RANKED,
    "blend": RANKED,
    "host_budget": RANKED,
    "budget_split": RANKED,
    "ring": "rows wait in the order of their priority itself, in heaps, not in 64 buckets of it",
}
"""The kinds that have no counterpart here, with the reason."""


def test_no_kind_is_left_out() -> None:
    kinds = {line["kind"] for line in lines(VECTOR_FILES, "map.jsonl")}
    known = [*COMPARED_HERE, *COMPARED_ELSEWHERE, *NOT_BUILT]
    assert kinds == set(known)
    assert len(known) == len(set(known))


def test_hosts_are_dealt_out_alike() -> None:
    compared = 0
    for line in lines(VECTOR_FILES, "map.jsonl", kind="jump"):
        key = int(line["key"], 0)
        assert [shard_of(key, count) for count in line["counts"]] == line["buckets"], line
        compared += 1
    assert compared >= 60


def test_hosts_that_are_not_pinned_have_the_same_owner() -> None:
    for line in lines(VECTOR_FILES, "map.jsonl", kind="owner"):
        pinned = {key for key, _ in line["map"]["overrides"]}
        free = [(int(key, 0), owner) for key, owner in line["owners"] if key not in pinned]
        assert len(free) > 20
        assert [shard_of(key, line["map"]["partitions"]) for key, _ in free] == [
            owner for _, owner in free
        ]


def test_times_fall_into_the_same_buckets() -> None:
    for line in lines(VECTOR_FILES, "map.jsonl", kind="schedule_bucket"):
        offsets, buckets = zip(*line["pairs"], strict=True)
        assert bucket_of(np.array(offsets, np.uint64)).tolist() == list(buckets)


def test_buckets_begin_at_the_same_hours() -> None:
    for line in lines(VECTOR_FILES, "map.jsonl", kind="schedule_start"):
        assert bucket_starts().tolist() == line["starts"]
        assert len(line["starts"]) == BUCKETS


def test_the_levels_of_a_priority_have_no_counterpart() -> None:
    """`quantize` is called by nothing in the reference either."""
    golden = list(lines(VECTOR_FILES, "keys.jsonl", kind="priority_bucket"))
    assert golden
    assert all(line.keys() >= {"bucket", "quantize"} for line in golden)
