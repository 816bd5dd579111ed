"""Odd responses over a real socket: what the server sent is what the capture holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from odd_responses import CASES, OddResponse, OddServer, Then

from amicrawl.fetch import WireRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetch.serving import Run

    from amicrawl.capture import Capture
    from amicrawl.fetch import Wire


def test_there_are_thirty_nine_cases_with_a_name_each() -> None:
    assert [case.number for case in CASES] == list(range(1, 40))
    assert len({case.name for case in CASES}) == 39


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_capture_holds_every_byte_that_the_server_sent(
    run: Run, make_wire: Callable[..., Wire], case: OddResponse
) -> None:
    with OddServer(case) as server:

        async def fetch_twice() -> list[Capture]:
            async with make_wire() as wire:
                return [await wire.fetch(WireRequest(url=f"{server.url}/{case.name}")) for _ in range(2)]

        captures = run(fetch_twice())
    for capture in captures:
        assert (capture.head, b"".join(capture.body.blocks())) == (case.head, case.body)
        assert (capture.status, capture.truncated, capture.failure) == (
            case.status,
            case.truncated,
            case.failure,
        )
        capture.body.close()
    assert [capture.request for capture in captures] == server.received
    assert server.connections == (1 if case.reusable else 2)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.then is Then.CLOSE and case.sent],
    ids=lambda case: case.name,
)
def test_nothing_is_lost_where_the_server_keeps_open_what_it_should_have_closed(
    run_once: Run, make_wire: Callable[..., Wire], case: OddResponse
) -> None:
    kept_open = OddResponse(number=0, name=case.name, sent=case.sent, then=Then.KEEP)
    with OddServer(kept_open) as server:

        async def fetch() -> Capture:
            async with make_wire(min_rate_time=0.5, min_rate=2000) as wire:
                return await wire.fetch(WireRequest(url=server.url))

        capture = run_once(fetch())
    assert capture.head + b"".join(capture.body.blocks()) == case.sent
    assert capture.status == case.status
    capture.body.close()
