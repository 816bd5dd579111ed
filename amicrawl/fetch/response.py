"""Responses: the tolerant reader, which sorts bytes into head and body, and where a response ends.

The reader never refuses and never rewrites: it keeps every byte. A response that begins with no status
line is an HTTP/0.9 body; a head that is never ended is kept as far as it came; what follows a complete
response is part of its body. It holds to caps, and says at any time whether more bytes may still belong
to the response. It knows neither sockets nor time.

The end follows from RFC 9112, section 6.3, and from what to do where a server breaks its rules: a
response that can be read in two ways is never guessed at. It is read to the close, or until the server
falls silent, and its connection serves no other request.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.capture import BytesBody, Spool, Truncation
from amicrawl.message import (
    NOTED_FIELD,
    REGULAR_HEAD,
    ChunkReader,
    behind_empty_lines,
    end_of_head,
    final_head,
    header_fields,
    is_chunked,
    is_interim,
    noted_fields,
    status_of,
    unfinished_blank_line,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amicrawl.capture import Body

_OPENINGS = (b"http/", b"http ", b"icy ")
Field = tuple[bytes, bytes]

_VERSION = re.compile(rb"[\r\n]*HTTP/(1\.[01])(?![0-9.])", re.IGNORECASE)
_MOST_DIGITS = 18
_PLAIN_LENGTH = re.compile(rb"[0-9]{1,18}")
_ANY_LENGTH = re.compile(rb"(?<![0-9])[0-9]{1,18}(?![0-9])")

# What a status line without a readable status counts as; so do browsers.
UNREADABLE_STATUS = 200


class Ends(Enum):
    """How the end of a body is found."""

    AT_ONCE = "there is none"
    BY_LENGTH = "after so many bytes"
    BY_CHUNKS = "with the last chunk"
    BY_CLOSE = "with the connection"
    UNSURE = "the head contradicts itself"


class Framing(NamedTuple):
    """How the body of one response is delimited."""

    ends: Ends
    length: int = 0
    """Bytes of the body where `ends` is BY_LENGTH; where it is UNSURE, the most the head speaks of."""
    reusable: bool = False
    """Whether the connection may serve another request once the body has ended."""


class Head(NamedTuple):
    """The final header section of a response, read."""

    status: int
    protocol: str | None
    section: bytes
    """The header section itself."""
    noted: list[Field]
    """Its fields that are `message.NOTED`."""
    framing: Framing

    @property
    def fields(self) -> list[Field]:
        """All of its fields, as `message.header_fields` reads them."""
        return header_fields(self.section)


def read_regular_head(data: bytes, *, method: str, limit: int) -> tuple[int, Head] | None:
    """Return the end of the head that *data* begins with, and the head read.

    None where it is not all there, longer than *limit* bytes, not conforming to RFC 9112, or that of an
    interim response: `read_head` reads those.
    """
    # After any other head the connection is not reused: two parsers might disagree about it, and read
    # the next response from the wrong byte on.
    match = REGULAR_HEAD.match(data)
    if match is None or match.end() > limit:
        return None
    status, end = int(match[2]), match.end()
    if status < 200:
        return None
    section, version = data[:end], match[1].decode()
    noted = NOTED_FIELD.findall(section)
    framing = _framing(method, status, version, fields=noted, regular=True)
    return end, Head(status, f"http/{version}", section, noted, framing)


def read_head(head: bytes, *, method: str) -> Head:
    """Read *head*, one header section of the response to a request by *method*."""
    status = status_of(head)
    if status is None or status < 100:
        status = UNREADABLE_STATUS
    match = _VERSION.match(head)
    version = match[1].decode() if match else ""
    regular = REGULAR_HEAD.fullmatch(head) is not None
    noted = NOTED_FIELD.findall(head) if regular else noted_fields(head)
    framing = _framing(method, status, version, fields=noted, regular=regular)
    return Head(status, f"http/{version}" if version else None, head, noted, framing)


def _framing(
    method: str, status: int, version: str, *, fields: Sequence[Field], regular: bool
) -> Framing:
    lengths: list[bytes] = []
    codings: list[Field] = []
    connection = b""
    for field in fields:
        name = field[0].lower()
        if name == b"content-length":
            lengths += map(bytes.strip, field[1].split(b","))
        elif name == b"transfer-encoding":
            codings.append(field)
        elif name == b"connection":
            connection += b"," + field[1].lower()
    reusable = regular and (_persists(version, connection) if connection else version == "1.1")
    if method == "HEAD" or status == 304:
        return Framing(Ends.AT_ONCE, reusable=reusable)
    if status == 204:
        # Unlike a 304 it may not speak of a body (RFC 9110, section 8.6); where it does, one may follow.
        return Framing(Ends.AT_ONCE, reusable=reusable and not codings and {*lengths} <= {b"0"})
    if codings and is_chunked(codings):
        # With a length as well, or from HTTP/1.0: read it as chunked, trust the connection no further.
        return Framing(Ends.BY_CHUNKS, reusable=reusable and not lengths and version == "1.1")
    if codings or not lengths or status == 101:
        return Framing(Ends.BY_CLOSE)
    if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) <= _MOST_DIGITS:
        return Framing(Ends.BY_LENGTH, int(lengths[0]), reusable)
    return _framing_by_lengths(lengths, reusable=reusable)


def _framing_by_lengths(lengths: Sequence[bytes], *, reusable: bool) -> Framing:
    """Follow what Content-Length says several times, or says oddly, where it says one number."""
    if len(set(lengths)) == 1 and _PLAIN_LENGTH.fullmatch(lengths[0]):
        return Framing(Ends.BY_LENGTH, int(lengths[0]), reusable=reusable and len(lengths) == 1)
    spoken_of = [int(number) for number in _ANY_LENGTH.findall(b" ".join(lengths))]
    return Framing(Ends.UNSURE, max(spoken_of, default=0))


def _persists(version: str, connection: bytes) -> bool:
    """Return whether the server keeps the connection open (RFC 9112, section 9.3)."""
    options = {option.strip() for option in connection.split(b",")} if connection else ()
    if b"close" in options:
        return False
    return version == "1.1" or (version == "1.0" and b"keep-alive" in options)


NOT_HTTP = Head(200, "http/0.9", b"", [], Framing(Ends.BY_CLOSE))
"""What there is in place of a head where a response begins with no status line."""


class More(Enum):
    """Whether more bytes may still belong to a response."""

    MUST = "it is not complete"
    MAY = "it does not say reliably where it ends"
    SURPLUS = "it is complete; what comes now is surplus"
    NONE = "it is complete, and its connection is fit for another"
    CUT = "a cap was reached"


class ResponseReader:
    """Reads one response to a request by *method* into its head and its body.

    Up to *spool_above* bytes of the body are kept in memory, and more in a file in *spool_dir*.
    """

    __slots__ = ("_blocks", "_chunks", "_cut", "_digest", "_line", "_max_body",
                 "_max_header", "_method", "_payload_length", "_pending", "_searched", "_spool",
                 "_spool_above", "_spool_dir", "_start", "_taken", "body_length", "head", "received",
                 "section")  # fmt: skip

    def __init__(
        self, method: str, *, max_header: int, max_body: int, spool_above: int, spool_dir: Path,
        pieces: bool = False,
    ) -> None:  # fmt: skip
        self._method = method
        self._blocks: list[bytes] = []
        self._spool: Spool | None = None
        self._spool_above = spool_above
        self._spool_dir = spool_dir
        self._max_header = max_header
        self._max_body = max_body
        self._cut = False
        self._chunks: ChunkReader | None = None
        self._digest: hashlib._Hash | None = None
        self.body_length = 0
        """Bytes of the body that were kept."""
        self._payload_length = 0
        self._taken: list[bytes] | None = [] if pieces else None
        self._pending: bytes | bytearray = b""
        self._start = 0  # of the header section being read: behind the interim responses
        self._line = 0  # of its first line: behind the empty ones
        self._searched = 0  # no blank line ends before this offset
        self.received = 0
        """Bytes fed so far, those cut away included."""
        self.head = b""
        """The head with the interim responses before it; set together with `section`."""
        self.section: Head | None = None
        """The final header section, read; None while it may still grow."""

    def feed(self, data: bytes) -> More:
        """Take the next bytes of the response, and say whether more may belong to it.

        Raises OutputError where they cannot be spooled.
        """
        self.received += len(data)
        if self.section is not None:
            self._take_body(data)
            return self.more()
        if not self._pending:
            # Nearly every head comes whole and conforms.
            regular = read_regular_head(data, method=self._method, limit=self._max_header)
            if regular is not None:
                self._settle(data, *regular)
                return self.more()
            self._pending = data
        else:
            if isinstance(self._pending, bytes):
                self._pending = bytearray(self._pending)
            self._pending += data
        self._look_for_head()
        return self.more()

    def more(self) -> More:
        """Say whether more bytes may still belong to the response."""
        if self._cut:
            return More.CUT
        if self.section is None:
            return More.MUST
        ends, length, reusable = self.section.framing
        if self._chunks is not None:
            return self._more_chunks(self._chunks)
        got = self.body_length
        if ends is Ends.UNSURE:
            return More.SURPLUS if 0 < length <= got else More.MAY
        if ends is not Ends.BY_CLOSE and got >= length:
            return More.NONE if reusable and got == length else More.SURPLUS
        return More.CUT if self._max_body <= got < length else More.MUST

    def _more_chunks(self, chunks: ChunkReader) -> More:
        if chunks.done:
            reusable = self.section is not None and self.section.framing.reusable
            return More.SURPLUS if chunks.surplus or chunks.lax or not reusable else More.NONE
        return More.MAY if chunks.broken or chunks.last_chunk_read else More.MUST

    @property
    def payload_digest(self) -> tuple[str, int] | None:
        """SHA-1 and length of the payload where chunked coding was removed, else None."""
        return None if self._digest is None else (self._digest.hexdigest(), self._payload_length)

    def taken(self) -> bytes:
        """Return the payload that came since the last call, if *pieces* were requested."""
        if not self._taken:
            return b""
        taken = b"".join(self._taken)
        self._taken.clear()
        return taken

    def end(self, *, orderly: bool) -> Truncation | None:
        """Take note that the connection has ended; return how the response is cut short, if it is.

        *orderly* is False where the end was a reset, or TLS was not closed as it should be.
        """
        if self.section is None:
            return self._end_in_head(orderly=orderly)
        if self.more() is not More.MUST or (orderly and self.section.framing.ends is Ends.BY_CLOSE):
            return None
        return Truncation.DISCONNECT

    def give_up(self) -> Truncation | None:
        """Take note that nothing more came for a while; return how that cuts the response short."""
        chunks = self._chunks
        if self.more() is More.MAY and (chunks is None or not chunks.last_chunk_read):
            return Truncation.TIME
        return None

    def stop(self) -> None:
        """Take note that reading was ended from outside: what came of the head is the head."""
        if self.section is None:
            self._end_in_head(orderly=False)

    def _look_for_head(self) -> None:
        """Settle the head where it is complete, too long, or turns out to be none."""
        pending = self._pending
        while True:
            self._line = behind_empty_lines(pending, self._line)
            if self._start == 0 and not _may_open(pending, self._line):
                self._settle(pending, 0, NOT_HTTP)
                return
            end = end_of_head(pending, max(self._line, self._searched))
            if (len(pending) if end is None else end) > self._max_header:
                self._cut = True
                self._settle_section(self._max_header)
                return
            if end is None:
                self._searched = unfinished_blank_line(pending)
                return
            section = bytes(pending[self._start : end])
            status = status_of(section)
            if status is None:
                self._settle_section(end)
                return
            if not is_interim(status):
                self._settle(pending, end, read_head(section, method=self._method))
                return
            self._start = self._line = self._searched = end

    def _end_in_head(self, *, orderly: bool) -> Truncation | None:
        self._settle_section(len(self._pending))
        is_http = self.section is not NOT_HTTP
        return Truncation.DISCONNECT if is_http or not orderly else None

    def _settle_section(self, end: int) -> None:
        """Settle the head at *end*, or before the section that ends there if it has no status line."""
        section = bytes(self._pending[self._start : end])
        if status_of(section) is not None or section.lstrip(b"\r\n")[:5].lower() == _OPENINGS[0]:
            self._settle(self._pending, end, read_head(section, method=self._method))
        elif self._start:
            interim = bytes(self._pending[: self._start])
            self._settle(self._pending, self._start, read_head(final_head(interim), method=self._method))
        else:
            self._cut = False
            self._settle(self._pending, 0, NOT_HTTP)

    def _settle(self, pending: bytes | bytearray, end: int, section: Head) -> None:
        self.section = section
        if section.framing.ends is Ends.BY_CHUNKS:
            self._chunks = ChunkReader(max_trailers=self._max_header)
            self._digest = hashlib.sha1(usedforsecurity=False)
        self._pending = b""
        # Nearly every head is that one section.
        self.head = section.section if len(section.section) == end else bytes(pending[:end])
        if len(pending) > end:
            self._take_body(bytes(pending[end:]))

    def _take_body(self, data: bytes) -> None:
        if self._cut:
            return
        room = self._max_body - self.body_length
        if len(data) > room:
            data = data[:room]
            self._cut = True
        self.body_length += len(data)
        if self.body_length <= self._spool_above:
            self._blocks.append(data)
        else:
            self._keep_on_disk(data)
        if self._chunks is not None:
            self._take_chunks(self._chunks, data)
        elif self._taken is not None:
            self._taken.append(data)

    def _keep_on_disk(self, data: bytes) -> None:
        if self._spool is None:
            self._spool = Spool(self._spool_dir)
            for block in self._blocks:
                self._spool.write(block)
            self._blocks.clear()
        self._spool.write(data)

    def body(self) -> Body:
        """Return all that was kept behind the head; it has to be closed."""
        return BytesBody(b"".join(self._blocks)) if self._spool is None else self._spool

    def _take_chunks(self, chunks: ChunkReader, data: bytes) -> None:
        """Take the coding off *data*: the only time that this is done for the record's sake."""
        pieces = chunks.feed(data)
        payload = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._payload_length += len(payload)
        if self._digest is not None:
            self._digest.update(payload)
        if self._taken is not None:
            self._taken.append(payload)
        if chunks.absurd:
            self._cut = True


def _may_open(data: bytes | bytearray, start: int) -> bool:
    """Return whether *data* from *start* on begins as a status line does, or may yet do so."""
    beginning = bytes(data[start : start + 5]).lower()
    return any(opening.startswith(beginning[: len(opening)]) for opening in _OPENINGS)
