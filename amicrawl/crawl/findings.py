"""What a capture means: where it leads, and the outcome that the frontier is given. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.frontier import Found, Outcome
from amicrawl.politeness import retry_after_seconds
from amicrawl.record import unix_ms, validators_of
from amicrawl.urls import resolve

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.record import CaptureItem

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_LONGEST_WAIT = 7 * 24 * 3600


def final_url(capture: Capture) -> str:
    """Return where the exchange led: the target of a redirect, else the URL itself; empty for none."""
    if capture.failure is not None:
        return ""
    location = capture.header(b"location") if capture.status in REDIRECTS else None
    return resolve(capture.url, location) if location else capture.url


def evidence(capture: Capture) -> Outcome:
    """Return what *capture* says of its host, which decides whether the URL is asked for again."""
    # A host that sent one byte, be it of a handshake, is alive, whatever became of the exchange.
    answered = capture.ttfb_ms is not None or capture.tls is not None
    return Outcome(status=capture.status, failure=capture.failure, answered=answered)


def outcome_of(item: CaptureItem) -> Outcome:
    """Return what came of the fetch whose capture *item* is, once it is recorded."""
    capture = item.capture
    if capture.failure is not None:
        return evidence(capture)
    return Outcome(
        status=capture.status,
        answered=True,
        found=_found(item),
        latency_ms=min(capture.ttfb_ms or 0, 0xFFFF),
        ip_address=capture.ip_address or "",
        retry_after=_retry_after(capture),
    )


def _found(item: CaptureItem) -> Found:
    etag, last_modified = validators_of(item)
    original = item.original
    if original is None:
        return Found(item.digest, etag, last_modified, captured_at=unix_ms(item.capture.started))
    return Found(
        item.digest,
        etag,
        last_modified,
        # The next revisit must point at the record with the payload, never at this one.
        captured_at=original.captured_at,
        original_url=original.url if original.url != item.capture.url else "",
        unchanged=item.unchanged,
    )


def _retry_after(capture: Capture) -> float:
    """Return the seconds that the server asks to be left alone for; 0 where it does not."""
    value = capture.header(b"retry-after") if capture.status >= 400 else None
    if not value:
        return 0.0
    return retry_after_seconds(value, now=capture.started.timestamp(), cap=_LONGEST_WAIT)
