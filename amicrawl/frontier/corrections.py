"""Rows corrected when a crawl is resumed: settled by the archive, or queued before they are due.

The rules of a recrawl are those of `revisits`. Here a capture turned out to be in the archive, or to be
lost, a crawl is given a seed that an earlier one over the same partition settled, the configuration that
kept rows out has changed, or the operator requests it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.inventory import is_settled_since
from amicrawl.frontier.outcomes import SETTLED_COLUMNS, settled_at
from amicrawl.frontier.places import place_of
from amicrawl.frontier.row_strings import offer_of, offered, offered_entries
from amicrawl.meguri import RESTING, WAITING, Cause, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from amicrawl.frontier.admission import Admission
    from amicrawl.frontier.outcomes import Settling
    from amicrawl.frontier.queue import Queue
    from amicrawl.frontier.revisits import AgeLimits, Revisits
    from amicrawl.frontier.row import Flights, Offer, Outcome
    from amicrawl.meguri import LivePartition
    from amicrawl.urls import UrlKey


def kept_out(partition: LivePartition, *, causes: Collection[Cause], robots: bool) -> np.ndarray:
    """Return the numbers of the rows that *causes* keep out, and with *robots* those of robots.txt."""
    rows = partition.state.rows.columns("status", "http_status")
    statuses = rows["status"]
    caused = np.isin(rows["http_status"], [int(cause) for cause in causes])
    found = caused & np.isin(statuses, [int(Status.WITHHELD), *WAITING])
    if robots:
        found |= statuses == Status.EXCLUDED
    return _present(partition, found)


def failed(
    partition: LivePartition, *, statuses: Collection[Status], http_statuses: Collection[int] = ()
) -> np.ndarray:
    """Return the numbers of the rows in one of *statuses*, or with one of *http_statuses*.

    Rows that are due anyway, or in flight, are left out.
    """
    rows = partition.state.rows.columns("status", "http_status", "next_due")
    found = np.isin(rows["status"], [int(status) for status in statuses])
    found |= np.isin(rows["http_status"], list(http_statuses))
    waits_for_nothing = np.isin(rows["status"], [*WAITING]) & (rows["next_due"] == 0)
    return _present(partition, found & ~waits_for_nothing & (rows["status"] != Status.IN_FLIGHT))


def grown_old(partition: LivePartition, ages: AgeLimits, *, hour: int, since: int) -> np.ndarray:
    """Return the numbers of the settled rows that are as old at *hour* as *ages* say.

    Where captured rows wait, a recrawl that made them due at the hour *since* was ended before it came
    to them, and is resumed: what was captured from then on is left out.
    """
    rows = partition.state.rows.columns("status", "last_crawled", "retry_count")
    last = rows["last_crawled"]
    waits = np.isin(rows["status"], [*WAITING]) & (last > 0) & (rows["retry_count"] == 0)
    numbers, dues = old_at(partition, ages)
    found = dues <= hour
    if since and len(_present(partition, waits)):
        found &= last[numbers] < since
    return numbers[found]


def old_at(partition: LivePartition, ages: AgeLimits) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the settled rows that *ages* are about, and the hours they are old from."""
    rows = partition.state.rows.columns(*SETTLED_COLUMNS, "url_ref")
    numbers = _present(partition, np.isin(rows["status"], [*RESTING]))
    last = rows["last_crawled"][numbers].astype(np.int64)
    for at in np.flatnonzero(rows["status"][numbers] != Status.CRAWLED).tolist():
        last[at] = settled_at({name: int(rows[name][numbers[at]]) for name in SETTLED_COLUMNS})
    if ages.is_one:
        return numbers, last + ages.least
    texts = (partition.texts_at(reference) for reference in rows["url_ref"][numbers].tolist())
    limits = [ages.of(offered(*each).seed.url) for each in texts]
    named = np.array([limit is not None for limit in limits], bool)
    hours = np.array([limit or 0 for limit in limits], np.int64)
    return numbers[named], (last + hours)[named]


def make_due(partition: LivePartition, numbers: np.ndarray, *, hour: int) -> None:
    """Have the rows *numbers*, none in flight, be due at *hour*; before a frontier is built on them.

    What failed before does not count against them any more.
    """
    for number in numbers.tolist():
        row = partition.get(number)
        partition.put(number, row._replace(status=Status.SCHEDULED, next_due=hour, retry_count=0))


def _present(partition: LivePartition, found: np.ndarray) -> np.ndarray:
    numbers = np.flatnonzero(found)
    removed = partition.state.removed
    return numbers if not removed else numbers[~np.isin(numbers, list(removed))]


class Corrections:
    """Those of one frontier, which has just been opened. Hours are since 1970."""

    def __init__(
        self,
        partition: LivePartition,
        queue: Queue,
        *,
        settling: Settling,
        revisits: Revisits,
        flights: Flights,
        admission: Admission | None,
        lapsed: Iterable[int],
    ) -> None:
        """*lapsed* are the numbers of the rows that were found in flight."""
        self._partition = partition
        self._queue = queue
        self._settling = settling
        self._revisits = revisits
        self._flights = flights
        self._admission = admission
        self._lapsed = set(lapsed)
        self._rows_before = len(partition.state.rows)
        self._renewed: set[int] = set()
        self._hours_before: dict[int, int] = {}
        """The hour at which the wheel still has a row that was made due before it, by number."""

    def settle(self, key: UrlKey, outcome: Outcome, hour: int) -> bool:
        """Settle the row at *key* with an *outcome* of the hour *hour*; False if it was settled since.

        Raises AmicrawlError for an unknown key.
        """
        number = self._partition.find(*key)
        if number is None:
            raise AmicrawlError(f"URL key {key[0]:016x}:{key[1]:016x} is not in the frontier.")
        row = self._partition.get(number)
        if number in self._lapsed:
            # It was handed out and not settled, whatever the clocks said then.
            self._lapsed.discard(number)
        elif is_settled_since(row, hour):
            return False
        known = offer_of(self._partition, row, self._revisits).seed
        self._settling.settle(number, row, known, outcome, was=row.status, hour=hour)
        return True

    def has_come_before(self, number: int, hour: int) -> bool:
        """Return whether row *number*, which the wheel has at *hour*, was made due before; once."""
        if self._hours_before.get(number, hour + 1) > hour:
            return False
        del self._hours_before[number]
        return True

    def renew(self, offer: Offer, *, hour: int) -> bool:
        """Have a row of an earlier crawl handed out again, the first time that this one offers it.

        Its row takes the validators, the metadata and the extra of *offer*.
        """
        key = offer.key
        number = self._partition.find(*key)
        if number is None or number >= self._rows_before or number in self._renewed:
            return False
        self._renewed.add(number)
        if key in self._flights or self._partition.get(number).status == Status.TRAPPED:
            return False
        self._reword(number, offer)
        return self.due(key, hour=hour)

    def _reword(self, number: int, offer: Offer) -> None:
        """Have row *number* say what *offer* does; its validators stay unless there are new ones."""
        row = self._partition.get(number)
        seed, extra, via, route = offered(*self._partition.texts_at(row.url_ref))
        new = offer.seed
        if not (new.digest or new.etag or new.last_modified):
            new = new._replace(
                digest=seed.digest,
                etag=seed.etag,
                last_modified=seed.last_modified,
                captured_at=seed.captured_at,
                original_url=seed.original_url,
                payload_digest=seed.payload_digest,
            )
        if (new.meta_json, new.digest, new.etag, new.last_modified, offer.extra or None) == (
            *(seed.meta_json, seed.digest, seed.etag, seed.last_modified),
            extra,
        ):
            return
        # Where it was found first remains what an earlier crawl says.
        if via:
            offer = offer._replace(via=via, route=route)
        reference = self._partition.intern(offered_entries(offer._replace(seed=new)))
        self._partition.put(number, row.with_reference(reference))

    def due(self, key: UrlKey, *, hour: int, is_lost: bool = False) -> bool:
        """Have the settled row at *key* handed out, now that it is *hour*; False if there is none.

        With *is_lost*, its last capture is forgotten, with its validators.
        """
        number = self._partition.find(*key)
        if number is None or key in self._flights:
            return False
        row = self._partition.get(number)
        was = row.status
        if was in WAITING and row.next_due <= hour:
            return False
        if was == Status.TRAPPED and self._admission is not None:
            self._admission.released(key.host)
        if was in WAITING:
            self._hours_before[number] = row.next_due
        row = row._replace(status=Status.SCHEDULED, next_due=0)
        if is_lost:
            row = row._replace(etag_ref=0, last_modified=0, content_fp=0)
        self._partition.put(number, row, was=was)
        self._queue.push(key.host, place_of(row, number))
        return True
