"""Values of 8 MiB, and of absurd shapes, in a real Redis: no command that reads them pays for them.

Whoever reaches Redis can write them by one line of Lua, as is done here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis
from hostile.bombs.test_bomb_yard import complaint
from redis_server import RedisServer, end, started_server

from amicrawl.fleet.database.ident import ident_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hostile.bombs.confined import Confinement

pytestmark = pytest.mark.timeout(600)

MEMORY = 256 << 20
"""Bytes that a command may have had in memory; it takes 90 MiB to start."""
MEMORY_OF_DASHBOARD = 320 << 20
"""The same of a dashboard: it takes 112 MiB to start, and makes a page before the last one is freed."""
MEMORY_FOR_NONE = 128 << 20
"""The same where a command has no use for what is there: one value, or all elements, is more."""
MEMORY_OF_DASHBOARD_FOR_NONE = 140 << 20
"""The same of a dashboard, which has up to 130 MiB: a value is read as bytes, and again as text."""
URL = "http://a.example/"
IDENT = ident_of(URL)
PIPELINE = f"pipeline:{'a' * 32}"
COMMANDS = (
    *("job ls --finished", "job pending", "job status", f"job show {IDENT}", f"job log {IDENT}"),
    *("job dead", "pipeline ls"),
)

SOUND = f"""
local ident, pipeline = '{IDENT}', '{PIPELINE}'
redis.call('HSET', ident, 'url', '{URL}', 'queued_at', '1700000000', 'started_at', '1700000000')
redis.call('RPUSH', 'pending', ident)
redis.call('RPUSH', 'working', ident)
redis.call('SADD', 'pipelines', pipeline)
redis.call('HSET', pipeline, 'id', pipeline, 'nickname', 'blue', 'ts', '1700000000')
redis.call('ZADD', ident .. '_log', 1, '{{"ts":1,"type":"stdout","message":"x"}}')
redis.call('SADD', ident .. '_ignores', 'x')
local huge = string.rep('x', {8 << 20})
"""
"""A job that runs and waits, and a pipeline; what follows is written over it."""

BOMBS = {
    # All at once: what is bounded one by one is not yet bounded together.
    "values, elements, entries, facts of 8 MiB and names of 16": """
        redis.call('HSET', ident, 'note', huge)
        redis.call('ZADD', ident .. '_log', 2, huge)
        redis.call('SADD', ident .. '_ignores', huge)
        redis.call('RPUSH', 'pending', huge)
        redis.call('RPUSH', 'working', huge)
        redis.call('SET', 'jobs_completed', huge)
        redis.call('HSET', pipeline, 'nickname', huge)
        redis.call('SET', 'amicrawl:config:' .. ident, huge)
        redis.call('HSET', 'amicrawl:facts:' .. ident, 'now', huge, 'hosts', huge)
        redis.call('HSET', ident, huge, 'x')
        local name = huge .. huge
        redis.call('RPUSH', 'pending:' .. name, ident)
        redis.call('HSET', 'pipeline:' .. name, 'ts', '1')
        redis.call('SADD', name .. '_ignores', 'x')
    """,
    "a record whose URL has 8 MiB": """
        redis.call('HSET', ident, 'url', huge)
    """,
    "many jobs and pipelines of as much as is just read": """
        local entry, fields = string.rep('x', 30000), {'note', 'slug', 'started_by', 'user_agent'}
        for n = 1, 250 do
            local name = string.format('%025d', n)
            for _, field in ipairs(fields) do redis.call('HSET', name, field, entry) end
            redis.call('HSET', name, 'url', 'http://a.example/' .. n)
            redis.call('SADD', name .. '_ignores', 'x')
            redis.call('RPUSH', 'pending', name)
            local pipeline = 'pipeline:' .. string.format('%032d', n)
            redis.call('HSET', pipeline, 'nickname', entry, 'id', entry)
        end
    """,
    "fields, elements, entries and keys without end": """
        local some = string.rep('x', 200)
        for n = 1, 100000 do
            local each = some .. n
            redis.call('HSET', ident, 'r' .. n, each)
            redis.call('HSET', pipeline, 'r' .. n, each)
            redis.call('RPUSH', 'pending', each)
            redis.call('RPUSH', 'working', each)
            redis.call('ZADD', ident .. '_log', n, each)
            redis.call('SADD', ident .. '_ignores', each)
        end
        for n = 1, 2000 do
            redis.call('SADD', string.format('%025d', n) .. '_ignores', 'x')
            redis.call('HSET', string.format('%025d', n), 'url', 'http://a.example/' .. n)
            redis.call('HSET', 'pipeline:' .. string.format('%032d', n), 'ts', '1')
            redis.call('RPUSH', 'pending:' .. n, ident)
        end
    """,
    "as much as is just read, and nested": """
        local entry, nested = string.rep('x', 65000), string.rep('[', 60000)
        for n = 1, 1000 do
            redis.call('ZADD', ident .. '_log', n, entry .. n)
            redis.call('SADD', ident .. '_ignores', entry .. n)
            if n < 390 then redis.call('HSET', ident, 'r' .. n, entry) end
        end
        redis.call('ZADD', ident .. '_log', 1001, nested)
        redis.call('ZADD', ident .. '_log', 1002, '{"ts":1e999,"type":"stdout","message":' .. nested)
        redis.call('HSET', 'amicrawl:facts:' .. ident, 'now', nested, 'hosts', nested)
        redis.call('HSET', ident, 'log_score', string.rep('9', 60000), 'ts', '1e999', 'delay_min', 'nan')
    """,
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    found = started_server()
    yield found
    end(found)


@pytest.mark.parametrize("bomb", BOMBS)
def test_redis_values_cost_commands_little(
    bomb: str, server: RedisServer, tmp_path: Path, confined: Confinement
) -> None:
    with redis.Redis.from_url(server.url, socket_timeout=300) as client:
        client.flushall()
        client.eval(SOUND + BOMBS[bomb], 0)
    ended = {
        command: confined.run([*command.split(), "--redis", server.url], where=tmp_path)
        for command in COMMANDS
    }
    pages = confined.run([server.url, IDENT], where=tmp_path, program="serve_pages:main")
    assert [found for each in ended if (found := complaint(each, ended[each]))] == []
    assert complaint("dashboard", pages) == ""
    has_no_use = "MiB" in bomb or "without end" in bomb
    most = max(each.memory for each in ended.values())
    assert most < (MEMORY_FOR_NONE if has_no_use else MEMORY)
    assert pages.memory < (MEMORY_OF_DASHBOARD_FOR_NONE if has_no_use else MEMORY_OF_DASHBOARD)
