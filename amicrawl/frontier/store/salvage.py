"""Salvage: the intact frames behind damage in a log, and how long the string arena is there. Pure.

A frame is taken for one behind damage if its checksum is right and its LSN is one that it can have: no
more frames fit into the damage than its bytes allow. Strings that were in it are gone, and how many
octets they had decides the offsets of all later ones; it follows from the rows behind, each of which
refers to the string in the frame before.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.schema import ROW
from amicrawl.frontier.store.frames import LEAST_FRAME, FrameKind, frame_at, read_frames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

_WINDOW: Final = 1 << 20
_SHAPES: Final = np.array([0x1000, 0x0801, 0x0002, 0x1080, 0x0881], np.uint16)
"""Kind and key length of frames, as one number."""
_CHECKED: Final = 8
"""How often the bytes behind damage are summed up at most: damage may be made to look like frames."""
_ANCHORS: Final = 16
_REFERENCES: Final = [ROW.fields[name][1] for name in ("url_ref", "etag_ref", "redirect_ref")]  # type: ignore[index]
_reference = Struct("<Q").unpack_from
_lsn_and_length = Struct("<QBBI").unpack_from


@dataclass(frozen=True, slots=True)
class Gap:
    """Damage with intact frames behind it."""

    offset: int
    """Where it begins, in bytes."""
    end: int
    """Where the next intact frame begins; the end of the log where that is in the next one."""
    next_lsn: int
    """The LSN of that frame."""
    lost: int
    """How many frames are gone."""
    arena_lengths: tuple[int, ...]
    """How long the string arena was behind the damage, by the rows behind it; they should agree."""


def gap_at(block: bytes | mmap, offset: int, next_lsn: int) -> Gap | None:
    """Return the damage at *offset*, where frame *next_lsn* should be; None if nothing follows it."""
    left = _CHECKED * (len(block) - offset)
    for at in _places(block, offset + LEAST_FRAME):
        lsn, _, key_length, value_length = _lsn_and_length(block, at)
        if not 0 < lsn - next_lsn <= (at - offset) // LEAST_FRAME:
            continue
        left -= LEAST_FRAME + key_length + value_length
        if left < 0:
            return None
        try:
            frame_at(block, at, next_lsn=lsn)
        except Malformed:
            continue
        return Gap(offset, at, lsn, lsn - next_lsn, tuple(arena_lengths(block, at, lsn)))
    return None


def gap_to(block: bytes | mmap, next_lsn: int, *, offset: int, end: int) -> Gap | None:
    """Return the damage from *offset* to the *end* of a log, where frame *next_lsn* should be.

    None where the first frame of *block*, the next log, is not one that can follow it.
    """
    try:
        lsn = frame_at(block, 0).lsn
    except Malformed:
        return None
    if not 0 < lsn - next_lsn <= (end - offset) // LEAST_FRAME:
        return None
    return Gap(offset, end, lsn, lsn - next_lsn, tuple(arena_lengths(block, 0, lsn)))


def arena_lengths(block: bytes | mmap, offset: int, lsn: int) -> Iterator[int]:
    """Yield how long the arena was before the frame *lsn* at *offset*, by the first rows behind."""
    appended, string_at, found = 0, -1, 0
    for frame in read_frames(block, offset, next_lsn=lsn):
        if frame.kind is FrameKind.INTERN:
            string_at = appended
            appended += len(frame.body)
            continue
        if frame.kind is FrameKind.URL and not frame.tombstone and string_at >= 0:
            yield max(_reference(frame.body, at)[0] for at in _REFERENCES) - string_at
            found += 1
            if found == _ANCHORS:
                return
        string_at = -1


def _places(block: bytes | mmap, offset: int) -> Iterator[int]:
    """Yield where from *offset* on a frame may begin, by its kind and the length of its key."""
    for start in range(offset, len(block) - LEAST_FRAME + 1, _WINDOW):
        octets = np.frombuffer(block[start : start + _WINDOW + 9], np.uint8)
        shapes = octets[8:-1].astype(np.uint16) | octets[9:].astype(np.uint16) << 8
        yield from (np.flatnonzero(np.isin(shapes, _SHAPES)) + start).tolist()
