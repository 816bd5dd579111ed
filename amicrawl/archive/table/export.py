"""Records of a query's result, cut out of their WARC files into files of their own.

A result qualifies if it has the columns of a place: `warc_filename`, `warc_record_offset` and
`warc_record_length`, or `warc_file`, `warc_offset` and `warc_length`. A gzip member is checked, that it
is whole and holds one record, and copied byte by byte; an uncompressed record is compressed. Each file
begins with a warcinfo record. A place without a record is reported with the reason, and skipped;
records of ARC files are none.

File names come from the index, so they are looked for below the given directory only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

import pyarrow as pa
from isal import isal_zlib

from amicrawl import __version__
from amicrawl.clock import warc_date
from amicrawl.disk import Disk, OutputFile, explained, refuse_pipe
from amicrawl.errors import InputError, UsageError
from amicrawl.reading import Members, warc_head
from amicrawl.record import Record, RecordType, field_lines, gzip_member, record_ids
from amicrawl.record.warc import GZIP_WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amicrawl.archive.table.query import QueryResult

RECORDS_PER_FILE = 10_000
"""Records of an exported file at most, where nothing else is said."""

_PLACES = (
    ("warc_filename", "warc_record_offset", "warc_record_length"),
    ("warc_file", "warc_offset", "warc_length"),
)
_OTHER_PACKINGS = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_HEADER_LIMIT = 1024**2
_PIECE = 1024**2


class Miss(NamedTuple):
    """A place that no record was taken from."""

    file: str
    """Empty where the index does not say."""
    offset: int
    """-1 where the index does not say."""
    reason: str

    def __str__(self) -> str:
        """Return the place, as far as it is known, and the reason."""
        if not self.file:
            return f"A row without a file name: {self.reason}"
        return f"{self.file}{f', byte {self.offset}' if self.offset >= 0 else ''}: {self.reason}"


@dataclass
class Exported:
    """What came of an export."""

    records: int = 0
    files: list[str] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    """The first hundred."""
    missed: int = 0

    def miss(self, file: str, offset: int, reason: str) -> None:
        """Note that there is no record at *offset* of *file*."""
        self.missed += 1
        if len(self.misses) < 100:
            self.misses.append(Miss(file, offset, reason))


@dataclass(frozen=True)
class ExportOptions:
    """How records are exported."""

    prefix: str = "export"
    """What the names of the files begin with."""
    records_per_file: int = RECORDS_PER_FILE
    """0 for all in one."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    random: Callable[[int], bytes] = os.urandom


def export_records(
    result: QueryResult, archives: Path, out: Path, *, disk: Disk, options: ExportOptions | None = None
) -> Exported:
    """Write the records that *result* points at, in its order, to WARC files in the directory *out*.

    *archives* is where the WARC files of the index lie, by the names the index has or by the last part
    of those. UsageError where the result has no places or *out* an export; OutputError where *out*
    cannot be written; InputError where a record can be read once and not again.
    """
    options = options or ExportOptions()
    places = _places(result)
    with explained(out, "created"):
        out.mkdir(parents=True, exist_ok=True)
        before = sorted(out.glob(f"{options.prefix}-*.warc.gz"))
    if before:
        raise UsageError(f"{out} holds an export already ({before[0].name}). Choose another directory.")
    exported = Exported()
    file: OutputFile | None = None
    count = 0
    try:
        for name, offset, length in places:
            if file is not None and options.records_per_file and count >= options.records_per_file:
                file.seal()
                file = None
            try:
                whole = _whole_record(_found(archives, name), offset, length)
            except (_MissError, OSError) as error:
                exported.miss(name, offset, getattr(error, "strerror", None) or str(error))
                continue
            if file is None:
                file, count = _begun(out, len(exported.files), exported, disk=disk, options=options), 0
            _copy(whole, file)
            count += 1
            exported.records += 1
        if file is not None:
            file.seal()
    finally:
        if file is not None:
            file.close()
    return exported


def _places(result: QueryResult) -> Iterator[tuple[str, int, int]]:
    names = result.schema.names
    columns = next((place for place in _PLACES if set(place) <= set(names)), None)
    if columns is None:
        raise UsageError(
            f"This result does not say where records are: it has {', '.join(names)}. Select "
            f"{', '.join(_PLACES[0])}, as get_records_of_domain does."
        )
    for column in columns[1:]:
        kind = result.schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise UsageError(
                f"The column {column} of this result is {str(kind)[:80]}, and must be a whole number. "
                f"Select it as the table has it, or as {column}::BIGINT."
            )
    return (
        (str(name or ""), -1 if offset is None else offset, length or 0)
        for batch in result.batches
        for name, offset, length in zip(
            *(batch.column(column).to_pylist() for column in columns), strict=True
        )
    )


class _MissError(Exception):
    """There is no record at a place; the message says why."""


def _found(archives: Path, name: str) -> Path:
    if not name:
        raise _MissError("the index does not say in which file")
    parts = PurePosixPath(name).parts
    if parts and "\0" not in name and ".." not in parts and parts[0] != "/":
        for candidate in (archives.joinpath(*parts), archives / parts[-1]):
            if candidate.is_file():
                return candidate
    raise _MissError(f"there is no such file below {archives}")


def _begun(
    out: Path, number: int, exported: Exported, *, disk: Disk, options: ExportOptions
) -> OutputFile:
    path = out / f"{options.prefix}-{number:05d}.warc.gz"
    now = options.clock()
    said = (
        f"software: amicrawl/{__version__}\r\nformat: WARC File Format 1.1\r\n"
        "description: records cut out of other WARC files by a query to their index\r\n"
    )
    about = Record(
        RecordType.WARCINFO,
        record_ids(options.random, batch=1)(),
        warc_date(now),
        field_lines([("WARC-Filename", path.name), ("Content-Type", "application/warc-fields")]),
        said.encode(),
    )
    file = OutputFile.replacing(path, disk=disk)
    exported.files.append(path.name)
    file.write(gzip_member(about))
    return file


class _WholeRecord(NamedTuple):
    """A record that can be read."""

    path: Path
    offset: int
    length: int
    """Bytes of its gzip member, or of header and block where it is not packed."""
    is_packed: bool


def _whole_record(path: Path, offset: int, length: int) -> _WholeRecord:
    """Return the record at *offset* of the file *path*, read to its end.

    Raises OSError, or _MissError where there is none, or one of another *length*.
    """
    if offset < 0:
        raise _MissError("the index does not say where in the file")
    refuse_pipe(path)
    with path.open("rb") as stream:
        if offset >= stream.seek(0, os.SEEK_END):
            raise _MissError("no record begins there")
        stream.seek(offset)
        start = stream.read(5)
        if start == b"WARC/":
            return _WholeRecord(path, offset, _unpacked_length(stream, offset), is_packed=False)
        if unfit := _unfit(path.name, start):
            raise _MissError(unfit)
        members = Members(stream, start=offset)
        member = next(iter(members), None)
    if member is None:
        raise _MissError(members.fault or "no record begins there")
    if length > 0 and member.length != length:
        raise _MissError(f"the record is {member.length} bytes long, not {length}")
    return _WholeRecord(path, offset, member.length, is_packed=True)


def _unfit(name: str, start: bytes) -> str:
    """Return why what begins with *start* in the file *name* is not copied; empty where it may be."""
    if name.removesuffix(".gz").endswith(".arc"):
        return "it is an ARC file, of which no records are exported"
    if start.startswith(_OTHER_PACKINGS):
        return "it is packed with Zstandard or LZ4, of which no records are exported"
    return "" if start.startswith(b"\x1f\x8b") else "no record begins there"


def _unpacked_length(stream: IO[bytes], offset: int) -> int:
    """Return how many bytes the record at *offset* has, header and block; raises _MissError."""
    stream.seek(offset)
    head, blank, _ = stream.read(_HEADER_LIMIT).partition(b"\r\n\r\n")
    read = warc_head(head + blank)
    if not blank or read is None or read.length < 0:
        raise _MissError("no record begins there")
    whole = len(head) + 4 + read.length
    if stream.seek(0, os.SEEK_END) < offset + whole:
        raise _MissError("the file ends inside the record")
    return whole


def _copy(whole: _WholeRecord, file: OutputFile) -> None:
    """Copy *whole* to *file*; InputError where it cannot be read to its end any more."""
    packer = None if whole.is_packed else isal_zlib.compressobj(2, isal_zlib.DEFLATED, GZIP_WINDOW)
    left = whole.length
    try:
        with whole.path.open("rb") as stream:
            stream.seek(whole.offset)
            while left > 0 and (piece := stream.read(min(left, _PIECE))):
                left -= len(piece)
                file.write(packer.compress(piece) if packer else piece)
    except OSError as error:
        # Half a record is in the file by now, which therefore never gets its name.
        reason = error.strerror or error
        raise InputError(f"{whole.path} cannot be read: {reason}. Export again.") from error
    if left:
        raise InputError(f"{whole.path} became shorter while it was read. Export again.")
    if packer is not None:
        file.write(packer.compress(b"\r\n\r\n"))
        file.write(packer.flush())
