"""The parts of a frontier, made over a partition, with what an earlier crawl left there taken over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.frontier.corrections import Corrections
from amicrawl.frontier.durable import DurableFrontier
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

_HOUR = 3600
_A_DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class FrontierParts:
    """What a `DurableFrontier` consists of, ready to hand out rows."""

    partition: LivePartition
    hosts: HostTally
    revisits: Revisits
    interval: Callable[[int], float]
    """Returns the seconds between two requests to a host key."""
    queue: Queue
    wheel: DueWheel
    flights: Flights
    settling: Settling
    corrections: Corrections
    offering: Offering
    hour: int
    """The hour since 1970 in which it is opened."""
    recrawls: bool
    lapsed: int
    disbelieved: int


def frontier_over(
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
) -> DurableFrontier:
    """Return the frontier over the rows of *partition*; *wall* returns Unix seconds.

    **Recrawls.** With *recrawl_before*, an hour since 1970, settled rows are handed out again if they
    are due at that hour or before, and from then on as they fall due. With *renews*, a row of an earlier
    crawl counts as new the first time that it is offered. With *pace*, each host starts at the pace it
    had last. No gate stays shut for longer than *longest_wait* seconds for what an earlier crawl noted.

    **Admission.** With *admission*, URLs beyond the limits of their host are TRAPPED; with *soft404*, a
    capture of an error page leaves its row GONE. Without them, as for a plain list, nothing is kept out.
    What they gather is bounded in memory and is lost with the process; statuses are kept in the rows.
    """
    hour, recrawls = int(wall() // _HOUR), recrawl_before is not None
    due_at = hour if recrawl_before is None else recrawl_before
    interval = interval_of(gates, pace)
    hosts = HostTally(partition, interval=interval, wall=wall)
    inventory = take_inventory(partition, hour, due_at=due_at, recrawls=recrawls)
    if admission is not None:
        admission.recall(inventory.trapped)
    queue = Queue(gates, breaker, backlog=inventory.backlog, place_of=_places_in(partition))
    disbelieved = _keep_shut(partition, queue, inventory, wall=wall(), now=now, longest=longest_wait)
    if pace is not None:
        recall_pace(partition, pace)
    revisits, wheel, flights = revisits or Revisits(), DueWheel(hour + 1), Flights()
    wheel.add_many(inventory.later, inventory.later_dues)
    settling = Settling(partition, hosts, revisits, wheel=wheel, recrawls=recrawls, soft404=soft404)
    corrections = Corrections(
        partition,
        queue,
        settling=settling,
        revisits=revisits,
        flights=flights,
        admission=admission,
        lapsed=inventory.lapsed,
    )
    offering = Offering(
        partition, hosts, queue, admission=admission, corrections=corrections, renews=renews
    )
    parts = FrontierParts(
        partition=partition,
        hosts=hosts,
        revisits=revisits,
        interval=interval,
        queue=queue,
        wheel=wheel,
        flights=flights,
        settling=settling,
        corrections=corrections,
        offering=offering,
        hour=hour,
        recrawls=recrawls,
        lapsed=len(inventory.lapsed),
        disbelieved=disbelieved,
    )
    return DurableFrontier(parts, gates, breaker, limit, wall=wall)


def _places_in(partition: LivePartition) -> Callable[[int], int]:
    """Return the function that returns the place of a row of *partition* by its number."""

    def place_of(number: int) -> int:
        priority, reference = partition.priority_and_reference(number)
        return place(order_of(priority), reference, number)

    return place_of


def _keep_shut(
    partition: LivePartition,
    queue: Queue,
    inventory: Inventory,
    *,
    wall: float,
    now: float,
    longest: float,
) -> int:
    """Keep the gates shut that an earlier crawl left so; return how many were noted for too long."""
    keep_lapsed_shut(partition, inventory.lapsed_hosts, wall=wall)
    shut = gates_shut(partition, wall=wall)
    return queue.resume(shut, inventory.lapsed_hosts, now=now, longest=longest)
