"""Stop conditions: a limit that was set ends a crawl that can be gone on with."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import rows
from crawl.stand_in_engine import StandInEngine
from loopback import PROJECT, RawServer, crawl, page, write_lines
from scrapy import signals

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.decision import Tally
from amicrawl.crawl.run import Run
from amicrawl.crawl.state import LIMITS
from amicrawl.crawl.watching.stopping import StopConditions, clock_or_disk_reached, count_reached
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def config(**limits: Any) -> CrawlConfig:
    return CrawlConfig(**limits)


@pytest.mark.parametrize(
    ("limits", "tally", "reason"),
    [
        ({}, Tally(ok=10**9, bytes_received=10**15, failed=10**9), None),
        ({"stop_pages": 3}, Tally(ok=1, skipped=1), None),
        ({"stop_pages": 3}, Tally(ok=1, skipped=1, redirect=1), "limit-pages"),
        ({"stop_bytes": "1kB"}, Tally(bytes_received=999), None),
        ({"stop_bytes": "1kB"}, Tally(bytes_received=1000), "limit-bytes"),
        ({"stop_errors": 2}, Tally(failed=1, client_error=5, skipped=5), None),
        ({"stop_errors": 2}, Tally(failed=2), "limit-errors"),
        ({"stop_pages": 1, "stop_errors": 1}, Tally(failed=1), "limit-pages"),
    ],
)
def test_counts_lead_to_their_limit(limits: dict[str, Any], tally: Tally, reason: str | None) -> None:
    assert count_reached(config(**limits), tally) == reason


@pytest.mark.parametrize(
    ("limits", "elapsed", "free", "reason"),
    [
        ({}, 1e9, 0, None),
        ({"stop_time": 60}, 59.9, 0, None),
        ({"stop_time": 60}, 60.0, 0, "limit-time"),
        ({"stop_free": 1000}, 0.0, 1000, None),
        ({"stop_free": 1000}, 0.0, 999, "limit-disk"),
        ({"stop_free": 1000}, 0.0, None, None),
    ],
)
def test_clock_and_disk_lead_to_their_limit(
    limits: dict[str, Any], elapsed: float, free: int | None, reason: str | None
) -> None:
    assert clock_or_disk_reached(config(**limits), elapsed=elapsed, free=free) == reason


@pytest.mark.parametrize("reason", sorted(LIMITS))
def test_a_limit_has_an_exit_code_of_its_own(tmp_path: Path, reason: str) -> None:
    run = Run(config(out=tmp_path / "out"), Identity.EXACT, engine=StandInEngine())
    run.finish_reason = reason
    assert run.exit_code() is ExitCode.LIMIT
    assert f"`{reason}`" in (PROJECT / "docs" / "watching.md").read_text()


@pytest.mark.parametrize(
    ("limits", "reason"), [({"stop_time": 1e-9}, "limit-time"), ({"stop_free": 2**53}, "limit-disk")]
)
def test_clock_and_disk_are_looked_at_while_nothing_is_counted(
    tmp_path: Path, limits: dict[str, Any], reason: str
) -> None:
    connected: dict[object, Callable[[], None]] = {}

    async def opened() -> str:
        ended = asyncio.get_running_loop().create_future()
        run = Run(config(out=tmp_path, **limits), Identity.EXACT, engine=StandInEngine(ended.set_result))
        crawler: Any = SimpleNamespace(
            signals=SimpleNamespace(connect=lambda act, signal: connected.update({signal: act}))
        )
        StopConditions(crawler, run)
        connected[signals.spider_opened]()
        try:
            return str(await asyncio.wait_for(ended, 20))
        finally:
            connected[signals.spider_closed]()

    assert asyncio.run(opened()) == reason


def test_a_crawl_that_a_limit_ended_goes_on_when_it_is_started_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    in_flight = 4

    def start(**settings: str) -> tuple[int, str, str]:
        done = crawl(seeds, out, settings={"AMICRAWL_PER_HOST": str(in_flight), **settings})
        assert not list(out.glob("*.open")), done.stderr
        reason: str = json.loads((out / "crawl.json").read_text())["finish_reason"]
        return done.returncode, reason, done.stderr

    with RawServer(lambda _: page(b"x" * 100), pause=0.02) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(40)])
        code, reason, said = start(AMICRAWL_STOP_PAGES="10")
        assert (code, reason) == (ExitCode.LIMIT, "limit-pages"), said
        first = len(rows(out))
        assert 10 <= first <= 10 + in_flight
        assert f"{40 - first} URLs not fetched; to resume, run the same command again" in said

        code, reason, said = start(AMICRAWL_STOP_TIME="3600", AMICRAWL_STOP_ERRORS="1")
        assert (code, reason) == (ExitCode.DONE, "finished"), said
        assert len(server.requests) == len(rows(out)) == 40
