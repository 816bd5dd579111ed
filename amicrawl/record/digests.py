"""Digests of a capture: of its block, of what readers take for its payload, and of the payload itself.

A WARC file and the index need different things. `WARC-Payload-Digest` is checked by the readers in
use (warcio, fastwarc) against everything behind the first blank line of the block, chunk sizes and all;
so that is what it is computed over, and it is left out where those readers would not agree on where the
payload begins. The index wants the payload proper, without transfer coding, since a server may chunk
the same page differently each time. For a response without transfer coding the two are the same bytes
and are hashed once. Pure: no I/O but what a spooled body reads.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.message import is_chunked

if TYPE_CHECKING:
    from amicrawl.capture import Capture

HEAD_LIMIT = 32_000
"""Bytes of head up to which fastwarc looks for the blank line (it stops with an error at 32 KiB)."""

_BASE32 = bytes.maketrans(bytes(range(32)), b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
_DIGITS = 32
"""Digits of a label: 20 bytes, five bits a digit."""
_APART = bytes(_DIGITS - 20)
_AT_ONCE = 3


def _spreading() -> list[tuple[int, int]]:
    """Return what moves five bits a digit to a byte a digit, halving by halving.

    The bits of the upper halves of all digits, and the factor that adds what they lack to be 3 bits a
    digit of the lower half further up.
    """
    steps = []
    for half in (16, 8, 4, 2, 1):
        upper = ((1 << 5 * half) - 1) << 5 * half
        lanes = range(0, 8 * _DIGITS * _AT_ONCE, 16 * half)
        steps.append((sum(upper << lane for lane in lanes), (1 << 3 * half) - 1))
    return steps


_SPREADING = _spreading()
_sha1 = partial(hashlib.sha1, usedforsecurity=False)
_LINE_END_TWICE = b"\r\n\r\n"
# warcio ends a head at a line of nothing but white space, in any script; fastwarc only at CRLFCRLF.
# A line without one printable ASCII character is held for blank here, to be on the safe side.
_BLANK_LINE = re.compile(rb"\n[^!-~\n]*\n")


class Digests(NamedTuple):
    """What was computed over one capture."""

    request: str
    """`WARC-Block-Digest` of the request as sent."""
    block: str
    """`WARC-Block-Digest` of head and body."""
    wire_payload: str | None
    """`WARC-Payload-Digest`; None where readers differ on where the payload begins."""
    payload: str
    """SHA-1 of the payload without transfer coding, lower-case hex."""
    payload_length: int
    """Bytes of that payload."""
    differs: bool
    """Whether `wire_payload` is the digest of other bytes than `payload`, as for a chunked body."""


def digests_of(capture: Capture) -> Digests:
    """Read the body of *capture* once and return its digests.

    A chunked body is read once more only where it is not from the wire, which decodes it on receipt.
    """
    block, body = _sha1(capture.head), _sha1()
    for piece in capture.body.blocks():
        block.update(piece)
        body.update(piece)
    behind_head = body.digest()
    if capture.payload_digest is not None:
        payload, payload_length = capture.payload_digest
    elif is_chunked(capture.noted):
        decoded, payload_length = _sha1(), 0
        for piece in capture.payload():
            decoded.update(piece)
            payload_length += len(piece)
        payload = decoded.hexdigest()
    else:
        payload, payload_length = behind_head.hex(), capture.received - len(capture.head)
    start = payload_start(capture.head)
    wire_payload = behind_head if start == len(capture.head) else _wire_payload(capture, start)
    request, whole, *wire = labels(
        _sha1(capture.request).digest(), block.digest(), *([wire_payload] if wire_payload else [])
    )
    differs = wire_payload is not None and wire_payload.hex() != payload
    return Digests(request, whole, wire[0] if wire else None, payload, payload_length, differs)


def labels(*digests: bytes) -> list[str]:
    """Return SHA-1 *digests*, three at most, as WARC fields have them: `sha1:` and base32."""
    # A digit's five bits become a byte by halving: the upper 16 digits of each digest are moved up, then
    # the upper 8 of both halves, and so on. It takes a quarter of the time of base64.b32encode.
    bits = int.from_bytes(_APART.join(digests))
    for upper_halves, factor in _SPREADING:
        bits += (bits & upper_halves) * factor
    text = bits.to_bytes(_DIGITS * len(digests)).translate(_BASE32).decode()
    return [f"sha1:{text[start : start + _DIGITS]}" for start in range(0, len(text), _DIGITS)]


def labelled(digest: bytes) -> str:
    """Return a SHA-1 *digest* as WARC fields have it."""
    return labels(digest)[0]


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


def _wire_payload(capture: Capture, start: int | None) -> bytes | None:
    """Return the SHA-1 of what lies behind *start*, which is in the head; None where it is nowhere."""
    if start is None:
        return None
    # Interim responses came first: to a reader, the final head is part of the payload of the first.
    digest = _sha1(capture.head[start:])
    for piece in capture.body.blocks():
        digest.update(piece)
    return digest.digest()
