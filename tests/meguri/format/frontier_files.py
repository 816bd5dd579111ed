"""Golden frontier files: the stored ones, with the dumps of what is in them, and some to make up."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from faulty_disks import QuickDisk
from urls.vectors import VECTOR_FILES

from amicrawl.meguri.format.schema import (
    HOST_COLUMNS,
    HOST_ROW,
    ROW,
    URL_COLUMNS,
    Column,
    Partition,
    columns_of,
)
from amicrawl.meguri.format.writer import WriteOptions, write_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES = VECTOR_FILES / "files"
DAMAGED = VECTOR_FILES / "damaged"


def stored(directory: Path) -> list[dict[str, Any]]:
    """Return the lines of the index in *directory* whose files are there."""
    index = directory / "index.jsonl"
    return [line for line in map(json.loads, index.read_text().splitlines()) if line["stored"]]


def dump_of(directory: Path, name: str) -> dict[str, Any]:
    """Return the dump *name*, with the rows of another one where it refers to that."""
    dump = _loaded(directory / name)
    if "rows_in" in dump:
        carrier = _loaded(directory / dump["rows_in"])
        arena = dump.get("arena_hex", carrier.get("arena_hex") if "arena" in dump else None)
        dump = {
            **{name: carrier[name] for name in carrier if name in ROW_FIELDS},
            **dump,
            "arena_hex": arena,
        }
    return dump


@cache
def _loaded(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


ROW_FIELDS = frozenset(
    """url_fields urls first_urls last_urls host_fields hosts first_hosts last_hosts arena_hex""".split()  # noqa: SIM905
)


def number(text: str | int) -> int:
    """Return a number that may stand as text."""
    return text if isinstance(text, int) else int(text, 0)


def records(rows: Sequence[Sequence[str | int]], schema: Sequence[Column]) -> np.ndarray:
    """Return rows of a dump as packed records."""
    parts = [
        b"".join(
            bytes.fromhex(str(value))
            if column.width == 16
            else number(value).to_bytes(column.width, "little")
            for column, value in zip(schema, row, strict=True)
        )
        for row in rows
    ]
    return np.frombuffer(b"".join(parts), ROW if schema is URL_COLUMNS else HOST_ROW)


def same_values(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether two columns agree bit by bit: NaNs are equal to themselves."""
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()


def same_partition(left: Partition, right: Partition) -> bool:
    """Return whether two partitions agree in everything."""
    tables = (left.urls, right.urls), (left.hosts, right.hosts)
    return (
        all(same_values(one[name], other[name]) for one, other in tables for name in one)
        and bytes(left.arena) == bytes(right.arena)
        and bytes(left.seen_filter) == bytes(right.seen_filter)
        and (left.partition_id, left.created, left.host_key_lo, left.host_key_hi, left.meta)
        == (right.partition_id, right.created, right.host_key_lo, right.host_key_hi, right.meta)
    )


def made_up(rows: int, hosts: int = 50, *, seed: int = 1) -> Partition:
    """Return a partition much like a real one, with strings for its references."""
    random = np.random.default_rng(seed)
    urls = np.zeros(rows, ROW)
    host_keys = np.sort(random.integers(0, 1 << 64, hosts, dtype=np.uint64))
    urls["host_key"] = np.sort(random.choice(host_keys, rows))
    urls["path_key"] = random.integers(0, 1 << 64, rows, dtype=np.uint64)
    urls = urls[np.lexsort((urls["path_key"], urls["host_key"]))]
    urls["status"] = random.choice([1, 4, 5], rows)
    urls["priority"] = random.random(rows)
    urls["depth"] = random.integers(0, 12, rows)
    urls["first_seen"] = 480000 + np.arange(rows) % 4000
    urls["next_due"] = np.where(random.random(rows) < 0.5, 0, 485000 + random.integers(0, 30000, rows))
    urls["content_fp"] = random.integers(0, 1 << 64, rows, dtype=np.uint64)
    string = b"\x0bhttp://a/xy"
    urls["url_ref"] = 1 + len(string) * np.arange(rows)
    table = np.zeros(hosts, HOST_ROW)
    table["host_key"] = host_keys
    table["crawl_delay"] = 10
    return Partition(
        urls=columns_of(urls),
        hosts=columns_of(table),
        arena=b"\0" + rows * string,
        partition_id=7,
        created=482817,
        meta=((b"writer", b"tests"),),
    )


def encode_partition(partition: Partition, options: WriteOptions) -> bytes:
    """Return the bytes of the file of *partition*."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "file.meguri"
        write_partition(partition, path, options=options, disk=QuickDisk())
        return path.read_bytes()


def empty_columns(columns: Sequence[Column]) -> dict[str, np.ndarray]:
    return {column.name: np.empty(0, column.dtype) for column in columns}


def empty_partition() -> Partition:
    return Partition(urls=empty_columns(URL_COLUMNS), hosts=empty_columns(HOST_COLUMNS))
