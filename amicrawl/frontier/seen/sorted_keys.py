"""Keys of the rows that lie on disk, found exactly in the sorted columns of a mapped file.

A small directory stays in memory, every 512th key: 0.03 bytes a row. A look-up goes through it to one
stretch of 512 rows and reads nine of them where they lie. The columns are never copied.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from collections.abc import Callable

_STRETCH = 512
_PAGE = 256
"""Directory entries that are read at a time: each may have to wait for the disk."""
_WIDTH = 8
"""Bytes of half a key."""
_half = Struct("<Q").unpack_from
_pair = Struct("<QQ").unpack_from


class SortedKeys:
    """The keys of a table's rows, in their order.

    *hosts* and *paths* are its two key columns, `uint64`, sorted by host, then path, no key twice: any
    one-dimensional arrays, such as fields of a mapped array of records. They are kept, and must not
    change. Of columns that are not sorted it finds some rows and misses others, no worse.
    """

    __slots__ = ("_count", "_first_hosts", "_first_paths", "_key_at")

    def __init__(self, hosts: np.ndarray, paths: np.ndarray) -> None:
        if hosts.shape != paths.shape or hosts.ndim != 1:
            raise ValueError("Host and path halves are two arrays of one length")
        self._count = len(hosts)
        self._first_hosts = _every_stretch(hosts)
        self._first_paths = _every_stretch(paths)
        self._key_at = _reader(hosts, paths)

    def __len__(self) -> int:
        return self._count

    def find(self, host: int, path: int) -> int | None:
        """Return the number of the row that has the key, from 0, or None."""
        row = self._lower_bound(host, path)
        return row if row < self._count and self._key_at(row) == (host, path) else None

    def _lower_bound(self, host: int, path: int) -> int:
        """Return the first row whose key is not less."""
        firsts = self._first_hosts
        stretch = bisect_left(firsts, host)
        if stretch < len(firsts) and firsts[stretch] == host:
            end = bisect_right(firsts, host, stretch)
            stretch = bisect_left(self._first_paths, path, stretch, end)
        high = min(stretch * _STRETCH, self._count)
        low = max(stretch - 1, 0) * _STRETCH
        key, key_at = (host, path), self._key_at
        while low < high:
            middle = (low + high) // 2
            if key_at(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low


def _every_stretch(column: np.ndarray) -> array[int]:
    chosen = column[::_STRETCH]
    firsts = array("Q")
    for start in range(0, len(chosen), _PAGE):
        firsts.frombytes(chosen[start : start + _PAGE].astype(np.uint64).tobytes())
    return firsts


def _reader(hosts: np.ndarray, paths: np.ndarray) -> Callable[[int], tuple[int, int]]:
    """Return the function from a row number to its key.

    The octets are read from memory directly: numpy's own indexing takes five times as long.
    """
    host_at, path_at = hosts.strides[0], paths.strides[0]
    if host_at == path_at and paths.ctypes.data - hosts.ctypes.data == _WIDTH:
        pairs = _octets(hosts, 2 * _WIDTH)
        return lambda row: _pair(pairs, row * host_at)
    host_octets, path_octets = _octets(hosts, _WIDTH), _octets(paths, _WIDTH)
    return lambda row: (*_half(host_octets, row * host_at), *_half(path_octets, row * path_at))


def _octets(column: np.ndarray, width: int) -> memoryview:
    """Return the memory from the first value of *column* to *width* bytes from the start of the last."""
    stride = column.strides[0]
    if column.dtype != np.dtype("<u8") or stride < 0:
        raise ValueError("A key column holds little-endian uint64, in ascending addresses")
    size = (len(column) - 1) * stride + width if len(column) else 0
    octets = column[:, np.newaxis].view(np.uint8)
    return as_strided(octets, (size,), (1,), writeable=False).data
