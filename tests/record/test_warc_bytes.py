"""Records as bytes: pinned, read back by others, and impossible to forge."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from record.exchanges import BEGAN, numbered_bytes
from warcio.archiveiterator import ArchiveIterator

from amicrawl.capture import BytesBody
from amicrawl.clock import from_unix_ms, unix_ms, warc_date
from amicrawl.errors import AmicrawlError
from amicrawl.record.warc import (
    Record,
    RecordType,
    field_lines,
    gzip_member,
    pieces_of,
    record_ids,
    target_uri,
    write_gzip_member,
)

DATE = "2026-01-01T12:00:00.123Z"
ID = "<urn:uuid:00000000-0000-4000-8000-000000000000>"


def encoded(record: Record) -> bytes:
    """Return *record* as it is in an uncompressed WARC file."""
    return b"".join(pieces_of(record))


def record(lead: bytes = b"HTTP/1.1 200 OK\r\n\r\n", body: bytes = b"hello", **fields: str) -> Record:
    named = [(name.replace("_", "-"), value) for name, value in fields.items()]
    return Record(RecordType.RESPONSE, ID, DATE, field_lines(named), lead, BytesBody(body))


def read_back(raw: bytes) -> list[tuple[str, list[tuple[str, str]], bytes]]:
    entries: Any = ArchiveIterator(io.BytesIO(raw), no_record_parse=True)
    return [(entry.rec_type, entry.rec_headers.headers, entry.raw_stream.read()) for entry in entries]


def test_the_bytes_of_a_record_are_pinned() -> None:
    """Archives are kept for decades: what is written today must be what was written yesterday."""
    assert encoded(record(WARC_Target_URI="http://example.org/")) == (
        b"WARC/1.1\r\n"
        b"WARC-Type: response\r\n"
        b"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
        b"WARC-Date: 2026-01-01T12:00:00.123Z\r\n"
        b"WARC-Target-URI: http://example.org/\r\n"
        b"Content-Length: 24\r\n"
        b"\r\n"
        b"HTTP/1.1 200 OK\r\n\r\nhello"
        b"\r\n\r\n"
    )


def test_a_member_is_gzip_without_name_or_time() -> None:
    member = gzip_member(record())
    assert member[:4] == b"\x1f\x8b\x08\x00"
    assert member[4:8] == b"\0\0\0\0"
    assert gzip.decompress(member) == encoded(record())


@given(st.binary(max_size=200_000), st.binary(max_size=3000))
def test_a_member_written_piece_by_piece_inflates_to_the_same_record(body: bytes, lead: bytes) -> None:
    pieces: list[bytes] = []
    length = write_gzip_member(record(lead, body), pieces.append)
    member = b"".join(pieces)
    assert length == len(member)
    inflater = zlib.decompressobj(31)
    assert inflater.decompress(member) == encoded(record(lead, body))
    assert inflater.eof
    assert not inflater.unused_data


@given(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn", "Cf", "Co", "Zs"]), min_size=1
    ),
    st.binary(max_size=400),
    st.binary(max_size=400),
)
@example("ü", b"WARC/1.1\r\nWARC-Type: response\r\n\r\n", b"\r\n\r\nWARC/1.1\r\n")
def test_a_record_reads_back_as_written(value: str, lead: bytes, body: bytes) -> None:
    [(kind, fields, block)] = read_back(gzip_member(record(lead, body, X_Field=value)))
    assert kind == "response"
    assert dict(fields)["X-Field"] == value
    assert block == lead + body


@pytest.mark.parametrize("code", [*range(32), 127, 0x85, 0x2028, 0x2029, 0xD800, 0xDFFF])
def test_a_value_with_a_control_character_is_refused(code: int) -> None:
    with pytest.raises(AmicrawlError, match="X-Field"):
        encoded(record(X_Field=f"a{chr(code)}b"))


@given(st.text())
@example("http://h/\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n")
@example("http://h/\ud800\u2028\x85 <>")
def test_no_url_can_leave_its_line(url: str) -> None:
    uri = target_uri(url)
    assert re.fullmatch(r"[!-~]*", uri)
    [(_, fields, _)] = read_back(encoded(record(WARC_Target_URI=f"x:{uri}", X_Last="last")))
    assert [name for name, _ in fields] == [
        "WARC-Type",
        "WARC-Record-ID",
        "WARC-Date",
        "WARC-Target-URI",
        "X-Last",
        "Content-Length",
    ]


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126)))
def test_an_encoded_url_stands_as_it_is(url: str) -> None:
    assert target_uri(url) == url


def test_a_url_is_encoded_as_utf8() -> None:
    assert target_uri("http://h/ü ?") == "http://h/%C3%BC%20?"
    assert target_uri("http://h/a b") == "http://h/a%20b"


def test_dates_have_milliseconds_and_are_utc() -> None:
    assert warc_date(BEGAN) == DATE
    assert (
        warc_date(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))))
        == "2025-12-31T22:00:00.000Z"
    )


@given(st.integers(min_value=-(10**13), max_value=253_402_300_799_999))
def test_milliseconds_survive_the_way_to_a_moment_and_back(milliseconds: int) -> None:
    assert unix_ms(from_unix_ms(milliseconds)) == milliseconds
    assert from_unix_ms(milliseconds).tzinfo is UTC


def test_milliseconds_are_whole_and_what_is_below_them_is_cut_off() -> None:
    milliseconds = unix_ms(BEGAN + timedelta(microseconds=999))
    assert (milliseconds, type(milliseconds)) == (unix_ms(BEGAN), int)


def test_record_ids_are_version_4_uuids_and_differ_over_batches() -> None:
    ids = record_ids(numbered_bytes(), batch=8)
    made = [ids() for _ in range(100)]
    assert len(set(made)) == 100
    pattern = r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>"
    assert all(re.fullmatch(pattern, made_id) for made_id in made)
