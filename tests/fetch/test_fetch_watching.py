"""Looking on while a response is received, and ending it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fetch.serving import always, content
from odd_responses import FIVE, OK, LoopbackServer

from amicrawl.capture import Truncation
from amicrawl.fetch import Wire, WireRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from fetch.serving import Run

    from amicrawl.capture import Capture
    from amicrawl.fetch.response import Head

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"


class Watcher:
    """Notes what it is shown, and ends the exchange where it is to."""

    def __init__(self, *, end_at_head: bool = False, end_at_body: bool = False) -> None:
        self.heads: list[Head] = []
        self.seen = b""
        self._end_at_head = end_at_head
        self._end_at_body = end_at_body

    def head(self, head: Head) -> bool:
        self.heads.append(head)
        return self._end_at_head

    def body(self, data: bytes) -> bool:
        self.seen += data
        return self._end_at_body


@pytest.fixture
def watch(run: Run, make_wire: Callable[..., Wire]) -> Callable[..., Capture]:
    def fetch(response: bytes, watcher: Watcher, **request: object) -> Capture:
        async def once(url: str) -> Capture:
            async with make_wire() as wire:
                return await wire.fetch(WireRequest(url=url, **request), watcher=watcher)  # type: ignore[arg-type]

        with LoopbackServer(always(response)) as server:
            return run(once(server.url))

    return fetch


@pytest.mark.parametrize(("response", "payload"), [(OK + FIVE, b"hello"), (CHUNKED, b"hello world")])
def test_a_watcher_sees_the_head_once_and_the_payload_without_its_coding(
    watch: Callable[..., Capture], response: bytes, payload: bytes
) -> None:
    watcher = Watcher()
    capture = watch(response, watcher)
    assert capture.head + content(capture) == response
    assert [head.status for head in watcher.heads] == [200]
    assert watcher.seen == payload
    assert capture.truncated is None


def test_a_watcher_ends_the_exchange_at_the_head(watch: Callable[..., Capture]) -> None:
    watcher = Watcher(end_at_head=True)
    capture = watch(OK + b"Content-Length: 50000000\r\n\r\n" + bytes(1000), watcher)
    assert capture.truncated is Truncation.UNSPECIFIED
    assert (capture.status, capture.failure) == (200, None)
    assert len(content(capture)) <= 1000


def test_a_watcher_ends_the_exchange_in_the_body_and_what_came_is_kept(
    watch: Callable[..., Capture],
) -> None:
    watcher = Watcher(end_at_body=True)
    capture = watch(OK + b"Content-Length: 50000000\r\n\r\n" + b"x" * 1000, watcher)
    assert capture.truncated is Truncation.UNSPECIFIED
    assert watcher.seen
    assert content(capture) == watcher.seen


def test_a_response_that_is_whole_when_it_is_ended_is_not_cut(watch: Callable[..., Capture]) -> None:
    capture = watch(OK + FIVE, Watcher(end_at_body=True))
    assert (capture.truncated, content(capture)) == (None, b"hello")


def test_what_a_watcher_raises_is_raised_by_the_fetch(watch: Callable[..., Capture]) -> None:
    class Broken(Watcher):
        def body(self, data: bytes) -> bool:
            raise LookupError(data.decode())

    with pytest.raises(LookupError, match="hello"):
        watch(OK + FIVE, Broken())


@pytest.mark.parametrize(("most", "kept"), [(3, 3), (0, 5), (None, 5), (5, 5)])
def test_a_request_may_have_a_cap_of_its_own(
    watch: Callable[..., Capture], most: int | None, kept: int
) -> None:
    capture = watch(OK + FIVE, Watcher(), max_body=most)
    assert content(capture) == b"hello"[:kept]
    assert capture.truncated is (Truncation.LENGTH if kept < 5 else None)
