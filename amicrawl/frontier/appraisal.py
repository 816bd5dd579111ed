"""Appraisal: what a URL is worth when it is offered or linked to, and whether it is let in.

It brings together what only computes (`Ranking`, `Admission`) and what is noted of hosts: budgets, flags
and imported scores go into their rows, and survive there. A budget never shrinks: after a restart the
linking hosts are counted anew, and those counted before still speak for the host. Rows it only returns;
to keep and queue them is the frontier's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.frontier.admission import BY_NAME
from amicrawl.frontier.ranking import TRAP_SUSPECT, score_of
from amicrawl.frontier.states import WAITING, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.admission import Admission
    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.ranking import Ranking
    from amicrawl.frontier.row import Offer
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.urls import UrlKey

_PAGE = 65_536
_RANKED = frozenset(map(int, WAITING | {Status.IN_FLIGHT}))
"""Statuses of rows whose priority decides something before they are met again."""


class Link(NamedTuple):
    """A link to a URL."""

    source: int
    """The key of the host that it stands on; 0 where that is not known."""
    weight: float
    """What it carries of the cash of its page."""


class Appraisal:
    """The rules of one frontier, and the host rows that they go by."""

    __slots__ = ("_admission", "_hosts", "_parked_scores", "_partition", "_ranking")

    def __init__(
        self,
        partition: LivePartition,
        hosts: HostTally,
        *,
        ranking: Ranking | None,
        admission: Admission | None,
    ) -> None:
        self._partition = partition
        self._hosts = hosts
        self._ranking = ranking
        self._admission = admission
        self._parked_scores: dict[int, float] = {}
        """Imported scores of hosts that have no row yet."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to appraise by."""
        return self._ranking is not None or self._admission is not None

    @property
    def ranks(self) -> bool:
        """Whether rows are given priorities."""
        return self._ranking is not None

    def offered(self, number: int, row: UrlRow, offer: Offer, *, link: Link | None, hour: int) -> UrlRow:
        """Return *row*, new as *number* and counted among those of its host, as it enters the frontier.

        It has its priority, and is TRAPPED if it is not admitted. *link* is what led there, if that is
        known; what is offered as found without one carries its own priority, from nowhere.
        """
        ranking = self._ranking
        if self._parked_scores and row.host in self._parked_scores:
            self._note_score(row.host, self._parked_scores.pop(row.host))
        if ranking is not None:
            if offer.source in BY_NAME and link is None:
                ranking.endow(number, row.priority)
            else:
                link = link or Link(0, row.priority)
                ranking.credit(number, link.weight)
                self._grant(row.host, link.source)
        if self._admission is not None:
            row = self._admitted(row, offer, hour)
        return row if ranking is None else row._replace(priority=self.priority(number, row))

    def priority(self, number: int, row: UrlRow) -> float:
        """Return the priority of *row* by what is known now."""
        assert self._ranking is not None
        return self._ranking.priority(number, depth=row.depth, host=self._hosts.row(row.host))

    def spread(self, source: UrlKey, links: int) -> tuple[int | None, Link]:
        """Take the cash of the page at *source*, with so many *links*; return what each of them is.

        The number of the page's row comes first; None where there is none, which has nothing to spread.
        """
        number = self._partition.find(*source)
        if number is None:
            return None, Link(source.host, 0.0)
        self._recall(number)
        assert self._ranking is not None
        return number, Link(source.host, self._ranking.spread(number, links))

    def linked(self, number: int, link: Link) -> None:
        """Note a *link* to row *number*, which was there before."""
        host = self._recall(number)
        assert self._ranking is not None
        self._ranking.credit(number, link.weight)
        self._grant(host, link.source)

    def imported(self, pages: Mapping[UrlKey, float], hosts: Mapping[int, float]) -> list[int]:
        """Note page ranks by URL and scores by host key; return the rows that may come up otherwise.

        Ranks of URLs that are not known are left out, scores of such hosts kept until there is one.
        """
        partition, ranking = self._partition, self._ranking
        ranked: set[int] = set()
        if ranking is not None:
            ranked.update(_rows_of(partition.state.rows.view(), hosts) if hosts else ())
            ranked -= partition.state.removed
            # Before anything changes: what they were worth until now, they were by the scores until now.
            for number in ranked:
                self._recall(number)
            for key, score in pages.items():
                known = partition.find(*key)
                if known is not None:
                    self._recall(known)
                    ranking.rate(known, score)
                    ranked.add(known)
        for host, score in hosts.items():
            if self._hosts.row(host) is None:
                self._parked_scores[host] = score_of(score)
            else:
                self._note_score(host, score_of(score))
        return [number for number in sorted(ranked) if partition.get(number).status in _RANKED]

    def released(self, host: int) -> None:
        """Note that a row of *host* is trapped no more."""
        if self._admission is not None:
            self._admission.released(host)

    def _recall(self, number: int) -> int:
        """Have row *number* be worth what its priority says, if no more is known; return its host."""
        assert self._ranking is not None
        row = self._partition.get(number)
        self._ranking.recall(number, row.priority, depth=row.depth, host=self._hosts.row(row.host))
        return row.host

    def _grant(self, host: int, source: int) -> None:
        assert self._ranking is not None
        row = self._hosts.row(host)
        budget = self._ranking.budget(host, source=source)
        if row is not None and budget > row.url_budget:
            self._hosts.put(row._replace(url_budget=budget))

    def _admitted(self, row: UrlRow, offer: Offer, hour: int) -> UrlRow:
        assert self._admission is not None
        host = self._hosts.row(row.host)
        assert host is not None
        urls = self._hosts.urls(row.host) - 1
        verdict = self._admission.weigh(offer, host, urls=urls, hour=hour)
        if verdict.is_suspect and not host.flags & TRAP_SUSPECT:
            self._hosts.put(host._replace(flags=host.flags | TRAP_SUSPECT))
        return row if verdict.refusal is None else row.with_status(Status.TRAPPED)

    def _note_score(self, host: int, score: float) -> None:
        row = self._hosts.row(host)
        assert row is not None
        self._hosts.put(row._replace(host_score=score))


def _rows_of(rows: np.ndarray, hosts: Mapping[int, float]) -> list[int]:
    """Return the numbers of *rows*, the records of a table, that belong to *hosts*; looks at each."""
    wanted = np.fromiter(hosts, np.uint64, len(hosts))
    found: list[int] = []
    for at in range(0, len(rows), _PAGE):
        matches = np.isin(rows["host_key"][at : at + _PAGE], wanted)
        found += (np.flatnonzero(matches) + at).tolist()
    return found
