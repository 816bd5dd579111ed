"""The rows of a partition, counted by status.

Every change of a row's status goes through here, so that the counts hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.frontier.states import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.url_row import UrlRow


class StatusCounts:
    """Write rows of *partition* and keep *counts*, the number of rows by status."""

    __slots__ = ("_counts", "_partition")

    def __init__(self, partition: LivePartition, counts: Mapping[Status, int]) -> None:
        self._partition = partition
        self._counts = {int(status): count for status, count in counts.items()}

    @property
    def counts(self) -> dict[Status, int]:
        """The number of rows by status; a copy, with every status."""
        return {status: self._counts[status] for status in Status}

    def added(self, status: int) -> None:
        """Count a new row of *status*."""
        self._counts[status] += 1

    def put_in_flight(self, number: int, *, was: int) -> None:
        """Set row *number*, whose status was *was*, to IN_FLIGHT."""
        self._counts[was] -= 1
        self._counts[Status.IN_FLIGHT] += 1
        self._partition.put_in_flight(number)

    def put(self, number: int, row: UrlRow, *, was: int) -> None:
        """Put *row* in the place of row *number*, which stood at the status *was*."""
        self._counts[was] -= 1
        self._counts[row.status] += 1
        self._partition.put(number, row)
