"""The frontiers that the contract is checked against. A new one joins by being added to `FRONTIERS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.frontier import Frontier, Offer, ResidentFrontier, Source
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[Gates, HostBreaker, InflightLimit], Frontier]


FRONTIERS: list[Maker] = [ResidentFrontier]


@dataclass
class World:
    """A frontier and the rules it shares with its crawl."""

    gates: Gates
    breaker: HostBreaker
    limit: InflightLimit
    frontier: Frontier


def make_world(
    make: Maker,
    *,
    delay: float = 1.0,
    per_host: int = 1,
    inflight: tuple[int, int, int] = (100, 1, 1000),
    threshold: int = 3,
    max_retries: int = 4,
) -> World:
    gates = Gates(delay, per_host)
    breaker = HostBreaker(threshold, max_retries=max_retries)
    limit = InflightLimit(*inflight)
    return World(gates, breaker, limit, make(gates, breaker, limit))


def offer(host: int, path: int, *, priority: int = 0, extra: dict[str, object] | None = None) -> Offer:
    return Offer(
        Seed(f"http://host-{host}.test/{path}"), UrlKey(host, path), Source.SEED, priority, extra=extra
    )
