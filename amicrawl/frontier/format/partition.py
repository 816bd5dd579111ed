"""Partition: the rows of some hosts, as a frontier file holds them, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

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
