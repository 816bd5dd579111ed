"""The options `--redis` and `--prefix`, and where Redis is looked for without them.

An option wins over the Scrapy project's settings, these over the environment (`REDIS_URL`,
`REDIS_PARAMS`, `AMICRAWL_REDIS_PREFIX`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, get_type_hints

import typer

from amicrawl.cli.options import grouped, with_parameters
from amicrawl.cli.project import project_settings
from amicrawl.fleet.database import JobStore, RedisSettings, connect
from amicrawl.fleet.database.connection import PREFIX_SETTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES = ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_DB", "REDIS_PARAMS", PREFIX_SETTING)


@dataclass(frozen=True)
class RedisOptions:
    """Where Redis is, as given on the command line."""

    redis: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="redis://host:port/db, or rediss:// for TLS; REDIS_URL by default."
        ),
    ] = None
    prefix: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=f"Prefix of every key; {PREFIX_SETTING} by default."),
    ] = None

    def settings(self) -> RedisSettings:
        """Return where Redis is. Raises UsageError for what cannot be followed."""
        found: dict[str, Any] = {name: os.environ[name] for name in _NAMES if os.environ.get(name)}
        found.update(project_settings(_NAMES))
        if self.redis is not None:
            # The parameters of another server, its password among them, are not for this one.
            found = {name: value for name, value in found.items() if name == PREFIX_SETTING}
            found["REDIS_URL"] = self.redis
        if self.prefix is not None:
            found[PREFIX_SETTING] = self.prefix
        return RedisSettings.from_mapping(found)

    @contextmanager
    def store(self) -> Iterator[JobStore]:
        """Give the connection to Redis; an error of it becomes a sentence."""
        store = connect(self.settings())
        try:
            with store.responding():
                yield store
        finally:
            store.close()


def with_store(command: Callable[Concatenate[JobStore, ...], None]) -> Callable[..., None]:
    """Return *command* with the options `--redis` and `--prefix` in place of its first argument."""
    hints = get_type_hints(command, localns={"JobStore": JobStore}, include_extras=True)
    _, *own = signature(command).parameters.values()

    @wraps(command)
    def connected(*args: Any, where: RedisOptions, **kwargs: Any) -> None:
        with where.store() as store:
            command(store, *args, **kwargs)

    parameters = [each.replace(annotation=hints[each.name]) for each in own]
    where = Parameter("where", Parameter.KEYWORD_ONLY, annotation=RedisOptions)
    return grouped(with_parameters(connected, [*parameters, where]))
