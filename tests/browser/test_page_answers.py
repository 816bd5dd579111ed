"""What the archive answers in place of a server."""

import asyncio

import pytest

from amicrawl.browser.answers import LARGEST, ArchivedAnswers
from amicrawl.browser.proxy import BrowserRequest, ProxyReply

URL = "http://h.test/a"
ASKED = BrowserRequest("GET", URL, [])


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def found(answers: ArchivedAnswers, asked: BrowserRequest) -> bytes | None:
    async def find() -> bytes | None:
        reply = await answers.find(asked)
        answers.done(asked)
        return None if reply is None else b"".join(reply.body)

    return asyncio.run(find())


def kept(
    *fields: tuple[bytes, bytes],
    kind: str = "fetch",
    status: int = 200,
    asked: BrowserRequest = ASKED,
) -> tuple[ArchivedAnswers, Clock]:
    clock = Clock()
    answers = ArchivedAnswers(clock=clock)
    answers.keep(asked, ProxyReply(status, fields), b"body", kind=kind)
    return answers, clock


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
def test_requisites_are_asked_for_once(
    kind: str, type_: bytes, status: int, expected: bytes | None
) -> None:
    answers, _ = kept((b"Content-Type", type_), kind=kind, status=status)
    assert found(answers, BrowserRequest("GET", URL, [])) == expected


def test_data_is_answered_as_long_as_its_server_says() -> None:
    answers, clock = kept((b"Cache-Control", b"public, max-age=60"), (b"Age", b"20"))
    clock.now += 39
    assert found(answers, BrowserRequest("GET", URL, [])) == b"body"
    assert found(answers, BrowserRequest("GET", URL, [(b"Cache-Control", b"no-cache")])) is None
    clock.now += 2
    assert found(answers, BrowserRequest("GET", URL, [])) is None


@pytest.mark.parametrize(
    "control", [b"max-age=60, no-store", b"no-cache, max-age=60", b"max-age=0", b""]
)
def test_data_that_its_server_wants_asked_for_is_asked_for(control: bytes) -> None:
    answers, _ = kept((b"Cache-Control", control))
    assert found(answers, BrowserRequest("GET", URL, [])) is None


def test_a_request_that_the_response_varies_with_is_another() -> None:
    asked = BrowserRequest("GET", URL, [(b"Accept-Language", b"de")])
    answers, _ = kept((b"Vary", b"Accept-Encoding, accept-language"), kind="script", asked=asked)
    assert found(answers, asked) == b"body"
    assert found(answers, BrowserRequest("GET", URL, [(b"Accept-Language", b"en")])) is None
    answers, _ = kept((b"Vary", b"*"), kind="script")
    assert found(answers, BrowserRequest("GET", URL, [])) is None


def test_only_get_is_answered() -> None:
    answers, _ = kept(kind="script")
    assert found(answers, BrowserRequest("POST", URL, [])) is None
    assert found(answers, BrowserRequest("HEAD", URL, [])) is None


def test_memory_is_bounded_and_what_was_used_last_stays() -> None:
    answers = ArchivedAnswers(clock=Clock(), most_bytes=100)
    for number in range(3):
        answers.keep(
            BrowserRequest("GET", f"{URL}{number}", []), ProxyReply(200), b"x" * 40, kind="script"
        )
        found(answers, BrowserRequest("GET", f"{URL}0", []))
    held = [
        found(answers, BrowserRequest("GET", f"{URL}{number}", [])) is not None for number in range(3)
    ]
    assert held == [True, False, True]
    answers.keep(BrowserRequest("GET", URL, []), ProxyReply(200), bytes(LARGEST + 1), kind="script")
    assert found(answers, BrowserRequest("GET", URL, [])) is None


def test_two_pages_that_want_the_same_at_once_ask_once() -> None:
    async def act() -> list[str]:
        answers, order = ArchivedAnswers(clock=Clock()), []
        asked = BrowserRequest("GET", URL, [])

        async def page(name: str) -> None:
            reply = await answers.find(asked)
            if reply is None:
                order.append(f"{name} asks")
                await asyncio.sleep(0.01)
                answers.keep(asked, ProxyReply(200), b"body", kind="script")
                answers.done(asked)
            else:
                order.append(f"{name} has it")

        await asyncio.gather(page("first"), page("second"), page("third"))
        return order

    assert asyncio.run(act()) == ["first asks", "second has it", "third has it"]
