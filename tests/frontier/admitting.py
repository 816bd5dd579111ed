"""Frontiers with rules of admission, and what tests do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frontier.live.crawls import HOUR, Clock, opened

from amicrawl.frontier import DurableFrontier, Found, Offer, Outcome, Source
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.frontier.admission import Admission
    from amicrawl.frontier.outcomes import Soft404Detector
    from amicrawl.meguri.rows import HostRow, UrlRow
    from amicrawl.urls import UrlKey


class Crawl:
    """A frontier in a directory, and the moments at which it is called."""

    def __init__(
        self,
        directory: Path,
        *,
        delay: float = 0.0,
        hour: int = HOUR,
        recrawls: bool = False,
        admission: Admission | None = None,
        soft404: Soft404Detector | None = None,
    ) -> None:
        self.now = 0.0
        self.clock = Clock(hour)
        self.gates = Gates(delay, 1)
        self.partition = opened(directory, hour=hour)
        self.frontier = DurableFrontier(
            self.partition,
            self.gates,
            HostBreaker(1000, max_retries=2),
            InflightLimit(100, 1, 100),
            wall=self.clock,
            recrawl_before=hour if recrawls else None,
            admission=admission,
            soft404=soft404,
        )

    def end(self, *, killed: bool = False) -> None:
        if killed:
            self.frontier.flush()
            self.partition.abandon()
        else:
            self.frontier.close()

    def row(self, key: UrlKey) -> UrlRow:
        number = self.partition.find(*key)
        assert number is not None
        return self.partition.get(number)

    def host(self, host: int) -> HostRow:
        self.frontier.flush()
        row = self.partition.host(host)
        assert row is not None
        return row

    def seed(self, key: UrlKey, priority: float = 1.0) -> None:
        assert self.frontier.offer(seed(key, priority))

    def take(self) -> UrlKey | None:
        """Hand out what comes next."""
        dispatch = self.frontier.next(self.now)
        return None if dispatch is None else dispatch.key

    def fetch(self, outcome: Outcome = Outcome(200)) -> UrlKey:  # noqa: B008  # it cannot change
        """Hand out what comes next, settle it, and return its key."""
        key = self.take()
        assert key is not None
        self.frontier.settle(key, outcome, self.now)
        return key

    def fetch_all(self) -> list[UrlKey]:
        return list(self._fetches())

    def _fetches(self) -> Iterator[UrlKey]:
        while (key := self.take()) is not None:
            self.frontier.settle(key, Outcome(200), self.now)
            yield key


def seed(key: UrlKey, priority: float = 1.0) -> Offer:
    return Offer(Seed(f"http://host-{key.host}.test/{key.path}"), key, Source.SEED, priority)


def link(key: UrlKey, url: str = "", *, hops: int = 0) -> Offer:
    url = url or f"http://host-{key.host}.test/{key.path}"
    return Offer(Seed(url), key, Source.LINK, hops=hops)


def page(payload: int) -> Outcome:
    """A capture of a page with this payload."""
    return Outcome(200, found=Found(digest=f"{payload:016x}".ljust(40, "0")))
