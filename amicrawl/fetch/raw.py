"""The tolerant reader: sorts the bytes of a response into head and body and keeps every one of them.

It never refuses and never rewrites. An answer that begins with no status line is an HTTP/0.9 body; a
head that is never ended is kept as far as it came; what follows a complete response is part of its body.
It holds to caps, and says at any time whether more bytes may still belong to the response. It knows
neither sockets nor time.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from typing import TYPE_CHECKING

from amicrawl.capture import Truncation
from amicrawl.fetch.framing import Ends, Framing, Head, read_head, read_regular_head
from amicrawl.message import (
    ChunkReader,
    end_of_head,
    final_head,
    is_interim,
    status_of,
    unfinished_blank_line,
)

if TYPE_CHECKING:
    from amicrawl.fetch.spool import Spool

_EMPTY_LINES = re.compile(rb"[\r\n]*")
_OPENINGS = (b"http/", b"http ", b"icy ")
_NOT_HTTP = Head(200, "http/0.9", b"", [], Framing(Ends.BY_CLOSE))


class More(Enum):
    """Whether more bytes may still belong to a response."""

    MUST = "it is not complete"
    MAY = "it does not say reliably where it ends"
    SURPLUS = "it is complete; what comes now is surplus"
    NONE = "it is complete, and its connection is fit for another"
    CUT = "a cap was reached"


class ResponseReader:
    """Reads one response to a request by *method* into `head` and the spool *body*."""

    __slots__ = ("_body", "_chunks", "_cut", "_digest", "_line", "_max_body", "_max_header", "_method",
                 "_payload_length", "_pending", "_searched", "_start", "_taken", "head", "received",
                 "section")  # fmt: skip

    def __init__(
        self, method: str, body: Spool, *, max_header: int, max_body: int, pieces: bool = False
    ) -> None:
        self._method = method
        self._body = body
        self._max_header = max_header
        self._max_body = max_body
        self._cut = False
        self._chunks: ChunkReader | None = None
        self._digest: hashlib._Hash | None = None
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
        ends, length, _ = self.section.framing
        if self._chunks is not None:
            return self._more_chunks(self._chunks)
        got = len(self._body)
        if ends is Ends.UNSURE:
            return More.SURPLUS if 0 < length <= got else More.MAY
        if ends is not Ends.BY_CLOSE and got >= length:
            return self._complete(surplus=got > length)
        return More.CUT if self._max_body <= got < length else More.MUST

    def _more_chunks(self, chunks: ChunkReader) -> More:
        if chunks.done:
            return self._complete(surplus=chunks.surplus > 0 or chunks.lax)
        return More.MAY if chunks.broken or chunks.last_chunk_read else More.MUST

    def _complete(self, *, surplus: bool) -> More:
        reusable = self.section is not None and self.section.framing.reusable
        return More.NONE if reusable and not surplus else More.SURPLUS

    @property
    def payload_digest(self) -> tuple[str, int] | None:
        """SHA-1 and length of the payload where chunked coding was removed, else None."""
        return None if self._digest is None else (self._digest.hexdigest(), self._payload_length)

    def taken(self) -> bytes:
        """Return the payload that came since the last call, if *pieces* were asked for."""
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
            self._line = _behind_empty_lines(pending, self._line)
            if self._start == 0 and not _may_open(pending, self._line):
                self._settle(pending, 0, _NOT_HTTP)
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
        is_http = self.section is not _NOT_HTTP
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
            self._settle(self._pending, 0, _NOT_HTTP)

    def _settle(self, pending: bytes | bytearray, end: int, section: Head) -> None:
        self.section = section
        if section.framing.ends is Ends.BY_CHUNKS:
            self._chunks = ChunkReader(max_trailers=self._max_header)
            self._digest = hashlib.sha1(usedforsecurity=False)
        self._pending = b""
        self.head = bytes(pending[:end])
        if len(pending) > end:
            self._take_body(bytes(pending[end:]))

    def _take_body(self, data: bytes) -> None:
        if self._cut:
            return
        room = self._max_body - len(self._body)
        if len(data) > room:
            data = data[:room]
            self._cut = True
        self._body.write(data)
        if self._chunks is not None:
            self._take_chunks(self._chunks, data)
        elif self._taken is not None:
            self._taken.append(data)

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


def _behind_empty_lines(data: bytes | bytearray, start: int) -> int:
    match = _EMPTY_LINES.match(data, start)
    return match.end() if match else start


def _may_open(data: bytes | bytearray, start: int) -> bool:
    """Return whether *data* from *start* on begins as a status line does, or may yet do so."""
    beginning = bytes(data[start : start + 5]).lower()
    return any(opening.startswith(beginning[: len(opening)]) for opening in _OPENINGS)
