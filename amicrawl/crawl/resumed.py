"""How a crawl found the frontier that it resumes, for what the operator reads at its start and end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier import old_at
from amicrawl.meguri import RESTING, WAITING, Cause, Status
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from amicrawl.crawl.reconciling import Reconciled
    from amicrawl.frontier import AgeLimits, DurableFrontier

CAPTURED = "captured"
DENIED = "denied by robots.txt"
WITHHELD_ADDRESS = "withheld for the address"
"""Words for where URLs are, of which the end of a crawl has more to say."""
_DONE = (Status.CRAWLED, Status.GONE, Status.EXCLUDED, Status.TRAPPED, Status.WITHHELD)


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a crawl found its frontier."""

    found: bool = False
    """Whether there was one before."""
    done: int = 0
    """URLs that are settled."""
    in_flight: int = 0
    """URLs that had been handed out when the crawl before died; they are pending now."""
    pending: int = 0
    """URLs that are due."""
    later: int = 0
    """URLs to be tried again that are not due yet."""
    recrawls: bool = False
    """Whether `later` has those that are done, too, as a recrawl requests them again once due."""
    settled_by_index: int = 0
    """URLs whose captures the frontier did not know."""
    lost: int = 0
    """URLs whose captures never arrived; they are pending again."""
    changed: tuple[str, ...] = ()
    """Settings that differ from those of the last crawl, as far as they keep URLs out."""
    let_in: int = 0
    """URLs that those had kept out, and that are pending now."""
    standing: Mapping[str, int] = field(default_factory=dict)
    """How many URLs are where, by words for the operator, where none is due; empty where some are."""
    next_due: int = 0
    """The hour since 1970 at which the first of those to be tried again is due; 0 for none."""
    read_again: int = 0
    """Archived pages that were read again for their links, since the crawl takes others now."""
    index_rows: int = 0
    """Rows that the index had when the crawl began."""

    def sentence(self) -> str:
        """Say what was found, for the operator."""
        parts = [
            f"{counted(self.done, 'URL')} done",
            *([f"{self.in_flight:,} in flight"] if self.in_flight else []),
            f"{self.pending:,} pending",
        ]
        if self.later:
            parts.append(f"{self.later:,} {'due' if self.recrawls else 'to be retried'} later")
        text = "resuming: " + ", ".join(parts)
        if self.settled_by_index:
            text += f"; {self.settled_by_index:,} were captured without the frontier knowing"
        if self.lost:
            text += f"; the captures of {self.lost:,} never arrived, they are fetched again"
        if self.changed:
            text += f"\nchanged since the last crawl here: {', '.join(self.changed)}"
        if self.let_in:
            have, are = ("has", "is") if self.let_in == 1 else ("have", "are")
            text += f"; {counted(self.let_in, 'URL')} that {have} been kept out {are} pending"
        if self.read_again:
            text += f"; {self.read_again:,} archived pages were read again for their links"
        return text


def resumed(
    frontier: DurableFrontier, repaired: Reconciled, *, recrawls: bool, ages: AgeLimits | None = None
) -> Resumed:
    """Return how *frontier* was found, given what had to be *repaired* in it.

    *recrawls* tells whether settled URLs are fetched again, too, once due, by *ages* if there are any.
    """
    if frontier.partition.opened.is_new:
        return Resumed(index_rows=repaired.index_rows)
    counts = frontier.counts
    standing = _standing(frontier) if not frontier.queued else {}
    taken = WAITING | RESTING if recrawls and ages is None else WAITING
    return Resumed(
        found=True,
        done=sum(counts[status] for status in _DONE),
        in_flight=repaired.in_flight or frontier.lapsed,
        pending=frontier.queued,
        later=frontier.later,
        recrawls=recrawls,
        settled_by_index=repaired.settled,
        lost=repaired.lost,
        standing=standing,
        next_due=_first_due(frontier, taken, ages) if standing else 0,
        index_rows=repaired.index_rows,
    )


def _standing(frontier: DurableFrontier) -> dict[str, int]:
    """Return how many rows are where, in the words of the end of a crawl."""
    counts = frontier.counts
    causes: Counter[int] = Counter()
    for rows in frontier.partition.state.rows.pages():
        causes.update(rows["http_status"][rows["status"] == Status.WITHHELD].tolist())
    found = {
        CAPTURED: counts[Status.CRAWLED],
        "gone": counts[Status.GONE],
        "to be retried": sum(counts[status] for status in WAITING),
        DENIED: counts[Status.EXCLUDED],
        WITHHELD_ADDRESS: causes[Cause.ADDRESS],
        "withheld by a rule": causes[Cause.RULE],
        "not fetchable": causes[Cause.UNFETCHABLE],
        "taken for traps": counts[Status.TRAPPED],
    }
    return {words: number for words, number in found.items() if number}


def _first_due(frontier: DurableFrontier, statuses: Collection[Status], ages: AgeLimits | None) -> int:
    """Return the earliest hour at which a row in one of *statuses* is due; 0 where there is none.

    With *ages*, that at which a settled row is old as well.
    """
    wanted, first = [int(status) for status in statuses], 0
    if ages is not None:
        first = int(min(old_at(frontier.partition, ages)[1], default=0))
    for rows in frontier.partition.state.rows.pages():
        dues = rows["next_due"][np.isin(rows["status"], wanted) & (rows["next_due"] > 0)]
        if len(dues):
            first = min(first or int(dues.min()), int(dues.min()))
    return first
