"""How hosts that answer slowly, or ask to be left alone, are asked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from archive_reading import rows
from loopback import RawServer, crawl, page, write_lines

if TYPE_CHECKING:
    from pathlib import Path


class Clocked:
    """An answer, and the moments at which it was asked for."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self.moments: list[float] = []

    def __call__(self, _: bytes) -> bytes:
        self.moments.append(time.monotonic())
        return self._first if len(self.moments) == 1 else page(b"ok")

    @property
    def pause(self) -> float:
        """Seconds between the first two requests."""
        return self.moments[1] - self.moments[0]


def crawl_two_pages(
    tmp_path: Path, answer: Clocked, settings: dict[str, str], *, pause: float = 0.0
) -> None:
    with RawServer(answer, pause=pause) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/a", f"{server.url}/b"])
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1", **settings})
    assert len(rows(tmp_path / "out")) == 2


def test_retry_after_holds_for_the_very_next_request(tmp_path: Path) -> None:
    answer = Clocked(page(b"", "Retry-After: 2", status="503 Service Unavailable"))
    crawl_two_pages(tmp_path, answer, {"AMICRAWL_RETRY_AFTER_MAX": "60"})
    assert answer.pause > 1.9


def test_a_retry_after_beyond_the_cap_is_cut(tmp_path: Path) -> None:
    answer = Clocked(page(b"", "Retry-After: 999999", status="429 Too Many Requests"))
    crawl_two_pages(tmp_path, answer, {"AMICRAWL_RETRY_AFTER_MAX": "0.7"})
    assert 0.6 < answer.pause < 20


def test_a_host_that_is_busy_is_asked_less_often(tmp_path: Path) -> None:
    answer = Clocked(page(b"", status="503 Service Unavailable"))
    crawl_two_pages(tmp_path, answer, {"AMICRAWL_BACKOFF_MAX": "1.5"})
    assert answer.pause > 1.4


def test_a_slow_host_is_asked_as_slowly_as_it_answers(tmp_path: Path) -> None:
    answer = Clocked(page(b"ok"))
    settings = {"AMICRAWL_DELAY": "0.1", "AMICRAWL_LATENCY_FACTOR": "4"}
    crawl_two_pages(tmp_path, answer, settings, pause=0.4)
    assert answer.pause > 1.4
