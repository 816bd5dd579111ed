"""What goes into a frontier and what comes out: offers, dispatches, outcomes.

A row is the state of one URL. The crawl offers it, is handed it out as a dispatch, and settles it with
an outcome; what a row looks like in between is the frontier's own affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.capture import Failure
    from amicrawl.seed import Seed
    from amicrawl.urls import UrlKey


class Source(IntEnum):
    """How a URL was found; the numbers are those of a frontier file."""

    SEED = 0
    LINK = 1
    SITEMAP = 2
    REDIRECT = 3
    MANUAL = 4


@dataclass(frozen=True, slots=True)
class Offer:
    """A URL that the crawl would like fetched."""

    seed: Seed
    """The URL as found, and what its producer knows of it."""
    key: UrlKey
    """Its identity: two offers with one key are one row."""
    source: Source
    priority: int = 0
    """Greater comes first; any integer."""
    hops: int = 0
    """Redirects that led here, from the first URL asked for; not negative."""
    extra: Mapping[str, object] | None = None
    """What the crawl needs to make the request again; handed back as it is, never looked at."""


@dataclass(slots=True)
class Dispatch:
    """A row that was handed out: it is in flight until it is settled or released."""

    offer: Offer
    attempt: int = 1
    """The number of this attempt; 1 for the first."""
    skip: bool = False
    """The host was given up: do not fetch, record `host-skipped` and settle with it."""

    @property
    def key(self) -> UrlKey:
        """The key of the row."""
        return self.offer.key


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a fetch."""

    status: int = 0
    """The status code of the response; 0 where none came."""
    failure: Failure | None = None
    """Why none came; None for a response, cut short or not."""
    answered: bool = False
    """Whether the host sent at least one byte before a `failure`; needless where a response came."""


class Settled(Enum):
    """What a frontier made of an outcome."""

    DONE = "done"
    """The row is settled; it is not handed out again."""
    AGAIN = "again"
    """The row will be handed out again, after a pause."""
