"""The pool: which connection a request gets, who waits for one, and what is remembered of a route."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from amicrawl.config import TlsPolicy
from amicrawl.fetch.pool import Lane, Pool
from amicrawl.fetch.request import Route

if TYPE_CHECKING:
    from fetch.serving import Run

    from amicrawl.fetch.connection import Connection, Receiver

ROUTE = Route("http", "example.org", "", TlsPolicy.VERIFY)


class Line:
    """Stands for a connection: open until it is closed, by either side."""

    def __init__(self) -> None:
        self.open = True
        self.receiver: Receiver
        self.kept: Receiver | None = None

    def close(self) -> None:
        self.open = False

    def end(self) -> None:
        """Close it from the side of the server."""
        self.open = False
        self.receiver.closed(None)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make_pool(*, size: int = 8, max_idle: float = 90.0, clock: Clock | None = None) -> Pool:
    return Pool(size=size, max_idle=max_idle, clock=clock or Clock())


def dialled(pool: Pool, lane: Lane) -> tuple[Connection, Line]:
    """Return a connection that is in use, as the two things that it is."""
    lane.dialling += 1
    pool.dialled(lane, made=True)
    line = Line()
    return cast("Connection", line), line


def test_the_connection_used_last_is_taken_first_and_one_too_old_is_closed(run_once: Run) -> None:
    async def take() -> None:
        clock = Clock()
        pool = make_pool(max_idle=90.0, clock=clock)
        lane = pool.lane(ROUTE)
        (old, old_line), (new, _) = dialled(pool, lane), dialled(pool, lane)
        pool.put(lane, old)
        clock.now = 10.0
        pool.put(lane, new)
        clock.now = 100.0
        assert pool.take(lane) is new
        assert pool.take(lane) is None
        assert not old_line.open
        pool.put(lane, new)
        clock.now = 190.0
        assert pool.take(lane) is new

    run_once(take())


def test_one_idle_longest_is_closed_where_there_are_too_many(run_once: Run) -> None:
    async def put() -> None:
        pool = make_pool(size=2)
        lane = pool.lane(ROUTE)
        made = [dialled(pool, lane) for _ in range(3)]
        for connection, _ in made:
            pool.put(lane, connection)
        assert [line.open for _, line in made] == [False, True, True]
        assert [pool.take(lane) for _ in range(3)] == [made[2][0], made[1][0], None]

    run_once(put())


def test_a_request_waits_for_nothing_where_no_connection_is_in_use_or_being_made(run_once: Run) -> None:
    async def wait() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        connection, _ = dialled(pool, lane)
        pool.put(lane, connection)
        assert pool.take(lane) is connection
        pool.drop(lane, connection)
        # It would wait for ever, and not a moment: nothing ends it.
        assert await pool.wait(lane) is None

    run_once(wait())


def test_a_connection_that_comes_free_goes_to_who_waited_longest(run_once: Run) -> None:
    async def wait() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        connection, line = dialled(pool, lane)
        first, second = (asyncio.ensure_future(pool.wait(lane)) for _ in range(2))
        await asyncio.sleep(0)
        pool.put(lane, connection)
        assert pool.take(lane) is None, "it is not idle"
        assert await first is connection
        pool.put(lane, connection)
        assert await second is connection
        pool.put(lane, connection)
        assert pool.take(lane) is connection
        assert line.open

    run_once(wait())


def test_a_request_that_is_cancelled_passes_its_connection_on(run_once: Run) -> None:
    async def cancel() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        connection, _ = dialled(pool, lane)
        waits = [asyncio.ensure_future(pool.wait(lane)) for _ in range(3)]
        await asyncio.sleep(0)
        waits[0].cancel()
        await asyncio.sleep(0)
        pool.put(lane, connection)
        waits[1].cancel()
        assert await waits[2] is connection
        for wait in waits[:2]:
            with pytest.raises(asyncio.CancelledError):
                await wait

    run_once(cancel())


def test_a_request_that_was_cancelled_holds_up_no_other_that_waits(run_once: Run) -> None:
    async def cancel() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        connection, _ = dialled(pool, lane)
        waits = [asyncio.ensure_future(pool.wait(lane)) for _ in range(2)]
        await asyncio.sleep(0)
        waits[0].cancel()
        await asyncio.sleep(0)
        pool.drop(lane, connection)
        assert await waits[1] is None

    run_once(cancel())


def test_a_connection_that_ends_on_its_way_to_a_request_is_not_used(run_once: Run) -> None:
    async def end() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        for speaks in (False, True):
            connection, line = dialled(pool, lane)
            waiting = asyncio.ensure_future(pool.wait(lane))
            await asyncio.sleep(0)
            pool.put(lane, connection)
            if speaks:
                line.receiver.received(b"x")
            else:
                line.end()
            assert await waiting is None
            assert not line.open
            assert await pool.wait(lane) is None, "nothing is in use any more"

    run_once(end())


@pytest.mark.parametrize("how", ["dropped", "ended", "not made", "in use"])
def test_a_request_does_not_wait_for_what_will_not_come(run_once: Run, how: str) -> None:
    async def wait() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        if how == "not made":
            lane.dialling += 1
            waiting = asyncio.ensure_future(pool.wait(lane))
            await asyncio.sleep(0)
            pool.dialled(lane, made=False)
        else:
            connection, line = dialled(pool, lane)
            waiting = asyncio.ensure_future(pool.wait(lane))
            await asyncio.sleep(0)
            if how == "dropped":
                pool.drop(lane, connection)
                assert not line.open
            elif how == "ended":
                line.close()
                pool.put(lane, connection)
        if how != "in use":
            assert lane.is_empty, "and it is ended at once"
        async with asyncio.timeout(30):
            assert await waiting is None

    run_once(wait())


def test_who_waits_for_a_dial_waits_a_moment_longer_for_its_connection(run_once: Run) -> None:
    async def wait() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        lane.dialling += 1
        waiting = asyncio.ensure_future(pool.wait(lane))
        await asyncio.sleep(0.15)
        assert not waiting.done(), "a dial takes longer than the moment"
        pool.dialled(lane, made=True)
        async with asyncio.timeout(30):
            assert await waiting is None

    run_once(wait())


@pytest.mark.parametrize("happens", ["ended", "spoke"])
def test_whatever_happens_to_an_idle_connection_ends_its_use(run_once: Run, happens: str) -> None:
    async def end() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        (one, one_line), (other, _) = dialled(pool, lane), dialled(pool, lane)
        pool.put(lane, other)
        pool.put(lane, one)
        if happens == "ended":
            one_line.end()
        else:
            one_line.receiver.received(b"x")
        assert not one_line.open
        assert [pool.take(lane), pool.take(lane)] == [other, None]

    run_once(end())


def test_bytes_for_a_connection_that_was_just_taken_close_it(run_once: Run) -> None:
    async def take() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        connection, line = dialled(pool, lane)
        pool.put(lane, connection)
        assert pool.take(lane) is connection
        line.receiver.received(b"x")
        assert not line.open

    run_once(take())


def test_a_route_is_remembered_as_long_as_it_has_a_connection(run_once: Run) -> None:
    async def forget() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        connection, line = dialled(pool, lane)
        other, other_line = dialled(pool, lane)
        pool.put(lane, connection)
        pool.drop(lane, other)
        assert pool.lane(ROUTE) is lane
        line.end()
        assert pool.lane(ROUTE) is not lane
        lane = pool.lane(ROUTE)
        lane.dialling += 1
        pool.dialled(lane, made=False)
        assert pool.lane(ROUTE) is not lane
        assert not other_line.open

    run_once(forget())


def test_connections_in_use_are_counted_however_often_they_were_kept_between(run_once: Run) -> None:
    async def count() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        made = [dialled(pool, lane)[0] for _ in range(3)]
        for connection in made[:2]:
            pool.put(lane, connection)
        assert lane.in_use == 1
        assert {pool.take(lane), pool.take(lane)} == set(made[:2])
        assert lane.in_use == 3
        for connection in made:
            assert not lane.is_empty
            pool.drop(lane, connection)
        assert lane.is_empty

    run_once(count())


def test_closing_the_pool_closes_what_is_idle(run_once: Run) -> None:
    async def close() -> None:
        pool = make_pool()
        lane = pool.lane(ROUTE)
        made = [dialled(pool, lane) for _ in range(2)]
        for connection, _ in made:
            pool.put(lane, connection)
        pool.close()
        assert [line.open for _, line in made] == [False, False]
        assert pool.take(lane) is None

    run_once(close())
