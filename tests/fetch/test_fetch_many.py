"""Two thousand exchanges at once."""

from __future__ import annotations

import asyncio
import resource
from typing import TYPE_CHECKING

import pytest
from fetch.serving import content, descriptors, until
from odd_responses import OK

from amicrawl.fetch import Wire, WireRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetch.serving import Run

MANY = 2000


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3 * MANY:
        pytest.skip(f"this machine allows a process {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_two_thousand_exchanges_are_under_way_at_once(run: Run, make_wire: Callable[..., Wire]) -> None:
    """The server responds to none of them before it has heard from all."""
    waiting = 0
    all_there = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        head = await reader.readuntil(b"\r\n\r\n")
        waiting += 1
        if waiting == MANY:
            all_there.set()
        await all_there.wait()
        number = head.split()[1]
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(number) + number)
        await reader.read()
        writer.close()

    async def fetch_all() -> list[bytes]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
        port = server.sockets[0].getsockname()[1]
        before = descriptors()
        async with make_wire(timeout=120, connect_timeout=60, wire={"keep": MANY}) as wire:
            requests = [WireRequest(url=f"http://127.0.0.1:{port}/{number}") for number in range(MANY)]
            captures = await asyncio.gather(*map(wire.fetch, requests))
        server.close()
        await server.wait_closed()
        await until(lambda: descriptors() <= before)
        return [content(capture) for capture in captures]

    assert run(fetch_all()) == [b"/%d" % number for number in range(MANY)]


def test_no_file_left_for_a_socket_is_a_failure_of_ours(
    run_once: Run, make_wire: Callable[..., Wire]
) -> None:
    async def fetch() -> str:
        async with make_wire() as wire:
            (await wire.fetch(WireRequest(url="http://127.0.0.1:1/"))).body.close()
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
            try:
                capture = await wire.fetch(WireRequest(url="http://127.0.0.1:1/"))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert capture.failure == "ended-here"
            return capture.failure_detail

    assert "Too many open files" in run_once(fetch())
