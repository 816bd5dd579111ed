"""Every request keeps the project's pace, wherever it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from guests.guest_runs import both
from loopback import page
from redis_server import end, started_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DELAY = 0.3
MEDIA_DELAY = 0.1


def respond(head: bytes) -> bytes:
    return page(head.split(b" ")[1], "Content-Type: text/html")


@pytest.fixture
def redis_url() -> Iterator[str]:
    """Where an empty redis-server is."""
    server = started_server()
    yield server.url
    end(server)


@pytest.mark.parametrize("kind", ["delay", "media", "side", "scheduler"])
def test_a_host_is_contacted_no_faster_than_without_the_line(tmp_path: Path, kind: str) -> None:
    settings = {}
    if kind in ("media", "side"):
        settings = {"DOWNLOAD_DELAY": str(MEDIA_DELAY)}
    if kind == "scheduler":
        settings = {"SCHEDULER": "queue_scheduler.QueueScheduler"}
    which = "delay" if kind == "scheduler" else kind
    _, archived = both("paced.py", respond, tmp_path, arguments={"kind": which}, settings=settings)
    # The first is sent late, with all that is loaded for it, and on a busy machine any other may be, so
    # that the next is closer to it. All together are no faster for that.
    moments = [moment for moment, _ in archived.arrivals][1:]
    delay = MEDIA_DELAY if kind in ("media", "side") else DELAY
    assert moments[-1] - moments[0] >= 0.8 * (len(moments) - 1) * delay
    assert archived.archived == {each.split(" ")[1] for each in archived.requested}


def test_with_scrapy_redis_as_scheduler_too(tmp_path: Path, redis_url: str) -> None:
    settings = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": redis_url,
    }
    plain, archived = both("paced.py", respond, tmp_path, arguments={"kind": "delay"}, settings=settings)
    assert len(plain.items) == 4
    moments = [moment for moment, _ in archived.arrivals][1:]
    assert moments[-1] - moments[0] >= 0.8 * (len(moments) - 1) * DELAY
    assert archived.archived == {each.split(" ")[1] for each in archived.requested}


@pytest.mark.parametrize(
    ("kind", "settings", "most"),
    [
        ("pages", {"CONCURRENT_REQUESTS": "3"}, 3),
        ("pages", {"CONCURRENT_REQUESTS": "0", "CONCURRENT_REQUESTS_PER_DOMAIN": "50"}, 12),
        ("files", {"CONCURRENT_REQUESTS": "3", "CONCURRENT_REQUESTS_PER_DOMAIN": "50"}, 12),
    ],
)
def test_as_many_requests_are_in_flight_as_without_the_line(
    tmp_path: Path, kind: str, settings: dict[str, str], most: int
) -> None:
    plain, archived = both(
        "wide.py", respond, tmp_path, arguments={"kind": kind}, settings=settings, gathers=most
    )
    assert plain.most_in_flight == archived.most_in_flight == most
