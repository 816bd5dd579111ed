"""The logs of a partition, replayed one after the other. Reads only."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.frontier.store.frames import FIRST_LSN, Replayed, replay
from amicrawl.frontier.store.listing import TAIL_SUFFIX
from amicrawl.frontier.store.salvage import Gap, gap_at, gap_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


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
    """Hand on what the logs *paths* say, in order; see `frames.replay` for what is handed on.

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
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                if size == 0:  # which cannot be mapped
                    self.logs.append(ReplayedLog(path, 0, 0, 0, ""))
                    return
                with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as block:
                    self._replay(path, block)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error

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
