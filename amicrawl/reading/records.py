"""The records of a WARC or ARC file, in order, whatever state the file is in.

WARC 1.0 and 1.1 and ARC, one record a gzip member or zstd frame, not packed, or packed as a
whole. Each record has its offset and length, to the byte. What cannot be read is reported with offset
and reason, and reading continues behind it; nothing is raised for damaged bytes. Memory stays within a
few times the cap on a block, however large file and records are.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload

from amicrawl.disk import readable, refuse_pipe
from amicrawl.message import (
    codings_of,
    end_of_head,
    header_fields,
    is_interim,
    payload_blocks,
    status_of,
)
from amicrawl.reading.flow import FoundRecord, found_records
from amicrawl.reading.framing import USUAL_GROUPS, header_text, usual_fields, warc_head
from amicrawl.reading.unpacking import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO, Self

FREE_RECORDS, BYTES_A_RECORD = 2000, 16
"""Records that a file may have: so many, and one more for each of so many of its bytes."""
BLOCK_CAP = 64 << 20
"""Bytes of a block that are kept, where no other cap is requested."""
CONTENT_LIMIT = 64 << 20
"""Bytes that `Record.content` returns at most, where no other limit is requested."""

RECORD_TYPES = (
    "warcinfo",
    "response",
    "revisit",
    "request",
    "resource",
    "metadata",
    "conversion",
    "continuation",
)
"""The types of the standard (ISO 28500, 6)."""
_KNOWN = {name.encode(): name for name in RECORD_TYPES}
_HTTP_TYPES = frozenset(("response", "revisit", "request"))
_USUAL_STATUS = re.compile(rb"HTTP/1\.[01] ([2-5][0-9]{2})(?![0-9])")
_OTHER_STATUS = re.compile(rb"[A-Za-z][A-Za-z0-9]{0,15}/[0-9.]{1,8}[ \t]+([0-9]{3})(?![0-9])")
"""A status line as of `HTTPX/1.1` or `SPDY/3`; indexers of others read it by its blanks."""
_HALVES = frozenset(
    (("request", "response"), ("response", "request"), ("request", "revisit"), ("revisit", "request"))
)
_ZIP_MAGIC = b"PK\x03\x04"
_IS_PACKAGE = "the file is a package (WACZ, ZIP); unpack it, and name the files in archive"
_T = TypeVar("_T")


class Broken(NamedTuple):
    """Something of a file that is lost, or that another reader would refuse."""

    path: Path
    offset: int
    """Byte of the file: where the record begins, or the gzip member that cannot be inflated."""
    reason: str
    """Half a sentence for people; untrusted bytes do not appear in it."""


class _Lazy(Generic[_T]):
    """An attribute that is worked out when it is first read.

    `functools.cached_property` does the same, but takes a lock each time it does (until Python 3.12).
    """

    def __init__(self, work_out: Callable[[Record], _T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type) -> Self: ...
    @overload
    def __get__(self, record: Record, owner: type) -> _T: ...
    def __get__(self, record: Record | None, owner: type) -> Self | _T:
        if record is None:
            return self
        value = record.__dict__[self._name] = self._work_out(record)
        return value


class Record:
    """One record. Everything in it that came from the file is untrusted."""

    _decoded: bytes | None = None
    _is_decoded_whole = False

    def __init__(self, path: Path, found: FoundRecord) -> None:
        self.path = path
        self.offset = found.offset
        """First byte in the file: of the gzip member, or of the record where it is not packed."""
        self.length = found.length
        """Bytes from there on that hold it: the whole member; header and block where it is not packed.

        0 where that is not known, as for what cannot be sought.
        """
        self.seekable = found.seekable
        """Whether a reader that begins at `offset` meets it; not so behind another in a member."""
        self.head = found.head
        """The record's own header as it is written, blank line included."""
        self.block_length = found.block_length
        """Bytes of the whole block."""
        self.whole = found.whole
        """Whether the block is as long as the header says; if not, a fault was reported."""
        self._found = found

    def __repr__(self) -> str:
        return f"<Record {self.type} {self.uri!r} at {self.offset} of {self.path.name}>"

    @_Lazy
    def block(self) -> bytes:
        """Return the block, up to the cap."""
        found = self._found
        return found.data[found.start : found.start + found.block_length]

    @_Lazy
    def fields(self) -> dict[str, str]:
        """Return the header by lower-case names; of repeated ones the first. ARC has WARC's names."""
        if (fields := self._found.fields) is not None or (fields := usual_fields(self.head)) is not None:
            return fields
        head = warc_head(self.head)
        return head.fields if head is not None else {}

    def field(self, name: str, otherwise: str = "") -> str:
        """Return the value of the header's field *name*, in lower case; *otherwise* if there is none.

        What an index needs is there before the header has been cut into its fields.
        """
        usual = self._found.usual
        if usual is None or (group := USUAL_GROUPS.get(name)) is None:
            return self.fields.get(name, otherwise)
        value = usual[group]
        return otherwise if value is None else header_text(value).strip()

    @_Lazy
    def version(self) -> str:
        """`WARC/1.0`, `WARC/1.1`, `ARC/1`, `ARC/2`, or what the file says."""
        return self._found.version or self.head[:8].decode("latin-1")

    @_Lazy
    def type(self) -> str:
        """warcinfo, response, revisit, request, resource, metadata, conversion, continuation or unknown.

        The first record of an ARC file is a warcinfo, all others are responses.
        """
        usual = self._found.usual
        kind = usual["type"] if usual is not None else self.fields.get("warc-type", "").lower().encode()
        return _KNOWN.get(kind, "unknown")

    @_Lazy
    def uri(self) -> str:
        """Return the target URI without the angle brackets that old writers put around it."""
        uri = self.field("warc-target-uri")
        return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri

    @property
    def date(self) -> str:
        """The date as it is written: W3C form, of ARC 14 digits; empty if there is none."""
        return self.field("warc-date")

    @property
    def record_id(self) -> str:
        """The record's identifier with its angle brackets; empty if there is none, as in ARC."""
        return self.fields.get("warc-record-id", "")

    @property
    def is_cut(self) -> bool:
        """Whether the block is longer than the cap."""
        return len(self._found.data) - self._found.start < self.block_length

    @_Lazy
    def is_http(self) -> bool:
        """Whether the block is an HTTP message: a response, revisit or request, of an http(s) URI."""
        return (
            self.type in _HTTP_TYPES
            and self.uri[:6].lower().startswith(("http:", "https:"))
            and self.field("content-type", "application/http")[:16].lower() == "application/http"
        )

    @_Lazy
    def _http(self) -> tuple[int, int, int | None]:
        """Return where in the block the final HTTP header begins and ends, and the status code in it."""
        if not self.is_http:
            return 0, 0, None
        data, begin = self._found.data, self._found.start
        if (usual := _USUAL_STATUS.match(data, begin)) is not None:
            # Of a block of which no more is needed than this, no copy is made.
            last = min(self.block_length, len(data) - begin)
            end = end_of_head(data, begin)
            return 0, last if end is None else min(end - begin, last), int(usual[1])
        block, start, status = self.block, 0, None
        while (end := end_of_head(block, start)) is not None:
            status = _status(block[start:end])
            if status is None or not is_interim(status) or end >= len(block):
                return start, end, status
            start = end
        # A header that has no end is all header; behind an interim one, what follows has none.
        return (start, start, status) if start else (0, len(block), _status(block))

    @_Lazy
    def http_head(self) -> bytes:
        """Return the final HTTP header section, blank line included; empty where it is not HTTP."""
        begin = self._found.start
        start, end, _ = self._http
        return self._found.data[begin + start : begin + end]

    @_Lazy
    def _http_head_in_lower_case(self) -> bytes:
        return self.http_head.lower()

    @_Lazy
    def http_status(self) -> int | None:
        """Return the status code; None for requests, and where there is none."""
        return self._http[2] if self.type != "request" else None

    @_Lazy
    def http_fields(self) -> list[tuple[bytes, bytes]]:
        """Return the HTTP fields in order, as they are written."""
        return header_fields(self.http_head) if self.http_head else []

    def http_field(self, name: bytes) -> bytes | None:
        """Return the first value of the HTTP field *name*, given in lower case."""
        head, lowered, pattern = self.http_head, self._http_head_in_lower_case, _http_field(name)
        at, match = -1, None
        while match is None:
            at = lowered.find(b"\n" + name, at + 1)
            if at < 0:
                return None
            match = pattern.match(head, at)
        if match[2]:
            # The line is folded; that is rare, and left to who knows how.
            return next((value for field, value in self.http_fields if field.lower() == name), None)
        return match[1].strip(b" \t\r")

    @property
    def body(self) -> bytes:
        """What follows the HTTP header, as stored; the whole block of records that are not HTTP."""
        return self.block[self._http[1] :]

    @_Lazy
    def payload(self) -> bytes:
        """Return the body without its transfer coding; its content coding stays."""
        return b"".join(payload_blocks(self.http_fields, [self.body])) if self.is_http else self.block

    @property
    def body_sha1(self) -> bytes:
        """SHA-1 of the whole body, also where the block is cut; empty where that was not worked out.

        It is for records that have no payload digest.
        """
        if self.is_cut:
            return self._found.body_sha1
        return hashlib.sha1(self.body, usedforsecurity=False).digest()

    def content(self, limit: int = CONTENT_LIMIT) -> bytes:
        """Return up to *limit* bytes of the payload without its codings.

        As `discovery.decoded` has it: what is broken is decoded as far as it goes.
        """
        codings = codings_of(self.http_fields)
        if not codings:
            return self.payload[:limit]
        # What was decoded for one product is there for the next.
        if self._decoded is not None and (self._is_decoded_whole or len(self._decoded) >= limit):
            return self._decoded[:limit]
        # Indexing never comes here, and this would be half of what a worker has to load for it.
        from amicrawl.discovery import decoded  # noqa: PLC0415

        self._decoded = decoded([self.payload], codings, limit=limit)
        self._is_decoded_whole = len(self._decoded) < limit
        return self._decoded


def _status(head: bytes) -> int | None:
    """Return the status code in *head*; that of a protocol that HTTP does not know counts, too."""
    status = status_of(head)
    if status is None and (other := _OTHER_STATUS.match(head)) is not None:
        return int(other[1])
    return status


@cache
def _http_field(name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"\n" + re.escape(name) + rb"[ \t\r]*:([^\n]*)(\n[ \t])?", re.IGNORECASE)


def read_records(
    path: Path, *, on_broken: Callable[[Broken], None], block_cap: int = BLOCK_CAP
) -> Iterator[Record]:
    """Yield the records of the file *path*, in order, as far as they can be read.

    Losses are reported to *on_broken*: a member that cannot be inflated, bytes that are not a record, a
    file without any. So is each record that is not as long as it says (`Record.whole`), and of what a
    strict reader would refuse otherwise, the first of each kind in a file. Of a block, *block_cap* bytes
    are kept. Raises InputError where the file cannot be read.
    """
    with readable(path):
        refuse_pipe(path)
        with path.open("rb") as stream:
            yield from records_of(stream, path, on_broken=on_broken, block_cap=block_cap)


def records_of(
    stream: BinaryIO, path: Path, *, on_broken: Callable[[Broken], None], block_cap: int = BLOCK_CAP
) -> Iterator[Record]:
    """Yield the records of *stream*, which stands at its beginning and can seek; *path* is its name."""
    packed, pieces = unpacked(stream)
    begun = stream.tell()
    size = stream.seek(0, 2)
    stream.seek(begun)
    is_reported = False

    def broken(offset: int, reason: str) -> None:
        nonlocal is_reported
        is_reported = True
        is_package = not offset and peek(0, len(_ZIP_MAGIC)) == _ZIP_MAGIC
        on_broken(Broken(path, offset, _IS_PACKAGE if is_package else reason))

    def peek(offset: int, count: int) -> bytes:
        position = stream.tell()
        # No file is that long, whatever a header says; to seek there would be an error of the system.
        seen = b""
        if offset < size:
            stream.seek(offset)
            seen = stream.read(count)
            stream.seek(position)
        return seen

    def begin_digest(cut: FoundRecord) -> hashlib._Hash | None:
        record = Record(path, cut)
        if "warc-payload-digest" in record.fields:
            return None
        return hashlib.sha1(record.body, usedforsecurity=False)

    found = None
    left = FREE_RECORDS + size // BYTES_A_RECORD
    for found in found_records(
        pieces,
        peek=None if packed else peek,
        broken=broken,
        block_cap=block_cap,
        begin_digest=begin_digest,
    ):
        if not left:
            broken(found.offset, "it has more records than its bytes can hold; the rest is not read")
            return
        left -= 1
        yield Record(path, found)
    if found is None and not is_reported:
        broken(0, "no record was found in it")


def paired(records: Iterable[Record]) -> Iterator[tuple[Record, Record | None]]:
    """Yield *records* in order, each with the other half of its exchange, or None.

    Writers put request and response next to each other, and one names the other as concurrent. So a
    record is held until the next one has been seen.
    """
    waiting: Record | None = None
    for record in records:
        if waiting is None:
            waiting = record
        elif are_partners(waiting, record):
            yield waiting, record
            yield record, waiting
            waiting = None
        else:
            yield waiting, None
            waiting = record
    if waiting is not None:
        yield waiting, None


def are_partners(first: Record, second: Record) -> bool:
    """Return whether the two are the request and the response of one exchange."""
    if (first.type, second.type) not in _HALVES or first.uri != second.uri:
        return False
    named = first.fields.get("warc-concurrent-to"), second.fields.get("warc-concurrent-to")
    return (bool(first.record_id) and first.record_id == named[1]) or (
        bool(second.record_id) and second.record_id == named[0]
    )
