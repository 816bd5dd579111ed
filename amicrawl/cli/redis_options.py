"""The options `--redis` and `--prefix`, and where Redis is looked for without them.

An option wins over the Scrapy project's settings, these over the environment (`REDIS_URL`,
`REDIS_PARAMS`, `AMICRAWL_REDIS_PREFIX`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, get_type_hints

import typer

from amicrawl.cli.project import project_settings
from amicrawl.jobs.connection import PREFIX_SETTING, JobStore, RedisSettings, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


@contextmanager
def store_at(redis: str | None, prefix: str | None) -> Iterator[JobStore]:
    """Give the way to Redis, and turn what goes wrong with it into a sentence."""
    store = job_store(redis, prefix)
    try:
        with store.answering():
            yield store
    finally:
        store.close()


def with_store(command: Callable[Concatenate[JobStore, ...], None]) -> Callable[..., None]:
    """Return *command* with the options `--redis` and `--prefix` in place of its first argument."""
    hints = get_type_hints(command, localns={"JobStore": JobStore}, include_extras=True)
    given = signature(command)
    options = {"redis": RedisOption, "prefix": PrefixOption}

    @wraps(command)
    def connected(
        *args: Any, redis: str | None = None, prefix: str | None = None, **kwargs: Any
    ) -> None:
        with store_at(redis, prefix) as store:
            command(store, *args, **kwargs)

    own = [each.replace(annotation=hints[each.name]) for each in list(given.parameters.values())[1:]]
    further = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in options.items()
    ]
    # typer reads both.
    vars(connected)["__signature__"] = given.replace(parameters=[*own, *further])
    connected.__annotations__ = {each.name: each.annotation for each in (*own, *further)}
    return connected
