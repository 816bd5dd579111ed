"""The short ways of reading take what is written as usual, and find what the long ways find."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index.archive_files import http, packed, unexpected, warc

from amicrawl.message import header_fields
from amicrawl.reading.flow import FoundRecord
from amicrawl.reading.framing import USUAL_GROUPS, USUAL_HEAD, usual_fields, warc_head
from amicrawl.reading.records import RECORD_TYPES, Record, records_of

PIECES = [
    *(
        "WARC-Type",
        "warc-type",
        "X-Own",
        ":",
        ": ",
        ":  ",
        " ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\x0b",
        "\x85",
    ),
    *("\u2028", "é", "v", "", "Content-Length: 5", "WARC-Date: 2024"),
]


def by_the_long_way(raw: bytes) -> dict[str, str]:
    """Return the fields as the way reads them that takes nothing for granted."""
    head = warc_head(raw.replace(b"WARC/1.0\r\n", b"WARC/1.0 \r\n", 1))
    assert head is not None
    return head.fields


@pytest.mark.slow
@given(lines=st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), max_size=5))
def test_a_usual_header_has_the_fields_that_any_header_has(lines: list[str]) -> None:
    raw = "\r\n".join(["WARC/1.0", *lines, "", ""]).encode()
    found = usual_fields(raw)
    if found is not None:
        assert found == by_the_long_way(raw)


@pytest.mark.parametrize(
    "line",
    [
        "warc-date: 1\r\nWARC-Date: 2",
        "WARC-Date : 1",
        "WARC-Date:  1",
        "WARC-Date: 1 ",
        "WARC-Date: 1\r\n 2",
        "WARC-Date: 1\n2: 3",
        "no field",
    ],
)
def test_a_header_with_anything_odd_takes_the_long_way(line: str) -> None:
    assert usual_fields(f"WARC/1.0\r\n{line}\r\n\r\n".encode()) is None


def test_a_header_whose_blank_line_ends_in_lf_alone_has_all_its_fields() -> None:
    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 5\r\n\n"
    (record,) = records_of(io.BytesIO(head + b"hello\r\n\r\n"), Path("x"), on_broken=unexpected)
    assert (record.block, record.fields["content-length"]) == (b"hello", "5")


def test_fields_that_a_writer_has_of_its_own_are_usual_too() -> None:
    raw = b"WARC/1.1\r\nWARC-Type: response\r\nX-Writers-Own: \xc3\xa9\r\n\r\n"
    assert usual_fields(raw) == {"warc-type": "response", "x-writers-own": "é"}


COUNTED = ["WARC-Type", "WARC-Date", "WARC-Target-URI", "WARC-Payload-Digest", "Content-Type"]
LINES = [
    *(
        f"{name}:{value}"
        for name in COUNTED
        for value in (" response", " a b", "v", "  \xa0v ", " \u00e9")
    ),
    *("warc-type: request", "WARC-TYPE: request", "warc-date: 1", "content-type : a", "WARC-Type : x"),
    *(" folded", "", "no field", "WARC-Type: resource", "WARC-Date: 2\r", "WARC-Date: 2\nWARC-Type: a"),
    *("X-Own: v", "3X: v", "Warc-Types: no", "WARC-Types: no", "Content-Typed: no", "WARC-Type", ":"),
    *("Content-Length: 7", "content-length: 3", "CONTENT-LENGTH: 3"),
]


@pytest.mark.slow
@given(lines=st.lists(st.sampled_from(LINES), max_size=6), is_whole=st.booleans())
def test_what_is_taken_of_a_usual_header_is_what_any_header_has(
    lines: list[str], *, is_whole: bool
) -> None:
    raw = "\r\n".join(["WARC/1.0", *lines, "Content-Length: 5" if is_whole else "", "", ""]).encode()
    if (usual := USUAL_HEAD.match(raw)) is None:
        return
    record = Record(Path("x"), FoundRecord(0, 0, raw, "", None, b"", 0, 0, usual=usual))
    listed = by_the_long_way(raw[: usual.end()])
    assert {name: record.field(name, "none") for name in USUAL_GROUPS} == {
        name: listed.get(name, "none") for name in USUAL_GROUPS
    }
    kind = listed.get("warc-type", "").lower()
    assert record.type == (kind if kind in RECORD_TYPES else "unknown")


def read(block: bytes, path: Path = Path("x.warc")) -> Record:
    (record,) = records_of(io.BytesIO(warc("response", block=block)), path, on_broken=unexpected)
    return record


HTTP_PIECES = [
    *(
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 404\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 2000 X\r\n",
    ),
    *(
        b"Content-Type: text/html\r\n",
        b"content-type : a\r\n",
        b"X-Content-Type: no\r\n",
    ),
    *(b"Content-Typed: no\r\n", b"\r\n", b"\n", b"body\nContent-Type: none\r\n", b"Content-Type:\r\n"),
]


@pytest.mark.slow
@given(block=st.lists(st.sampled_from(HTTP_PIECES), max_size=6).map(b"".join))
def test_a_field_of_an_http_header_is_the_first_of_its_name(block: bytes) -> None:
    record = read(b"HTTP/1.1 200 OK\r\n" + block)
    listed = [
        value for name, value in header_fields(record.http_head) if name.lower() == b"content-type"
    ]
    assert record.http_field(b"content-type") == (listed[0] if listed else None)


def test_of_two_types_and_two_lengths_the_first_counts_however_it_is_written() -> None:
    record = warc("response", block=b"12345", content_length="7")
    twice = record.replace(b"WARC-Date", b"warc-TYPE: request\r\nWARC-Date")
    for stored in (twice, packed([twice])):
        (found,) = records_of(io.BytesIO(stored), Path("x.warc"), on_broken=unexpected)
        assert (found.type, found.fields["warc-type"], found.block) == ("response", "response", b"12345")


def test_the_status_is_that_of_the_final_response() -> None:
    record = read(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + http(b"body", Content_Type="a/b"))
    assert (record.http_status, record.body) == (200, b"body")
