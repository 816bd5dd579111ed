"""Everything amicrawl raises on purpose, sorted by whose fault it is.

Each class carries the exit code that a command ends with when the error reaches the top; the table is
in `docs/exit-codes.md`. A message is a sentence that says what is wrong, where, and what to do. What a
server does wrong is not an error here: it is data, kept in a `Capture`.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class ExitCode(IntEnum):
    """What a command ends with."""

    DONE = 0
    OUR_ERROR = 1
    USAGE = 2
    INPUT = 3
    OUTPUT = 4
    DAMAGED = 5
    STOPPED = 6
    SEEDS_BAD = 7
    LIMIT = 8
    UNAVAILABLE = 9
    UNREACHED = 10


class AmicrawlError(Exception):
    """Anything raised on purpose; on its own, a fault of ours."""

    exit_code: ClassVar[ExitCode] = ExitCode.OUR_ERROR


class UsageError(AmicrawlError):
    """An argument or setting that cannot be used: the caller has to correct it."""

    exit_code = ExitCode.USAGE


class InputError(AmicrawlError):
    """An input that is missing or cannot be read."""

    exit_code = ExitCode.INPUT


class OutputError(AmicrawlError):
    """A place that cannot be written to, or is full."""

    exit_code = ExitCode.OUTPUT


class DamagedFileError(AmicrawlError):
    """Bytes that should follow one of our formats do not."""

    exit_code = ExitCode.DAMAGED

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        super().__init__(f"{path}, byte {offset}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


OUT_OF_MEMORY = (
    "Give the process more memory, or have it need less (a lower AMICRAWL_INFLIGHT_MAX, or "
    "AMICRAWL_SPOOL_ABOVE)"
)
"""What to do where no memory was left."""
_NO_ROOM = ("can't start new thread", "failed to map segment")
"""How Python and the loader of libraries say that a thread or a library found no room."""


def is_want_of_memory(error: Exception) -> bool:
    """Return whether *error* says that there was not enough memory, whatever its class."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or any(words in str(error) for words in _NO_ROOM)
