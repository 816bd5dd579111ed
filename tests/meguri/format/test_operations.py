"""Compact and merge: the golden bytes, and what golden bytes do not show."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from meguri.format.frontier_files import empty_partition
from meguri.format.golden_dumps import VECTOR_FILES, partition_of, selected, sha256_of

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.operations import compact, merge, with_raw_robots
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Codec, columns_of
from amicrawl.meguri.format.strings import ArenaBuilder, annex_at, pack_robots, string_at
from amicrawl.meguri.format.verification import read_partition

if TYPE_CHECKING:
    from amicrawl.meguri.format.schema import Partition


@pytest.fixture(scope="module")
def whole() -> Partition:
    """Return the partition that the golden operations were done to."""
    return partition_of(json.dumps(selected("ops/input.meguri")["dump"]))


def _golden(operation: str) -> list[dict[str, Any]]:
    lines = (VECTOR_FILES / "ops.jsonl").read_text().splitlines()
    found = [said for line in lines if (said := json.loads(line))["op"] == operation]
    assert found, f"no vector of {operation}"
    return found


def _is(partition: Partition, said: dict[str, Any]) -> None:
    assert len(partition.urls["status"]) == said["url_rows"]
    assert len(partition.hosts["flags"]) == said["host_rows"]
    assert len(partition.arena) == said["arena_length"]
    assert partition.host_key_lo == int(said["host_key_lo"], 0)
    assert partition.host_key_hi == int(said["host_key_hi"], 0)
    if partition.host_key_lo <= partition.host_key_hi:
        # A half without rows may end before it begins; the reference writes such a file, we need not.
        assert sha256_of(partition) == said["sha256"]


def test_compacting_gives_the_golden_bytes(whole: Partition) -> None:
    for said in _golden("compact"):
        _is(compact(whole), said["result"])


def test_merging_gives_the_golden_bytes() -> None:
    for said in _golden("merge"):
        if "result" in said:
            names = (said["a"]["file"], said["b"]["file"]) if "a" in said else None
            parts = [
                read_partition(VECTOR_FILES / name)
                for name in names or ("ops/split0-high.meguri", "ops/split0-low.meguri")
            ]
            _is(merge(*parts), said["result"])
            _is(merge(*reversed(parts)), said["result"])


def split(whole: Partition, at: int) -> tuple[Partition, Partition]:
    """Return the rows below the host key *at*, and the others; both have the strings of all."""
    parts = []
    for low, high in ((whole.host_key_lo, at - 1), (at, whole.host_key_hi)):
        urls, hosts = (
            {
                name: values[(low <= rows["host_key"]) & (rows["host_key"] <= high)]
                for name, values in rows.items()
            }
            for rows in (whole.urls, whole.hosts)
        )
        parts.append(replace(whole, urls=urls, hosts=hosts, host_key_lo=low, host_key_hi=high))
    return parts[0], parts[1]


def test_the_halves_merge_into_the_whole(whole: Partition) -> None:
    at = int(whole.hosts["host_key"][3])
    low, high = split(whole, at)
    assert sha256_of(merge(high, low)) == sha256_of(compact(whole, drop_gone=False))


def test_three_merge_as_they_would_one_after_the_other(whole: Partition) -> None:
    first, rest = split(whole, int(whole.hosts["host_key"][2]))
    second, third = split(rest, int(whole.hosts["host_key"][4]))
    assert sha256_of(merge(third, first, second)) == sha256_of(merge(merge(first, second), third))


def test_partitions_that_share_hosts_are_not_merged(whole: Partition) -> None:
    low, _ = split(whole, int(whole.hosts["host_key"][3]))
    with pytest.raises(Malformed) as raised:
        merge(low, whole)
    assert raised.value.fault is FileFault.NOT_SORTED


def test_partitions_that_share_the_last_host_of_one_are_not_merged(whole: Partition) -> None:
    host = int(whole.hosts["host_key"][3])
    low, high = split(whole, host)[0], split(whole, host + 1)[1]
    shared = split(split(whole, host)[1], host + 1)[0]
    for parts in ((shared, shared), (low, shared, shared), (shared, high, shared)):
        with pytest.raises(Malformed, match="share a range of host keys"):
            merge(*parts)


def test_gone_rows_that_are_spared_stay(whole: Partition) -> None:
    gone = np.flatnonzero(whole.urls["status"] == 6)
    assert len(gone) == 2
    spared = np.zeros(len(whole.urls["status"]), bool)
    spared[gone[0]] = True
    kept = compact(whole, spared=spared)
    keys = list(zip(*(kept.urls[name].tolist() for name in ("host_key", "path_key")), strict=True))
    for row, is_kept in zip(gone.tolist(), (True, False), strict=True):
        key = int(whole.urls["host_key"][row]), int(whole.urls["path_key"][row])
        assert (key in keys) is is_kept
    assert len(keys) == len(spared) - 1


def _with_annexes() -> Partition:
    """Return two rows: the second redirects to the URL of the first, stored again without its annex."""
    strings = ArenaBuilder(shared=False)
    urls = np.zeros(2, ROW)
    urls["path_key"] = 1, 2
    first = strings.add(b"http://a/", b'{"x":1}')
    urls["url_ref"] = first, strings.add(b"http://a/b")
    urls["etag_ref"] = strings.add(b"", b'{"d":"sha1:A"}'), strings.add(b"")
    urls["redirect_ref"] = 0, strings.add(b"http://a/")
    partition = empty_partition()
    partition.urls, partition.hosts = columns_of(urls), columns_of(np.zeros(1, HOST_ROW))
    partition.arena = strings.arena()
    return partition


def test_annexes_travel_with_their_strings() -> None:
    partition = compact(_with_annexes())
    arena = partition.arena
    (first, second), (etag, plain) = (partition.urls[name].tolist() for name in ("url_ref", "etag_ref"))
    assert (string_at(arena, first), annex_at(arena, first)) == (b"http://a/", b'{"x":1}')
    assert (string_at(arena, second), annex_at(arena, second)) == (b"http://a/b", None)
    assert (string_at(arena, etag), annex_at(arena, etag)) == (b"", b'{"d":"sha1:A"}')
    assert (string_at(arena, plain), annex_at(arena, plain)) == (b"", None)
    redirect = int(partition.urls["redirect_ref"][1])
    assert (string_at(arena, redirect), annex_at(arena, redirect)) == (b"http://a/", None)
    assert sha256_of(compact(partition)) == sha256_of(partition)


BODY = b"Disallow: /x\n" * 100


def _with_robots(*entries: bytes) -> Partition:
    strings = ArenaBuilder()
    hosts = np.zeros(len(entries), HOST_ROW)
    hosts["host_key"] = range(len(entries))
    hosts["robots_ref"] = [strings.add(entry) if entry else 0 for entry in entries]
    partition = empty_partition()
    partition.hosts, partition.arena = columns_of(hosts), strings.arena()
    return partition


def test_without_compression_no_robots_body_is_compressed() -> None:
    packed = pack_robots(BODY, Codec.ZSTD)
    given = (packed, b"", b"\1Allow: /", packed, b"\0", b"\2no zstd")
    raw = with_raw_robots(_with_robots(*given))
    found = [string_at(raw.arena, ref) or b"" for ref in raw.hosts["robots_ref"].tolist()]
    assert found == [b"\1" + BODY, b"", b"\1Allow: /", b"\1" + BODY, b"\0", b"\2no zstd"]
    assert raw.hosts["robots_ref"][0] == raw.hosts["robots_ref"][3]


def test_robots_bodies_cannot_fill_the_memory() -> None:
    bombs = [pack_robots(bytes([at]) * (8 << 20), Codec.ZSTD) for at in range(4)]
    with pytest.raises(Malformed, match=r"robots.txt bodies"):
        with_raw_robots(_with_robots(*bombs))
