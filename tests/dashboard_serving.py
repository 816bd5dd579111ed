"""A dashboard in a thread of the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.disk import Disk
from amicrawl.fleet.dashboard.serving import Settings, serving_in_thread
from amicrawl.fleet.database.connection import RedisSettings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from amicrawl.fleet.dashboard.serving import Running


def serve_in_thread(
    redis_url: str,
    *,
    users: Path | None = None,
    archives: Path | None = None,
    prefix: str = "",
    host: str = "127.0.0.1",
    allow_hosts: tuple[str, ...] = (),
    trusted_proxies: tuple[str, ...] = (),
    jobs_per_user: int = 0,
    port: int = 0,
) -> AbstractContextManager[Running]:
    """Serve the jobs of *redis_url* at *port*, or a free one, in a thread while the block lasts."""
    settings = Settings(
        redis=RedisSettings(url=redis_url, prefix=prefix),
        host=host,
        port=port,
        users=users,
        archives=archives,
        allow_hosts=allow_hosts,
        trusted_proxies=trusted_proxies,
        jobs_per_user=jobs_per_user,
    )
    return serving_in_thread(settings, disk=Disk())
