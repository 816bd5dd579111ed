"""Whether a payload must be stored, or a record that points at an earlier one is enough.

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
the record of before holds other bytes, and the next crawl finds the digest of these. Pure.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amicrawl.record.digests import labelled

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.record.digests import Digests
    from amicrawl.seed import Seed

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

    One takes about 400 bytes. A payload that was forgotten is stored once more.
    """

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._by_digest: dict[str, Original] = {}

    def __len__(self) -> int:
        return len(self._by_digest)

    def get(self, digest: str, /) -> Original | None:
        """Return the record that holds the payload with SHA-1 *digest* (hex), if there is one."""
        original = self._by_digest.pop(digest, None)
        if original is not None:
            self._by_digest[digest] = original
        return original

    def add(self, digest: str, original: Original) -> None:
        """Remember that *original* holds the payload with SHA-1 *digest* (hex)."""
        self._by_digest.pop(digest, None)
        self._by_digest[digest] = original
        if len(self._by_digest) > self._limit:
            del self._by_digest[next(iter(self._by_digest))]


def _was_conditional(capture: Capture, seed: Seed) -> bool:
    """Tell whether the request allowed a 304; by the seed where the request's bytes are not known."""
    if capture.request:
        return _CONDITION.search(capture.request) is not None
    return bool(seed.etag or seed.last_modified)


def _is_coded(capture: Capture, digest: str) -> bool:
    """Tell whether the payload of *capture* has content codings, and without them the SHA-1 *digest*."""
    codings = b",".join(value for name, value in capture.noted if name.lower() == b"content-encoding")
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
