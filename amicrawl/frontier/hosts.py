"""What is counted per host, gathered in memory and handed to the partition with each flush.

The row of a busy host changes with every page; only its last state in each flush is journaled, and a
crawl flushes once a second what is counted, and twenty times a second the rows of URLs.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from socket import AF_INET, AF_INET6, inet_pton
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.meguri import HostRow, entry_of, pack_robots
from amicrawl.politeness import BUSY
from amicrawl.urls import host_group, octets, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.frontier.row import Outcome
    from amicrawl.meguri import LivePartition
    from amicrawl.politeness import Gates, HostPace

_MOST = 0xFFFF_FFFF
_LONGEST = 0xFFFF
_HOUR = 3600
_ADDRESS_KEPT = 1
"""Hours after which an address that was dialled should be looked up again."""
_MAPPED = bytes(10) + b"\xff\xff"
"""What stands before an IPv4 address to make it an IPv6 one (RFC 4291, section 2.5.5.2)."""
_ROBOTS_MISSING = 2
"""The flag of a host without a robots.txt."""


class _HostResponses:
    """What a host responded since its row was changed last."""

    __slots__ = ("address", "count", "errors", "latencies", "opens")

    def __init__(self) -> None:
        self.count = self.errors = 0
        self.latencies: list[int] = []
        """Milliseconds, in order."""
        self.address = ""
        """The address that was dialled last; empty where none is known."""
        self.opens = 0
        """The Unix second from which the host may be contacted; 0 for at once."""


class HostTally:
    """The host rows of one partition."""

    def __init__(
        self, partition: LivePartition, *, interval: Callable[[int], float], wall: Callable[[], float]
    ) -> None:
        """*interval* returns the seconds between two requests to a host; *wall*, Unix seconds."""
        self._partition = partition
        self._interval = interval
        self._wall = wall
        self.noted = partition.host
        """Return the row of a host as it was handed over last: what it responded since is missing."""
        self.offered: dict[int, int] = {}
        """URLs offered since the row of their host was changed last, by host; `Offering` counts them."""
        self._begun: list[int] = []
        """Hosts that had no row before the last hand-over."""
        self._responses: dict[int, _HostResponses] = {}
        """What hosts responded that is not in their rows yet."""
        if partition.opened.touched:
            self._recount()

    def row(self, host: int) -> HostRow | None:
        """Return the row of *host*; URLs offered since the last hand-over may be missing from it."""
        responses = self._responses.pop(host, None)
        if responses is not None:
            self._write(host, responses)
        return self._partition.host(host)

    def urls(self, host: int) -> int:
        """Return how many URLs of *host* have been offered; 0 where it has no row."""
        row = self.noted(host)
        return 0 if row is None else row.url_count + self.offered.get(host, 0)

    def known(self, host: int) -> tuple[str, int]:
        """Return the name of *host* and the number of its responses; empty and 0 where it has no row."""
        row = self.row(host)
        if row is None:
            return "", 0
        return text_of(self._partition.texts_at(row.host_ref)[0]), row.crawl_total

    def put(self, row: HostRow) -> None:
        """Have *row*, made from what `row` gave, be that of its host."""
        self._partition.put_host(row)

    def settled(self, host: int, outcome: Outcome, *, opens: int) -> None:
        """Count *outcome* for *host*, which may be contacted again from *opens* on (Unix seconds)."""
        responses = self._responses.get(host)
        if responses is None:
            responses = self._responses[host] = _HostResponses()
        status = outcome.status
        if status:
            responses.count += 1
        if outcome.failure is not None or status in BUSY:
            responses.errors += 1
        if outcome.latency_ms:
            responses.latencies.append(outcome.latency_ms)
        if outcome.ip_address:
            responses.address = outcome.ip_address
        responses.opens = opens

    def _write(self, host: int, responses: _HostResponses) -> None:
        """Count *responses*, and the URLs offered since, in the row of *host*, if it has one."""
        row = self._partition.host(host)
        if row is None:
            return
        average = row.avg_latency
        for latency in responses.latencies:
            latest = min(latency, _LONGEST)
            average = (3 * average + latest) // 4 if average else latest
        address, expiry = row.resolved_ip, row.ip_expiry
        if responses.address:
            address = _packed(responses.address)
            expiry = int(self._wall() // _HOUR) + _ADDRESS_KEPT
        row = row.changed(
            crawl_total=min(row.crawl_total + responses.count, _MOST),
            error_total=min(row.error_total + responses.errors, _MOST),
            avg_latency=average,
            host_next_eligible=responses.opens,
            crawl_delay=self._tenths(host),
            resolved_ip=address,
            ip_expiry=expiry,
            url_count=min(row.url_count + self.offered.pop(host, 0), _MOST),
        )
        self._partition.put_host(row)

    def note_robots(
        self, host: int, body: bytes | None, *, fetched: float, expires: float, missing: bool
    ) -> None:
        """Note the robots.txt of *host*: its *body* (None: as before), and Unix seconds.

        Of a host with several origins, the one that was requested last is kept.
        """
        row = self.row(host)
        if row is None:
            return
        reference = row.robots_ref
        if body is not None:
            packed = pack_robots(body, self._partition.options.codec)
            if not reference or self._partition.texts_at(reference)[0] != packed:
                reference = self._partition.intern(entry_of(packed))
        self._partition.put_host(
            row.changed(
                robots_ref=reference,
                robots_fetched=int(fetched // _HOUR),
                # Rounded up, a file would be believed for longer than it may be.
                robots_expiry=int(expires // _HOUR),
                crawl_delay=self._tenths(host),
                flags=row.flags | _ROBOTS_MISSING if missing else row.flags & ~_ROBOTS_MISSING,
            )
        )

    def note_wait(self, host: int, *, opens: int) -> None:
        """Note that *host* may be contacted again from *opens* on (Unix seconds), and its pace."""
        row = self.row(host)
        if row is not None:
            delay = self._tenths(host)
            self._partition.put_host(row.changed(host_next_eligible=opens, crawl_delay=delay))

    def _tenths(self, host: int) -> int:
        return _tenths_of(self._interval(host))

    def hand_over(self, *, counts: bool = False) -> None:
        """Give the partition the rows that have changed; with *counts*, also where only URLs were added.

        Those are counted again when a partition is opened that was not closed, so they need not be
        journaled one by one.
        """
        responses, self._responses = self._responses, {}
        for host, each in responses.items():
            self._write(host, each)
        for host in [*self.offered] if counts else self._begun:
            row = self._partition.host(host)
            count = self.offered.pop(host, 0)
            if row is not None and count:
                self._partition.put_host(row.changed(url_count=min(row.url_count + count, _MOST)))
        self._begun.clear()

    def _recount(self) -> None:
        """Count the URLs of every host, and correct the rows that say otherwise."""
        hosts, counts = np.unique(
            self._partition.state.rows.columns("host_key")["host_key"], return_counts=True
        )
        if not len(hosts):
            return
        rows = self._partition.state.hosts.view()
        places = np.minimum(np.searchsorted(hosts, rows["host_key"]), len(hosts) - 1)
        wrong = (hosts[places] == rows["host_key"]) & (counts[places] != rows["url_count"])
        for number in np.flatnonzero(wrong).tolist():
            row = self._partition.host(int(rows["host_key"][number]))
            if row is not None:
                count = min(int(counts[places[number]]), _MOST)
                self._partition.put_host(row.changed(url_count=count))

    def begin(self, host: int, url: str) -> int:
        """Make the row of *host*, which *url* belongs to; return where the next string will stand."""
        entry = entry_of(octets(host_group(url)))
        reference = self._partition.intern(entry)
        self._partition.put_host(
            HostRow(host, host_ref=reference, registrable_ref=reference, crawl_delay=self._tenths(host))
        )
        self._begun.append(host)
        return reference + len(entry)


@lru_cache(maxsize=4096)
def _tenths_of(seconds: float) -> int:
    return min(ceil(round(seconds * 10, 3)), _LONGEST)


def _packed(address: str) -> bytes:
    """Return the 16 octets of *address*, an IPv4 one as mapped to IPv6; zeros for none."""
    is_v6 = ":" in address
    try:
        # A broad crawl does this once a host, and `ipaddress` takes five times as long.
        packed = inet_pton(AF_INET6 if is_v6 else AF_INET, address.partition("%")[0])
    except (OSError, ValueError):
        return bytes(16)
    return packed if is_v6 else _MAPPED + packed


def keep_lapsed_shut(partition: LivePartition, lapsed_hosts: Iterable[int], *, wall: float) -> None:
    """Note that *lapsed_hosts*, in flight when their crawl ended, wait for their delay from *wall* on.

    When they were requested is unknown. It is noted in their rows, since the partition may be opened
    more than once before one of them is requested, and only the first time finds them in flight.
    """
    for host in lapsed_hosts:
        row = partition.host(host)
        if row is None or not row.crawl_delay:
            continue
        opens = ceil(wall + row.crawl_delay / 10)
        if opens > row.host_next_eligible:
            partition.put_host(row.changed(host_next_eligible=opens))


def gates_shut(partition: LivePartition, *, wall: float) -> Iterator[tuple[int, float]]:
    """Yield the hosts that may not be requested yet at *wall*, Unix time, and for how many seconds."""
    hosts = partition.state.hosts.view()
    shut = hosts[hosts["host_next_eligible"] > wall]
    for host, opens in zip(shut["host_key"].tolist(), shut["host_next_eligible"].tolist(), strict=True):
        yield host, opens - wall


def interval_of(gates: Gates, pace: HostPace | None) -> Callable[[int], float]:
    """Return a function that gives the seconds between two requests to a host."""
    if pace is None:
        return gates.delay_of
    return lambda host: max(gates.delay_of(host), pace.interval(host))


def recall_pace(partition: LivePartition, pace: HostPace) -> None:
    """Have *pace* go on from what is noted of the hosts: their back-off and their latency."""
    hosts = partition.state.hosts.view()
    usual = ceil(pace.rules.delay * 10)
    slow = (hosts["crawl_delay"] > usual) | (hosts["avg_latency"] > 0)
    for number in np.flatnonzero(slow).tolist():
        pace.recall(
            int(hosts["host_key"][number]),
            interval=int(hosts["crawl_delay"][number]) / 10,
            latency=int(hosts["avg_latency"][number]) / 1000,
        )
