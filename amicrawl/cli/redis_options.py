"""The options `--redis` and `--prefix`, and where Redis is looked for without them.

An option wins over the Scrapy project's settings, these over the environment (`REDIS_URL`,
`REDIS_PARAMS`, `AMICRAWL_REDIS_PREFIX`).
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from amicrawl.cli.project import project_settings
from amicrawl.jobs.connection import PREFIX_SETTING, JobStore, RedisSettings, connect

RedisOption = Annotated[
    str | None,
    typer.Option(
        "--redis",
        metavar="URL",
        help="redis://host:port/db, or rediss:// for TLS; REDIS_URL by default.",
    ),
]
PrefixOption = Annotated[
    str | None,
    typer.Option("--prefix", metavar="TEXT", help=f"Prefix of every key; {PREFIX_SETTING} by default."),
]

_NAMES = ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_PARAMS", PREFIX_SETTING)


def redis_settings(url: str | None = None, prefix: str | None = None) -> RedisSettings:
    """Return where Redis is, by *url* and *prefix* as given on the command line; None where not given.

    Raises UsageError for what cannot be followed.
    """
    found: dict[str, Any] = {name: os.environ[name] for name in _NAMES if os.environ.get(name)}
    found.update(project_settings(_NAMES))
    if url is not None:
        # The parameters of another server, its password among them, are not for this one.
        found = {name: value for name, value in found.items() if name == PREFIX_SETTING}
        found["REDIS_URL"] = url
    if prefix is not None:
        found[PREFIX_SETTING] = prefix
    return RedisSettings.from_mapping(found)


def job_store(url: str | None = None, prefix: str | None = None) -> JobStore:
    """Return the way to the Redis that `redis_settings` finds."""
    return connect(redis_settings(url, prefix))
