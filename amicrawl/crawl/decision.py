"""What a visit is given and what it returns: the ticket of one request, and the decision on its URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.capture import Capture, Failure
    from amicrawl.fetch import WireRequest
    from amicrawl.frontier import Dispatch, Offer, Outcome
    from amicrawl.seed import Seed
    from amicrawl.urls import Refused


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
    """The failure that its row of the index gets, where no server was asked; None for none."""


DONE = Decision(Disposition.DONE)
STOPPED = Decision(Disposition.AGAIN_NOW, "the crawl was stopped")
OUTPUT_FAILED = Decision(Disposition.AGAIN_NOW, "the output failed")
NO_TURN = Decision(Disposition.AGAIN_NOW, "its address has the turn of another host")


@dataclass(slots=True, eq=False)
class Ticket:
    """One permission to ask one host, and what a visit finds out."""

    host: int | None
    """The host key whose gate was entered; None where none was."""
    dispatch: Dispatch | None = None
    """The frontier's row; None for requests that the frontier does not hold."""
    started: float = float("-inf")
    """The moment at which the gate was entered, on the clock of the crawl."""
    entered: bool = False
    """Whether it has had its turn at its address, or needs none."""
    expected: float = 0.0
    """Bytes that were charged for it before its answer came."""
    received: int = 0
    """Bytes that its answer had."""
    asked: WireRequest | Refused | None = None
    """What goes over the wire for a request of Scrapy's engine; None for a row visited whole."""
    seed: Seed | None = None
    """What the producer of the URL knows of it, where there is no row."""
    attempt: int = 1
    """The number of this attempt, where there is no row."""
    capture: Capture | None = None
    """What the exchange brought."""
    outcome: Outcome | None = None
    """What the frontier learns; None while, or where, nothing was fetched."""
    redirect_to: str = ""
    """The target of a redirect, resolved and as found; empty for any other response."""
    offers: list[Offer] = field(default_factory=list)
    """What the page leads to, as far as this crawl takes it."""
