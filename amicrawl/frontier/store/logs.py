"""The logs of a partition, replayed one after the other. Reads only."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.frontier.store.frames import FIRST_LSN, Replayed, replay
from amicrawl.frontier.store.listing import TAIL_SUFFIX

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
    def notes(self) -> tuple[str, ...]:
        """A sentence for each log that does not count to its end."""
        return tuple(
            f"{log.path} counts up to byte {log.intact_bytes} of {log.size}: there {log.stopped}. "
            f"What follows is cut off and kept as {log.path.name}{TAIL_SUFFIX}."
            for log in self.torn
        )


def replay_logs(
    paths: Iterable[Path],
    *,
    first_lsn: int | None,
    on_url: Callable[[bytes], object],
    on_host: Callable[[bytes], object],
    on_intern: Callable[[bytes], object],
    on_tombstone: Callable[[bytes], object],
) -> ReplayedLogs:
    """Hand on what the logs *paths* say, in order; see `frames.replay` for what is handed on.

    Their frames must be consecutive from *first_lsn* (None: from the first there is), across files
    too: of a log that begins behind a hole nothing counts. InputError where one cannot be read.
    """
    next_lsn = first_lsn
    logs = []
    for path in paths:
        size, done = _replay_file(
            path,
            next_lsn,
            on_url=on_url,
            on_host=on_host,
            on_intern=on_intern,
            on_tombstone=on_tombstone,
        )
        logs.append(ReplayedLog(path, size, done.intact_bytes, done.frames, done.stopped))
        next_lsn = done.next_lsn
    return ReplayedLogs(tuple(logs), FIRST_LSN if next_lsn is None else next_lsn)


def _replay_file(
    path: Path, first_lsn: int | None, **handlers: Callable[[bytes], object]
) -> tuple[int, Replayed]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size == 0:  # which cannot be mapped
                return 0, replay(b"", first_lsn=first_lsn, **handlers)
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as block:
                return size, replay(block, first_lsn=first_lsn, **handlers)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
