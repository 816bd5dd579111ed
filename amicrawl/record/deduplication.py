"""Deduplication: what a capture holds, as digests, and whether a record of that is stored already.

Digests are those of its block, of what readers take for its payload, and of the payload itself.
A WARC file and the index need different things. `WARC-Payload-Digest` is checked by the readers in
use (warcio, fastwarc) against everything behind the first blank line of the block, chunk sizes and all;
so that is what it is computed over, and it is left out where those readers would not agree on where the
payload begins. The index wants the payload proper, without transfer coding, since a server may chunk
the same page differently each time. For a response without transfer coding the two are the same bytes
and are hashed once.

A record that points at an earlier one is enough for what is stored already:

    captured is                                   record                      `unchanged`
    304 to a conditional request                  revisit, server-not-modified  yes
    the payload that the seed's digest names      revisit, identical digest     yes
    that payload, but for its content coding      response                      yes
    a payload of this crawl (if requested)        revisit, identical digest     no
    anything else                                 response                      no

A truncated capture is stored as a response, always: what was cut off may have differed. So is an empty
payload, which every 204 and redirect on the web shares; pointing one at another would say that they are
related. Where `store_unchanged` is set, payloads are stored again. In these three cases `unchanged`
still says what the digests say.

A seed's digest may be that of a body without content coding: its producer requested none, as the
original crawler does. A payload that comes coded is decoded and compared once more; it is stored, since
the record of before holds other bytes, and the next crawl finds the digest of these.

Pure: no I/O but what a spooled body reads.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amicrawl.message import codings_of

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.seed import Seed

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
    elif capture.is_chunked:
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


_END_OF_TIME = 253_402_300_800_000
"""The first millisecond of the year 10000, which a WARC-Date cannot say."""
_DECODED = 8 * 1024**2
"""Bytes of a decoded payload that are compared; more would hold up the writer."""
_LABEL = re.compile(r"sha1:[A-Z2-7]{32}")
_CONDITION = re.compile(rb"(?i)\n(?:If-None-Match|If-Modified-Since)[ \t]*:")


class Profile(StrEnum):
    """The two kinds of revisit record (ISO 28500, WARC/1.1, 6.7): the values of `WARC-Profile`."""

    IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


@dataclass(frozen=True, slots=True)
class Original:
    """The record that a revisit points at, as far as it is known."""

    url: str
    captured_at: int = 0
    """Its WARC-Date in Unix milliseconds; 0 where unknown."""
    payload_digest: str = ""
    """Its `WARC-Payload-Digest`; empty where unknown."""
    record_id: str = ""
    """Its `WARC-Record-ID`; empty where unknown, which it is for what a seed knows."""

    def label_besides(self, digest: str) -> str:
        """Return `payload_digest`; empty where it is the label of the SHA-1 *digest* (hex)."""
        return "" if self.payload_digest == _label_of(digest) else self.payload_digest


class RevisitDecision(NamedTuple):
    """How one capture is recorded."""

    digest: str
    """SHA-1 of the payload for the index, lower-case hex: the seed's where the server said 304."""
    unchanged: bool
    profile: Profile | None = None
    """None: a response record."""
    original: Original | None = None


class Stored(Protocol):
    """The payloads that this crawl has stored."""

    def get(self, digest: str, /) -> Original | None:
        """Return the record that holds the payload with SHA-1 *digest* (hex), if there is one."""


def decide(
    capture: Capture,
    digests: Digests,
    *,
    seed: Seed,
    stored: Stored | None = None,
    store_unchanged: bool = False,
) -> RevisitDecision:
    """Return how *capture*, which was made for *seed*, is to be recorded.

    *stored* is None where payloads are not compared with others of the crawl.
    """
    whole = capture.truncated is None
    if whole and capture.status == 304 and _was_conditional(capture, seed):
        return RevisitDecision(
            seed.digest, unchanged=True, profile=Profile.NOT_MODIFIED, original=_known_to(seed)
        )
    digest = digests.payload
    if whole and seed.digest not in {"", digest} and _is_coded(capture, seed.digest):
        return RevisitDecision(digest, unchanged=True)
    unchanged = digest == seed.digest
    if not whole or not digests.payload_length or store_unchanged:
        return RevisitDecision(digest, unchanged=unchanged)
    original = _known_to(seed) if unchanged else stored.get(digest) if stored is not None else None
    if original is None:
        return RevisitDecision(digest, unchanged=False)
    return RevisitDecision(digest, unchanged=unchanged, profile=Profile.IDENTICAL, original=original)


def may_be_original(capture: Capture, digests: Digests, *, decision: RevisitDecision) -> bool:
    """Return whether later captures may refer to the record that *decision* makes of *capture*.

    It needs a `WARC-Payload-Digest`: a revisit record has to repeat it (WARC/1.1, 6.7.2).
    """
    stored_whole = decision.profile is None and capture.truncated is None
    return stored_whole and digests.payload_length > 0 and digests.wire_payload is not None


class Originals:
    """The payloads stored by this crawl, by digest; beyond *limit* the longest unused is forgotten.

    One takes about 500 bytes. A payload that was forgotten is stored once more.
    """

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        # A plain dict looks for its first entry behind all that were removed: 40 us with so many.
        self._by_digest: OrderedDict[str, Original] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_digest)

    def get(self, digest: str, /) -> Original | None:
        """Return the record that holds the payload with SHA-1 *digest* (hex), if there is one."""
        original = self._by_digest.get(digest)
        if original is not None:
            self._by_digest.move_to_end(digest)
        return original

    def add(self, digest: str, original: Original) -> None:
        """Remember that *original* holds the payload with SHA-1 *digest* (hex)."""
        self._by_digest[digest] = original
        self._by_digest.move_to_end(digest)
        if len(self._by_digest) > self._limit:
            self._by_digest.popitem(last=False)


def _was_conditional(capture: Capture, seed: Seed) -> bool:
    """Tell whether the request allowed a 304; by the seed where the request's bytes are not known."""
    if capture.request:
        return _CONDITION.search(capture.request) is not None
    return bool(seed.etag or seed.last_modified)


def _is_coded(capture: Capture, digest: str) -> bool:
    """Tell whether the payload of *capture* has codings, and without them the SHA-1 *digest*."""
    codings = codings_of(capture.noted)
    if not codings:
        return False
    from amicrawl.discovery import decoded  # noqa: PLC0415  # dear to load, and seldom needed

    body = decoded(capture.payload(), codings, limit=_DECODED + 1)
    return len(body) <= _DECODED and hashlib.sha1(body, usedforsecurity=False).hexdigest() == digest


def _known_to(seed: Seed) -> Original:
    captured_at = seed.captured_at if 0 < seed.captured_at < _END_OF_TIME else 0
    url = seed.original_url or seed.url
    # The label of a chunked payload is not that of its digest, and readers look the original up by it.
    known = seed.payload_digest if _LABEL.fullmatch(seed.payload_digest) else ""
    return Original(url, captured_at=captured_at, payload_digest=known or _label_of(seed.digest))


def _label_of(digest: str) -> str:
    """Return the label of the hex *digest* of a seed; empty where it is none."""
    try:
        raw = bytes.fromhex(digest)
    except ValueError:
        return ""
    return labelled(raw) if len(raw) == 20 else ""
