"""The connection to Redis: server, user, prefix of the keys, and the errors where it is unavailable.

The settings are scrapy-redis's: `REDIS_URL` (`rediss://` for TLS, user and password in it or in
`REDIS_PARAMS`), or `REDIS_HOST`, `REDIS_PORT`, `REDIS_DB`; and `AMICRAWL_REDIS_PREFIX`, empty by
default. Nothing connects before the first command. A command is never sent twice by itself: what may be
repeated is known to the caller only.

This is the only module that connects. In a process that runs Scrapy, scrapy-redis makes the client
(`connect_from_scrapy`), which loads all of Scrapy; the command line and the dashboard have no use for
that, and make the same client themselves.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

from amicrawl.errors import AmicrawlError, ExitCode, UsageError
from amicrawl.fleet.database.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from redis.commands.core import Script

PREFIX_SETTING = "AMICRAWL_REDIS_PREFIX"
SERVER_SETTINGS = {"REDIS_URL": "url", "REDIS_HOST": "host", "REDIS_PORT": "port", "REDIS_DB": "db"}
"""The settings that say which server, and the keywords of a client that they become."""
CONNECT_TIMEOUT = 5.0
"""Seconds for a connection to be made, unless `REDIS_PARAMS` says otherwise."""
RESPONSE_TIMEOUT = 5.0
"""Seconds for a response to begin, unless `REDIS_PARAMS` says otherwise."""

# Full, a replica, unable to save, without its replicas, held up by a script: none of it is for ever.
_FOR_NOW = (
    *("OOM", "command not allowed when used memory", "READONLY", "You can't write against"),
    *("MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "BUSY", "UNKILLABLE"),
)


class RedisUnavailable(AmicrawlError):  # noqa: N818  # a state of the world, named as such
    """Redis does not respond, or stopped doing so in the middle. The commands may have been executed."""

    exit_code = ExitCode.UNAVAILABLE


class RedisRefused(UsageError):  # noqa: N818
    """Redis responds, and does not let us: a wrong password, or a user without that right."""


@dataclass(frozen=True)
class RedisSettings:
    """Which Redis, and below which prefix."""

    url: str = ""
    """`redis://`, `rediss://` or `unix://`; empty where `host` says it."""
    host: str = "localhost"
    port: int = 6379
    db: int = 0
    prefix: str = ""
    """Prefix of every key and channel; empty to share a database with ArchiveBot."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Further keywords of `redis.Redis`."""

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> Self:
        """Read the settings of a Scrapy project, or an environment of the same names.

        Raises UsageError, naming the setting, for a value that cannot be followed.
        """
        given: dict[str, Any] = {}
        params = _params(settings.get("REDIS_PARAMS"))
        for setting, name in SERVER_SETTINGS.items():
            # Those of scrapy-redis may say where the server is, too; beside a URL they complete it.
            value = settings.get(setting) or (None if given.get("url") else params.pop(name, None))
            if value:
                given[name] = _number(setting, value) if name in {"port", "db"} else str(value)
        if given.get("url"):
            _check_url(given["url"])
        prefix = str(settings.get(PREFIX_SETTING) or "")
        if not prefix.isprintable() or len(prefix) > 100 or " " in prefix:
            raise UsageError(
                f"Setting {PREFIX_SETTING} is {prefix!r}: at most 100 printable characters, no blank."
            )
        return cls(**given, prefix=prefix, params=params)

    @property
    def shown(self) -> str:
        """Where the server is, without a password, for a sentence."""
        if not self.url:
            return f"{self.host}:{self.port}"
        parts = urlsplit(self.url)
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}" if parts.netloc else parts.path

    def environment(self) -> dict[str, str]:
        """Return what a child process finds the same Redis by; `REDIS_PARAMS` is a JSON text in it."""
        # In parts where it came so: of some hosts and parameters no URL can be made. The child has the
        # environment of this process, too, in which there may be others.
        names = ["REDIS_URL"] if self.url else SERVER_SETTINGS
        where = {name: str(getattr(self, SERVER_SETTINGS[name])) for name in names}
        params = json.dumps(dict(self.params), default=str)
        return {**where, PREFIX_SETTING: self.prefix, "REDIS_PARAMS": params}


_INCLUDE = "--!include "
"""How the first lines of a script begin that needs other files in front of it."""


class Scripts:
    """The `.lua` files in `scripts/`, for one client; Redis runs each as one step.

    A script gets every key that it touches as a key, and strings as arguments. It is sent once and
    called by its digest after that; a server that has lost it gets it again.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._registered: dict[str, Script] = {}

    def __call__(
        self, name: str, *, keys: Sequence[str] = (), args: Sequence[str | int | float] = ()
    ) -> Any:
        """Run the script *name* and return what it returns. Raises what redis-py raises."""
        return self.script(name)(keys=list(keys), args=list(args))

    def script(self, name: str) -> Script:
        """Return the script *name*, which may be called with a `client=` that is a pipeline, too."""
        script = self._registered.get(name)
        if script is None:
            script = self._registered[name] = self._client.register_script(script_source(name))
        return script


@cache
def script_source(name: str) -> str:
    """Return the text of the script *name*, behind what it includes."""
    text = resources.files(__package__).joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")
    included = ""
    while text.startswith(_INCLUDE):
        first, _, text = text.partition("\n")
        included += script_source(first.removeprefix(_INCLUDE))
    return included + text


@dataclass(frozen=True)
class JobStore:
    """A client, the names of its keys and its scripts: what everything of this room is handed."""

    client: redis.Redis
    keys: Keys
    scripts: Scripts
    where: str = ""
    """The server, for a sentence."""
    reported: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    """When which dead letter was written last; `letters` keeps it small."""

    def now(self) -> float:
        """Return the time by the clock of Redis, in Unix seconds; raises RedisUnavailable."""
        with self.responding():
            seconds, microseconds = self.client.time()
        return float(seconds) + float(microseconds) / 1e6

    @contextmanager
    def responding(self) -> Iterator[None]:
        """Turn what redis-py raises for a server that is away, or refuses us, into errors of ours."""
        try:
            yield
        except redis.AuthenticationError as error:
            raise RedisRefused(
                f"Redis at {self.where} does not let us in: {error}. Check user and password."
            ) from error
        except NoPermissionError as error:
            raise RedisRefused(
                f"Redis at {self.where} does not permit that: {error}. The user needs more rights, see "
                "docs/jobs.md."
            ) from error
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise RedisUnavailable(
                f"Redis at {self.where} does not respond: {str(error).rstrip('.')}. "
                "Start it, or name another with --redis or REDIS_URL."
            ) from error
        except redis.RedisError as error:
            if str(error).startswith(_FOR_NOW):
                raise RedisUnavailable(
                    f"Redis at {self.where} takes no writes for now: {error}. Fix that, or wait."
                ) from error
            raise RedisRefused(f"Redis at {self.where} refuses that: {error}.") from error

    @contextmanager
    def locked(self, key: str, *, seconds: float = 10.0) -> Iterator[None]:
        """Hold the lock *key* as long as the block lasts, *seconds* at most.

        Raises RedisUnavailable where others hold it for as long.
        """
        lock = self.client.lock(key, timeout=seconds, blocking_timeout=seconds, sleep=0.05)
        with self.responding():
            if not lock.acquire():
                raise RedisUnavailable(f"The lock {key} in Redis is held by others. Try again.")
        try:
            yield
        finally:
            # One that cannot be released, or was not held long enough, has ended by itself or will.
            with suppress(redis.RedisError):
                lock.release()

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def connect_from_scrapy(settings: RedisSettings | Mapping[str, Any]) -> JobStore:
    """Return the way to the Redis of *settings*, as `connect` does, by the client of scrapy-redis."""
    from scrapy_redis.connection import get_redis  # noqa: PLC0415  # it loads all of Scrapy

    return connect(settings, client_of=get_redis)


def redis_client(*, url: str = "", **keywords: Any) -> redis.Redis:
    """Return a client for the server at *url*, or at the host and port in *keywords*."""
    return redis.Redis.from_url(url, **keywords) if url else redis.Redis(**keywords)


def connect(
    settings: RedisSettings | Mapping[str, Any],
    *,
    client_of: Callable[..., redis.Redis] = redis_client,
    **params: Any,
) -> JobStore:
    """Return the way to the Redis of *settings*; *params* go before those of `REDIS_PARAMS`.

    *client_of* makes the client, from the keywords of `redis_client`. Texts come back as `str`, bytes
    that are not UTF-8 as lone surrogates: a response can be read whatever another client wrote.
    """
    if not isinstance(settings, RedisSettings):
        settings = RedisSettings.from_mapping(settings)
    keywords: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT,
        "socket_timeout": RESPONSE_TIMEOUT,
        "health_check_interval": 0,
        **settings.params,
        # A script that counts must not run twice because its first response was lost.
        "retry": Retry(NoBackoff(), 0),
        **params,
        "encoding": "utf-8",
        "encoding_errors": "surrogateescape",
        "decode_responses": True,
    }
    if settings.url:
        keywords["url"] = settings.url
    else:
        keywords.update(host=settings.host, port=settings.port, db=settings.db)
    try:
        client = client_of(**keywords)
        # It connects at the first command, and would meet a keyword that there is none of only then.
        client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    except (ValueError, TypeError, redis.RedisError) as error:
        raise UsageError(f"Redis at {settings.shown} cannot be used as set: {error}.") from error
    return JobStore(client, Keys(settings.prefix), Scripts(client), settings.shown)


def _params(value: Any) -> dict[str, Any]:
    """Read `REDIS_PARAMS`, which is a dict in a settings file and JSON text in an environment."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError as error:
            raise UsageError(f"Setting REDIS_PARAMS is not JSON: {error}.") from error
    if not value:
        return {}
    try:
        params = dict(value)
    except (TypeError, ValueError) as error:
        raise UsageError("Setting REDIS_PARAMS is not a dict of keywords for redis.Redis.") from error
    for name in ("redis_cls", "retry_on_timeout"):  # which client, and what it repeats, is decided here
        params.pop(name, None)
    return params


def _check_url(url: str) -> None:
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise UsageError(
            "Setting REDIS_URL begins with redis://, with rediss:// for TLS, or unix:// for a socket."
        )
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"Setting REDIS_URL cannot be followed: {error}.") from error
    database = parts.path.strip("/")
    # The library would take the first database for any other text.
    if parts.scheme != "unix" and database and not (database.isascii() and database.isdigit()):
        raise UsageError(f"Setting REDIS_URL ends with the database {database[:60]!r}: it is a number.")


def _number(setting: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"Setting {setting} is {value!r}: it is a number.") from error
