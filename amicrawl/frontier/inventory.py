"""The inventory of the rows: how many have which status, and which were due when a frontier was opened.

Rows that are due are the backlog, as arrays instead of objects: ten million rows that wait would be ten
million objects. Here they are row numbers (4 octets each), sorted by host and, within a host, by place;
and the hosts in the order in which their turn comes. A host leaves the backlog when the first of its
rows is taken or another is offered, and has a lane then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.outcomes import LONGEST_WAIT
from amicrawl.frontier.states import RESTING, WAITING, Event, Status, after
from amicrawl.frontier.url_row import orders_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.format.partition import Columns
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.url_row import UrlRow


class HostRun:
    """Rows of one host in the order in which they come up, as numbers."""

    __slots__ = ("_at", "_end", "_numbers")

    def __init__(self, numbers: np.ndarray, at: int, end: int) -> None:
        self._numbers = numbers
        self._at = at
        self._end = end

    def __len__(self) -> int:
        return self._end - self._at

    def take(self) -> int | None:
        """Take out the number of the next row, if there is one."""
        if self._at == self._end:
            return None
        number = int(self._numbers[self._at])
        self._at += 1
        return number

    def take_last(self) -> int | None:
        """Take out the number of the last row, if there is one."""
        if self._at == self._end:
            return None
        self._end -= 1
        return int(self._numbers[self._end])


class Backlog:
    """Rows that wait, by host; nothing is added once it is made."""

    def __init__(self, rows: Columns | np.ndarray, due: np.ndarray) -> None:
        """*rows* are columns of a table, by name, *due* the numbers (u4) of those that wait."""
        hosts, references = rows["host_key"][due], rows["url_ref"][due]
        orders = orders_of(rows["priority"][due])
        ranks = _ranks(hosts, orders, references)
        hosts = hosts[ranks]
        first = np.ones(len(due), bool)
        np.not_equal(hosts[1:], hosts[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        heads = ranks[starts]
        self._numbers = due[ranks]
        self._starts = np.append(starts, len(due)).astype(np.uint32)
        self._hosts = hosts[starts]
        self._orders = orders[heads]
        self._line = np.lexsort((references[heads], self._orders)).astype(np.uint32)
        self._at = 0
        self._taken = np.zeros(len(starts), bool)
        self.is_empty = not len(starts)
        """Whether no host is left, as far as `first_order` has looked."""

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
        self.is_empty = True
        return None

    def longest(self, most: int) -> list[tuple[int, int]]:
        """Return how many rows the hosts with the most have that are still here, and their keys."""
        lengths = np.where(self._taken, 0, np.diff(self._starts))
        first = np.argsort(lengths)[::-1][:most]
        return [(int(lengths[index]), int(self._hosts[index])) for index in first if lengths[index]]

    def take_first(self) -> tuple[int, HostRun]:
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

    def take(self, host: int) -> HostRun | None:
        """Take out the rows of *host*, if it has any here."""
        index = self._index_of(host)
        if index is None:
            return None
        return self._take(index)[1]

    def _take(self, index: int) -> tuple[int, HostRun]:
        self._taken[index] = True
        run = HostRun(self._numbers, int(self._starts[index]), int(self._starts[index + 1]))
        return int(self._hosts[index]), run


def _ranks(hosts: np.ndarray, orders: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Return the indexes that sort rows by host, order and reference, all of them unsigned."""
    if len(hosts) and bool(np.all(hosts[1:] >= hosts[:-1])) and bool(np.all(orders == orders[0])):
        # What a snapshot of a plain list gives: one sort of one number instead of three in a row.
        steps = np.zeros(len(hosts), np.uint64)
        np.not_equal(hosts[1:], hosts[:-1], out=steps[1:], casting="unsafe")
        ordinals = np.cumsum(steps, dtype=np.uint64)
        if int(ordinals[-1]) < 2**24 and int(references.max()) < 2**40:
            return np.argsort((ordinals << np.uint64(40)) | references)
    return np.lexsort((references, orders, hosts))


_IN_FLIGHT = int(Status.IN_FLIGHT)
_REMOVED = 0xFF
_COLUMNS = (
    *("host_key", "status", "next_due", "retry_count", "last_crawled"),
    *("priority", "url_ref"),
)


@dataclass(frozen=True, slots=True)
class Inventory:
    """What there was."""

    counts: dict[Status, int]
    """How many rows stand where, with every status."""
    lapsed: list[int]
    """The numbers of those that were found in flight, and wait again."""
    lapsed_hosts: frozenset[int]
    """The hosts of those."""
    due: np.ndarray
    """The numbers (u4) of the rows that are due."""
    backlog: Backlog
    """The same, by host."""
    later: np.ndarray
    """The numbers of those that wait and are not due yet."""
    later_dues: np.ndarray
    """The hours of those."""
    trapped: dict[int, int]
    """How many rows of each host are trapped, by host key, for those that have any."""


def take_inventory(partition: LivePartition, hour: int, *, due_at: int, recrawls: bool) -> Inventory:
    """Return what there is at *hour*; what is due at *due_at* or before is due.

    With *recrawls*, settled rows are due again. Rows in flight are put back among those that wait.
    """
    state = partition.state
    rows = state.rows.columns(*_COLUMNS)
    statuses, dues = rows["status"], rows["next_due"]
    if state.removed:
        statuses[np.fromiter(state.removed, np.int64)] = _REMOVED
    lapsed = np.flatnonzero(statuses == Status.IN_FLIGHT)
    for number in lapsed.tolist():
        row = partition.get(number).with_status(after(Status.IN_FLIGHT, Event.LAPSED))
        partition.put(number, due_now(row, hour))
    statuses[lapsed] = Status.SCHEDULED
    dues[lapsed] = 0
    _put_ahead_right(rows, statuses, dues, hour)
    counted = np.bincount(statuses, minlength=len(Status)).tolist()
    waiting = np.isin(statuses, [int(status) for status in WAITING])
    if recrawls:
        waiting |= np.isin(statuses, [int(status) for status in RESTING]) & (dues > 0)
    numbers = np.flatnonzero(waiting).astype(np.uint32)
    later = dues[numbers] > due_at
    due = numbers[~later]
    trapped = np.unique(rows["host_key"][statuses == Status.TRAPPED], return_counts=True)
    return Inventory(
        counts={status: counted[status] for status in Status},
        lapsed=lapsed.tolist(),
        lapsed_hosts=frozenset(rows["host_key"][lapsed].tolist()),
        due=due,
        backlog=Backlog(rows, due),
        later=numbers[later],
        later_dues=dues[numbers[later]],
        trapped=dict(zip(*(column.tolist() for column in trapped), strict=True)),
    )


def _put_ahead_right(rows: Columns, statuses: np.ndarray, dues: np.ndarray, hour: int) -> None:
    """Bring *dues* that a clock ahead of *hour* has led to back to what they would be without it."""
    waiting = np.isin(statuses, [int(status) for status in WAITING])
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


class StatusCounts:
    """Write rows of *partition* and keep *counts*, the number of rows by status."""

    __slots__ = ("_counts", "_partition")

    def __init__(self, partition: LivePartition, counts: Mapping[Status, int]) -> None:
        self._partition = partition
        self._counts = [counts[status] for status in Status]

    @property
    def counts(self) -> dict[Status, int]:
        """The number of rows by status; a copy, with every status."""
        return dict(zip(Status, self._counts, strict=True))

    def added(self, status: int) -> None:
        """Count a new row of *status*."""
        self._counts[status] += 1

    def put_in_flight(self, number: int, *, was: int) -> None:
        """Set row *number*, whose status was *was*, to IN_FLIGHT."""
        self._counts[was] -= 1
        self._counts[_IN_FLIGHT] += 1
        self._partition.put_in_flight(number)

    def put(self, number: int, row: UrlRow, *, was: int) -> None:
        """Put *row* in the place of row *number*, which stood at the status *was*."""
        self._counts[was] -= 1
        self._counts[row.status] += 1
        self._partition.put(number, row)
