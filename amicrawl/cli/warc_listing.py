"""WARC listing: the records of one file, from its beginning, as far as they are whole. Reads only.

Records are told by FastWARC, which reads any WARC. It does not say where a file is cut, so each record's
block is counted against its Content-Length.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fastwarc.warc import ArchiveIterator

from amicrawl.errors import DamagedFileError, InputError
from amicrawl.message import status_of
from amicrawl.record.members import INFLATION_ERROR, Inflation

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_STATUS_LINE = 64
_WITH_STATUS = ("response", "revisit")


@dataclass(frozen=True, slots=True)
class ListedRecord:
    """A record, and where it lies."""

    offset: int
    """First byte of its gzip member, or of the record itself in a file that is not packed."""
    length: int
    """Bytes up to the next record or the end of the member: what `warc_length` says in the index."""
    type: str
    status: int | None
    """HTTP status; None where the record holds no response."""
    uri: str
    """`WARC-Target-URI`; untrusted text, empty where there is none."""


@dataclass(slots=True)
class WarcListing:
    """The first records of a file."""

    size: int
    """Bytes of the file."""
    records: list[ListedRecord]
    more: bool = False
    """Whether there are records behind those listed."""
    fault: str = ""
    """Why the records end before the file does; empty where they do not."""


def list_records(path: Path, *, limit: int) -> WarcListing:
    """Return the first *limit* records of the WARC file *path*.

    Raises InputError where it does not begin like one. Of a file that is cut or damaged further on, the
    whole records before that are listed; DamagedFileError where not one is whole.
    """
    listing = WarcListing(path.stat().st_size, [])
    with path.open("rb") as stream:
        if listing.size and not stream.read(5).startswith((b"WARC/", _GZIP_MAGIC, _ZSTD_MAGIC)):
            raise InputError(f"{path} is no WARC file. Give one, or a capture index, or a directory.")
        stream.seek(0)
        try:
            _list(ArchiveIterator(stream, parse_http=False), listing, limit=limit)
        except (OSError, ValueError) as error:
            listing.fault = str(error)
        if listing.records and not listing.more:
            _end(listing, stream)
    if not listing.records and listing.size and limit:
        raise DamagedFileError(path, 0, f"no whole WARC record ({listing.fault or 'none begins'})")
    return listing


def _list(archive: ArchiveIterator, listing: WarcListing, *, limit: int) -> None:
    """Put the records of *archive* into *listing*; the length of the last one is still to be found."""
    records = listing.records
    for record in archive:
        offset = record.stream_pos
        if records:
            last = records[-1]
            records[-1] = replace(last, length=offset - last.offset)
        if len(records) >= limit:
            listing.more = True
            return
        begun = record.reader.read(_STATUS_LINE)
        block = len(begun) + record.reader.consume()
        if not _is_length(record.headers.get("Content-Length"), block):
            listing.fault = f"the record at byte {offset} is not whole"
            return
        kind = str(record.record_type)
        status = status_of(begun) if kind in _WITH_STATUS else None
        uri = record.headers.get("WARC-Target-URI") or ""
        records.append(ListedRecord(offset, 0, kind, status, uri))


def _is_length(declared: str | None, length: int) -> bool:
    return declared is not None and declared.isdecimal() and int(declared[:20]) == length


def _end(listing: WarcListing, stream: BinaryIO) -> None:
    """Find where the last record ends, and drop it if it does not."""
    last = listing.records.pop()
    try:
        end = _end_of_record(stream, last.offset)
    except INFLATION_ERROR as error:
        listing.fault = f"the record at byte {last.offset} is damaged ({error})"
        return
    if end is None:
        listing.fault = f"the record at byte {last.offset} is not whole"
        return
    listing.records.append(replace(last, length=end - last.offset))
    if end < listing.size and not listing.fault:
        listing.fault = f"{listing.size - end} bytes behind the last whole record are none"


def _end_of_record(stream: BinaryIO, offset: int) -> int | None:
    """Return where the last record of a file, at *offset*, ends; None where its gzip member does not."""
    stream.seek(offset)
    if stream.read(2) != _GZIP_MAGIC:
        return stream.seek(0, os.SEEK_END)
    stream.seek(offset)
    member = Inflation(stream, offset=offset)
    member.begin_member()
    for _ in member:
        pass
    return member.offset if member.ended else None
