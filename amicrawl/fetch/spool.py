"""Spool: a body while it is received, in memory at first and in a temporary file once it is large."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

_READ = 256 * 1024


class Spool:
    """A `capture.Body` that grows by `write`.

    The file is unlinked from the start, so that a crash leaves nothing behind; `close` gives it back.
    Reads are positional, so readers and the writer do not affect each other.
    """

    __slots__ = ("_above", "_blocks", "_closed", "_directory", "_file", "_length")

    def __init__(self, directory: Path, *, above: int) -> None:
        self._directory = directory
        self._above = above
        self._blocks: list[bytes] = []
        self._file: FileIO | None = None
        self._length = 0
        self._closed = False

    def __len__(self) -> int:
        """Return the number of bytes written so far."""
        return self._length

    @property
    def on_disk(self) -> bool:
        """Whether the body has outgrown memory."""
        return self._file is not None

    def write(self, block: bytes) -> None:
        """Append *block*. Raises OutputError where the temporary file cannot be made or written."""
        if not block:
            return
        if self._file is None and self._length + len(block) <= self._above:
            self._blocks.append(block)
        else:
            try:
                self._write_to_file(block)
            except OSError as error:
                raise OutputError(
                    f"Cannot write a temporary file in {self._directory}: {error.strerror}. "
                    "Make room there, then run the same command again: a crawl resumes."
                ) from error
        self._length += len(block)

    def _write_to_file(self, block: bytes) -> None:
        if self._file is None:
            # A named file would outlive a crash; this one has no name from the start.
            self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
            for earlier in self._blocks:
                _write_all(self._file, earlier)
            self._blocks.clear()
        _write_all(self._file, block)

    def blocks(self) -> Iterator[bytes]:
        """Return what has been written, in order; may be called again, and from another thread."""
        if self._closed:
            raise ValueError("This body was closed and cannot be read any more.")
        return iter(tuple(self._blocks)) if self._file is None else self._blocks_of(self._file)

    def _blocks_of(self, file: FileIO) -> Iterator[bytes]:
        offset = 0
        while offset < self._length:
            block = os.pread(file.fileno(), min(_READ, self._length - offset), offset)
            if not block:
                raise OutputError(
                    f"A temporary file in {self._directory} was cut short at byte {offset}."
                )
            yield block
            offset += len(block)

    def close(self) -> None:
        """Give back memory and file; a second call does nothing."""
        self._closed = True
        self._blocks.clear()
        if self._file is not None:
            self._file.close()


def _write_all(file: FileIO, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[file.write(rest) :]
