"""Addresses of host names, looked up in threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from fetch.serving import until

from amicrawl.capture import Failure
from amicrawl.fetch.resolver import LookupResult, Resolver, Threads, Unresolved, system_lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetch.serving import Run


def looked_up(
    *hosts: str, lookup: Callable[[str], Sequence[str]], within: float = 10.0, keep: float = 60.0
) -> list[LookupResult]:
    """Look *hosts* up, one after the other."""

    async def look_up() -> list[LookupResult]:
        resolver = Resolver(Threads(lookup, keep=keep))
        results = [await resolver.addresses(host, within=within) for host in hosts]
        resolver.close("done")
        return results

    return asyncio.run(look_up())


def test_the_system_knows_this_machine() -> None:
    assert {*system_lookup("localhost")} & {"127.0.0.1", "::1"}


def test_addresses_come_in_order_and_once() -> None:
    results = looked_up("a.example", lookup=lambda _: ["192.0.1.2", "2a00::1", "192.0.1.2"])
    assert results == [("192.0.1.2", "2a00::1")]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), Failure.NAME_NOT_FOUND),
        (socket.gaierror(socket.EAI_NODATA, "No address"), Failure.NAME_NOT_FOUND),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), Failure.NAME_LOOKUP_FAILED),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), Failure.NAME_LOOKUP_FAILED),
        (UnicodeError("label too long"), Failure.NAME_LOOKUP_FAILED),
        (KeyError("a bug in a look-up that was handed in"), Failure.NAME_LOOKUP_FAILED),
    ],
)
def test_a_name_that_does_not_exist_is_told_from_a_look_up_that_failed(
    error: Exception, failure: Failure
) -> None:
    def lookup(_: str) -> Sequence[str]:
        raise error

    result = looked_up("a.example", lookup=lookup)[0]
    assert isinstance(result, Unresolved)
    assert result.failure is failure
    assert str(error) in result.detail


def test_a_name_without_addresses_is_not_found() -> None:
    assert looked_up("a.example", lookup=lambda _: [])[0] == Unresolved(
        Failure.NAME_NOT_FOUND, "The name has no address."
    )


@pytest.mark.parametrize(("keep", "times"), [(60.0, 1), (0.0, 3)])
def test_a_result_is_kept_for_a_while(keep: float, times: int) -> None:
    requested: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        requested.append(host)
        return ["192.0.1.2"]

    assert looked_up("a", "a", "a", lookup=lookup, keep=keep) == [("192.0.1.2",)] * 3
    assert len(requested) == times


def test_a_look_up_that_failed_is_not_kept() -> None:
    results: list[list[str]] = [["192.0.1.2"]]
    requested: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        requested.append(host)
        if len(requested) == 1:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure")
        return results[0]

    assert looked_up("a", "a", lookup=lookup)[1] == ("192.0.1.2",)


@pytest.mark.parametrize(("keep_missing", "times"), [(10.0, 1), (0.0, 2)])
def test_that_a_name_is_missing_is_kept_for_a_short_while(keep_missing: float, times: int) -> None:
    requested: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        requested.append(host)
        return []

    async def look_up() -> None:
        resolver = Resolver(Threads(lookup), keep_missing=keep_missing)
        for _ in range(2):
            missing = await resolver.addresses("a", within=10)
            assert isinstance(missing, Unresolved)
            assert missing.failure is Failure.NAME_NOT_FOUND
        resolver.close("done")

    asyncio.run(look_up())
    assert len(requested) == times


@pytest.mark.slow
def test_slow_names_hold_up_nobody_and_are_looked_up_once(run: Run) -> None:
    """A hundred names hang; the next one has its result at once."""
    go_on = threading.Event()
    requested: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        requested.append(host)
        if host.startswith("slow"):
            go_on.wait(20)
        return [f"192.0.1.{len(host)}"]

    async def look_up() -> list[LookupResult]:
        resolver = Resolver(Threads(lookup, count=101))
        names = [f"slow{number}" for number in range(100)]
        slow = [asyncio.ensure_future(resolver.addresses(name, within=20)) for name in names * 3]
        await until(lambda: len(requested) == 100)
        assert await resolver.addresses("quick", within=10) == ("192.0.1.5",)
        assert not any(task.done() for task in slow)
        go_on.set()
        results = await asyncio.gather(*slow)
        resolver.close("done")
        return results

    results = run(look_up())
    assert len(results) == 300
    assert all(isinstance(result, tuple) for result in results)
    assert sorted(requested) == sorted({*requested})


def test_a_system_without_a_thread_left_fails_a_look_up_and_not_the_next(run_once: Run) -> None:
    async def look_up() -> list[LookupResult]:
        resolver = Resolver(Threads(lambda host: [host]))
        usual = threading.stack_size(1 << 46)  # more than a process can have
        try:
            results = [await resolver.addresses("192.0.1.1", within=10)]
            threading.stack_size(usual)
            results.append(await resolver.addresses("192.0.1.1", within=10))
            threading.stack_size(1 << 46)
            results += await asyncio.gather(
                *[resolver.addresses(f"192.0.1.{n}", within=10) for n in range(2, 4)]
            )
        finally:
            threading.stack_size(usual)
        resolver.close("done")
        return results

    first, *others = run_once(look_up())
    assert isinstance(first, Unresolved)
    assert first.failure is Failure.ENDED_HERE
    assert others == [(f"192.0.1.{n}",) for n in range(1, 4)]


def test_names_wait_for_a_thread_where_there_are_fewer(run_once: Run) -> None:
    busy: list[int] = []
    lock = threading.Lock()

    def lookup(host: str) -> Sequence[str]:
        with lock:
            busy.append(threading.active_count())
        return [host]

    async def look_up() -> list[LookupResult]:
        resolver = Resolver(Threads(lookup, count=2))
        results = await asyncio.gather(
            *[resolver.addresses(f"192.0.1.{n}", within=10) for n in range(50)]
        )
        resolver.close("done")
        return results

    before = threading.active_count()
    assert run_once(look_up()) == [(f"192.0.1.{n}",) for n in range(50)]
    assert max(busy) <= before + 2


def test_a_look_up_that_takes_too_long_fails_and_its_result_still_counts(run: Run) -> None:
    go_on = threading.Event()

    def lookup(_: str) -> Sequence[str]:
        go_on.wait(20)
        return ["192.0.1.2"]

    async def look_up() -> list[LookupResult]:
        resolver = Resolver(Threads(lookup))
        late = await resolver.addresses("a", within=0.05)
        go_on.set()
        results = [late, await resolver.addresses("a", within=10)]
        resolver.close("done")
        return results

    late, found = run(look_up())
    assert isinstance(late, Unresolved)
    assert (late.failure, found) == (Failure.NAME_LOOKUP_FAILED, ("192.0.1.2",))


def test_closing_ends_look_ups_at_once_and_lets_the_threads_go(run: Run) -> None:
    go_on = threading.Event()
    begun = threading.Event()

    def lookup(_: str) -> Sequence[str]:
        begun.set()
        go_on.wait(20)
        return ["192.0.1.2"]

    async def look_up() -> LookupResult:
        resolver = Resolver(Threads(lookup))
        task = asyncio.ensure_future(resolver.addresses("a", within=20))
        await until(begun.is_set)
        resolver.close("closing time")
        return await task

    before = threading.active_count()
    assert run(look_up()) == Unresolved(Failure.ENDED_HERE, "closing time")
    go_on.set()

    asyncio.run(until(lambda: threading.active_count() <= before))
    assert threading.active_count() <= before
