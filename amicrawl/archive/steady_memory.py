"""Memory management while millions of lines are processed: what is freed is kept, cycles wait.

Every block takes some megabytes and gives them back. Left to themselves, the allocators of the C library
and of Arrow give them to the system each time, and request them again: the system fills every page with
zeros anew, which costs as much as a third of all the work. Kept is what one block takes, so the most
that a process takes does not grow by it.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_KEPT = 64 << 20
_OWN_MAPPING = 8 << 20
"""Bytes from which on an allocation is given back at once.

Such a piece does not fit into what another one left: with the 32 MiB that the C library allows at most,
a heap of 64 MiB of a thread holds one column of a large batch, and a hostile index takes all addresses.
"""
_KEPT_OF_RECORDS = 4 << 20
_DEFAULT = 128 << 10


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Disable the search for cycles: parsed lines have none, and it takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def steady_memory() -> Iterator[None]:
    """Keep what is freed, some 64 MiB of it, until the block is left; with glibc only."""
    import pyarrow as pa  # noqa: PLC0415  # an index does without

    pool = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with steady_heap(_KEPT, own_mapping=_OWN_MAPPING):
            yield
    finally:
        pa.set_memory_pool(pool)


@contextmanager
def steady_heap(kept: int = _KEPT, *, own_mapping: int = _OWN_MAPPING) -> Iterator[None]:
    """Keep what is freed, up to *kept* bytes, without Arrow's; larger pieces are given back at once.

    A record takes a hundred kilobytes, just what the C library gives back by itself.
    """
    _set(kept, own_mapping)
    try:
        yield
    finally:
        _set(_DEFAULT, _DEFAULT)


def _set(kept: int, own_mapping: int) -> None:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        # Another C library, with ways of its own.
        return
    mallopt(_TRIM_THRESHOLD, kept)
    mallopt(_MMAP_THRESHOLD, own_mapping)
