"""What is counted per host, gathered in memory and handed to the partition with each flush.

The row of a busy host changes with every page; of all those states only the last need reach the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.arena import entry_of
from amicrawl.frontier.url_row import HostRow
from amicrawl.urls import host_group, octets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.row import Outcome
    from amicrawl.politeness import Gates

_MOST = 0xFFFF_FFFF
_LONGEST = 0xFFFF
_LONGEST_WAIT = 24 * 3600
"""Seconds that what is noted of a host can keep its gate shut: clocks may have been wrong."""
_ERRORS = frozenset({429, *range(500, 600)})


class HostTally:
    """The host rows of one partition."""

    def __init__(self, partition: LivePartition, *, crawl_delay: int) -> None:
        """*crawl_delay*, in tenths of a second, is what new hosts are noted to ask for."""
        self._partition = partition
        self._crawl_delay = crawl_delay
        self._offered: dict[int, int] = {}
        """URLs offered since the last hand-over, by host."""
        self._changed: dict[int, HostRow] = {}
        if partition.opened.touched:
            self._recount()

    def row(self, host: int) -> HostRow | None:
        """Return the row of *host*; URLs offered since the last hand-over may be missing from it."""
        return self._changed.get(host) or self._partition.host(host)

    def urls(self, host: int) -> int:
        """Return how many URLs of *host* have been offered; 0 where it has no row."""
        row = self.row(host)
        return 0 if row is None else row.url_count + self._offered.get(host, 0)

    def put(self, row: HostRow) -> None:
        """Have *row*, made from what `row` gave, be that of its host."""
        self._changed[row.host] = row

    def offered(self, host: int, url: str) -> None:
        """Count *url*, new, among those of *host*."""
        offered = self._offered
        count = offered.get(host)
        if count is None:
            if host not in self._changed and not self._partition.knows_host(host):
                self._begin(host, url)
            offered[host] = 1
        else:
            offered[host] = count + 1

    def settled(self, host: int, outcome: Outcome, *, opens: int) -> None:
        """Count *outcome* for *host*, which may be asked again from *opens* on (Unix seconds)."""
        row = self.row(host)
        if row is None:
            return
        latency = min(outcome.latency_ms, _LONGEST)
        if latency and row.avg_latency:
            latency = (3 * row.avg_latency + latency) // 4
        failed = outcome.failure is not None or outcome.status in _ERRORS
        self._changed[host] = row._replace(
            crawl_total=min(row.crawl_total + (outcome.status > 0), _MOST),
            error_total=min(row.error_total + failed, _MOST),
            avg_latency=latency or row.avg_latency,
            host_next_eligible=opens,
        )

    def hand_over(self, *, counts: bool = False) -> None:
        """Give the partition the rows that have changed; with *counts*, also where only URLs were added.

        Those are counted anew when a partition is opened that was not closed, so that the journal need
        not hear of each.
        """
        offered, changed, partition = self._offered, self._changed, self._partition
        if counts:
            for host in offered.keys() - changed.keys():
                row = partition.host(host)
                if row is not None:
                    changed[host] = row
        for host, row in changed.items():
            count = offered.pop(host, 0)
            partition.put_host(row.with_urls(min(row.url_count + count, _MOST)) if count else row)
        changed.clear()

    def _recount(self) -> None:
        """Count the URLs of every host, and correct the rows that say otherwise."""
        hosts, counts = np.unique(self._partition.state.rows.view()["host_key"], return_counts=True)
        if not len(hosts):
            return
        rows = self._partition.state.hosts.view()
        places = np.minimum(np.searchsorted(hosts, rows["host_key"]), len(hosts) - 1)
        wrong = (hosts[places] == rows["host_key"]) & (counts[places] != rows["url_count"])
        for number in np.flatnonzero(wrong).tolist():
            row = self._partition.host(int(rows["host_key"][number]))
            if row is not None:
                self._changed[row.host] = row.with_urls(min(int(counts[places[number]]), _MOST))

    def _begin(self, host: int, url: str) -> None:
        group = host_group(url)
        reference = self._partition.intern(entry_of(octets(group)))
        self._changed[host] = HostRow(
            host, host_ref=reference, registrable_ref=reference, crawl_delay=self._crawl_delay
        )


def keep_gates_shut(
    partition: LivePartition, gates: Gates, lapsed_hosts: Iterable[int], *, now: float, wall: float
) -> None:
    """Shut the *gates* that were not yet open when the crawl before ended.

    *lapsed_hosts* are those that it had in flight; *now* is the moment on the clock of the gates, and
    *wall* the same in Unix seconds.
    """
    for host in lapsed_hosts:
        # Nothing tells when it was asked; a crawl that dies again and again must not press it.
        gates.keep_shut(host, now + gates.delay)
    hosts = partition.state.hosts.view()
    for number in np.flatnonzero(hosts["host_next_eligible"] > wall).tolist():
        wait = min(int(hosts["host_next_eligible"][number]) - wall, _LONGEST_WAIT)
        gates.keep_shut(int(hosts["host_key"][number]), now + wait)
