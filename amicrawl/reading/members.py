"""WARC files of one gzip member a record, read strictly: what a writer left whole, and no more.

A member counts where it inflates, its checksum and size agree, and it holds exactly one record: a
header, as many bytes of block as `Content-Length` says, and two line ends. Everything before the first
that does not is kept by a repair; `read_records` reads on behind it. Reads only.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.reading.framing import HEAD_LIMIT, warc_head
from amicrawl.reading.unpacking import gzip_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_BLANK_LINE = b"\r\n\r\n"
_VERSIONS = frozenset({"WARC/1.0", "WARC/1.1"})


@dataclass(frozen=True, slots=True)
class RecordMember:
    """A whole member, and the record in it."""

    offset: int
    length: int
    """Bytes of the member in the file."""
    header_length: int
    """Bytes of the record's header, blank line included."""
    block_length: int
    fields: dict[str, str]
    """The header's fields by lower-case name; of repeated ones the first."""


class Members:
    """The whole members at the beginning of a file, or from some member on, in order."""

    def __init__(self, stream: BinaryIO, *, start: int = 0) -> None:
        """*stream*, which must be able to seek, is read from *start*, where a member begins."""
        self.end = start
        """Where the last whole member that was yielded ends."""
        self.fault = ""
        """Why the iteration ended: empty where the file ends with a whole member."""
        self._stream = stream

    def __iter__(self) -> Iterator[RecordMember]:
        head, total, tail = b"", 0, b""
        for piece in gzip_pieces(self._stream, self.end):
            if piece.fault:
                self.fault = piece.fault
                return
            if len(head) < HEAD_LIMIT and _BLANK_LINE not in head:
                head += piece.data
            total += len(piece.data)
            tail = (tail + piece.data[-4:])[-4:]
            if piece.end < 0:
                continue
            member = self._checked(piece.offset, piece.end - piece.offset, head, total, tail)
            if member is None:
                return
            self.end = piece.end
            yield member
            head, total, tail = b"", 0, b""

    def _checked(
        self, offset: int, length: int, head: bytes, total: int, tail: bytes
    ) -> RecordMember | None:
        """Return the member, of *total* bytes inflated; None, with the fault noted, if it is none."""
        header_length = head.find(_BLANK_LINE) + 4
        read = warc_head(head[:header_length]) if header_length >= 4 else None
        if read is None or read.version not in _VERSIONS or read.strange or read.length < 0:
            self.fault = "a gzip member holds no WARC record"
            return None
        if total != header_length + read.length + 4 or tail != _BLANK_LINE:
            self.fault = "a record is not as long as its Content-Length says"
            return None
        return RecordMember(offset, length, header_length, read.length, read.fields)


@dataclass(frozen=True, slots=True)
class MemberBody:
    """A record's block from some byte on, read from the file: a body that was stored."""

    path: Path
    member: RecordMember
    start: int
    """Where in the block it begins."""

    def __len__(self) -> int:
        return self.member.block_length - self.start

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes in order. Raises OSError where the member is no longer what it was."""
        skip, left = self.member.header_length + self.start, len(self)
        with self.path.open("rb") as stream:
            for piece in gzip_pieces(stream, self.member.offset):
                if piece.fault:
                    raise OSError(errno.EIO, piece.fault, str(self.path))
                part = piece.data[skip : skip + left]
                skip = max(0, skip - len(piece.data))
                left -= len(part)
                if part:
                    yield part
                if piece.end >= 0:
                    return

    def close(self) -> None:
        """Nothing to give back."""
