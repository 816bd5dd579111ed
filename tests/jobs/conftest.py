"""What the tests of jobs share: one redis-server a process, emptied before each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis_server import RedisServer, end, started_server

from amicrawl.fleet.database.connection import JobStore, connect

if TYPE_CHECKING:
    from collections.abc import Iterator


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


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    """The way to that server."""
    store = connect({"REDIS_URL": redis_server.url})
    yield store
    store.close()
