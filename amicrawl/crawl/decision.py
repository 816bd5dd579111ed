"""What a visit is given, what it finds out, and the decision on its URL: values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from amicrawl.crawl.links import REQUISITE
from amicrawl.frontier import Found, Outcome, Source, hops_of
from amicrawl.politeness import retry_after_seconds
from amicrawl.record import OF_SEED, Provenance, description_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.capture import Capture, Failure
    from amicrawl.fetch import WireRequest
    from amicrawl.frontier import Dispatch, Offer
    from amicrawl.record import CaptureItem
    from amicrawl.seed import Seed
    from amicrawl.urls import Refused


class NotBegun(Exception):  # noqa: N818  # not an error
    """Raised by an exchange that the crawl, paused or ending, does not begin: its row goes back."""


class Disposition(Enum):
    """What becomes of a URL after a visit."""

    DONE = "done"
    """A response came, and is kept."""
    AGAIN_NOW = "again now"
    """It goes back to the frontier as if it had not been handed out; the attempt does not count."""
    AGAIN_LATER = "again later"
    """The attempt failed; the frontier hands it out again after a pause."""
    GIVEN_UP = "given up"
    """No further attempt is made; its row of the index says why."""
    NOT_OURS = "not ours"
    """A rule of the crawl leaves it out; its row of the index says why."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a URL, and why."""

    disposition: Disposition
    reason: str = ""
    failure: Failure | None = None
    """The failure that its row of the index gets, where no server was contacted; None for none."""


DONE = Decision(Disposition.DONE)
STOPPED = Decision(Disposition.AGAIN_NOW, "the crawl was stopped")
OUTPUT_FAILED = Decision(Disposition.AGAIN_NOW, "the output failed")
NO_TURN = Decision(Disposition.AGAIN_NOW, "its address has the turn of another host")


@dataclass(slots=True, eq=False)
class Ticket:
    """One permission to send a request to one host, and what a visit finds out."""

    host: int | None
    """The host key whose gate was entered; None where none was."""
    dispatch: Dispatch | None = None
    """The frontier's row; None for requests that the frontier does not hold."""
    started: float = float("-inf")
    """The moment at which the gate was entered, on the clock of the crawl."""
    entered: bool = False
    """Whether it has had its turn at its address, or needs none."""
    expected: float = 0.0
    """Bytes that were charged for it before its response came."""
    wire_request: WireRequest | Refused | None = None
    """What goes over the wire for a request of Scrapy's engine; None for a row visited whole."""
    seed: Seed | None = None
    """What the producer of the URL knows of it, where there is no row."""
    attempt: int = 1
    """The number of this attempt, where there is no row."""
    provenance: Provenance = OF_SEED
    """How the URL was found, where there is no row."""
    capture: Capture | None = None
    """What the exchange brought."""
    outcome: Outcome | None = None
    """What the frontier learns; None while, or where, nothing was fetched."""
    redirect_to: str = ""
    """The target of a redirect, resolved and as found; empty for any other response."""
    offers: Sequence[Offer] = ()
    """What the page leads to, as far as this crawl takes it."""


_LINKS = {
    Source.SEED: "seed",
    Source.LINK: "link",
    Source.SITEMAP: "sitemap",
    Source.REDIRECT: "redirect",
    Source.MANUAL: "seed",
}


def provenance_of(offer: Offer) -> Provenance:
    """Return how the URL of the row *offer* was found."""
    _, _, source, _, hops, extra, via, route = offer
    if not via and source is Source.SEED:
        return OF_SEED
    link = _LINKS[source]
    if source is Source.MANUAL and via:
        link = "link"
    elif extra and source is not Source.REDIRECT and REQUISITE in extra:
        link = "requisite"
    elif source is Source.SITEMAP and via.endswith("/robots.txt"):
        link = "robots"
    return Provenance(via, link, hops_of(route) if route else hops, route)


_LONGEST_WAIT = 7 * 24 * 3600


def evidence(capture: Capture) -> Outcome:
    """Return what *capture* says of its host, which decides whether the URL is requested again."""
    # A host that sent one byte, be it of a handshake, is alive, whatever became of the exchange.
    responded = capture.ttfb_ms is not None or capture.tls is not None
    return Outcome(status=capture.status, failure=capture.failure, responded=responded)


def outcome_of(item: CaptureItem) -> Outcome:
    """Return what came of the fetch whose capture *item* is, once it is recorded."""
    capture = item.capture
    if capture.failure is not None:
        return evidence(capture)
    return Outcome(
        status=capture.status,
        responded=True,
        found=_found(item),
        # 0 says that it is unknown, which would keep the interval that a slow response has led to.
        latency_ms=0 if capture.ttfb_ms is None else min(max(capture.ttfb_ms, 1), 0xFFFF),
        ip_address=capture.ip_address or "",
        retry_after=_retry_after(capture) if capture.status >= 400 else 0.0,
    )


def _found(item: CaptureItem) -> Found:
    # Its row has been made by then, in a crawl.
    _, etag, last_modified = item.described or description_of(item)
    original = item.original
    if original is None:
        return Found(
            item.digest,
            etag,
            last_modified,
            captured_at=item.capture.started_ms,
            payload_digest=item.payload_digest,
        )
    return Found(
        item.digest,
        etag,
        last_modified,
        # The next revisit must point at the record with the payload, never at this one.
        captured_at=original.captured_at,
        original_url=original.url if original.url != item.capture.url else "",
        payload_digest=item.payload_digest,
        unchanged=item.unchanged,
    )


def _retry_after(capture: Capture) -> float:
    """Return the seconds for which the server wants no request; 0 where it does not."""
    value = capture.header(b"retry-after")
    if not value:
        return 0.0
    return retry_after_seconds(value, now=capture.started_ms / 1000, cap=_LONGEST_WAIT)
