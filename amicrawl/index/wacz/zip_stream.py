"""A ZIP file written as a stream of entries, each summed up while it goes in.

Entries are stored or deflated, of any size (ZIP64 where needed), and what their headers say is complete,
so that a reader needs no data descriptors. Names, times and modes depend on what is given only: the same
entries and moment give the same bytes. The file appears under its name once it is whole.
"""

from __future__ import annotations

import hashlib
import zipfile
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple, cast

from amicrawl.disk import OutputFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType
    from typing import IO, Self

    from amicrawl.disk import Disk

_MODE = 0o100644 << 16
_UNIX = 3
_FIRST_YEAR, _LAST_YEAR = 1980, 2107  # what two seconds in a field of 32 bits can say


class ZipEntry(NamedTuple):
    """A file in a package."""

    path: str
    """Its name in the package."""
    size: int
    """Bytes, unpacked."""
    sha256: str
    """Lower-case hex, of the unpacked bytes."""


class ZipPackage:
    """A ZIP file being written; leaving its context normally seals it."""

    def __init__(self, path: Path, *, moment: datetime, disk: Disk) -> None:
        """Begin `path`.open; every entry is dated *moment*. OutputFile says which errors there are."""
        self._file = OutputFile.replacing(path, disk=disk)
        self._zip = zipfile.ZipFile(cast("IO[bytes]", _Seekable(self._file)), "w")
        utc = moment.astimezone(UTC)
        year = min(max(utc.year, _FIRST_YEAR), _LAST_YEAR)
        self._date = (year, utc.month, utc.day, utc.hour, utc.minute, utc.second)

    def add(self, path: str, pieces: Iterable[bytes], *, packed: bool, size: int = 0) -> ZipEntry:
        """Write an entry from its *pieces*, deflated where *packed*, and return it.

        *size* is how many bytes to expect: a file above 2 GiB that is not announced is refused halfway.
        """
        info = zipfile.ZipInfo(path, self._date)
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        info.external_attr, info.create_system, info.file_size = _MODE, _UNIX, size
        digest, total = hashlib.sha256(), 0
        with self._zip.open(info, "w") as entry:
            for piece in pieces:
                entry.write(piece)
                digest.update(piece)
                total += len(piece)
        return ZipEntry(path, total, digest.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._zip.close()
                self._file.seal()
            else:
                # zipfile would write a directory for what is there when it is collected.
                self._zip.fp = None
        finally:
            self._file.close()


class _Seekable:
    """An OutputFile as `zipfile` wants a file: headers are written over once sizes are known."""

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self._position = 0

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        self._position = position
        return position

    def write(self, block: bytes) -> int:
        end = self._file.tell()
        if self._position == end:
            self._file.write(block)
        elif self._position + len(block) <= end:
            self._file.write_at(self._position, block)
        else:
            raise OSError("a header would run into what follows it")
        self._position += len(block)
        return len(block)

    def flush(self) -> None:
        """Nothing is held back."""
