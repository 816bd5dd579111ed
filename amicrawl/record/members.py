"""The gzip members of a WARC file that was not finished, up to the first that is not whole. Reads only.

A member counts where it inflates, its checksum and size agree, and it holds exactly one record: a
header, as many bytes of block as `Content-Length` says, and two line ends. Everything before the first
that does not is kept by a repair, so this is stricter than a reader of foreign files would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from isal import isal_zlib

from amicrawl.record.warc import GZIP_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER_LIMIT = 1024**2
"""Bytes of the longest record header that is looked for."""
INFLATION_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # by its stub, an instance
"""What the bytes of a member that cannot be inflated raise."""
_READ_BLOCK = 1024**2
_FEED = 4 * 1024  # inflates to 4 MiB at most
_BLANK_LINE = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Member:
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

    def __init__(self, stream: IO[bytes], *, start: int = 0) -> None:
        """*stream*, which must be able to seek, is read from *start*, where a member begins."""
        self.end = start
        """Where the last whole member that was yielded ends."""
        self.fault = ""
        """Why the iteration ended: empty where the file ends with a whole member."""
        self._stream = stream

    def __iter__(self) -> Iterator[Member]:
        self._stream.seek(self.end)
        pieces = Inflation(self._stream, offset=self.end)
        while pieces.begin_member():
            member = self._read(pieces)
            if member is None:
                return
            self.end = member.offset + member.length
            yield member

    def _read(self, pieces: Inflation) -> Member | None:
        """Read one member; None, with the fault noted, where it is not whole."""
        start, head, total, tail = pieces.offset, b"", 0, b""
        try:
            for piece in pieces:
                if _BLANK_LINE not in head and len(head) < HEADER_LIMIT:
                    head += piece
                total += len(piece)
                tail = (tail + piece[-4:])[-4:]
        except INFLATION_ERROR as error:
            self.fault = f"a gzip member is damaged ({error})"
            return None
        if not pieces.ended:
            self.fault = "the file ends inside a gzip member"
            return None
        header_length = head.find(_BLANK_LINE) + 4
        fields = header_fields(head[:header_length]) if header_length >= 4 else {}
        length = fields.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            self.fault = "a gzip member holds no WARC record"
            return None
        block_length = int(length)
        if total != header_length + block_length + 4 or tail != _BLANK_LINE:
            self.fault = "a record is not as long as its Content-Length says"
            return None
        return Member(start, pieces.offset - start, header_length, block_length, fields)


class Inflation:
    """Gzip members of a stream, inflated piece by piece, one after the other."""

    def __init__(self, stream: IO[bytes], *, offset: int = 0) -> None:
        """*stream* stands at *offset*."""
        self.offset = offset
        """Where in the file the next byte to inflate is."""
        self.ended = True
        """Whether the current member has come to its end."""
        self._stream = stream
        self._buffer = memoryview(b"")
        self._inflater = isal_zlib.decompressobj(GZIP_WINDOW)

    def begin_member(self) -> bool:
        """Turn to the next member; False where the stream has no more bytes."""
        self._inflater = isal_zlib.decompressobj(GZIP_WINDOW)
        self.ended = False
        return bool(self._peek())

    def __iter__(self) -> Iterator[bytes]:
        """Yield the current member; `INFLATION_ERROR` where it is damaged."""
        while not self.ended and (feed := self._peek()):
            piece = self._inflater.decompress(feed)
            self.ended = self._inflater.eof
            used = len(feed) - len(self._inflater.unused_data) if self.ended else len(feed)
            self._buffer = self._buffer[used:]
            self.offset += used
            if piece:
                yield piece

    def _peek(self) -> memoryview:
        if not self._buffer:
            self._buffer = memoryview(self._stream.read(_READ_BLOCK))
        return self._buffer[:_FEED]


def header_fields(header: bytes) -> dict[str, str]:
    """Return the fields of a record's *header* by lower-case name; empty for anything else."""
    first, *lines = header.decode("utf-8", "replace").split("\r\n")
    if first not in {"WARC/1.1", "WARC/1.0"}:
        return {}
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    return fields
