"""Ranking: the priority of every row, by what is known of its importance so far.

    offered         the row is endowed with cash: its own priority, or what a link to it carries
    links offered   the cash of the page goes to what it links to, known or new
    imported        a page rank for the row, a score for its host
    priority        the blend of these, less for distance and for hosts suspected of traps

Rows go by their numbers. A row takes 9 bytes here and 4 more if any of a greater number was given a page
rank; pairs of linking hosts are bounded by `LinkingHosts`. All of it is forgotten with the process. What
survives is what the frontier keeps: priorities, host scores, budgets and flags. A row that is met again
after that is worth what its priority says: `recall` gives it the cash that would have led there, so that
the links found next raise it from where it was. Pure; what is done with a priority is the frontier's.
"""

from __future__ import annotations

from array import array
from math import expm1, isnan, nan
from typing import TYPE_CHECKING

from amicrawl.frontier.importance import (
    DEFAULTS,
    ImportanceParams,
    LinkingHosts,
    Opic,
    blend,
    compress,
    penalised,
    single,
    url_budget,
)

if TYPE_CHECKING:
    from amicrawl.frontier.url_row import HostRow

TRAP_SUSPECT = 1
"""The flag of a host row that says that the host is suspected of traps."""
_MOST = 2.0**64
"""Cash and imported scores beyond this count as this: sums of them stay numbers."""
_MOST_RECALLED = 16.0
"""Importance that a priority of before can stand for: nine million times the cash of a seed."""


class Ranking:
    """The importance of the rows of one frontier.

    A seed that comes with a priority of 0, which says nothing of it, is endowed with *endowment*; one of
    less than 0 with nothing.
    """

    __slots__ = ("_linking", "_opic", "_params", "_ranks", "endowment")

    def __init__(
        self,
        params: ImportanceParams = DEFAULTS,
        *,
        endowment: float = 1.0,
        linking: LinkingHosts | None = None,
    ) -> None:
        self.endowment = endowment
        self._params = params
        self._opic = Opic(params)
        self._linking = linking or LinkingHosts()
        self._ranks = array("f")
        """Imported page ranks, compressed; no number where there is none."""

    def endow(self, row: int, priority: float) -> None:
        """Give *row*, new and asked for by name with *priority*, its cash."""
        self._opic.seed(row, _bounded(priority or self.endowment))

    def credit(self, row: int, weight: float) -> None:
        """Give *row* what a link to it carries, or nothing where that is not positive."""
        self._opic.credit(row, _bounded(weight))

    def spread(self, row: int, links: int) -> float:
        """Take the cash of *row*, a page with so many *links*, and return what each of them carries.

        What a page without links has goes to all pages alike.
        """
        return self._opic.distribute(row, links)

    def rate(self, row: int, score: float) -> None:
        """Note the page rank of *row*, imported; what is no positive number is a rank of 0."""
        missing = row + 1 - len(self._ranks)
        if missing > 0:
            self._ranks.extend([nan] * missing)
        self._ranks[row] = compress(_bounded(score))

    def priority(self, row: int, *, depth: int, host: HostRow | None) -> float:
        """Return the priority of *row*, *depth* links from a seed, of *host*; single precision."""
        rank = self._ranks[row] if row < len(self._ranks) else nan
        importance = blend(
            self._opic.score(row),
            page_rank=None if isnan(rank) else rank,
            host_score=_host_score(host),
            params=self._params,
        )
        return penalised(importance, depth=depth, trap_suspect=is_suspect(host), params=self._params)

    def recall(self, row: int, priority: float, *, depth: int, host: HostRow | None) -> None:
        """Have *row*, if nothing is known of it, be worth what its *priority* of before says.

        The parts that a priority was blended of cannot be told apart: all of it becomes cash.
        """
        if self._opic.knows(row):
            return
        whole = penalised(1.0, depth=depth, trap_suspect=is_suspect(host), params=self._params)
        importance = priority / whole if whole > 0 else 0.0
        score = _host_score(host)
        if score:
            importance = (importance - self._params.host_weight * score) / self._params.opic_weight
        importance = min(importance, _MOST_RECALLED) if importance > 0 else 0.0
        cash = expm1(importance * self._params.log_norm) - self._opic.alike
        self._opic.seed(row, _bounded(cash))

    def budget(self, host: int, *, source: int) -> int:
        """Note a link from the host *source* to *host*, and return how many URLs that one may have.

        A *source* of 0 is none; a host's own links speak for nobody.
        """
        return url_budget(self._linking.add(host, source), params=self._params)


def is_suspect(host: HostRow | None) -> bool:
    """Tell whether *host* is flagged as suspected of traps."""
    return host is not None and bool(host.flags & TRAP_SUSPECT)


def score_of(score: float) -> float:
    """Return an imported *score* of a host as a host row holds it: nothing but positive numbers."""
    return single(_bounded(score))


def _bounded(value: float) -> float:
    return min(value, _MOST) if value > 0 else 0.0


def _host_score(host: HostRow | None) -> float:
    return compress(_bounded(host.host_score)) if host is not None else 0.0
