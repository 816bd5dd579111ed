"""The backlog: rows that were due when a partition was opened, as arrays instead of objects.

Ten million rows that wait would be ten million objects. Here they are row numbers (4 octets each),
sorted by host and, within a host, by place; and the hosts in the order in which their turn comes. A
host leaves the backlog when the first of its rows is taken or another is offered, and has a lane then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.places import orders_of

if TYPE_CHECKING:
    from amicrawl.frontier.format.partition import Columns


class Run:
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

    def take_first(self) -> tuple[int, Run]:
        """Take out the host whose turn it is, and its rows; `first_order` must have found one."""
        return self._take(int(self._line[self._at]))

    def take(self, host: int) -> Run | None:
        """Take out the rows of *host*, if it has any here."""
        if self._at == len(self._line):
            return None
        index = int(np.searchsorted(self._hosts, np.uint64(host)))
        if index == len(self._hosts) or int(self._hosts[index]) != host or self._taken[index]:
            return None
        return self._take(index)[1]

    def _take(self, index: int) -> tuple[int, Run]:
        self._taken[index] = True
        run = Run(self._numbers, int(self._starts[index]), int(self._starts[index + 1]))
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
