"""Taking offers: those of a page, or of a piece of a list, at once.

offer -> its strings, and its key among those that are known -> host counted -> admitted?
-> row and strings of all to the partition, numbers to the queue
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.frontier.places import order_of, place
from amicrawl.frontier.row_strings import offered_entries
from amicrawl.meguri import Status, offered_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.frontier.admission import Admission
    from amicrawl.frontier.corrections import Corrections
    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.queue import Queue
    from amicrawl.frontier.row import Offer
    from amicrawl.meguri import LivePartition

_FARTHEST = 0xFFFF
_SCHEDULED, _TRAPPED = int(Status.SCHEDULED), int(Status.TRAPPED)


class Offering:
    """The rules of one frontier. With *renews*, a row of an earlier crawl counts as new once."""

    def __init__(
        self,
        partition: LivePartition,
        hosts: HostTally,
        queue: Queue,
        *,
        admission: Admission | None,
        corrections: Corrections,
        renews: bool,
    ) -> None:
        self._partition = partition
        self._hosts = hosts
        self._queue = queue
        self._admission = admission
        self._corrections = corrections
        self._is_renewing = renews

    def take(self, offers: Iterable[Offer], *, hour: int) -> int:
        """Take *offers* at *hour*, hours since 1970; return how many rows are to be handed out for them.

        One loop with few calls of its own: each link of each page comes through here.
        """
        partition, state, admission = self._partition, self._partition.state, self._admission
        add, offered, waiting = state.adder, self._hosts.offered, list[tuple[int, int, int, int]]()
        new, rows, texts = 0, list[bytes](), list[bytes]()
        number, reference = partition.ends
        try:
            for offer in offers:
                seed, (host, path), source, priority, hops, extra, _, _ = offer
                order = order_of(priority)
                # What cannot be kept is refused before its key is added, which would lead to no row.
                entries = offered_entries(offer) if extra else b""
                if (known := add(host, path, number)) is not None:
                    if self._is_renewing or known in state.removed:
                        partition.extend(rows, texts)
                        new += self._bring_back(offer, known, hour=hour)
                        number, reference = partition.ends
                    continue
                if host not in state.host_numbers:
                    partition.extend(rows, texts)
                    reference = self._hosts.begin(host, seed.url)
                offered[host] = offered.get(host, 0) + 1
                is_let_in = admission is None or admission.admits(offer, self._hosts, hour=hour)
                status = _SCHEDULED if is_let_in else _TRAPPED
                texts.append(entries or offered_entries(offer))
                depth = min(_FARTHEST, hops)
                rows.append(offered_row(host, path, status, priority, depth, source, reference, hour))
                if is_let_in:
                    waiting.append((host, order, reference, number))
                number += 1
                reference += len(texts[-1])
        finally:
            partition.extend(rows, texts)
            # Only now, as a row that is handed out must be there: the disk may be full.
            for each in waiting:
                self._queue.append(*each)
        return new + len(waiting)

    def _bring_back(self, offer: Offer, number: int, *, hour: int) -> bool:
        """Take *offer*, whose key leads to row *number*; return whether it is handed out again."""
        partition = self._partition
        if number not in partition.state.removed:
            return self._corrections.renew(offer, hour=hour)
        host, path = offer.key
        if host not in partition.state.host_numbers:
            # It was in the damage, too.
            self._hosts.begin(host, offer.seed.url)
        self._hosts.offered[host] = self._hosts.offered.get(host, 0) + 1
        admission, reference = self._admission, partition.ends[1]
        is_let_in = admission is None or admission.admits(offer, self._hosts, hour=hour)
        status = _SCHEDULED if is_let_in else _TRAPPED
        row = (host, path, status, offer.priority, min(offer.hops, _FARTHEST), offer.source)
        partition.fill(number, row, offered_entries(offer), first_seen=hour)
        if is_let_in:
            self._queue.push(host, place(order_of(offer.priority), reference, number))
        return is_let_in
