"""What the tests of the dashboard share: one redis-server a process, emptied before each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dashboard.browsing import chromium
from dashboard.made_up_jobs import store_of
from dashboard_serving import serve_in_thread
from redis_server import RedisServer, end, started_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from amicrawl.fleet.database.connection import JobStore


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    """A running server for all tests of this process."""
    server = started_server()
    yield server
    end(server)


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """The running server, empty."""
    with shared_redis.client() as client:
        client.flushall()
    return shared_redis


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    with chromium() as running:
        yield running


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    """What jobs are written through."""
    connected = store_of(redis_server.url)
    yield connected
    connected.close()


@pytest.fixture
def address(redis_server: RedisServer) -> Iterator[str]:
    """Where a dashboard over the server is."""
    with serve_in_thread(redis_server.url) as dashboard:
        yield dashboard.url
