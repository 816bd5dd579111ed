"""HTTP/1 messages as bytes: what is read of them, and that odd ones cost no more than others."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.message import (
    ChunkReader,
    end_of_head,
    final_head,
    header_fields,
    is_chunked,
    payload_blocks,
    status_of,
    unchunk,
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def chunked(pieces: list[bytes], *, end: bytes = b"\r\n") -> bytes:
    return (
        b"".join(b"%x%b%b%b" % (len(piece), end, piece, end) for piece in pieces if piece)
        + b"0"
        + end
        + end
    )


CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=12)


@given(
    pieces=st.lists(st.binary(max_size=60), max_size=8), cuts=CUTS, end=st.sampled_from([b"\r\n", b"\n"])
)
def test_a_chunked_body_gives_its_data_however_it_is_cut_up(
    pieces: list[bytes], cuts: list[int], end: bytes
) -> None:
    blocks = split(chunked(pieces, end=end), cuts)
    assert b"".join(unchunk(blocks)) == b"".join(pieces)


@given(data=st.binary(max_size=200), cuts=CUTS)
def test_what_is_read_of_any_bytes_does_not_depend_on_how_they_are_cut_up(
    data: bytes, cuts: list[int]
) -> None:
    assert b"".join(unchunk(split(data, cuts))) == b"".join(unchunk([data]))


@given(
    pieces=st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=5),
    surplus=st.binary(max_size=9),
)
def test_what_follows_the_last_chunk_is_surplus(pieces: list[bytes], surplus: bytes) -> None:
    reader = ChunkReader()
    assert b"".join(reader.feed(chunked(pieces) + surplus)) == b"".join(pieces)
    assert (reader.done, reader.surplus, reader.broken, reader.lax) == (True, len(surplus), False, False)


@pytest.mark.parametrize("cut", range(len(chunked([b"hello", b" world"])) - 2))
def test_a_cut_body_yields_what_came_and_is_not_done(cut: int) -> None:
    reader = ChunkReader()
    data = b"".join(reader.feed(chunked([b"hello", b" world"])[:cut]))
    assert b"hello world".startswith(data)
    assert not reader.done


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"5\r\nhello\r\nxyz\r\nworld", b"helloxyz\r\nworld"),
        (b"-5\r\nhello", b"-5\r\nhello"),
        (b"\r\n5\r\nhello", b"\r\n5\r\nhello"),
        (b"x" * 5000, b"x" * 5000),
        (b'{"a": 1}', b'{"a": 1}'),
        (b"5\r\nhello\r\nworld", b"helloworld"),
        # What a size begins with may be one that was cut.
        (b"5\r\nhello\r\n1f; na", b"hello"),
        (b"5;" + b"x" * 5000 + b"\r\nhello", b"5;" + b"x" * 5000 + b"\r\nhello"),
    ],
)
def test_from_a_bad_chunk_size_on_the_rest_comes_as_it_stands(body: bytes, data: bytes) -> None:
    assert b"".join(unchunk([body])) == data
    assert b"".join(unchunk([body[i : i + 1] for i in range(len(body))])) == data


@pytest.mark.parametrize(
    "body",
    [
        b"5;name=value\r\nhello\r\n0;last\r\nX-Trailer: 1\r\n\r\n",
        b"5  \r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"005\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\n0\n\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\r0\r\n\r\n",
        b"5\r\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_odd_chunks_that_can_be_read_are_read(body: bytes) -> None:
    reader = ChunkReader()
    assert b"".join(reader.feed(body)) == b"hello"
    assert reader.done


@pytest.mark.parametrize(
    "body", [b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello0\r\n\r\n"]
)
def test_a_line_end_that_is_not_crlf_is_put_up_with_and_noted(body: bytes) -> None:
    reader = ChunkReader()
    reader.feed(body)
    assert reader.lax


@pytest.mark.slow
def test_a_million_tiny_chunks_are_read_in_one_pass() -> None:
    """Copying the rest of the block for every chunk would take hours here."""
    body = b"1\r\na\r\n" * 1_000_000 + b"0\r\n\r\n"
    assert sum(map(len, unchunk([body]))) == 1_000_000


@pytest.mark.slow
def test_a_body_fed_byte_by_byte_is_read_in_one_pass() -> None:
    body = b"1\r\na\r\n" * 20_000 + b"0\r\n" + b"X-Trailer: value\r\n" * 5_000 + b"\r\n"
    reader = ChunkReader()
    assert sum(len(piece) for i in range(len(body)) for piece in reader.feed(body[i : i + 1])) == 20_000
    assert reader.done


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HTTP/1.1 200 OK", 200),
        (b"HTTP/1.1 404", 404),
        (b"http/1.1 200 ok", 200),
        (b"\r\n\r\nHTTP/1.1 200 OK", 200),
        (b"HTTP/1.1\t200 OK", 200),
        (b"ICY 200 OK", 200),
        (b"HTTP 200 OK", 200),
        (b"HTTP/1.1 999 Denied", 999),
        (b"HTTP/1.1 1000 Too many", None),
        (b"HTTP/1.1 99 Too few", None),
        (b"HTTP/1.1", None),
        (b"HTTPER/1.1 200 OK", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_the_status_is_read_where_there_is_one(line: bytes, status: int | None) -> None:
    assert status_of(line + b"\r\n\r\n") == status


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"a\r\n\r\nb", 5),
        (b"a\n\nb", 3),
        (b"a\n\r\nb", 4),
        (b"a\r\n\nb", 4),
        (b"a\n\n\r\n", 3),
        (b"a\r\n\r\n\n\n", 5),
        (b"a\r\n", None),
        (b"", None),
    ],
)
def test_a_head_ends_with_the_first_blank_line(data: bytes, end: int | None) -> None:
    assert end_of_head(data) == end


def test_interim_responses_are_not_the_final_head() -> None:
    final = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\n\n"
    assert final_head(interim + final) == final
    assert final_head(b"\r\n" + interim + final) == final
    assert header_fields(interim + final) == [(b"A", b"b")]


def test_switching_protocols_is_final() -> None:
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
    assert final_head(head) == head


def test_fields_keep_order_case_and_repeats() -> None:
    head = b"HTTP/1.1 200 OK\r\nX-b:1\r\nx-B: 2 \r\nset-cookie: a\r\nSet-Cookie:\tb\r\n\r\n"
    assert header_fields(head) == [
        (b"X-b", b"1"),
        (b"x-B", b"2"),
        (b"set-cookie", b"a"),
        (b"Set-Cookie", b"b"),
    ]


def test_odd_header_lines_are_read_as_far_as_they_make_sense() -> None:
    head = (
        b"HTTP/1.1 200 OK\n folded first: x\nA : 1\nno colon\n: no name\nB: one\r\n two\n\t\n  three\n\n"
    )
    assert header_fields(head) == [(b"folded first", b"x"), (b"A", b"1"), (b"B", b"one two three")]


@pytest.mark.slow
def test_many_folded_lines_and_interim_responses_are_read_in_one_pass() -> None:
    """Joining line by line, or copying the rest for each response, would take minutes here."""
    folded = b"HTTP/1.1 200 OK\r\nA: b\r\n" + b" c\r\n" * 500_000 + b"\r\n"
    assert len(header_fields(folded)[0][1]) == 1 + 2 * 500_000
    interim = b"HTTP/1.1 100 C\r\n\r\n" * 200_000
    assert final_head(interim + b"HTTP/1.1 200 OK\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"chunked"], True),
        ([b"Chunked "], True),
        ([b"identity, chunked"], True),
        ([b"gzip", b"chunked"], True),
        ([b"chunked, identity"], False),
        ([b"chunked", b"identity"], False),
        ([b"chunkedchunked"], False),
        ([b""], False),
        ([], False),
    ],
)
def test_only_a_last_coding_of_chunked_counts(values: list[bytes], expected: bool) -> None:
    assert is_chunked([(b"transfer-ENCODING", value) for value in values]) is expected


def test_a_payload_is_the_body_without_its_transfer_coding() -> None:
    body = [b"5\r\nhel", b"lo\r\n0\r\n\r\n"]
    assert b"".join(payload_blocks([(b"Transfer-Encoding", b"chunked")], body)) == b"hello"
    assert list(payload_blocks([], body)) == body


def test_chunks_of_a_few_bytes_are_not_kept_one_by_one() -> None:
    chunk, count = b"2\r\nxy\r\n", 500_000
    pieces = list(unchunk([chunk * count + b"0\r\n\r\n"]))
    assert len(pieces) == 4, "one for each MiB: half a million objects take ten times what is in them"
    assert b"".join(pieces) == b"xy" * count
