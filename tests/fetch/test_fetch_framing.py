"""Where a response ends, by its head."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.fetch.response import Ends, Framing, read_head
from amicrawl.message import header_fields

NOT_KEPT = Framing(Ends.BY_CLOSE)


def framing(*fields: bytes, line: bytes = b"HTTP/1.1 200 OK", method: str = "GET") -> Framing:
    head = b"".join(part + b"\r\n" for part in (line, *fields, b""))
    return read_head(head, method=method).framing


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([b"Content-Length: 5"], Framing(Ends.BY_LENGTH, 5, reusable=True)),
        ([b"content-length:\t005 "], Framing(Ends.BY_LENGTH, 5, reusable=True)),
        ([b"Transfer-Encoding: chunked"], Framing(Ends.BY_CHUNKS, reusable=True)),
        ([b"Transfer-Encoding: gzip, chunked"], Framing(Ends.BY_CHUNKS, reusable=True)),
        ([], NOT_KEPT),
        ([b"Transfer-Encoding: chunked, gzip"], NOT_KEPT),
        ([b"Transfer-Encoding: gzip", b"Content-Length: 5"], NOT_KEPT),
        ([b"Content-Length: 5", b"Content-Length: 5"], Framing(Ends.BY_LENGTH, 5)),
        ([b"Content-Length: 5, 5"], Framing(Ends.BY_LENGTH, 5)),
        ([b"Content-Length: 5", b"Transfer-Encoding: chunked"], Framing(Ends.BY_CHUNKS)),
        ([b"Content-Length: 5", b"Content-Length: 7"], Framing(Ends.UNSURE, 7)),
        ([b"Content-Length: -5"], Framing(Ends.UNSURE, 5)),
        ([b"Content-Length: +5"], Framing(Ends.UNSURE, 5)),
        ([b"Content-Length: 5abc"], Framing(Ends.UNSURE, 5)),
        ([b"Content-Length: five"], Framing(Ends.UNSURE)),
        ([b"Content-Length: "], Framing(Ends.UNSURE)),
        ([b"Content-Length: " + b"9" * 5000], Framing(Ends.UNSURE)),
    ],
)
def test_fields_say_where_the_body_ends(fields: list[bytes], expected: Framing) -> None:
    assert framing(*fields) == expected


@pytest.mark.parametrize(
    ("line", "method", "fields", "expected"),
    [
        (b"HTTP/1.1 200 OK", "HEAD", [b"Content-Length: 5"], Framing(Ends.AT_ONCE, reusable=True)),
        (
            b"HTTP/1.1 304 Not Modified",
            "GET",
            [b"Content-Length: 5"],
            Framing(Ends.AT_ONCE, reusable=True),
        ),
        (b"HTTP/1.1 204 No Content", "GET", [], Framing(Ends.AT_ONCE, reusable=True)),
        (
            b"HTTP/1.1 204 No Content",
            "GET",
            [b"Content-Length: 0"],
            Framing(Ends.AT_ONCE, reusable=True),
        ),
        (b"HTTP/1.1 204 No Content", "GET", [b"Content-Length: 5"], Framing(Ends.AT_ONCE)),
        (b"HTTP/1.1 204 No Content", "GET", [b"Transfer-Encoding: chunked"], Framing(Ends.AT_ONCE)),
        (b"HTTP/1.1 101 Switching Protocols", "GET", [b"Content-Length: 5"], NOT_KEPT),
    ],
)
def test_some_responses_have_no_body_whatever_they_say(
    line: bytes, method: str, fields: list[bytes], expected: Framing
) -> None:
    assert framing(*fields, line=line, method=method) == expected


@pytest.mark.parametrize(
    ("line", "fields", "reusable"),
    [
        (b"HTTP/1.1 200 OK", [], True),
        (b"HTTP/1.1 200", [], True),
        (b"HTTP/1.1 200 \xe9", [b"X: \xff"], True),
        (b"HTTP/1.1 200 OK", [b"Connection: keep-alive"], True),
        (b"HTTP/1.1 200 OK", [b"Connection: Upgrade"], True),
        (b"HTTP/1.1 200 OK", [b"Connection: close"], False),
        (b"HTTP/1.1 200 OK", [b"Connection: Keep-Alive, CLOSE"], False),
        (b"HTTP/1.1 200 OK", [b"Connection: keep-alive", b"Connection: close"], False),
        (b"HTTP/1.0 200 OK", [], False),
        (b"HTTP/1.0 200 OK", [b"Connection: Upgrade"], False),
        (b"HTTP/1.0 200 OK", [b"Connection: keep-alive"], True),
        (b"HTTP/1.2 200 OK", [], False),
        (b"HTTP/2.0 200 OK", [], False),
        (b"http/1.1 200 OK", [], False),
        (b"HTTP/1.1  200 OK", [], False),
        (b"HTTP/1.1 200 O\0K", [], False),
        (b"HTTP/1.1 200 OK", [b"no colon"], False),
        (b"HTTP/1.1 200 OK", [b": no name"], False),
        (b"HTTP/1.1 200 OK", [b"A : b"], False),
        (b"HTTP/1.1 200 OK", [b" A: b"], False),
        (b"HTTP/1.1 200 OK", [b"A: b", b" c"], False),
        (b"HTTP/1.1 200 OK", [b"A: \0"], False),
        (b"HTTP/1.1 200 OK", [b"A: b\rc"], False),
        (b"HTTP/1.1 200 OK", [b"A: b\nC: d"], False),
        (b"\r\nHTTP/1.1 200 OK", [], False),
    ],
)
def test_only_a_regular_head_leaves_its_connection_fit_for_another(
    line: bytes, fields: list[bytes], reusable: bool
) -> None:
    assert framing(b"Content-Length: 5", *fields, line=line).reusable is reusable


@pytest.mark.parametrize(
    ("line", "status", "protocol"),
    [
        (b"HTTP/1.1 404 Not Found", 404, "http/1.1"),
        (b"HTTP/1.0 200 OK", 200, "http/1.0"),
        (b"http/1.1 200 OK", 200, "http/1.1"),
        (b"HTTP/1.10 200 OK", 200, None),
        (b"HTTP/2.0 200 OK", 200, None),
        (b"ICY 200 OK", 200, None),
        (b"HTTP/1.1 999 Denied", 999, "http/1.1"),
        (b"HTTP/1.1 99 Too few", 200, "http/1.1"),
        (b"HTTP/1.1 000 None", 200, "http/1.1"),
        (b"HTTP/1.1", 200, "http/1.1"),
    ],
)
def test_status_and_protocol_come_from_the_status_line(
    line: bytes, status: int, protocol: str | None
) -> None:
    head = read_head(line + b"\r\n\r\n", method="GET")
    assert (head.status, head.protocol) == (status, protocol)


NAME = st.text("abcXYZ019-_!", min_size=1, max_size=9).map(str.encode)
VALUE = st.binary(max_size=20).filter(lambda value: not {*value} & {0, 10, 13})


@pytest.mark.slow
@given(fields=st.lists(st.tuples(NAME, VALUE), max_size=6))
def test_the_fields_of_a_regular_head_are_those_that_the_slow_way_finds(
    fields: list[tuple[bytes, bytes]],
) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"".join(b"%b:%b\r\n" % field for field in fields) + b"\r\n"
    assert read_head(head, method="GET").fields == header_fields(head)
