"""The way to Redis from a process that runs Scrapy: as in `connection.py`, by a client of scrapy-redis.

Loading scrapy-redis loads Scrapy, so nothing but a crawl imports this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_redis.connection import get_redis

from amicrawl.jobs import connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.jobs.connection import JobStore, RedisSettings


def connect(settings: RedisSettings | Mapping[str, Any], **params: Any) -> JobStore:
    """Return the way to the Redis of *settings*, as `connection.connect` does."""
    return connection.connect(settings, client_of=get_redis, **params)
