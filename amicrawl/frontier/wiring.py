"""The parts of a frontier, made over a partition, with what an earlier crawl left there taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.frontier.corrections import Corrections
from amicrawl.frontier.hosts import HostTally, gates_shut, interval_of, keep_lapsed_shut, recall_pace
from amicrawl.frontier.inventory import take_inventory
from amicrawl.frontier.offering import Offering
from amicrawl.frontier.outcomes import Settling
from amicrawl.frontier.places import order_of, place
from amicrawl.frontier.queue import Queue
from amicrawl.frontier.revisits import Revisits
from amicrawl.frontier.row import Flights
from amicrawl.frontier.wheel import DueWheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.frontier.admission import Admission
    from amicrawl.frontier.inventory import Inventory
    from amicrawl.frontier.outcomes import Soft404Detector
    from amicrawl.meguri import LivePartition
    from amicrawl.politeness import Gates, HostBreaker, HostPace, InflightLimit

HOUR = 3600
_A_DAY = 24 * 3600.0


class FrontierParts:
    """What a `DurableFrontier` consists of, ready to hand out rows."""

    def __init__(
        self,
        partition: LivePartition,
        gates: Gates,
        breaker: HostBreaker,
        limit: InflightLimit,
        *,
        wall: Callable[[], float],
        now: float = 0.0,
        recrawl_before: int | None = None,
        renews: bool = False,
        pace: HostPace | None = None,
        longest_wait: float = _A_DAY,
        revisits: Revisits | None = None,
        admission: Admission | None = None,
        soft404: Soft404Detector | None = None,
    ) -> None:
        """Make it over the rows of *partition*; *wall* returns Unix seconds.

        **Recrawls.** With *recrawl_before*, an hour since 1970, settled rows are handed out again if
        they are due at that hour or before, and from then on as they fall due. With *renews*, a row of
        an earlier crawl counts as new the first time that it is offered. With *pace*, each host starts
        at the pace it had last. No gate stays shut for longer than *longest_wait* seconds for what an
        earlier crawl noted.

        **Admission.** With *admission*, URLs beyond the limits of their host are TRAPPED; with
        *soft404*, a capture of an error page leaves its row GONE. Without them, as for a plain list,
        nothing is kept out. What they gather is bounded in memory and is lost with the process; statuses
        are kept in the rows.
        """
        self.partition = partition
        self.closed = False
        """Whether it is given up: what comes late, as from a request cut off, changes nothing."""
        self._gates, self._breaker, self._limit, self._wall = gates, breaker, limit, wall
        self._recrawls = recrawl_before is not None
        self._hour = int(wall() // HOUR)
        self._hour_ends = (self._hour + 1) * HOUR  # Unix seconds: then the wheel is turned
        self._interval = interval_of(gates, pace)
        self.hosts = HostTally(partition, interval=self._interval, wall=wall)
        """The rows of the hosts, with what was counted since the last flush."""
        self._flights = Flights()
        self._attempts: dict[int, int] = {}
        """The number of the next attempt, by row, for those that failed since the crawl began."""
        due_at = self._hour if recrawl_before is None else recrawl_before
        inventory = take_inventory(partition, self._hour, due_at=due_at, recrawls=self._recrawls)
        self._take_over(inventory, now=now, longest_wait=longest_wait)
        if admission is not None:
            admission.recall(inventory.trapped)
        if pace is not None:
            recall_pace(partition, pace)
        self._revisits = revisits or Revisits()
        self._make_rules(inventory, admission=admission, soft404=soft404, renews=renews)

    def _take_over(self, inventory: Inventory, *, now: float, longest_wait: float) -> None:
        """Have the rows of *inventory* wait, those that are due and the others, and gates be shut."""
        partition, wall = self.partition, self._wall()
        self.lapsed = len(inventory.lapsed)
        """How many rows were found in flight: their crawl ended before they did."""
        place_of = _places_in(partition)
        queue = Queue(self._gates, self._breaker, backlog=inventory.backlog, place_of=place_of)
        keep_lapsed_shut(partition, inventory.lapsed_hosts, wall=wall)
        shut, hosts = gates_shut(partition, wall=wall), inventory.lapsed_hosts
        self.disbelieved = queue.resume(shut, hosts, now=now, longest=longest_wait)
        """How many gates were to stay shut for longer than any rule says: a clock was wrong."""
        self._queue, self._wheel = queue, DueWheel(self._hour + 1)
        self._wheel.add_many(inventory.later, inventory.later_dues)

    def _make_rules(
        self,
        inventory: Inventory,
        *,
        admission: Admission | None,
        soft404: Soft404Detector | None,
        renews: bool,
    ) -> None:
        """Make what writes to rows: as they are settled, corrected and offered."""
        partition, hosts, queue, revisits = self.partition, self.hosts, self._queue, self._revisits
        self._settling = settling = Settling(
            partition, hosts, revisits, wheel=self._wheel, recrawls=self._recrawls, soft404=soft404
        )
        self._corrections = corrections = Corrections(
            partition,
            queue,
            settling=settling,
            revisits=revisits,
            flights=self._flights,
            admission=admission,
            lapsed=inventory.lapsed,
        )
        self._offering = Offering(
            partition, hosts, queue, admission=admission, corrections=corrections, renews=renews
        )


def _places_in(partition: LivePartition) -> Callable[[int], int]:
    """Return the function that returns the place of a row of *partition* by its number."""

    def place_of(number: int) -> int:
        priority, reference = partition.priority_and_reference(number)
        return place(order_of(priority), reference, number)

    return place_of
