"""The two tables of a frontier file: their columns, in the order of the file, and a partition as these.

Times are hours since 1970 unless the name says otherwise, 0 meaning never; a `_ref` is an offset into
the string arena, 0 meaning none. `ROW` and `HOST_ROW` are the same fields as one packed record: the
octets of a row in a journal are its key followed by its value, in just this order. In a `Partition` rows
are ordered by host key, then path key, as unsigned numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from struct import Struct

import numpy as np

from amicrawl.meguri.format.faults import FileFault, Malformed


class Encoding(IntEnum):
    """How the values of a page are written."""

    RAW = 0
    DICT = 1
    DELTA = 2
    FOR = 3
    RLE = 4
    DELTA_FOR = 6


class Codec(IntEnum):
    """How a page is compressed."""

    NONE = 0
    ZSTD = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a table."""

    id: int
    name: str
    kind: str
    """The numpy type of its values, little-endian."""
    nominal: Encoding
    """The encoding that is tried; a page is written raw unless that is larger."""

    @property
    def dtype(self) -> np.dtype:
        """The type of its values."""
        return np.dtype(self.kind)

    @property
    def width(self) -> int:
        """Bytes of a value."""
        return self.dtype.itemsize

    @property
    def has_zones(self) -> bool:
        """Whether its least and greatest value are noted: for all integers."""
        return self.dtype.kind == "u"


def _columns(*given: tuple[str, str, Encoding]) -> tuple[Column, ...]:
    return tuple(Column(number, *rest) for number, rest in enumerate(given))


_E = Encoding

URL_COLUMNS = _columns(
    ("host_key", "<u8", _E.RLE),
    ("path_key", "<u8", _E.DELTA_FOR),
    ("status", "u1", _E.DICT),
    ("priority", "<f4", _E.DICT),
    ("depth", "<u2", _E.FOR),
    ("source", "u1", _E.DICT),
    ("url_ref", "<u8", _E.DELTA),
    ("first_seen", "<u4", _E.DELTA),
    ("last_crawled", "<u4", _E.DELTA),
    ("last_changed", "<u4", _E.DELTA),
    ("next_due", "<u4", _E.DELTA),
    ("lambda", "<f4", _E.DICT),
    ("crawl_count", "<u4", _E.FOR),
    ("change_count", "<u4", _E.FOR),
    ("no_change_streak", "<u2", _E.FOR),
    ("etag_ref", "<u8", _E.DELTA),
    ("last_modified", "<u4", _E.DELTA),
    ("content_fp", "<u8", _E.RAW),
    ("simhash", "<u8", _E.RAW),
    ("http_status", "<u2", _E.DICT),
    ("redirect_ref", "<u8", _E.RLE),
    ("retry_count", "u1", _E.FOR),
    ("error_count", "<u2", _E.FOR),
)

HOST_COLUMNS = _columns(
    ("host_key", "<u8", _E.DELTA_FOR),
    ("host_ref", "<u8", _E.DELTA),
    ("grouping", "u1", _E.DICT),
    ("registrable_ref", "<u8", _E.DELTA),
    ("resolved_ip", "V16", _E.RAW),  # IPv4 as IPv4-mapped; all zero: not resolved
    ("ip_expiry", "<u4", _E.DELTA),
    ("robots_fetched", "<u4", _E.DELTA),
    ("robots_expiry", "<u4", _E.DELTA),
    ("robots_ref", "<u8", _E.DELTA),
    ("crawl_delay", "<u2", _E.DICT),  # tenths of a second
    ("host_next_eligible", "<u4", _E.DELTA),  # seconds since 1970
    ("ip_next_eligible", "<u4", _E.DELTA),  # seconds since 1970
    ("url_budget", "<u4", _E.FOR),
    ("url_count", "<u4", _E.FOR),
    ("depth_cap", "<u2", _E.DICT),
    ("host_score", "<f4", _E.DICT),
    ("crawl_total", "<u4", _E.FOR),
    ("error_total", "<u4", _E.FOR),
    ("avg_latency", "<u2", _E.FOR),  # milliseconds
    ("flags", "<u2", _E.DICT),
)

URL_REFERENCES = tuple(column.name for column in URL_COLUMNS if column.name.endswith("_ref"))
HOST_REFERENCES = tuple(column.name for column in HOST_COLUMNS if column.name.endswith("_ref"))

ROW = np.dtype([(column.name, column.kind) for column in URL_COLUMNS])
"""A row of the URL table as 103 octets."""
HOST_ROW = np.dtype([(column.name, column.kind) for column in HOST_COLUMNS])
"""A row of the host table as 97 octets."""

_PACKED = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f4": "f", "V16": "16s"}


def packing_of(record: np.dtype) -> Struct:
    """Return what packs and unpacks the octets of one row of *record*, little-endian, without gaps."""
    fields = [record[name] for name in record.names or ()]
    return Struct("<" + "".join(_PACKED[f"{field.kind}{field.itemsize}"] for field in fields))


Columns = Mapping[str, np.ndarray]
"""The columns of a table by name; all of one length. They may be views into records (strided) or into
mapped files, and are never written to by this room."""

EMPTY_ARENA = b"\0"
"""A string arena with nothing in it: offset 0 is taken, since a reference of 0 means none."""


@dataclass(slots=True)
class Partition:
    """What a frontier file says."""

    urls: Columns
    """Sorted by host key, then path key, as unsigned numbers."""
    hosts: Columns
    """Sorted by host key."""
    arena: bytes | memoryview = EMPTY_ARENA
    """The strings: each a uvarint length and its octets, at the offsets that `_ref` columns say."""
    partition_id: int = 0
    created: int = 0
    """Hours since 1970."""
    host_key_lo: int = 0
    host_key_hi: int = 0xFFFF_FFFF_FFFF_FFFF
    meta: tuple[tuple[bytes, bytes], ...] = ()
    """Pairs, in the order of the file: sorted by key."""
    seen_filter: bytes | memoryview = field(default=b"", repr=False)
    """The blob of a seen-set filter; empty where there is none."""


def columns_of(records: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of *records*, a structured array, as views."""
    names = records.dtype.names
    assert names is not None
    return {name: records[name] for name in names}


class KeyOrder:
    """Checks the keys of a table page by page."""

    def __init__(self, table: str, *, equal_keys: bool) -> None:
        self._table = table
        self._equal_keys = equal_keys
        self._last: tuple[int, int] | None = None
        self._rows = 0

    def add(self, host_keys: np.ndarray, path_keys: np.ndarray | None = None) -> None:
        """Take the next keys in; Malformed where one is below the one before it, or the same.

        The same are let pass where they were allowed. Without *path_keys* host keys are all there is.
        """
        if not len(host_keys):
            return
        first = int(host_keys[0]), 0 if path_keys is None else int(path_keys[0])
        if self._last is not None and (
            first < self._last or (first == self._last and not self._equal_keys)
        ):
            self._refuse(self._rows, equal=first == self._last)
        below, equal = host_keys[1:] < host_keys[:-1], host_keys[1:] == host_keys[:-1]
        if path_keys is not None:
            below |= equal & (path_keys[1:] < path_keys[:-1])
            equal &= path_keys[1:] == path_keys[:-1]
        if below.any():
            self._refuse(self._rows + 1 + int(below.argmax()), equal=False)
        if not self._equal_keys and equal.any():
            self._refuse(self._rows + 1 + int(equal.argmax()), equal=True)
        self._last = int(host_keys[-1]), 0 if path_keys is None else int(path_keys[-1])
        self._rows += len(host_keys)

    def _refuse(self, row: int, *, equal: bool) -> None:
        what = (
            "has the same key as the row before it"
            if equal
            else "has a lower key than the row before it"
        )
        raise Malformed(f"{self._table} row {row} {what}", fault=FileFault.NOT_SORTED)
