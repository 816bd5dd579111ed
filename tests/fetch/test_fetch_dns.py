"""Name servers on loopback with scripted responses to queries for addresses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fetch.name_server import (
    ADDRESS,
    NameServer,
    cannot_say,
    is_preceded_by_forgeries,
    knows,
    knows_no_address,
    knows_not,
    knows_only_ipv6,
    question_in,
    record,
    reply_to,
    requests_of,
    says_nothing,
)
from fetch.serving import until

from amicrawl.capture import Failure
from amicrawl.config import CrawlConfig
from amicrawl.errors import UsageError
from amicrawl.fetch.name_servers import make_resolver
from amicrawl.fetch.resolver import Unresolved

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetch.serving import Run

    from amicrawl.fetch.resolver import LookupResult

FOUND = ("192.0.2.1",)


def look_up(
    server: NameServer, *hosts: str, within: float = 20.0, timeout: float = 0.2
) -> list[LookupResult]:
    async def look_up_all() -> list[LookupResult]:
        host, port = server.server
        resolver = make_resolver([f"{host}:{port}"], timeout=timeout, tries=2)
        try:
            return list(
                await asyncio.gather(*[resolver.addresses(host, within=within) for host in hosts])
            )
        finally:
            resolver.close("done")

    return asyncio.run(look_up_all())


def failure_of(result: LookupResult) -> Failure | None:
    return result.failure if isinstance(result, Unresolved) else None


@pytest.mark.parametrize(
    ("says", "failure"),
    [
        (knows_not, Failure.NAME_NOT_FOUND),
        (knows_no_address, Failure.NAME_NOT_FOUND),
        (cannot_say, Failure.NAME_LOOKUP_FAILED),
        (says_nothing, Failure.NAME_LOOKUP_FAILED),
    ],
)
def test_a_name_is_missing_only_if_a_name_server_says_so(
    says: Callable[[bytes], list[bytes]], failure: Failure
) -> None:
    with NameServer(says) as server:
        result = look_up(server, "www.example.org")[0]
    assert failure_of(result) is failure
    assert server.questions


@pytest.mark.parametrize(
    ("says", "addresses"),
    [
        (knows, FOUND),
        (knows_only_ipv6, ("::2",)),
        (is_preceded_by_forgeries, FOUND),
    ],
)
def test_what_a_name_server_knows_is_returned(
    says: Callable[[bytes], list[bytes]], addresses: tuple[str, ...]
) -> None:
    with NameServer(says) as server:
        assert look_up(server, "www.example.org") == [addresses]


@pytest.mark.parametrize(
    "tail",
    [
        b"\xff" * 400,
        bytes(4000),
        question_in(bytes(12) + b"\1a\0\0\1\0\1") + b"\xc0\x0c" * 200,
        b"\xc0\x0c" + b"\0\1\0\1",
        b"\1a\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\x3c\xff\xff\1",
    ],
    ids=["ones", "zeros", "pointers", "a loop", "a length too long"],
)
def test_odd_replies_are_a_failed_look_up(tail: bytes) -> None:
    def is_odd(requested: bytes) -> list[bytes]:
        return [requested[:2] + b"\x81\x80\0\1\0\5\0\0\0\0" + tail, requested[:7]]

    with NameServer(is_odd) as server:
        assert failure_of(look_up(server, "a")[0]) is Failure.NAME_LOOKUP_FAILED


def test_a_query_that_got_lost_is_sent_again() -> None:
    seen: set[bytes] = set()

    def loses_the_first(requested: bytes) -> list[bytes]:
        if (question := question_in(requested).lower()) in seen:
            return knows(requested)
        seen.add(question)
        return []

    with NameServer(loses_the_first) as server:
        assert look_up(server, "www.example.org") == [FOUND]


def test_names_are_requested_at_once_and_each_once() -> None:
    """No name has a response before a hundred were requested."""
    names: set[bytes] = set()

    def waits_for_all(requested: bytes) -> list[bytes]:
        names.add(question_in(requested)[:-4].lower())
        return knows(requested) if len(names) == 100 else []

    with NameServer(waits_for_all) as server:
        hosts = [f"host{number}.example.org" for number in range(100)]
        # What was requested before the hundredth name came is queried again after the timeout.
        results = look_up(server, *hosts, *hosts, timeout=0.5)
    assert results == [FOUND] * 200
    assert len(names) == 100


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example", "%31.example", "\u00fc.example", "a b"])
def test_what_is_not_a_dns_name_has_no_address(host: str) -> None:
    with NameServer(knows_not) as server:
        assert failure_of(look_up(server, host)[0]) in {
            Failure.NAME_NOT_FOUND,
            Failure.NAME_LOOKUP_FAILED,
        }


@pytest.mark.parametrize(("ttl", "times"), [(3600, 1), (1, 2)])
def test_an_address_holds_as_long_as_its_record(run: Run, ttl: int, times: int) -> None:
    def says(requested: bytes) -> list[bytes]:
        if not requests_of(1, requested):
            return [reply_to(requested)]
        return [reply_to(requested, records=record(1, b"\xc0\x00\x02\x01", ttl=ttl), count=1)]

    async def look_up_twice(server: NameServer) -> list[LookupResult | None]:
        host, port = server.server
        resolver = make_resolver([f"{host}:{port}"])
        results: list[LookupResult | None] = [await resolver.addresses("www.example.org", within=20)]
        if ttl == 1:
            await until(lambda: resolver.known("www.example.org") is None)
        results.append(await resolver.addresses("www.example.org", within=20))
        resolver.close("done")
        return results

    with NameServer(says) as server:
        assert run(look_up_twice(server)) == [FOUND, FOUND]
    assert len([requested for requested in server.questions if requests_of(1, requested)]) == times


def test_closing_ends_look_ups_at_once(run: Run) -> None:
    async def close(server: NameServer) -> LookupResult:
        host, port = server.server
        resolver = make_resolver([f"{host}:{port}"], timeout=20)
        task = asyncio.ensure_future(resolver.addresses("www.example.org", within=20))
        await until(lambda: bool(server.questions))
        resolver.close("closing time")
        return await task

    with NameServer(says_nothing) as server:
        assert run(close(server)) == Unresolved(Failure.ENDED_HERE, "closing time")


def test_the_hosts_file_is_read(run: Run) -> None:
    async def look_up() -> LookupResult:
        resolver = make_resolver()
        try:
            return await resolver.addresses("localhost", within=20)
        finally:
            resolver.close("done")

    result = run(look_up())
    assert isinstance(result, tuple)
    assert {*result} <= {"127.0.0.1", "::1"}


def test_the_system_can_be_queried_instead(run: Run) -> None:
    async def look_up() -> LookupResult:
        resolver = make_resolver(["system"])
        try:
            return await resolver.addresses("localhost", within=20)
        finally:
            resolver.close("done")

    assert isinstance(run(look_up()), tuple)


@pytest.mark.parametrize(
    "name", ["example.org", "192.0.2.53:no", "192.0.2.53:0", "192.0.2.53:99999", "[::1", "system:53", ""]
)
def test_a_name_server_that_is_not_an_address_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_DNS_SERVERS"):
        CrawlConfig.from_settings({"AMICRAWL_DNS_SERVERS": [name]})


@pytest.mark.parametrize("name", ["192.0.2.53", "192.0.2.53:5353", "2001:db8::53", "[2001:db8::53]:53"])
def test_a_name_server_is_an_address_with_or_without_a_port(name: str) -> None:
    make_resolver([name]).close("done")


def test_a_server_speaks_of_addresses_only_for_its_question() -> None:
    """The double itself: its reply has the question, and one record of the type that was requested."""
    requested = b"\0\7" + bytes(10) + b"\1a\0" + b"\0\1\0\1" + b"more"
    assert knows(requested)[0].endswith(b"\1a\0\0\1\0\1" + ADDRESS)
