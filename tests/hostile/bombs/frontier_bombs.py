"""Frontier files of kilobytes, right in all that they say, that stand for as much as is believed."""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from meguri.format.frontier_files import encode_partition, made_up
from meguri.format.test_hostile_files import claiming

from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.manifest import Manifest, ManifestEntry, encode_manifest
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Codec, Partition, columns_of
from amicrawl.meguri.format.varints import write_uvarint
from amicrawl.meguri.format.writer import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ROWS = 400_000


def _partition(urls: int = 0, hosts: int = 0) -> Partition:
    rows, table = np.zeros(urls, ROW), np.zeros(hosts, HOST_ROW)
    rows["path_key"], table["host_key"] = np.arange(urls), np.arange(hosts)
    return Partition(urls=columns_of(rows), hosts=columns_of(table), arena=b"")


def _ascending() -> bytes:
    return encode_partition(_partition(MOST_ROWS), WriteOptions(Codec.ZSTD, schedule=True))


def _runs() -> bytes:
    partition = _partition(MOST_ROWS)
    for name, values in partition.urls.items():
        if name not in {"host_key", "path_key", "url_ref"} and values.dtype.kind in "ui":
            values[::2] = 1
    return encode_partition(partition, WriteOptions(Codec.ZSTD))


def _hosts() -> bytes:
    return encode_partition(_partition(0, 360_000), WriteOptions(Codec.ZSTD))


def _pages() -> bytes:
    return encode_partition(_partition(300), WriteOptions(Codec.ZSTD, max_page_rows=1))


def _texts(arena: bytes, references: int) -> bytes:
    partition = made_up(references, hosts=1)
    partition.arena = arena
    partition.urls["url_ref"][:] = 1
    return encode_partition(partition, WriteOptions(Codec.ZSTD))


def _meta() -> bytes:
    partition = made_up(10)
    partition.meta = tuple((b"%d" % number, b"") for number in range(40_000))
    return encode_partition(partition, WriteOptions(Codec.ZSTD))


BOMBS: dict[str, Callable[[], bytes]] = {
    "rows.meguri": partial(claiming, MOST_ROWS),
    "ascending.meguri": _ascending,
    "runs.meguri": _runs,
    "hosts.meguri": _hosts,
    "pages.meguri": _pages,
    # A megabyte under a length of three bytes, to which every row refers.
    "a-text.meguri": partial(_texts, b"\0\xff\xff\x3f" + b"a" * 0xF_FFFF, 20_000),
    "strings.meguri": partial(_texts, b"\0" * 12_000_000, 10),
    "meta.meguri": _meta,
}


def _manifest(count: int, file: bytes) -> bytes:
    """Return a manifest of so many frontier files called *file*, each of which has all host keys."""
    entry = ManifestEntry(1, file, 0, 2**64 - 1, 1, 1, 1, 1.0, 0, 0, 0)
    return encode_manifest(Manifest((entry,) * count))


def _counting(count: int) -> bytes:
    """Return a manifest that is right in all but that it speaks of *count* files and has none."""
    body = b"MGM1" + write_uvarint(count)
    return body + struct.pack("<I", crc32c(memoryview(body))) + b"MGM1"


MANIFESTS: dict[str, Callable[[], bytes]] = {
    "entries.mgm": partial(_manifest, 48_000, b"a.meguri"),
    "a-name.mgm": partial(_manifest, 1, b"x" * 8_000_000),
    "a-count.mgm": partial(_counting, 2**62),
}
