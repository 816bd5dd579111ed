"""The logs of a partition, replayed one after the other. Reads only.

Damage is passed over where intact frames follow it. A frame is taken for one behind damage if its
checksum is right and its LSN is one that it can have: no more frames fit into the damage than its bytes
allow. Strings that were in it are gone, and how many octets they had decides the offsets of all later
ones; it follows from the rows behind, each of which refers to the string in the frame before.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np

from amicrawl.disk import readable
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.schema import ROW, URL_REFERENCES
from amicrawl.meguri.store.journal import (
    FIRST_LSN,
    LEAST_FRAME,
    TAIL_SUFFIX,
    FrameKind,
    Replayed,
    frame_at,
    read_frames,
    replay,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_WINDOW: Final = 1 << 20
_SHAPES: Final = np.array([0x1000, 0x0801, 0x0002, 0x1080, 0x0881], np.uint16)
"""Kind and key length of frames, as one number."""
_CHECKED: Final = 8
"""How often the bytes behind damage are summed up at most: damage may be made to look like frames."""
_ANCHORS: Final = 16
_REFERENCES: Final = [ROW.fields[name][1] for name in URL_REFERENCES]  # type: ignore[index]
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


def gap_at(block: bytes | mmap.mmap, offset: int, next_lsn: int) -> Gap | None:
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


def gap_to(block: bytes | mmap.mmap, next_lsn: int, *, offset: int, end: int) -> Gap | None:
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


def arena_lengths(block: bytes | mmap.mmap, offset: int, lsn: int) -> Iterator[int]:
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


def _places(block: bytes | mmap.mmap, offset: int) -> Iterator[int]:
    """Yield where from *offset* on a frame may begin, by its kind and the length of its key."""
    for start in range(offset, len(block) - LEAST_FRAME + 1, _WINDOW):
        octets = np.frombuffer(block[start : start + _WINDOW + 9], np.uint8)
        shapes = octets[8:-1].astype(np.uint16) | octets[9:].astype(np.uint16) << 8
        yield from (np.flatnonzero(np.isin(shapes, _SHAPES)) + start).tolist()


@dataclass(frozen=True, slots=True)
class ReplayedLog:
    """How far one log counts."""

    path: Path
    size: int
    """Bytes that it has."""
    intact_bytes: int
    """Bytes that count, from its begin."""
    frames: int
    stopped: str
    """Why no more of it counts, as a clause; empty where all of it does."""
    gaps: tuple[Gap, ...] = ()
    """Damage that was passed over."""


@dataclass(frozen=True, slots=True)
class ReplayedLogs:
    """How far a chain of logs counts."""

    logs: tuple[ReplayedLog, ...]
    next_lsn: int
    """The LSN of the next frame to be written."""

    @property
    def torn(self) -> tuple[ReplayedLog, ...]:
        """The logs that do not count to their end."""
        return tuple(log for log in self.logs if log.intact_bytes < log.size)

    @property
    def lost(self) -> int:
        """How many frames were in the damage that was passed over."""
        return sum(gap.lost for log in self.logs for gap in log.gaps)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each damage, and for each log that does not count to its end."""
        passed = (
            f"{log.path} is damaged from byte {gap.offset} to byte {gap.end}: {gap.lost} changes are "
            "gone, what follows was read."
            for log in self.logs
            for gap in log.gaps
        )
        torn = (
            f"{log.path} counts up to byte {log.intact_bytes} of {log.size}: there {log.stopped}. "
            f"What follows is cut off and kept as {log.path.name}{TAIL_SUFFIX}."
            for log in self.torn
        )
        return (*passed, *torn)


def replay_logs(
    paths: Iterable[Path],
    *,
    first_lsn: int | None,
    on_url: Callable[[bytes], object],
    on_host: Callable[[bytes], object],
    on_intern: Callable[[bytes], object],
    on_tombstone: Callable[[bytes], object],
    on_gap: Callable[[Gap], object] | None = None,
) -> ReplayedLogs:
    """Hand on what the logs *paths* say, in order; see `journal.replay` for what is handed on.

    Their frames must be consecutive from *first_lsn* (None: from the first there is), across files
    too: of a log that begins behind a hole nothing counts. With *on_gap*, damage is passed over where
    intact frames follow it, in the same log or the next; it is handed each before those. InputError
    where a log cannot be read.
    """
    hand_on = partial(
        replay, on_url=on_url, on_host=on_host, on_intern=on_intern, on_tombstone=on_tombstone
    )
    chain = _Chain(first_lsn, on_gap, hand_on)
    for path in paths:
        chain.read(path)
    next_lsn = chain.next_lsn
    return ReplayedLogs(tuple(chain.logs), FIRST_LSN if next_lsn is None else next_lsn)


class _Chain:
    """Logs that are replayed one behind the other."""

    def __init__(
        self,
        first_lsn: int | None,
        on_gap: Callable[[Gap], object] | None,
        hand_on: partial[Replayed],
    ) -> None:
        self.next_lsn = first_lsn
        self.logs: list[ReplayedLog] = []
        self._on_gap = on_gap
        self._hand_on = hand_on
        self._torn: int | None = None
        """Which of the logs ends with damage that nothing has followed yet."""

    def read(self, path: Path) -> None:
        """Replay the log *path*; InputError where it cannot be read."""
        with readable(path), path.open("rb") as file:
            size = file.seek(0, 2)
            if size == 0:  # which cannot be mapped
                self.logs.append(ReplayedLog(path, 0, 0, 0, ""))
                return
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as block:
                self._replay(path, block)

    def _replay(self, path: Path, block: mmap.mmap) -> None:
        self._close_torn(block)
        gaps: list[Gap] = []
        done = self._hand_on(block, first_lsn=self.next_lsn)
        frames = done.frames
        while (gap := self._gap(block, done)) is not None:
            gaps.append(gap)
            done = self._hand_on(block, gap.end, first_lsn=gap.next_lsn)
            frames += done.frames
        self.next_lsn = done.next_lsn
        size = len(block)
        if done.intact_bytes < size:
            self._torn = len(self.logs)
        self.logs.append(ReplayedLog(path, size, done.intact_bytes, frames, done.stopped, tuple(gaps)))

    def _gap(self, block: mmap.mmap, done: Replayed) -> Gap | None:
        """Return the damage that *block* was replayed up to, if intact frames follow it there."""
        if self._on_gap is None or done.next_lsn is None or done.intact_bytes == len(block):
            return None
        gap = gap_at(block, done.intact_bytes, done.next_lsn)
        if gap is not None:
            self._on_gap(gap)
        return gap

    def _close_torn(self, block: mmap.mmap) -> None:
        """Skip the damage at the end of an earlier log, if *block* continues behind it."""
        torn, self._torn = self._torn, None
        if torn is None or self._on_gap is None or self.next_lsn is None:
            return
        log = self.logs[torn]
        gap = gap_to(block, self.next_lsn, offset=log.intact_bytes, end=log.size)
        if gap is not None:
            self._on_gap(gap)
            self.next_lsn = gap.next_lsn
            self.logs[torn] = replace(log, intact_bytes=log.size, stopped="", gaps=(*log.gaps, gap))
