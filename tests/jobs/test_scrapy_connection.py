"""A crawl and a command reach Redis alike, whoever makes the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy_redis.connection import SETTINGS_PARAMS_MAP

from amicrawl.fleet.database import connection

if TYPE_CHECKING:
    import redis

SETTINGS: list[dict[str, Any]] = [
    {"REDIS_URL": "rediss://anna:secret@redis.example.org:7000/3"},
    {"REDIS_URL": "unix:///run/redis.sock", "REDIS_PARAMS": {"password": "secret"}},
    {"REDIS_HOST": "redis.example.org", "REDIS_PORT": 7000, "REDIS_DB": 3},
    {"REDIS_PARAMS": '{"socket_timeout": 9, "username": "anna", "retry_on_timeout": true}'},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_both_clients_are_made_alike(settings: dict[str, Any]) -> None:
    ours = connection.connect(settings).client
    theirs = connection.connect_from_scrapy(settings).client
    assert type(ours) is type(theirs)
    assert ours.connection_pool.connection_class is theirs.connection_pool.connection_class
    assert said(ours) == said(theirs)


def said(client: redis.Redis) -> dict[str, Any]:
    """Return what the client's connections are made with, as far as it is plain."""
    given = client.connection_pool.connection_kwargs
    plain = {name: value for name, value in given.items() if isinstance(value, (str, int, float))}
    return {**plain, "retries": given["retry"].get_retries()}


def test_the_settings_are_those_of_scrapy_redis() -> None:
    assert connection.SERVER_SETTINGS.items() <= SETTINGS_PARAMS_MAP.items()
