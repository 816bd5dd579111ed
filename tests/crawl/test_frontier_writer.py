"""How often a crawl forces the journal of its frontier to disk is what its durability says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import signals
from scrapy.signalmanager import SignalManager

from amicrawl.config import CrawlConfig, Durability
from amicrawl.crawl.extensions import FrontierWriter


class Frontier:
    """Counts what it is given to write; a sync is done at once."""

    def __init__(self) -> None:
        self.flushed = 0
        self.hosts_flushed = 0
        self.synced = 0
        self.partition = SimpleNamespace(poll=lambda: None, snapshot_is_due=False, flush=self.flush_rows)

    def flush_rows(self) -> None:
        self.flushed += 1

    def flush(self) -> None:
        self.flush_rows()
        self.hosts_flushed += 1

    def sync(self) -> None:
        self.synced += 1


async def written(durability: Durability, *, seconds: float) -> Frontier:
    """Return what a frontier was requested within *seconds* of a clock of which each look takes 0.1."""
    frontier, now = Frontier(), [0.0]

    def clock() -> float:
        now[0] += 0.1
        return now[0]

    run: Any = SimpleNamespace(
        config=CrawlConfig(durability=durability),
        clock=clock,
        has_frontier=True,
        recorder=SimpleNamespace(fault=None),
        may_write=lambda: True,
        index_rows=0,
        frontier=frontier,
    )
    crawler: Any = SimpleNamespace(signals=SignalManager())
    writer = FrontierWriter(crawler, run)
    crawler.signals.send_catch_log(signals.spider_opened)
    async with asyncio.timeout(60):
        while now[0] < seconds:  # noqa: ASYNC110 - the clock is moved by who looks at it
            await asyncio.sleep(0.01)
    crawler.signals.send_catch_log(signals.spider_closed)
    del writer
    return frontier


@pytest.mark.parametrize(
    ("durability", "least", "most"),
    [(Durability.NONE, 0, 0), (Durability.NORMAL, 2, 3), (Durability.FULL, 8, 40)],
)
def test_full_forces_each_write_to_disk_normal_one_a_second_and_none_nothing(
    durability: Durability, least: int, most: int
) -> None:
    frontier = asyncio.run(written(durability, seconds=3.0))
    assert least <= frontier.synced <= most
    assert frontier.flushed >= frontier.synced


def test_rows_are_written_with_every_look_and_what_is_counted_of_hosts_once_a_second() -> None:
    frontier = asyncio.run(written(Durability.NONE, seconds=3.0))
    assert 2 <= frontier.hosts_flushed <= 3
    assert frontier.flushed >= 3 * frontier.hosts_flushed
