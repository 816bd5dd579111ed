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
from amicrawl.crawl.processes.specification import SPECIFICATION
from amicrawl.crawl.state import FULL


class Frontier:
    """Counts what it is given to write; a sync is done at once."""

    def __init__(self, text: int) -> None:
        self.flushed = 0
        self.synced = 0
        self.partition = SimpleNamespace(
            poll=lambda: None, snapshot_is_due=False, ends=(1, text), most_text=1000
        )

    def flush(self) -> None:
        self.flushed += 1

    def sync(self) -> None:
        self.synced += 1


async def written(
    durability: Durability, *, seconds: float, text: int = 0, ended: list[str] | None = None
) -> Frontier:
    """Return what a frontier was requested within *seconds* of a clock of which each look takes 0.1.

    It has *text* octets of the thousand that it may have; *ended* gets the reason where that ends the
    crawl.
    """
    frontier, now = Frontier(text), [0.0]

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
        spec=SimpleNamespace(shards=4),
        stopping=False,
    )

    def end(reason: str) -> None:
        run.stopping = True
        assert ended is not None
        ended.append(reason)

    run.end = end
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


@pytest.mark.parametrize(
    ("text", "is_child", "reasons"),
    [(1000, False, []), (1001, False, [FULL]), (250, True, []), (251, True, [FULL])],
)
def test_a_frontier_that_soon_fits_into_no_file_ends_the_crawl_once(
    text: int,
    is_child: bool,
    reasons: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Those of several processes, here four, become one file in the end."""
    if is_child:
        monkeypatch.setenv(SPECIFICATION, "{}")
    ended: list[str] = []
    with caplog.at_level("ERROR"):
        asyncio.run(written(Durability.NONE, seconds=1.0, text=text, ended=ended))
    assert ended == reasons
    assert len(caplog.records) == len(reasons)
    assert all("-a shard=0 -a shards=2" in record.message for record in caplog.records)
