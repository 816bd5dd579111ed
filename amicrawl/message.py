"""HTTP/1 messages as bytes: the head's fields and the transfer coding (RFC 9112), read tolerantly.

Servers send what they send. Nothing here raises on odd input: a line that is no field is passed over,
a chunk size that is none ends the decoding and the rest is handed on as it stands. Pure: no I/O.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"(?i:http/|icy)[0-9.]*[ \t]+([0-9]{3})(?![0-9])")


def final_head(head: bytes) -> bytes:
    """Return the last header section of *head*: the final response, without interim (1xx) ones."""
    start = 0
    while (status := status_of(head[start:])) is not None and 100 <= status < 200 and status != 101:
        blank = _BLANK_LINE.search(head, start)
        if blank is None or blank.end() >= len(head):
            break
        start = blank.end()
    return head[start:]


def status_of(head: bytes) -> int | None:
    """Return the status code in the first line of *head*, or None where there is none."""
    match = _STATUS_LINE.match(head.lstrip(b"\r\n")[:64])
    return int(match[1]) if match else None


def header_fields(head: bytes) -> list[tuple[bytes, bytes]]:
    """Return the fields of the final header section in *head*, in order.

    Folded lines (obs-fold) are joined by one space; a line without a colon is passed over; blanks
    before the colon are dropped from the name.
    """
    fields: list[tuple[bytes, bytes]] = []
    lines = final_head(head).lstrip(b"\r\n").split(b"\n")
    for line in lines[1:]:
        text = line.rstrip(b"\r")
        if text[:1] in (b" ", b"\t") and fields:
            name, value = fields[-1]
            fields[-1] = (name, (value + b" " + text.strip()).strip())
            continue
        name, colon, value = text.partition(b":")
        if colon and name.strip():
            fields.append((name.strip(), value.strip()))
    return fields


def is_chunked(fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """Tell whether the last transfer coding that *fields* name is chunked."""
    codings = [value for name, value in fields if name.lower() == b"transfer-encoding"]
    return b",".join(codings).rpartition(b",")[2].strip().lower() == b"chunked"


def payload_blocks(fields: Iterable[tuple[bytes, bytes]], blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the payload in *blocks*, a body whose header fields are *fields*."""
    return unchunk(blocks) if is_chunked(fields) else iter(blocks)


def unchunk(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of a chunked body; trailers are left out.

    A cut body yields what came. From a malformed chunk size on, the rest comes as it stands.
    """
    source = iter(blocks)
    pending = b""
    while True:
        while b"\n" not in pending and len(pending) < _SIZE_LINE_LIMIT:
            block = next(source, None)
            if block is None:
                break
            pending += block
        line, newline, rest = pending.partition(b"\n")
        match = _CHUNK_SIZE.match(line.rstrip(b"\r"))
        if match is None or not newline:
            # The end of a cut body leaves nothing or a piece of a size line: that is coding, not data.
            if newline or len(pending) >= _SIZE_LINE_LIMIT:
                yield pending
                yield from source
            return
        size = int(match[1], 16)
        if size == 0:
            return
        pending = rest
        while size:
            if not pending:
                block = next(source, None)
                if block is None:
                    return
                pending = block
            yield pending[:size]
            taken = min(size, len(pending))
            pending, size = pending[taken:], size - taken
        pending = _without_line_end(pending, source)


_SIZE_LINE_LIMIT = 4096
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?$")


def _without_line_end(pending: bytes, source: Iterator[bytes]) -> bytes:
    """Drop the line end that closes a chunk from *pending*, taking one more block where needed."""
    while len(pending) < 2 and not pending.startswith(b"\n"):
        block = next(source, None)
        if block is None:
            return pending.removeprefix(b"\r")
        pending += block
    return pending.removeprefix(b"\r").removeprefix(b"\n")
