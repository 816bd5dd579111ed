"""Redis is reached by the settings of scrapy-redis, with the client that scrapy-redis would make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings
from scrapy_redis.connection import SETTINGS_PARAMS_MAP, get_redis_from_settings

from amicrawl.jobs.connection import SERVER_SETTINGS, connect

if TYPE_CHECKING:
    import redis

SETTINGS: list[dict[str, Any]] = [
    {"REDIS_URL": "rediss://anna:secret@redis.example.org:7000/3"},
    {"REDIS_URL": "unix:///run/redis.sock", "REDIS_PARAMS": {"password": "secret"}},
    {"REDIS_HOST": "redis.example.org", "REDIS_PORT": 7000, "REDIS_DB": 3},
    {"REDIS_PARAMS": {"socket_timeout": 9, "username": "anna"}},
]
NAMES = ("host", "port", "db", "path", "username", "password")


@pytest.mark.filterwarnings("ignore:Call to '__init__':DeprecationWarning")  # of scrapy-redis
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_client_reaches_the_server_that_scrapy_redis_would(settings: dict[str, Any]) -> None:
    ours = connect(settings).client
    theirs = get_redis_from_settings(Settings(settings))
    assert type(ours) is type(theirs)
    assert ours.connection_pool.connection_class is theirs.connection_pool.connection_class
    assert where(ours) == where(theirs)


def where(client: redis.Redis) -> dict[str, Any]:
    """Return which server a client's connections are made to, and as which user."""
    given = client.connection_pool.connection_kwargs
    usual = {"host": "localhost", "port": 6379, "db": 0}
    return {**usual, **{name: given[name] for name in NAMES if given.get(name) is not None}}


def test_the_settings_are_those_of_scrapy_redis() -> None:
    assert SERVER_SETTINGS.items() <= SETTINGS_PARAMS_MAP.items()
