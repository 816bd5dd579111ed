"""The frontiers that the contract is checked against. A new one joins by being added to `FRONTIERS`."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.disk import Disk
from amicrawl.frontier import DurableFrontier, Offer, Source
from amicrawl.meguri import LivePartition
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[Gates, HostBreaker, InflightLimit], DurableFrontier]

NOW = 1_700_000_000.0
HOUR = int(NOW // 3600)
META = {b"amicrawl.identity": b"exact"}


class Death(Enum):
    """How a process may end."""

    CLOSED = "everything is written, with a snapshot"
    KILLED = "the journal is all there is"
    KILLED_IN_A_SNAPSHOT = "a snapshot was begun, and the crawl went on in the next journal"


def durable(
    gates: Gates,
    breaker: HostBreaker,
    limit: InflightLimit,
    directory: Path | None = None,
    now: float = 0.0,
) -> DurableFrontier:
    """A frontier in *directory*, or one of its own, whose wall clock stands still."""
    directory = directory or Path(tempfile.mkdtemp(prefix="amicrawl-contract-"))
    partition = LivePartition(directory, disk=Disk(), hour=HOUR, meta=META)
    return DurableFrontier(partition, gates, breaker, limit, wall=lambda: NOW, now=now)


FRONTIERS: list[Maker] = [durable]


@dataclass
class World:
    """A frontier and the rules it shares with its crawl."""

    gates: Gates
    breaker: HostBreaker
    limit: InflightLimit
    frontier: DurableFrontier
    rules: dict[str, Any]

    def close(self) -> None:
        if isinstance(self.frontier, DurableFrontier):
            self.frontier.partition.abandon()
            shutil.rmtree(self.frontier.partition.directory)

    def reborn(self, death: Death, now: float) -> World:
        """End this world's process in the way of *death* at *now*, and return the next one's."""
        frontier = self.frontier
        assert isinstance(frontier, DurableFrontier)
        frontier.flush()
        if death is Death.CLOSED:
            frontier.partition.close(HOUR)
        else:
            if death is Death.KILLED_IN_A_SNAPSHOT:
                frontier.partition.snapshot(HOUR)
            frontier.partition.abandon()
        return make_world(
            partial(durable, directory=frontier.partition.directory, now=now), **self.rules
        )


def make_world(
    make: Maker,
    *,
    delay: float = 1.0,
    per_host: int = 1,
    inflight: tuple[int, int, int] = (100, 1, 1000),
    threshold: int = 3,
    max_retries: int = 4,
) -> World:
    rules = {
        "delay": delay,
        "per_host": per_host,
        "inflight": inflight,
        "threshold": threshold,
        "max_retries": max_retries,
    }
    gates = Gates(delay, per_host)
    breaker = HostBreaker(threshold, max_retries=max_retries)
    limit = InflightLimit(*inflight)
    return World(gates, breaker, limit, make(gates, breaker, limit), rules)


def offer(host: int, path: int, *, priority: int = 0, extra: dict[str, object] | None = None) -> Offer:
    return Offer(
        Seed(f"http://host-{host}.test/{path}"), UrlKey(host, path), Source.SEED, priority, extra=extra
    )
