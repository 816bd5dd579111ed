"""Everything amicrawl raises on purpose, sorted by whose fault it is.

Each class carries the exit code that a command ends with when the error reaches the top; the table is
in `docs/exit-codes.md`. A message is a sentence that says what is wrong, where, and what to do. What a
server does wrong is not an error here: it is data, kept in a `Capture`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class AmicrawlError(Exception):
    """Anything raised on purpose; on its own, a fault of ours."""

    exit_code: ClassVar[int] = 1


class UsageError(AmicrawlError):
    """An argument or setting that cannot be followed: the caller's to mend."""

    exit_code = 2


class InputError(AmicrawlError):
    """An input that is missing or cannot be read."""

    exit_code = 3


class OutputError(AmicrawlError):
    """A place that cannot be written to, or is full."""

    exit_code = 4


class DamagedFileError(AmicrawlError):
    """Bytes that should follow one of our formats do not."""

    exit_code = 5

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        super().__init__(f"{path}, byte {offset}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


class TruncatedFileError(DamagedFileError):
    """The file ends inside a unit; everything before `offset` is intact."""
