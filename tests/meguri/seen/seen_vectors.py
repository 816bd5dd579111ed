"""Golden vectors of the seen-set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.meguri.seen import BlockedBloom

Keys = tuple[np.ndarray, np.ndarray]
"""The host halves and the path halves of some keys."""

VECTOR_FILES = Path(__file__).parents[2] / "data" / "vectors"


def lines(directory: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the vectors of *kind*."""
    with (directory / "seen.jsonl").open(encoding="utf-8") as file:
        for line in file:
            fields = json.loads(line)
            if fields["kind"] == kind:
                yield fields


def key(halves: list[str]) -> tuple[int, int]:
    host, path = halves
    return int(host, 0), int(path, 0)


def stream(seed: int, count: int) -> Keys:
    """Return keys drawn from splitmix64, two draws each."""
    state = np.uint64(seed) + np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    pairs = (state ^ state >> np.uint64(31)).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def keys_of(fields: dict[str, Any]) -> Keys:
    """Return the keys that a filter of the vectors was filled with."""
    source = fields["keys"]
    hosts, paths = stream(int(source["seed"]), source["n"])
    if "host_key_is" in source:
        hosts = np.full(len(paths), int(source["host_key_is"], 0), np.uint64)
    again = int(source.get("then_again_the_first", 0))
    return np.concatenate([hosts, hosts[:again]]), np.concatenate([paths, paths[:again]])


def probes_of(fields: dict[str, Any], keys: Keys) -> Keys:
    """Return the keys that such a filter is given: members first, then strangers; 2,000 together."""
    members = fields["probes"]["members"]
    chosen = np.arange(members) * fields["keys"]["n"] // max(members, 1)
    strangers = stream(int(fields["probes"]["seed"]), fields["probes"]["n"] - members)
    if "last_probe" in fields:
        assert (int(strangers[0][-1]), int(strangers[1][-1])) == key(fields["last_probe"])
    return np.concatenate([keys[0][chosen], strangers[0]]), np.concatenate(
        [keys[1][chosen], strangers[1]]
    )


def blob_of(fields: dict[str, Any], directory: Path) -> bytes:
    if "blob" in fields:
        return bytes.fromhex(fields["blob"])
    file: str = fields["blob_file"]
    return (directory / file).read_bytes()


def pairs(keys: Keys) -> list[tuple[int, int]]:
    return list(zip(keys[0].tolist(), keys[1].tolist(), strict=True))


def random_keys(seed: int, count: int) -> Keys:
    return stream(seed, count)


def add_one(bloom: BlockedBloom, host: int, path: int) -> None:
    bloom.add_many(np.array([host], np.uint64), np.array([path], np.uint64))


def results_of(bloom: BlockedBloom, hosts: np.ndarray, paths: np.ndarray) -> list[bool]:
    """Return what *bloom* says of each key."""
    return [bloom.maybe(host, path) for host, path in zip(hosts.tolist(), paths.tolist(), strict=True)]
