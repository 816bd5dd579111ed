"""Partition: the rows of some hosts, as a frontier file holds them, column by column, and their order.

Rows are ordered by host key, then path key, as unsigned numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from amicrawl.meguri.format.faults import FileFault, Malformed

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
