"""The inventory of the rows when a frontier is opened: how many stand where, and which are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.backlog import Backlog
from amicrawl.frontier.outcomes import LONGEST_WAIT
from amicrawl.frontier.states import RESTING, WAITING, Event, Status, after

if TYPE_CHECKING:
    from amicrawl.frontier.format.partition import Columns
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.url_row import UrlRow

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
