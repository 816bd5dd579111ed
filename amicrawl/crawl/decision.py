"""What a visit is given and finds out, the decision on its URL, and the counts of all: values. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from amicrawl.crawl.links import REQUISITE
from amicrawl.frontier import Found, Outcome, Source, hops_of
from amicrawl.politeness import retry_after_seconds
from amicrawl.record import OF_SEED, Provenance, description_of

if TYPE_CHECKING:
    from collections.abc import Callable

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


CLASSES = ("ok", "unchanged", "redirect", "client_error", "server_error", "failed", "skipped")
"""The counts of which each row of the index is in exactly one."""

STATS = {
    **{name: f"amicrawl/fetches/{name}" for name in CLASSES},
    "rows": "amicrawl/rows",
    "bytes_received": "amicrawl/bytes_received",
    "seeds_read": "amicrawl/seeds/read",
    "seeds_bad": "amicrawl/seeds/bad",
    "seeds_elsewhere": "amicrawl/seeds/elsewhere",
    "seeds_known": "amicrawl/seeds/known",
}
"""The stats key under which each count is found when the crawl has ended."""


@dataclass(slots=True)
class Tally:
    """Counts of one crawl. Every row of the index is in exactly one of the classes."""

    ok: int = 0
    """2xx and other responses that are in no class below, unchanged ones excepted."""
    unchanged: int = 0
    """Responses equal to an earlier capture."""
    redirect: int = 0
    """3xx responses."""
    client_error: int = 0
    """4xx responses."""
    server_error: int = 0
    """5xx responses."""
    failed: int = 0
    """Fetches that brought no response."""
    skipped: int = 0
    """URLs that were not requested: host given up, robots.txt, the crawl's own rules."""
    bytes_received: int = 0
    """Bytes of response heads and bodies as received."""
    seeds_read: int = 0
    """Seeds that the reader delivered."""
    seeds_bad: int = 0
    """Lines of the seed list that could not be used."""
    seeds_elsewhere: int = 0
    """Seeds that belong to another shard."""
    seeds_known: int = 0
    """Seeds that were already in the frontier."""
    seeds_ended: bool = False
    """Whether the seed list was read to its end, so that the total is known."""
    seeds_announced: int | None = None
    """How many entries the seed list has, counted ahead of the reading; None where not known yet."""
    failures: Counter[str] = field(default_factory=Counter)
    """Rows without a response, by the first word of the index's `error` column."""
    on_count: list[Callable[[CaptureItem], None]] = field(default_factory=list)
    """Called with every row of the index once it is counted; each costs time per fetch."""

    @property
    def responses(self) -> int:
        """Fetches that brought a response, whatever its status."""
        return self.ok + self.unchanged + self.redirect + self.client_error + self.server_error

    @property
    def rows(self) -> int:
        """Rows of the index so far."""
        return self.responses + self.failed + self.skipped

    @property
    def reached_nothing(self) -> bool:
        """Whether something was requested and no response came, or no seed was for this shard."""
        is_elsewhere = bool(self.seeds_read) and self.seeds_elsewhere == self.seeds_read
        return is_elsewhere or (self.failed > 0 and not self.responses)

    def count(self, item: CaptureItem) -> None:
        """Put *item*, which is kept, into its class, and tell those who listen."""
        capture = item.capture
        self.bytes_received += capture.received
        if 200 <= capture.status < 300 and not item.unchanged and capture.failure is None:
            self.ok += 1
        else:
            self.add(capture.status, capture.failure, unchanged=item.unchanged)
        for heard in self.on_count:
            heard(item)

    def add(self, status: int, failure: Failure | None, *, unchanged: bool, rows: int = 1) -> None:
        """Count *rows* rows of the index that say this."""
        if failure is not None:
            name = "skipped" if failure.never_requested else "failed"
            self.failures[failure.value] += rows
        elif unchanged:
            name = "unchanged"
        elif status >= 500:
            name = "server_error"
        else:
            name = {3: "redirect", 4: "client_error"}.get(status // 100, "ok")
        setattr(self, name, getattr(self, name) + rows)

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name, `rows` included."""
        return {name: getattr(self, name) for name in STATS}

    def as_stats(self) -> dict[str, int]:
        """Return the counts by Scrapy's stats key, for tools that look there when a crawl has ended."""
        counts = self.as_dict()
        return {key: counts[name] for name, key in STATS.items()}
