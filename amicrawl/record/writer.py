"""WarcWriter: records onto disk, in files `PREFIX-00000.warc.gz` that are sealed when they are full.

    add(records)    compresses them and says where they will lie
    commit(sync)    writes what was added; one write a file
    seal()          ends the file being written

A file is `<name>.open` until it is sealed. It is ended between two exchanges, when it has reached its
size: an exchange is never split over two files. `add` and `commit` are apart so that the index row can
be on disk before the record is: a row whose record never arrived is seen, a record without a row is not.

After the first OutputError every call raises it again. Nothing is sealed then; what was written is
`repair`'s to judge. Synchronous, for one thread.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import groupby
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from amicrawl.disk import OutputFile, Trust, explained, explanation
from amicrawl.listing import DEFAULT_PREFIX, SealedFile, number_in, warc_name
from amicrawl.record.warc import gzip_member, warcinfo_record, write_gzip_member

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.record.warc import Record, RecordIds

STREAM_ABOVE = 1024**2
"""Bytes of body above which a record is compressed into a temporary file instead of memory."""
_COPY_BLOCK = 1024**2


class RecordLocation(NamedTuple):
    """Where a record lies: one gzip member of a WARC file, which inflates to that record alone."""

    warc_file: str
    """Name of the file once it is sealed, without a directory; while written it ends in `.open`."""
    offset: int
    """First byte of the member."""
    length: int
    """Bytes of the member."""


@dataclass(slots=True)
class _Spooled:
    """A compressed record in a temporary file."""

    file: IO[bytes]
    length: int

    def __len__(self) -> int:
        return self.length


@dataclass(slots=True)
class _Pending:
    """What was added to one file and not yet written."""

    name: str
    pieces: list[bytes | _Spooled] = field(default_factory=list)
    records: int = 0
    is_last: bool = False
    """Whether the file is to be sealed once this is written."""


class WarcWriter:
    """Writes WARC files into one directory, each opened by a warcinfo record."""

    def __init__(
        self,
        directory: Path,
        *,
        max_size: int,
        warcinfo: Mapping[str, str],
        ids: RecordIds,
        now: Callable[[], datetime],
        disk: Disk,
        prefix: str = DEFAULT_PREFIX,
        first: int | None = None,
    ) -> None:
        """*first* is the number of the first file; None: the next after those in *directory*."""
        self.sealed: list[SealedFile] = []
        """The files that were finished, oldest first."""
        self.pending_bytes = 0
        """Bytes that were added and not yet written; those of long records wait in temporary files."""
        self._directory = directory
        self._prefix = prefix
        self._max_size = max_size
        self._warcinfo = warcinfo
        self._ids = ids
        self._now = now
        self._disk = disk
        self._number = next_number(directory) if first is None else first
        self._pending: list[_Pending] = []
        self._name = ""
        """The file that takes the next record; empty where one is to be begun."""
        self._offset = 0
        self._file: OutputFile | None = None
        self._records = 0
        self._sha256 = hashlib.sha256()
        self._trust = Trust(directory)
        self.will_seal = False
        """Whether the next commit finishes a file."""

    def add(self, exchanges: Sequence[Sequence[Record]]) -> list[RecordLocation]:
        """Take the records of *exchanges*, and return where the last of each will lie."""
        if self._trust.failure is not None:
            raise self._trust.failure
        try:
            members = [list(map(self._member, records)) for records in exchanges]
        except BaseException as error:
            self._trust.end(error)
            raise
        return list(map(self._append, members))

    def commit(self, *, sync: bool) -> None:
        """Write what was added, and with *sync* force it to disk."""
        if self._trust.failure is not None:
            raise self._trust.failure
        try:
            while self._pending:
                self._write(self._pending[0])
                if self._pending.pop(0).is_last:
                    self._seal()
            self.pending_bytes, self.will_seal = 0, False
            if sync and self._file is not None:
                self._file.sync()
        except BaseException as error:
            self._trust.end(error)
            raise

    def seal(self) -> None:
        """Write what was added and finish the file being written, if there is one."""
        self.commit(sync=False)
        with self._trust.at_stake():
            if self._file is not None:
                self._seal()
                self._name = ""

    def close(self) -> None:
        """Let go of everything as it is: for a crawl that cannot go on. The file stays `.open`."""
        for pending in self._pending:
            for piece in pending.pieces:
                if isinstance(piece, _Spooled):
                    piece.file.close()
        self._pending.clear()
        if self._file is not None:
            self._file.close()

    def _append(self, members: Sequence[bytes | _Spooled]) -> RecordLocation:
        """Take the *members* of one exchange, and return where the last of them will lie."""
        if not self._name:
            members = [self._begin_file(), *members]
        if not self._pending or self._pending[-1].name != self._name:
            self._pending.append(_Pending(self._name))
        pending, length = self._pending[-1], sum(map(len, members))
        pending.pieces += members
        pending.records += len(members)
        self._offset += length
        self.pending_bytes += length
        last = len(members[-1])
        location = RecordLocation(pending.name, self._offset - last, last)
        if self._offset >= self._max_size:
            pending.is_last = self.will_seal = True
            self._name = ""
        return location

    def _begin_file(self) -> bytes:
        """Name the file that takes the next record, and return the member that opens it."""
        self._name, self._offset = warc_name(self._prefix, self._number), 0
        self._number += 1
        return gzip_member(
            warcinfo_record(self._name, self._warcinfo, date=self._now(), record_id=self._ids())
        )

    def _member(self, record: Record) -> bytes | _Spooled:
        if record.body is None or len(record.body) <= STREAM_ABOVE:
            return gzip_member(record)
        with explained(self._directory, "used for a temporary file"):
            file = self._disk.temporary(self._directory)
            try:
                return _Spooled(file, write_gzip_member(record, file.write))
            except BaseException:
                file.close()
                raise

    def _write(self, pending: _Pending) -> None:
        if self._file is None:
            self._records, self._sha256 = 0, hashlib.sha256()
            path = self._directory / pending.name
            self._file = OutputFile(path, disk=self._disk, digest=self._sha256)
        try:
            for kind, pieces in groupby(pending.pieces, type):
                if kind is bytes:
                    self._file.write(b"".join(cast("Iterable[bytes]", pieces)))
                else:
                    self._copy(cast("Iterable[_Spooled]", pieces))
        except OSError as error:
            raise explanation(error, self._directory, "used for a temporary file") from error
        self._records += pending.records

    def _copy(self, pieces: Iterable[_Spooled]) -> None:
        """Write *pieces*, each of whose files is closed once it was read."""
        assert self._file is not None
        for piece in pieces:
            with piece.file as file:
                file.seek(0)
                while block := file.read(_COPY_BLOCK):
                    self._file.write(block)

    def _seal(self) -> None:
        assert self._file is not None
        self._file.seal()
        path, size = self._file.path, self._file.tell()
        self.sealed.append(SealedFile(path.name, size, self._records, self._sha256.hexdigest()))
        self._file = None


def next_number(directory: Path, *, taken: Collection[str] = ()) -> int:
    """Return the lowest number above those of all WARC files in *directory* and of the names in *taken*.

    Whatever their prefixes are. Files being written and the `.tail` files of a repair count: their
    numbers are never used again.
    """
    with explained(directory, "read"):
        names = [*taken, *(path.name for path in directory.iterdir())]
    numbers = (number_in(name) for name in names)
    return 1 + max((number for number in numbers if number is not None), default=-1)
