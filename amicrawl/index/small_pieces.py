"""Much that is written at once, in pieces for which the system has memory at hand. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 16


def small_pieces(octets: bytes | memoryview) -> Iterator[memoryview]:
    """Yield *octets* in pieces of 64 KiB, each to be written by a call of its own.

    For more at a time Linux looks for larger stretches of memory to hold them, and those are what a
    virtual machine gives back to its host while they are free: having them back takes several times as
    long as writing. Smaller ones are at hand, and the calls cost next to nothing.
    """
    view = memoryview(octets)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]
