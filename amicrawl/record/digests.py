"""Digests of a capture: of its block, of what readers take for its payload, and of the payload itself.

A WARC file and the index ask for different things. `WARC-Payload-Digest` is checked by the readers in
use (warcio, fastwarc) against everything behind the first blank line of the block, chunk sizes and all;
so that is what it is computed over, and it is left out where those readers would not agree on where the
payload begins. The index wants the payload proper, without transfer coding, since a server may chunk
the same page differently each time. For a response without transfer coding the two are the same bytes
and are hashed once. Pure: no I/O but what a spooled body reads.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.message import is_chunked

if TYPE_CHECKING:
    from amicrawl.capture import Capture

HEAD_LIMIT = 32_000
"""Bytes of head up to which fastwarc looks for the blank line (it stops with an error at 32 KiB)."""

_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_DIGIT_PAIRS = [first + second for first in _BASE32 for second in _BASE32]

_LINE_END_TWICE = b"\r\n\r\n"
# warcio ends a head at a line of nothing but white space, in any script; fastwarc only at CRLFCRLF.
# A line without one printable ASCII character is held for blank here, to be on the safe side.
_BLANK_LINE = re.compile(rb"\n[^!-~\n]*\n")


class Digests(NamedTuple):
    """What was computed over one capture."""

    block: str
    """`WARC-Block-Digest` of head and body."""
    wire_payload: str | None
    """`WARC-Payload-Digest`; None where readers differ on where the payload begins."""
    payload: str
    """SHA-1 of the payload without transfer coding, lower-case hex."""
    payload_length: int
    """Bytes of that payload."""


def digests_of(capture: Capture) -> Digests:
    """Read the body of *capture* once and return its digests.

    A chunked body is read once more only where it is not from the wire, which decodes it on receipt.
    """
    block = _sha1(capture.head)
    body = _sha1()
    for piece in capture.body.blocks():
        block.update(piece)
        body.update(piece)
    if capture.payload_digest is not None:
        payload, payload_length = capture.payload_digest
    elif is_chunked(capture.noted):
        decoded, payload_length = _sha1(), 0
        for piece in capture.payload():
            decoded.update(piece)
            payload_length += len(piece)
        payload = decoded.hexdigest()
    else:
        payload, payload_length = body.hexdigest(), len(capture.body)
    return Digests(
        block=labelled(block.digest()),
        wire_payload=_wire_payload(capture, body.digest()),
        payload=payload,
        payload_length=payload_length,
    )


def labelled(digest: bytes) -> str:
    """Return a SHA-1 *digest* as WARC fields have it: `sha1:` and base32."""
    # A quarter of the time of base64.b32encode, which three digests a page would feel.
    bits, pair = int.from_bytes(digest), _DIGIT_PAIRS
    return (
        f"sha1:{pair[bits >> 150]}{pair[bits >> 140 & 1023]}{pair[bits >> 130 & 1023]}"
        f"{pair[bits >> 120 & 1023]}{pair[bits >> 110 & 1023]}{pair[bits >> 100 & 1023]}"
        f"{pair[bits >> 90 & 1023]}{pair[bits >> 80 & 1023]}{pair[bits >> 70 & 1023]}"
        f"{pair[bits >> 60 & 1023]}{pair[bits >> 50 & 1023]}{pair[bits >> 40 & 1023]}"
        f"{pair[bits >> 30 & 1023]}{pair[bits >> 20 & 1023]}{pair[bits >> 10 & 1023]}{pair[bits & 1023]}"
    )


def block_digest(block: bytes) -> str:
    """Return the `WARC-Block-Digest` of *block*."""
    return labelled(_sha1(block).digest())


def payload_start(head: bytes) -> int | None:
    """Return where every reader sees the payload of a block that begins with *head* begin.

    None where they differ: a head that does not begin with `HTTP/`, is longer than `HEAD_LIMIT`, or has
    another kind of blank line before its first CRLFCRLF.
    """
    if not head.startswith(b"HTTP/") or len(head) > HEAD_LIMIT:
        return None
    end = head.find(_LINE_END_TWICE)
    blank = _BLANK_LINE.search(head)
    if end < 0 or blank is None or blank.span() != (end + 1, end + 4):
        return None
    return end + 4


def _wire_payload(capture: Capture, body: bytes) -> str | None:
    """Return the label of what lies behind the first blank line, given the SHA-1 of the body."""
    start = payload_start(capture.head)
    if start is None:
        return None
    if start == len(capture.head):
        return labelled(body)
    # Interim responses came first: to a reader, the final head is part of the payload of the first.
    digest = _sha1(capture.head[start:])
    for piece in capture.body.blocks():
        digest.update(piece)
    return labelled(digest.digest())


def _sha1(first: bytes = b"") -> hashlib._Hash:
    return hashlib.sha1(first, usedforsecurity=False)
