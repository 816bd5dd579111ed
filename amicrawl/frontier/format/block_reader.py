"""The bytes of a frontier file, read where they are wanted and counted; and errors that say where.

Everything above knows offsets within a block at most; `placed` adds the file and the place.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from amicrawl.errors import InputError
from amicrawl.frontier.format.faults import FrontierFileError, Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEP: Final = 1 << 20
"""Bytes that are read at once where all that is wanted is to look at each of them."""


class BlockReader:
    """A file open for reading."""

    def __init__(self, path: Path) -> None:
        """Open *path*; InputError where that fails."""
        self.path = path
        self.reads = 0
        """Calls to the operating system so far."""
        self.bytes_read = 0
        with self._explained():
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.size = os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on; Malformed where the file no longer has them."""
        with self._explained():
            block = os.pread(self._descriptor, length, offset)
            self.reads += 1
            while len(block) < length:  # more than 2 GiB are read in parts
                more = os.pread(self._descriptor, length - len(block), offset + len(block))
                self.reads += 1
                if not more:
                    raise Malformed(
                        f"{length - len(block)} bytes are gone since the file was opened", at=len(block)
                    )
                block += more
        self.bytes_read += length
        return block

    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        """Yield the *length* bytes from *offset* on in steps."""
        for first in range(offset, offset + length, STEP):
            yield self.read(first, min(STEP, offset + length - first))

    @contextmanager
    def placed(self, offset: int, region: str) -> Iterator[None]:
        """Turn a `Malformed` into the error that names file and place; it counts from *offset* on."""
        try:
            yield
        except Malformed as fault:
            raise FrontierFileError(
                self.path, offset + fault.at, region, fault.reason, fault=fault.fault
            ) from fault

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}.") from error
