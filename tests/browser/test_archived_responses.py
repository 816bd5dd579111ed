"""What the archive responds in place of a server."""

import asyncio
import tracemalloc

import pytest

from amicrawl.browser.archived_responses import LARGEST, ArchivedResponses
from amicrawl.browser.proxy import BrowserRequest, ProxyReply

URL = "http://h.test/a"
REQUESTED = BrowserRequest("GET", URL, [])


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def found(responses: ArchivedResponses, requested: BrowserRequest) -> bytes | None:
    async def find() -> bytes | None:
        reply = await responses.find(requested)
        responses.done(requested)
        return None if reply is None else b"".join(reply.body)

    return asyncio.run(find())


def kept(
    *fields: tuple[bytes, bytes],
    kind: str = "fetch",
    status: int = 200,
    requested: BrowserRequest = REQUESTED,
) -> tuple[ArchivedResponses, Clock]:
    clock = Clock()
    responses = ArchivedResponses(clock=clock)
    responses.keep(requested, ProxyReply(status, fields), b"body", kind=kind)
    return responses, clock


@pytest.mark.parametrize(
    ("kind", "type_", "status", "expected"),
    [
        ("script", b"text/javascript", 200, b"body"),
        ("fetch", b"text/css", 200, b"body"),
        ("image", b"text/html", 404, b"body"),
        ("fetch", b"application/json", 200, None),
        ("document", b"text/html", 200, None),
        ("script", b"text/javascript", 503, None),
    ],
)
def test_requisites_are_requested_once(
    kind: str, type_: bytes, status: int, expected: bytes | None
) -> None:
    responses, _ = kept((b"Content-Type", type_), kind=kind, status=status)
    assert found(responses, BrowserRequest("GET", URL, [])) == expected


def test_data_is_served_as_long_as_its_server_says() -> None:
    responses, clock = kept((b"Cache-Control", b"public, max-age=60"), (b"Age", b"20"))
    clock.now += 39
    assert found(responses, BrowserRequest("GET", URL, [])) == b"body"
    assert found(responses, BrowserRequest("GET", URL, [(b"Cache-Control", b"no-cache")])) is None
    clock.now += 2
    assert found(responses, BrowserRequest("GET", URL, [])) is None


@pytest.mark.parametrize(
    "control", [b"max-age=60, no-store", b"no-cache, max-age=60", b"max-age=0", b""]
)
def test_data_that_its_server_wants_fetched_anew_is_requested(control: bytes) -> None:
    responses, _ = kept((b"Cache-Control", control))
    assert found(responses, BrowserRequest("GET", URL, [])) is None


def test_a_request_that_the_response_varies_with_is_another() -> None:
    requested = BrowserRequest("GET", URL, [(b"Accept-Language", b"de")])
    responses, _ = kept(
        (b"Vary", b"Accept-Encoding, accept-language"), kind="script", requested=requested
    )
    assert found(responses, requested) == b"body"
    assert found(responses, BrowserRequest("GET", URL, [(b"Accept-Language", b"en")])) is None
    responses, _ = kept((b"Vary", b"*"), kind="script")
    assert found(responses, BrowserRequest("GET", URL, [])) is None


def test_only_get_is_served() -> None:
    responses, _ = kept(kind="script")
    assert found(responses, BrowserRequest("POST", URL, [])) is None
    assert found(responses, BrowserRequest("HEAD", URL, [])) is None


def test_memory_is_bounded_and_what_was_used_last_stays() -> None:
    responses = ArchivedResponses(clock=Clock(), most_bytes=100_000)
    for number in range(3):
        responses.keep(
            BrowserRequest("GET", f"{URL}{number}", []), ProxyReply(200), b"x" * 40_000, kind="script"
        )
        found(responses, BrowserRequest("GET", f"{URL}0", []))
    held = [
        found(responses, BrowserRequest("GET", f"{URL}{number}", [])) is not None for number in range(3)
    ]
    assert held == [True, False, True]
    responses.keep(BrowserRequest("GET", URL, []), ProxyReply(200), bytes(LARGEST + 1), kind="script")
    assert found(responses, BrowserRequest("GET", URL, [])) is None


def test_responses_that_are_nearly_all_fields_are_bounded_too() -> None:
    responses = ArchivedResponses(clock=Clock(), most_bytes=2_000_000)
    fields = [(f"X-{number}".encode(), b"x" * 20) for number in range(12)]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(2000):
        own = [(bytes(bytearray(name)), bytes(bytearray(value))) for name, value in fields]
        requested = BrowserRequest("GET", f"{URL}{number}", [])
        responses.keep(requested, ProxyReply(200, own), bytes(bytearray(43)), kind="image")
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 500_000 < after - before < 2_500_000


def test_a_stream_of_events_does_not_wait_for_another() -> None:
    async def act() -> list[object]:
        responses = ArchivedResponses(clock=Clock())
        requested = BrowserRequest("GET", URL, [(b"Accept", b"text/event-stream")])
        return [await asyncio.wait_for(responses.find(requested), 10) for _ in range(2)]

    assert asyncio.run(act()) == [None, None]


def test_two_pages_that_want_the_same_at_once_request_it_once() -> None:
    async def act() -> list[str]:
        responses, order = ArchivedResponses(clock=Clock()), []
        requested = BrowserRequest("GET", URL, [])

        async def page(name: str) -> None:
            reply = await responses.find(requested)
            if reply is None:
                order.append(f"{name} requests")
                await asyncio.sleep(0.01)
                responses.keep(requested, ProxyReply(200), b"body", kind="script")
                responses.done(requested)
            else:
                order.append(f"{name} has it")

        await asyncio.gather(page("first"), page("second"), page("third"))
        return order

    assert asyncio.run(act()) == ["first requests", "second has it", "third has it"]
