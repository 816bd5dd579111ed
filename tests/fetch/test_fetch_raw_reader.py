"""The tolerant reader: every byte kept, however the response is broken or cut up."""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from odd_responses import CASES, OK, OddResponse

from amicrawl.capture import Truncation
from amicrawl.fetch.response import More, ResponseReader

IN_MEMORY: Any = {"spool_above": 1 << 30, "spool_dir": Path("/nowhere")}
CORPUS = Path(__file__).parents[1] / "data" / "corpora" / "http" / "http.jsonl"


class Read:
    """What the reader makes of pieces, and of the end behind them."""

    def __init__(
        self, *pieces: bytes, method: str = "GET", max_header: int = 1 << 20, max_body: int = 1 << 20,
        end: bool = True,
    ) -> None:  # fmt: skip
        self.reader = ResponseReader(method, max_header=max_header, max_body=max_body, **IN_MEMORY)
        for piece in pieces:
            self.reader.feed(piece)
        self.more = self.reader.more()
        self.truncated = self.reader.end(orderly=True) if end else None
        self.head = self.reader.head
        self.body = b"".join(self.reader.body().blocks())

    @property
    def status(self) -> int:
        assert self.reader.section is not None
        return self.reader.section.status


def bytewise(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


@pytest.mark.parametrize("case", [case for case in CASES if case.sent], ids=lambda case: case.name)
def test_an_odd_response_is_sorted_into_head_and_body(case: OddResponse) -> None:
    read = Read(case.sent)
    assert (read.head, read.body) == (case.head, case.body)
    assert (read.status, read.truncated) == (case.status, case.truncated)
    assert (read.more is More.NONE) is case.reusable


@pytest.mark.parametrize(
    "case", [case for case in CASES if 0 < len(case.sent) < 5000], ids=lambda case: case.name
)
def test_how_a_response_arrives_makes_no_difference(case: OddResponse) -> None:
    whole = Read(case.sent)
    for pieces in (
        bytewise(case.sent),
        *((case.sent[:at], case.sent[at:]) for at in range(len(case.sent))),
    ):
        read = Read(*pieces)
        assert (read.head, read.body, read.truncated) == (whole.head, whole.body, whole.truncated)
        assert read.reader.section == whole.reader.section
        assert read.more is whole.more


# To llhttp any protocol is as good as HTTP; here their responses are bodies without a head.
OTHER_PROTOCOLS = {"sample/RTSP response", "sample/ICE response"}


def corpus(*, strict: bool = False) -> list[Any]:
    if not CORPUS.is_file():
        reason = f"no conformance data at {CORPUS}"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="corpus")]
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    if strict:
        accepted = (row for row in rows if not row["lenient"] and not row["expected"]["error"])
        rows = [row for row in accepted if row["name"] not in OTHER_PROTOCOLS]
    return [pytest.param(row, id=row["name"]) for row in rows]


@pytest.mark.parametrize("row", corpus())
def test_every_byte_of_the_llhttp_responses_is_kept(row: dict[str, Any]) -> None:
    data = base64.b64decode(row["response_base64"])
    for read in (Read(data), Read(*bytewise(data))):
        assert read.head + read.body == data


@pytest.mark.parametrize("row", corpus(strict=True))
def test_what_llhttp_accepts_is_read_as_llhttp_reads_it(row: dict[str, Any]) -> None:
    message = row["expected"]["messages"][0]
    read = Read(base64.b64decode(row["response_base64"]))
    assert read.status == message["status"]
    assert read.reader.section is not None
    found = [
        [name.decode("latin-1"), value.decode("latin-1")] for name, value in read.reader.section.fields
    ]
    assert found == [[name, value.strip()] for name, value in message["headers"]]


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


SCRAPS = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 100 Continue", b"ICY 200 OK", b"http", b"\r\n", b"\n", b"\r", b":",
     b" ", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"5\r\nhello\r\n", b"0\r\n\r\n", b"\0"]
)  # fmt: skip
RESPONSES = st.lists(SCRAPS | st.binary(max_size=4), min_size=1, max_size=14).map(b"".join).filter(len)
CUTS = st.lists(st.integers(min_value=0, max_value=500), max_size=6)


@given(data=RESPONSES, cuts=CUTS)
@example(data=b"HTTP/1.1 100 C\r\n\r\nhello", cuts=[])
@example(data=b"\r\n\r\n\r\nHTTP/1.1 200 OK\n\r\n", cuts=[3])
def test_every_byte_is_kept_in_order(data: bytes, cuts: list[int]) -> None:
    read = Read(*split(data, cuts))
    assert read.head + read.body == data
    assert read.reader.received == len(data)


@given(data=RESPONSES, cuts=CUTS, max_header=st.integers(1, 60), max_body=st.integers(0, 30))
def test_what_a_cap_leaves_is_the_beginning(
    data: bytes, cuts: list[int], max_header: int, max_body: int
) -> None:
    read = Read(*split(data, cuts), max_header=max_header, max_body=max_body)
    assert data.startswith(read.head + read.body)
    assert len(read.head) <= max_header
    assert len(read.body) <= max_body
    if read.head + read.body != data:
        assert read.more is More.CUT or read.reader.more() is More.CUT


@pytest.mark.parametrize("length", [4, 5, 6])
def test_a_body_of_just_the_cap_is_whole_and_one_byte_more_is_cut(length: int) -> None:
    read = Read(OK + b"Content-Length: %d\r\n\r\n" % length + b"x" * length, max_body=5)
    assert (read.more, len(read.body)) == (More.CUT if length > 5 else More.NONE, min(length, 5))


def test_a_body_announced_beyond_the_cap_is_cut_as_soon_as_the_cap_is_full() -> None:
    assert Read(OK + b"Content-Length: 10000000000000\r\n\r\n" + b"x" * 5, max_body=5).more is More.CUT
    assert Read(OK + b"Content-Length: 10000000000000\r\n\r\n" + b"x" * 4, max_body=5).more is More.MUST


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (OK, More.MUST),
        (OK + b"\r\n", More.MUST),
        (OK + b"Content-Length: 5\r\n\r\nhell", More.MUST),
        (OK + b"Content-Length: 5\r\n\r\nhello", More.NONE),
        (OK + b"Content-Length: 5\r\n\r\nhello!", More.SURPLUS),
        (OK + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello", More.SURPLUS),
        (OK + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello", More.MAY),
        (OK + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello12", More.SURPLUS),
        (OK + b"Content-Length: -\r\n\r\nhello", More.MAY),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", More.MUST),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", More.MAY),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y", More.MUST),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", More.NONE),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n!", More.SURPLUS),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", More.SURPLUS),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nhello", More.MUST),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nhello\r\n", More.MAY),
        (b"HTTP/1.1 204 No Content\r\n\r\n", More.NONE),
        (b"HTTP/1.1 204 No Content\r\n\r\nhello", More.SURPLUS),
        (b"no status line", More.MUST),
    ],
)
def test_the_reader_knows_whether_more_may_come(data: bytes, more: More) -> None:
    assert Read(data, end=False).more is more


@pytest.mark.parametrize(
    ("data", "truncated"),
    [
        (OK, Truncation.DISCONNECT),
        (OK + b"X-Cut: in the mid", Truncation.DISCONNECT),
        (b"HTTP/1.1 100 Continue\r\n\r\n", Truncation.DISCONNECT),
        (b"HTTP/1.1 100 Continue\r\n\r\nnot HTTP", Truncation.DISCONNECT),
        (OK + b"\r\n", None),
        (OK + b"\r\nhello", None),
        (OK + b"Content-Length: 6\r\n\r\nhello", Truncation.DISCONNECT),
        (OK + b"Content-Length: 5\r\n\r\nhello", None),
        (OK + b"Content-Length: five\r\n\r\nhello", None),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Truncation.DISCONNECT),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", None),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y", Truncation.DISCONNECT),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nbroken\r\n", None),
        (b"HT", None),
        (b"\r\n", None),
        (b"plain text", None),
    ],
)
def test_a_close_before_the_end_is_a_disconnect(data: bytes, truncated: Truncation | None) -> None:
    assert Read(data).truncated is truncated


@pytest.mark.parametrize(
    "data", [OK + b"\r\nhello", b"plain text", OK + b"Content-Length: 9\r\n\r\nhello"]
)
def test_a_reset_is_a_disconnect_where_only_the_close_tells_the_end(data: bytes) -> None:
    assert Read(data, end=False).reader.end(orderly=False) is Truncation.DISCONNECT


def test_a_reset_behind_a_complete_response_cuts_nothing() -> None:
    assert Read(OK + b"Content-Length: 5\r\n\r\nhello", end=False).reader.end(orderly=False) is None


@pytest.mark.parametrize(
    ("data", "truncated"),
    [
        (OK + b"Content-Length: -5\r\n\r\nhel", Truncation.TIME),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nbroken\r\n", Truncation.TIME),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", None),
        (OK + b"Content-Length: 5\r\n\r\nhello!", None),
    ],
)
def test_silence_cuts_only_what_was_not_known_to_be_complete(
    data: bytes, truncated: Truncation | None
) -> None:
    assert Read(data, end=False).reader.give_up() is truncated


def test_reading_that_is_stopped_in_the_head_keeps_what_came_of_it() -> None:
    read = Read(OK + b"X-Drip: a", end=False)
    read.reader.stop()
    assert (read.reader.head, read.reader.section is not None) == (OK + b"X-Drip: a", True)


@pytest.mark.parametrize(
    "line", [b"HTTPER/1.1 200 OK\r\n\r\n", b"https://example.org/\n\nmore", b"icy\r\n\r\n"]
)
def test_text_that_only_begins_like_a_status_line_is_a_body(line: bytes) -> None:
    read = Read(line)
    assert (read.head, read.body, read.status) == (b"", line, 200)


def test_a_head_that_drips_in_is_read_in_one_pass() -> None:
    """Searching from the start with every byte would take hours here."""
    data = OK + b"X: y\r\n" * 40_000 + b"\r\n"
    assert Read(*bytewise(data)).head == data
    assert Read(*bytewise(b"\r\n" * 100_000 + OK + b"\r\n")).status == 200


def test_a_response_to_head_has_no_body() -> None:
    assert Read(OK + b"Content-Length: 5\r\n\r\n", method="HEAD").more is More.NONE


CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def read_until_cut(piece: bytes, *, most: int) -> Read:
    """Read *piece* again and again, up to *most* bytes."""
    reader = ResponseReader("GET", max_header=1 << 16, max_body=most, **IN_MEMORY)
    reader.feed(CHUNKED_HEAD)
    while reader.feed(piece) is not More.CUT:
        pass
    read = Read(CHUNKED_HEAD, end=False)
    read.reader, read.body = reader, b"".join(reader.body().blocks())
    return read


def test_a_body_of_absurdly_many_tiny_chunks_is_cut_long_before_the_cap() -> None:
    read = read_until_cut(b"1\r\nx\r\n" * 1000, most=1 << 26)
    assert len(read.body) < 1 << 20
    assert read.reader.payload_digest is not None
    assert read.reader.payload_digest[1] >= 100_000


@pytest.mark.parametrize("line", [b"1;name=value\r\nx\r\n", b"1\nx\n"])
def test_extensions_and_bare_line_ends_do_not_pay_for_tiny_chunks(line: bytes) -> None:
    assert len(read_until_cut(line * 1000, most=1 << 26).body) < 4 << 20


def test_small_chunks_of_an_honest_server_are_not_cut() -> None:
    chunk = b"50\r\n" + b"x" * 0x50 + b"\r\n"
    assert len(read_until_cut(chunk * 1000, most=1 << 24).body) == 1 << 24


def test_endless_trailers_are_cut() -> None:
    reader = ResponseReader("GET", max_header=1 << 16, max_body=1 << 26, **IN_MEMORY)
    reader.feed(CHUNKED_HEAD + b"0\r\n")
    fed = 0
    while reader.feed(b"X: y\r\n" * 1000) is not More.CUT:
        fed += 6000
    assert fed <= 1 << 16


@given(chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=12), cuts=CUTS)
def test_the_digest_of_a_chunked_payload_is_taken_as_it_comes(
    chunks: list[bytes], cuts: list[int]
) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nX: y\r\n\r\n"
    read = Read(*split(CHUNKED_HEAD + body, cuts))
    payload = b"".join(chunks)
    assert read.more is More.NONE
    assert read.reader.payload_digest == (hashlib.sha1(payload).hexdigest(), len(payload))
