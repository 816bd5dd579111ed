"""HTTP/1 messages as bytes: the head's fields and the transfer coding (RFC 9112), read tolerantly.

Servers send what they send. Nothing here raises on odd input: a line that is not a field is skipped,
a chunk size that is none ends the decoding and the rest is handed on as it stands. Time and memory grow
with the input and no faster, however small its pieces. Pure: no I/O.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_tz
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STATUS_LINE = re.compile(rb"(?i:http(?:/[0-9.]*)?|icy)[ \t]+([0-9]{3})(?![0-9])")
_BLANK = b" \t\r"
_EMPTY_LINES = re.compile(rb"[\r\n]*")
_BLANK_LINE = re.compile(rb"\n\r*\n")
REGULAR_HEAD = re.compile(
    rb"HTTP/(1\.[01]) ([1-9][0-9]{2})(?: [^\r\n\0]*+)?\r\n"
    rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[^\r\n\0]*+\r\n)*\r\n"
)
"""A response's head that conforms to RFC 9112; its groups are the version and the status."""
NOTED = (
    b"connection", b"content-encoding", b"content-length", b"content-type", b"etag", b"last-modified",
    b"link", b"refresh", b"transfer-encoding",
)  # fmt: skip
"""Names of fields, in lower case, that each page is checked for."""
_VALUE = rb"):[ \t]*+((?:[^\r\n]*[^ \t\r\n])?)"
_FIELD = re.compile(rb"\n([^:\r\n]+" + _VALUE)
NOTED_FIELD = re.compile(rb"\n(" + b"|".join(NOTED) + _VALUE, re.IGNORECASE)
"""Finds those of `header_fields` whose names are in `NOTED`, in a head that `REGULAR_HEAD` matches."""


def end_of_head(data: bytes | bytearray, start: int = 0) -> int | None:
    """Return the offset behind the first blank line of *data* from *start* on, or None.

    A line that ends in CR CR LF, as text written twice through a Windows library does, counts as blank.
    """
    crlf = data.find(b"\n\r\n", start)
    bare = data.find(b"\n\n", start, len(data) if crlf < 0 else crlf + 1)
    end = bare + 2 if bare >= 0 else crlf + 3 if crlf >= 0 else None
    if data.find(b"\n\r\r", start, len(data) if end is None else end) >= 0:
        blank = _BLANK_LINE.search(data, start)
        return blank.end() if blank else None
    return end


def unfinished_blank_line(data: bytes | bytearray) -> int:
    """Return where in *data* a blank line may begin whose end is still to come; its length if nowhere.

    That is an LF with nothing but CRs behind it, however many: `end_of_head` goes on from there.
    """
    if data[-1:] not in (b"\r", b"\n"):
        return len(data)
    line_end = data.rfind(b"\n")
    return line_end if line_end >= 0 and not data[line_end + 1 :].strip(b"\r") else len(data)


def final_head(head: bytes) -> bytes:
    """Return the last header section of *head*: the final response, without interim (1xx) ones."""
    start = 0
    while (status := _status_at(head, start)) is not None and is_interim(status):
        end = end_of_head(head, behind_empty_lines(head, start))
        if end is None or end >= len(head):
            break
        start = end
    return head[start:]


def is_interim(status: int) -> bool:
    """Return whether another response follows one with *status* (RFC 9110, section 15.2)."""
    return 100 <= status < 200 and status != 101


def status_of(head: bytes) -> int | None:
    """Return the status code in the first line of *head*, or None where there is none."""
    return _status_at(head, 0)


def _status_at(head: bytes, start: int) -> int | None:
    match = _STATUS_LINE.match(head, behind_empty_lines(head, start))
    return int(match[1]) if match else None


def behind_empty_lines(head: bytes | bytearray, start: int) -> int:
    """Return the offset of the first line of *head* from *start* on that is not empty."""
    match = _EMPTY_LINES.match(head, start)
    return match.end() if match else start


def header_fields(head: bytes) -> list[tuple[bytes, bytes]]:
    """Return the fields of the final header section in *head*, in order.

    Folded lines (obs-fold) are joined by one space; a line without a colon is passed over; blanks
    before the colon are dropped from the name.
    """
    if REGULAR_HEAD.fullmatch(head):
        regular: list[tuple[bytes, bytes]] = _FIELD.findall(head)
        return regular
    fields: list[tuple[bytes, bytes]] = []
    folded: list[bytes] = []
    for line in final_head(head).lstrip(b"\r\n").split(b"\n")[1:]:
        if line[:1] in (b" ", b"\t") and fields:
            folded.append(line.strip(_BLANK))
            continue
        if folded:
            fields[-1] = _unfolded(*fields[-1], folded)
            folded.clear()
        name, colon, value = line.partition(b":")
        if colon and (name := name.strip(_BLANK)):
            fields.append((name, value.strip(_BLANK)))
    if folded:
        fields[-1] = _unfolded(*fields[-1], folded)
    return fields


def noted_fields(head: bytes) -> list[tuple[bytes, bytes]]:
    """Return those of `header_fields` whose names are in `NOTED`."""
    return [field for field in header_fields(head) if field[0].lower() in NOTED]


def _unfolded(name: bytes, value: bytes, folded: list[bytes]) -> tuple[bytes, bytes]:
    return name, b" ".join(part for part in (value, *folded) if part)


def is_chunked(fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether the last transfer coding that *fields* name is chunked."""
    codings = b""
    for name, value in fields:
        if name.lower() == b"transfer-encoding":
            codings = value
    return codings.rpartition(b",")[2].strip().lower() == b"chunked"


def codings_of(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return what *fields* name of codings that a payload is in, comma-separated; empty for none.

    In the order in which they were applied: content codings, then transfer codings. Chunked, which is
    removed of a payload, may be among the latter.
    """
    content = transfer = b""
    for name, value in fields:
        lowered = name.lower()
        if lowered == b"content-encoding":
            content += b"," + value
        elif lowered == b"transfer-encoding" and value.lower() != b"chunked":
            transfer += b"," + value
    return content + transfer


def payload_blocks(fields: Iterable[tuple[bytes, bytes]], blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the payload in *blocks*, a body whose header fields are *fields*."""
    return unchunk(blocks) if is_chunked(fields) else iter(blocks)


def unchunk(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of a chunked body; trailers and what follows them are left out.

    A cut body yields what came. From a malformed chunk size on, the rest comes as it stands.
    """
    reader = ChunkReader()
    for block in blocks:
        # In parts, each joined at once: as objects, ten million chunks of a byte take a gigabyte.
        for start in range(0, len(block), _PART):
            if pieces := reader.feed(block[start : start + _PART]):
                yield b"".join(pieces)
            if reader.done:
                return
    if rest := reader.rest:
        yield rest


def chunks_in(blocks: Iterable[bytes]) -> ChunkReader:
    """Return what has read a chunked body, and knows what is wrong with it."""
    reader = ChunkReader()
    for block in blocks:
        reader.feed(block)
    return reader


class _ChunkPart(Enum):
    """The part of a chunked body (RFC 9112, section 7.1) that the next byte belongs to."""

    SIZE = "size line"
    DATA = "chunk data"
    DATA_END = "line end behind chunk data"
    TRAILERS = "trailer section"
    SURPLUS = "behind the end"
    BROKEN = "after bytes that are not a chunk"


_PART = 1 << 20
_SIZE_LINE_LIMIT = 4096
_FREE_CHUNKS = 100_000
_BYTES_A_CHUNK = 64
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r*$", re.DOTALL)
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_SIZE_BEGUN = re.compile(rb"[ \t]*[0-9A-Fa-f]{0,15}[ \t]*(?:;.*)?\r*\Z", re.DOTALL)


class ChunkReader:
    """Takes the chunked transfer coding off a body that comes in pieces.

    Lines may end in LF alone, and the line end behind a chunk's data may be missing.
    """

    __slots__ = ("_count", "_fed", "_left", "_line", "_max_trailers", "_part", "_trailers", "lax",
                 "surplus")  # fmt: skip

    def __init__(self, *, max_trailers: int = 256 * 1024) -> None:
        self._count = 0
        self._fed = 0
        self._trailers = 0
        self._max_trailers = max_trailers
        self._part = _ChunkPart.SIZE
        self._line = b""
        self._left = 0
        self.surplus = 0
        """Bytes that came behind the end of the body."""
        self.lax = False
        """Whether something was put up with that RFC 9112 does not allow."""

    @property
    def done(self) -> bool:
        """Whether the end of the trailer section has been read."""
        return self._part is _ChunkPart.SURPLUS

    @property
    def broken(self) -> bool:
        """Whether something came where a chunk size belongs."""
        return self._part is _ChunkPart.BROKEN

    @property
    def rest(self) -> bytes:
        """What came last where a chunk size belongs and is none; empty where one may have been cut."""
        is_size = self._part is not _ChunkPart.SIZE or _SIZE_BEGUN.match(self._line)
        return b"" if is_size else self._line

    @property
    def absurd(self) -> bool:
        """Whether chunks are so many and small, or trailers so long, that no honest server sends them.

        Each chunk costs some time, however small it is: 100,000 are free, and then one for 64 bytes.
        """
        return (
            self._count > _FREE_CHUNKS + self._fed // _BYTES_A_CHUNK
            or self._trailers > self._max_trailers
        )

    @property
    def last_chunk_read(self) -> bool:
        """Whether all data is there, and no trailer line has been begun and not ended."""
        return self.done or (self._part is _ChunkPart.TRAILERS and self._line[-1:] in (b"", b"\n"))

    def feed(self, block: bytes) -> list[bytes]:
        """Return the pieces of chunk data in *block*."""
        pieces: list[bytes] = []
        self._fed += len(block)
        position = self._whole_chunks(block, 0, pieces)
        while position < len(block):
            if self._part is _ChunkPart.DATA:
                end = min(position + self._left, len(block))
                pieces.append(block[position:end])
                self._left -= end - position
                position = end
                if not self._left:
                    self._part = _ChunkPart.DATA_END
            elif self._part is _ChunkPart.DATA_END:
                position = self._whole_chunks(block, self._behind_data(block, position), pieces)
            elif self._part is _ChunkPart.SURPLUS:
                self.surplus += len(block) - position
                break
            elif self._part is _ChunkPart.BROKEN:
                pieces.append(self._line + block[position:])
                self._line = b""
                break
            else:
                position = self._read_line(block, position)
        if self.broken and self._line:
            pieces.append(self._line)
            self._line = b""
        return pieces

    def _whole_chunks(self, block: bytes, position: int, pieces: list[bytes]) -> int:
        """Read the well-formed chunks that *block* has from *position* on; return where they end.

        What this leaves, `feed` reads part by part. It is here for bodies of a million tiny chunks.
        """
        before = len(pieces)
        if self._part is not _ChunkPart.SIZE or self._line:
            return position
        while (match := _SIZE_LINE.match(block, position)) and (size := int(match[1], 16)):
            start = match.end()
            end = start + size
            if block[end : end + 2] != b"\r\n":
                break
            pieces.append(block[start:end])
            position = end + 2
        self._count += len(pieces) - before
        return position

    def _behind_data(self, block: bytes, position: int) -> int:
        """Pass over CRLF, LF or CR behind chunk data; anything else begins a size line."""
        byte = block[position : position + 1]
        if byte == b"\r" and not self._line:
            self._line = byte
            return position + 1
        self.lax = self.lax or byte != b"\n" or not self._line
        self._line = b""
        self._part = _ChunkPart.SIZE
        return position + 1 if byte == b"\n" else position

    def _read_line(self, block: bytes, position: int) -> int:
        """Read a size line or trailers, or the piece of them that *block* has."""
        if self._part is _ChunkPart.TRAILERS:
            return self._read_trailers(block, position)
        newline = block.find(b"\n", position)
        end = len(block) if newline < 0 else newline + 1
        end = min(end, position + _SIZE_LINE_LIMIT - len(self._line))
        self._line += block[position:end]
        if self._line.endswith(b"\n"):
            self._begin_chunk()
        elif len(self._line) >= _SIZE_LINE_LIMIT:
            self._part = _ChunkPart.BROKEN
        return end

    def _read_trailers(self, block: bytes, position: int) -> int:
        """Look for the empty line that ends the trailers; `_line` is the end of what came before."""
        before = self._line or b"\n"
        searched = before + block[position:]
        end = end_of_head(searched)
        if end is not None:
            self._part = _ChunkPart.SURPLUS
            self._line = b""
            end += position - len(before)
            self._trailers += end - position
            return end
        self._trailers += len(block) - position
        # Two octets at least: they say whether a line has been begun.
        self._line = searched[min(unfinished_blank_line(searched), len(searched) - 2) :]
        return len(block)

    def _begin_chunk(self) -> None:
        match = _CHUNK_SIZE.match(self._line[:-1])
        if match is None:
            self._part = _ChunkPart.BROKEN
            return
        self.lax = self.lax or not self._line.endswith(b"\r\n")
        self._line = b""
        self._left = int(match[1], 16)
        self._count += 1
        self._part = _ChunkPart.DATA if self._left else _ChunkPart.TRAILERS


_LONGEST_DATE = 64
"""Characters; the longest date has 33."""
_DAY = 86400


def http_date(text: str) -> float | None:
    """Return the Unix time of *text*, a date of HTTP (RFC 9110, 5.6.7); None where it is not one.

    The three forms are read, also with small errors: another case, a day of one digit, no day of the
    week or a wrong one. A date without a zone is in UTC. A year of two digits is one from 1969 to 2068.
    """
    if len(text) > _LONGEST_DATE or not text.isascii():
        return None
    try:
        parts = parsedate_tz(text)
        if parts is None:
            return None
        year, month, day, hour, minute, second, *_, east = parts
        # A leap second is not in the calendar of `datetime`.
        moment = datetime(year, month, day, hour, minute, second - (second == 60), tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.timestamp() - (east or 0) if abs(east or 0) < _DAY else None
