"""What goes into a frontier and what comes out: offers, dispatches, outcomes; and the rows in flight.

A row is the state of one URL. The crawl offers it, is handed it out as a dispatch, and settles it with
an outcome; what a row looks like in between is the frontier's own affair.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import AmicrawlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.capture import Failure
    from amicrawl.meguri import UrlRow
    from amicrawl.seed import Seed
    from amicrawl.urls import UrlKey


class Source(IntEnum):
    """How a URL was found; the numbers are those of a frontier file."""

    SEED = 0
    LINK = 1
    SITEMAP = 2
    REDIRECT = 3
    MANUAL = 4


class Hop(StrEnum):
    """A step from one URL to another that it names; the letters are those of Heritrix's crawl logs."""

    LINK = "L"
    REQUISITE = "E"
    REDIRECT = "R"
    SITEMAP = "M"
    PREREQUISITE = "P"
    """robots.txt, which has no row."""


_LETTERS = 50


@lru_cache(maxsize=1024)
def extended(route: str, hop: Hop) -> str:
    """Return *route* with one more *hop*."""
    if len(route) < _LETTERS:
        return route + hop.value
    left_out, plus, letters = route.rpartition("+")
    return f"{int(left_out) + 1 if plus else 1}+{letters[1:]}{hop.value}"


def hops_of(route: str) -> int:
    """Return how many hops *route* has."""
    left_out, _, letters = route.rpartition("+")
    return int(left_out or 0) + len(letters)


def is_route(text: object) -> bool:
    """Return whether *text* is a route."""
    return isinstance(text, str) and re.fullmatch(ROUTE, text) is not None


ROUTE = rf"[LERMP]{{0,{_LETTERS}}}|[1-9][0-9]{{0,8}}\+[LERMP]{{{_LETTERS}}}"
"""The expression that a route matches."""


class Offer(NamedTuple):
    """A URL that the crawl would like fetched."""

    seed: Seed
    """The URL as found, and what its producer knows of it."""
    key: UrlKey
    """Its identity: two offers with one key are one row."""
    source: Source
    priority: float = 0
    """Greater comes first; kept with the precision of a 32-bit float (integers up to 2^24 exactly)."""
    hops: int = 0
    """Links or redirects that led here, from the first URL requested; 65,535 stands for all beyond."""
    extra: Mapping[str, object] | None = None
    """What the crawl needs to make the request again, as JSON can say it; handed back as it is."""
    via: str = ""
    """The URL that it was first found on; empty for a start URL, and where that is not known."""
    route: str = ""
    """How it was reached from a start URL, a letter for each hop, as `Hop` says; empty for a start URL.
    From the 51st hop on the first letters are left out, and their number and `+` are put in front."""


@dataclass(slots=True)
class Dispatch:
    """A row that was handed out: it is in flight until it is settled or released."""

    offer: Offer
    """What was offered; its seed knows, besides, what the last capture of the row was."""
    attempt: int = 1
    """The number of this attempt; 1 for the first."""
    skip: bool = False
    """The host was given up: do not fetch, record `host-skipped` and settle with it."""

    @property
    def key(self) -> UrlKey:
        """The key of the row."""
        return self.offer.key


class Found(NamedTuple):
    """What a response brought, for the next time that the URL is requested."""

    digest: str = ""
    """SHA-1 of the payload, lower-case hex; that of the earlier capture where the server said 304."""
    etag: str = ""
    """`ETag` of the response; empty where it had none."""
    last_modified: str = ""
    """`Last-Modified` of the response; empty where it had none."""
    captured_at: int = 0
    """Unix milliseconds at which the capture began that holds the payload: an earlier one's where this
    one is a revisit of it."""
    original_url: str = ""
    """The URL of that earlier capture, where it was of another; empty for this one."""
    payload_digest: str = ""
    """`WARC-Payload-Digest` of the record with the payload, where it is not that of `digest`."""
    unchanged: bool = False
    """Whether it is a 304, or the payload is the one that the seed of the dispatch knows."""


class Outcome(NamedTuple):
    """What came of a fetch."""

    status: int = 0
    """The status code of the response; 0 where none came."""
    failure: Failure | None = None
    """Why none came; None for a response, cut short or not."""
    responded: bool = False
    """Whether the host sent at least one byte before a `failure`; needless where a response came."""
    found: Found | None = None
    """What a response contained; None where there is none, or it was not read."""
    redirect: str = ""
    """Where a redirect leads that the crawl follows: the URL that it offers; empty for none."""
    latency_ms: int = 0
    """Time to the first byte; 0 where unknown."""
    ip_address: str = ""
    """The address of the host that was dialled; empty where that is not known."""
    retry_after: float = 0.0
    """Seconds for which the server wants no request; 0 where it did not."""


class Settled(Enum):
    """What a frontier made of an outcome."""

    DONE = "done"
    """The row is settled; this crawl requests it no more, unless it falls due again."""
    AGAIN = "again"
    """The row will be handed out again, after a pause."""


@dataclass(slots=True, kw_only=True)
class Flight(Dispatch):
    """A row that is handed out, and what only the frontier knows of it."""

    number: int
    row: UrlRow
    """The row as it was before it was handed out: all of it but the status is as it is now."""
    silent: bool
    """Whether its host has never sent anything, and the request is not over."""
    evidence: tuple[object, ...] = ()
    """The part of the outcome that `again` was decided for; empty before."""
    again: bool = False
    received: bool = False
    """Whether its request is over; it is settled later."""


class Flights(dict["UrlKey", Flight]):
    """All of them, by key; AmicrawlError for a key that is not in flight."""

    received = 0
    """How many of them have their response."""
    silent = 0
    """How many of them wait for a host that has never sent anything."""

    def response_received(self, flight: Flight) -> None:
        """Note that the request of *flight* is over."""
        flight.received = True
        self.received += 1
        self.silent -= flight.silent
        flight.silent = False

    def __missing__(self, key: UrlKey) -> Flight:
        raise AmicrawlError(
            f"URL key {key[0]:016x}:{key[1]:016x} is not in flight: settle or release a row once, "
            "after it was handed out."
        )
