"""Digests: what is hashed for the record, what for the index, and when readers could not agree."""

from __future__ import annotations

import hashlib
from base64 import b32encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record.exchanges import HEAD, REQUEST, capture

from amicrawl.record.deduplication import HEAD_LIMIT, digests_of, labels, payload_start


def label(content: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(content).digest()).decode()


@given(st.lists(st.binary(min_size=20, max_size=20), min_size=1, max_size=3))
def test_labels_are_base32_as_the_standard_library_has_it(digests: list[bytes]) -> None:
    assert labels(*digests) == ["sha1:" + b32encode(digest).decode() for digest in digests]


def test_an_ordinary_response_has_one_digest_for_record_and_index() -> None:
    digests = digests_of(capture(body=b"abc"))
    assert digests.request == label(REQUEST)
    assert digests.block == label(HEAD + b"abc")
    assert digests.wire_payload == label(b"abc")
    assert digests.payload == "a9993e364706816aba3e25717850c26c9cd0d89d"
    assert digests.payload_length == 3


def test_of_a_chunked_response_the_record_has_the_chunks_and_the_index_the_payload() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    digests = digests_of(capture(head=head, body=body))
    assert digests.wire_payload == label(body)
    assert digests.payload == hashlib.sha1(b"abc").hexdigest()
    assert digests.payload_length == 3


def test_behind_an_interim_response_the_record_has_the_final_head_too() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    digests = digests_of(capture(head=interim + HEAD, body=b"abc"))
    assert digests.wire_payload == label(HEAD + b"abc")
    assert digests.payload == hashlib.sha1(b"abc").hexdigest()


def test_an_empty_payload_has_the_digest_of_nothing() -> None:
    digests = digests_of(capture(body=b""))
    assert digests.payload == "da39a3ee5e6b4b0d3255bfef95601890afd80709"
    assert digests.payload_length == 0
    assert digests.wire_payload == label(b"")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\nA: b\n\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n",
        b"HTTP/1.1 200 OK\r\n \r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\xc2\xa0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\n\nA: b\r\n\r\n",
        b"ICY 200 OK\r\nA: b\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * HEAD_LIMIT + b"\r\n\r\n",
    ],
)
def test_a_head_on_whose_end_readers_differ_has_no_payload_digest(head: bytes) -> None:
    assert payload_start(head) is None
    assert digests_of(capture(head=head)).wire_payload is None
