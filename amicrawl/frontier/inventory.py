"""The inventory of the rows: how many have which status, and which were due when a frontier was opened.

Rows that are due are the backlog, as arrays instead of objects: ten million rows that wait would be ten
million objects. Here they are row numbers (4 octets each), sorted by host and, within a host, by place;
and the hosts in the order in which their turn comes. A host leaves the backlog when the first of its
rows is taken or another is offered, and has a lane then.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.outcomes import LONGEST_WAIT
from amicrawl.frontier.places import orders_of
from amicrawl.meguri import RESTING, WAITING, Event, Status, after

if TYPE_CHECKING:
    from amicrawl.meguri import LivePartition, UrlRow


_PAGE = 262_144


class Backlog:
    """Rows that wait, by host; nothing is added once it is made."""

    def __init__(
        self, numbers: np.ndarray, hosts: np.ndarray, orders: np.ndarray, references: np.ndarray
    ) -> None:
        """Rows that wait: *numbers* (u4), host keys (u8), orders (u4) and references (u8) of each."""
        ranks = _ranks(hosts, orders, references)
        hosts = hosts[ranks]
        first = np.ones(len(numbers), bool)
        np.not_equal(hosts[1:], hosts[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        heads = ranks[starts]
        self._numbers = numbers[ranks]
        self._starts = np.append(starts, len(numbers)).astype(np.uint32)
        self._hosts = hosts[starts]
        self._orders = orders[heads]
        self._line = np.lexsort((references[heads], self._orders)).astype(np.uint32)
        self._at = 0
        self._taken = np.zeros(len(starts), bool)
        self.hosts_left = len(starts)
        """How many hosts were not taken out."""

    def __len__(self) -> int:
        """Return how many rows there were at first."""
        return len(self._numbers)

    def first_order(self) -> int | None:
        """Return the order of the row that comes first, or None where no host is left."""
        while self._at < len(self._line):
            index = self._line[self._at]
            if not self._taken[index]:
                return int(self._orders[index])
            self._at += 1
        return None

    def longest(self, most: int) -> list[tuple[int, int]]:
        """Return how many rows the hosts with the most have that are still here, and their keys."""
        lengths = np.where(self._taken, 0, np.diff(self._starts))
        first = np.argsort(lengths)[::-1][:most]
        return [(int(lengths[index]), int(self._hosts[index])) for index in first if lengths[index]]

    def take_first(self) -> tuple[int, array[int]]:
        """Take out the host whose turn it is, and its rows; `first_order` must have found one."""
        return self._take(int(self._line[self._at]))

    def length_of(self, host: int) -> int:
        """Return how many rows of *host* are still here."""
        index = self._index_of(host)
        return 0 if index is None else int(self._starts[index + 1] - self._starts[index])

    def _index_of(self, host: int) -> int | None:
        """Return the place of *host*, if it has rows here."""
        if self._at == len(self._line):
            return None
        index = int(np.searchsorted(self._hosts, np.uint64(host)))
        if index == len(self._hosts) or int(self._hosts[index]) != host or self._taken[index]:
            return None
        return index

    def take(self, host: int) -> array[int] | None:
        """Take out the rows of *host*, if it has any here."""
        index = self._index_of(host)
        if index is None:
            return None
        return self._take(index)[1]

    def _take(self, index: int) -> tuple[int, array[int]]:
        self._taken[index] = True
        self.hosts_left -= 1
        numbers = self._numbers[self._starts[index] : self._starts[index + 1]]
        return int(self._hosts[index]), array("I", numbers.tobytes())


def _ranks(hosts: np.ndarray, orders: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Return the indexes (u4) that sort rows by host, order and reference, all of them unsigned.

    Takes at most 24 octets a row besides: a partition has a hundred million.
    """
    if not len(hosts) or bool(np.any(orders != orders[0])) or int(references.max()) >= 2**40:
        return np.lexsort((references, orders, hosts)).astype(np.uint32)
    # Of one priority, as those of a list are: two sorts of one number each instead of three in a row.
    by_host = np.argsort(hosts, kind="stable").astype(np.uint32)
    keys = np.zeros(len(hosts), np.uint64)
    _mark_steps(hosts, by_host, keys)
    np.cumsum(keys, out=keys)
    if int(keys[-1]) >= 2**24:
        return np.lexsort((references, orders, hosts)).astype(np.uint32)
    keys <<= np.uint64(40)
    for at in range(0, len(keys), _PAGE):
        keys[at : at + _PAGE] |= references[by_host[at : at + _PAGE]]
    return np.asarray(by_host[np.argsort(keys)], np.uint32)


def _mark_steps(hosts: np.ndarray, ranks: np.ndarray, steps: np.ndarray) -> None:
    """Set each of *steps* to 1 where the host of that rank is another than the one before."""
    for at in range(1, len(ranks), _PAGE):
        page = hosts[ranks[at - 1 : at + _PAGE]]
        steps[at : at + _PAGE] = page[1:] != page[:-1]


_REMOVED = 0xFF
_WAITING = [int(status) for status in WAITING]
_NONE = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Inventory:
    """What there was."""

    lapsed: list[int]
    """The numbers of those that were found in flight, and wait again."""
    lapsed_hosts: frozenset[int]
    """The hosts of those."""
    backlog: Backlog
    """The rows that are due, by host."""
    later: np.ndarray
    """The numbers of those that wait and are not due yet."""
    later_dues: np.ndarray
    """The hours of those."""
    trapped: dict[int, int]
    """How many rows of each host are trapped, by host key, for those that have any."""


def take_inventory(partition: LivePartition, hour: int, *, due_at: int, recrawls: bool) -> Inventory:
    """Return what there is at *hour*; what is due at *due_at* or before is due.

    With *recrawls*, settled rows are due again. Rows in flight are put back among those that wait, and
    the partition has its rows counted by status.
    """
    taking = _Stocktaking(len(partition.state.rows), recrawls=recrawls)
    removed = np.fromiter(partition.state.removed, np.int64)
    for page in partition.state.rows.pages():
        taking.look_at(page, removed, hour=hour, due_at=due_at)
    for number in taking.lapsed:
        row = partition.get(number).with_status(after(Status.IN_FLIGHT, Event.LAPSED))
        partition.put(number, due_now(row, hour))
    partition.counts = taking.counts.tolist()
    return taking.inventory()


class _Stocktaking:
    """What was counted so far; takes 24 octets a row that is due."""

    def __init__(self, rows: int, *, recrawls: bool) -> None:
        self._scheduled = [int(status) for status in (*WAITING, *(RESTING if recrawls else ()))]
        self._at = self._due = 0
        # Lent by the system when they are written to.
        self._numbers, self._orders = np.empty(rows, np.uint32), np.empty(rows, np.uint32)
        self._hosts, self._references = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
        self.counts = np.zeros(_REMOVED + 1, np.int64)
        self.lapsed: list[int] = []
        self._lapsed_hosts: set[int] = set()
        self._later, self._later_dues = [_NONE], [_NONE]
        self._trapped: Counter[int] = Counter()

    def look_at(self, page: np.ndarray, removed: np.ndarray, *, hour: int, due_at: int) -> None:
        """Take in *page*, the next rows; those whose numbers are *removed* count for none."""
        statuses, dues, hosts = page["status"].copy(), page["next_due"].copy(), page["host_key"]
        begin, self._at = self._at, self._at + len(page)
        statuses[removed[(removed >= begin) & (removed < self._at)] - begin] = _REMOVED
        lapsed = np.flatnonzero(statuses == Status.IN_FLIGHT)
        self.lapsed += (lapsed + begin).tolist()
        self._lapsed_hosts.update(hosts[lapsed].tolist())
        statuses[lapsed], dues[lapsed] = Status.SCHEDULED, 0
        _put_ahead_right(page, statuses, dues, hour)
        self.counts += np.bincount(statuses, minlength=len(self.counts))
        self._trapped.update(hosts[statuses == Status.TRAPPED].tolist())
        scheduled = np.isin(statuses, self._scheduled)
        # What is settled and has no hour is never due again.
        scheduled &= (dues > 0) | np.isin(statuses, _WAITING)
        later = np.flatnonzero(scheduled & (dues > due_at))
        if len(later):
            self._later.append((later + begin).astype(np.uint32))
            self._later_dues.append(dues[later])
        self._take_due(page, np.flatnonzero(scheduled & (dues <= due_at)), begin)

    def _take_due(self, page: np.ndarray, due: np.ndarray, begin: int) -> None:
        at, self._due = self._due, self._due + len(due)
        taken = slice(at, self._due)
        self._numbers[taken] = due + begin
        self._orders[taken] = orders_of(page["priority"][due])
        self._hosts[taken] = page["host_key"][due]
        self._references[taken] = page["url_ref"][due]

    def inventory(self) -> Inventory:
        """Return it."""
        columns = (self._numbers, self._hosts, self._orders, self._references)
        return Inventory(
            lapsed=self.lapsed,
            lapsed_hosts=frozenset(self._lapsed_hosts),
            backlog=Backlog(*(column[: self._due] for column in columns)),
            later=np.concatenate(self._later),
            later_dues=np.concatenate(self._later_dues),
            trapped=dict(self._trapped),
        )


def _put_ahead_right(rows: np.ndarray, statuses: np.ndarray, dues: np.ndarray, hour: int) -> None:
    """Bring *dues* that a clock ahead of *hour* has led to back to what they would be without it."""
    waiting = np.isin(statuses, _WAITING)
    # Other software may have put a row off for as long as it likes; ours does so after a failure only.
    dues[waiting & (rows["retry_count"] > 0) & (dues > hour + LONGEST_WAIT)] = hour
    ahead = np.maximum(rows["last_crawled"].astype(np.int64) - hour, 0)
    resting = ~waiting & (dues > 0) & (ahead > 0)
    dues[resting] = np.maximum(dues[resting] - ahead[resting], 1)


def is_settled_since(row: UrlRow, hour: int) -> bool:
    """Return whether *row* was settled at *hour* or later: a fetch of that hour is noted in it."""
    # A settled row may be due, and taken by a recrawl whose journal did not get as far as to say so.
    again = row.status in RESTING and row.next_due > 0 and row.last_crawled < hour
    return not (row.status in WAITING or again) or row.next_due > hour


def due_now(row: UrlRow, hour: int) -> UrlRow:
    """Return *row* with no hour after *hour* to wait for: a recrawl may have taken it early."""
    return row if row.next_due <= hour else row._replace(next_due=hour)
