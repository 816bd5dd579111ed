"""The row of a capture: thirteen columns that others know, sixteen of ours, and what each says when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record.exchanges import BEGAN, HEAD, NOT_MODIFIED, capture, failed, item

from amicrawl.capture import Failure, Tls, Truncation
from amicrawl.clock import unix_ms
from amicrawl.record import CAPTURES, CaptureItem
from amicrawl.record.captures import ERROR_LIMIT, VALIDATOR_LIMIT, header_text, host_of, row_of
from amicrawl.record.writer import RecordLocation
from amicrawl.seed import Seed


def stored(**changes: Any) -> CaptureItem:
    """Return an item as the WARC stage leaves it."""
    made = item(capture(**changes), Seed("http://example.org/", meta_json='{"a":"b"}'))
    made.location = RecordLocation("ami-00003.warc.gz", 70, 30)
    made.record_id, made.digest, made.body_length = "<urn:uuid:1>", "ab" * 20, 12
    return made


def test_names_and_types_of_the_columns_are_pinned() -> None:
    """The first thirteen are those of the tool whose index this is; every reader relies on them."""
    assert [(field.name, str(field.type)) for field in CAPTURES] == [
        ("url", "string"),
        ("host", "string"),
        ("status", "int32"),
        ("fetched_at", "int64"),
        ("content_type", "string"),
        ("body_length", "int64"),
        ("digest", "string"),
        ("unchanged", "bool"),
        ("warc_file", "string"),
        ("warc_offset", "int64"),
        ("warc_length", "int64"),
        ("error", "string"),
        ("meta_json", "string"),
        ("etag", "string"),
        ("last_modified", "string"),
        ("final_url", "string"),
        ("ip_address", "string"),
        ("protocol", "string"),
        ("ttfb_ms", "int32"),
        ("duration_ms", "int32"),
        ("truncated", "string"),
        ("record_id", "string"),
        ("attempts", "int32"),
        ("payload_digest", "string"),
        ("original_url", "string"),
        ("original_at", "int64"),
        ("via", "string"),
        ("link", "string"),
        ("hops", "int32"),
        ("page", "string"),
        ("resource_type", "string"),
    ]
    assert [field.name for field in CAPTURES if field.nullable] == ["ttfb_ms"]


def test_the_row_of_a_success() -> None:
    assert row_of(stored()) == {
        "url": "http://example.org/",
        "host": "example.org",
        "status": 200,
        "fetched_at": unix_ms(BEGAN) + 77,
        "content_type": "text/html",
        "body_length": 12,
        "digest": "ab" * 20,
        "unchanged": False,
        "warc_file": "ami-00003.warc.gz",
        "warc_offset": 70,
        "warc_length": 30,
        "error": "",
        "meta_json": '{"a":"b"}',
        "etag": '"v1"',
        "last_modified": "",
        "final_url": "http://example.org/",
        "ip_address": "192.0.2.7",
        "protocol": "http/1.1",
        "ttfb_ms": 30,
        "duration_ms": 77,
        "truncated": "",
        "record_id": "<urn:uuid:1>",
        "attempts": 1,
        "payload_digest": "",
        "original_url": "",
        "original_at": 0,
        "via": "",
        "link": "seed",
        "hops": 0,
        "page": "",
        "resource_type": "",
    }


def test_the_row_of_a_requisite_names_the_page_that_loaded_it() -> None:
    row = row_of(item(page="http://h/\x1b[0m", resource_type="script"))
    assert (row["page"], row["resource_type"]) == ("http://h/%1B[0m", "script")


def test_the_row_of_a_failure_points_nowhere_and_says_why() -> None:
    row = row_of(item(failed("http://h/"), attempts=4))
    assert (row["status"], row["warc_file"], row["warc_offset"], row["warc_length"]) == (0, "", 0, 0)
    assert row["error"] == "connection-refused: Failed to connect"
    assert (row["digest"], row["body_length"], row["record_id"], row["final_url"]) == ("", 0, "", "")
    assert (row["ttfb_ms"], row["attempts"], row["fetched_at"]) == (None, 4, unix_ms(BEGAN) + 5)


@pytest.mark.parametrize(
    ("failure", "detail", "error"),
    [
        (Failure.NAME_NOT_FOUND, "", "name-not-found"),
        (None, "", "other"),
        (Failure.OTHER, "a\r\n\x1b[31mb\x85", "other: a [31mb"),
        (Failure.OTHER, "x" * 10_000, "other: " + "x" * (ERROR_LIMIT - 7)),
    ],
)
def test_an_error_is_one_line_of_bounded_length(
    failure: Failure | None, detail: str, error: str
) -> None:
    assert row_of(item(failed(failure=failure, failure_detail=detail)))["error"] == error


def test_a_redirect_says_where_it_points() -> None:
    made = stored(status=301)
    made.final_url = "http://example.org/there"
    assert row_of(made)["final_url"] == "http://example.org/there"


def test_what_a_304_does_not_name_again_is_the_seeds() -> None:
    made = stored(status=304, head=NOT_MODIFIED)
    made.unchanged = True
    made.seed = Seed(made.capture.url, etag='"old"', last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
    row = row_of(made)
    assert (row["etag"], row["last_modified"]) == ('"old"', "Wed, 21 Oct 2015 07:28:00 GMT")
    made.capture = capture(status=304, head=b'HTTP/1.1 304 Not Modified\r\netag: "new"\r\n\r\n')
    assert row_of(made)["etag"] == '"new"'


def test_a_200_takes_nothing_from_the_seed() -> None:
    made = stored(head=b"HTTP/1.1 200 OK\r\n\r\n")
    made.seed, made.unchanged = Seed(made.capture.url, etag='"old"'), True
    assert row_of(made)["etag"] == ""


def test_of_repeated_fields_the_first_that_says_something_counts() -> None:
    head = b"HTTP/1.1 200 OK\r\nCONTENT-TYPE:\r\ncontent-type: a/b\r\nContent-Type: c/d\r\n\r\n"
    assert row_of(stored(head=head))["content_type"] == "a/b"


@given(st.binary())
def test_header_text_has_no_control_characters_and_keeps_the_rest(value: bytes) -> None:
    kept = [byte for byte in value if not (byte < 32 or 127 <= byte < 160)]
    assert header_text(value) == "".join(map(chr, kept))


def test_a_cut_capture_says_why() -> None:
    assert row_of(stored(truncated=Truncation.TIME))["truncated"] == "time"


def test_an_http09_response_has_a_row_like_any_other() -> None:
    row = row_of(stored(head=b"", protocol="http/0.9"))
    assert (row["status"], row["content_type"], row["protocol"]) == (200, "", "http/0.9")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://Example.ORG/path", "example.org"),
        ("https://user:pa:ss@example.org:8443/?@x", "example.org"),
        ("http://[2001:DB8::1]:80/", "2001:db8::1"),
        ("http://[::1", "::1"),
        ("http://example.org", "example.org"),
        ("http://example.org?q=//a", "example.org"),
        ("http://example.org#@evil.example", "example.org"),
        ("http://example.org\\@evil.example/", "example.org"),
        ("http://:80/", ""),
        ("mailto:x@y", ""),
        ("", ""),
    ],
)
def test_the_host_is_that_of_the_url(url: str, host: str) -> None:
    assert host_of(url) == host


@given(st.text())
def test_any_text_has_a_host_or_none(url: str) -> None:
    assert "/" not in host_of(url)


def test_the_first_head_of_several_does_not_count() -> None:
    head = b"HTTP/1.1 103 Early Hints\r\nContent-Type: a/b\r\n\r\n" + HEAD
    assert row_of(stored(head=head))["content_type"] == "text/html"


@pytest.mark.parametrize(
    ("verified", "before", "after"),
    [
        (True, "", ""),
        (True, '{"a":"b"}', '{"a":"b"}'),
        (True, '{"a":"b","tls_fault":"cert has expired"}', '{"a":"b"}'),
        (True, '{"tls_fault":"cert has expired"}', ""),
        (True, '{"page_fault":"it did not load"}', ""),
        (False, "", '{"tls_fault":"self signed"}'),
        (False, '{"a":"b"}', '{"a":"b","tls_fault":"self signed"}'),
        (False, '{"tls_fault":"cert has expired"}', '{"tls_fault":"self signed"}'),
        (False, "no JSON", "no JSON"),
        (False, "[1]", "[1]"),
    ],
)
def test_the_row_says_what_the_certificate_of_this_crawl_lacked(
    verified: bool, before: str, after: str
) -> None:
    tls = Tls("tls/1.3", "", verified=verified, fault="" if verified else "self signed")
    made = item(capture(tls=tls), Seed("http://example.org/", meta_json=before))
    assert row_of(made)["meta_json"] == after


MODIFIED = "Wed, 21 Oct 2015 07:28:00 GMT"


def test_the_row_has_the_validators_that_the_response_names() -> None:
    head = f'HTTP/1.1 200 OK\r\nLast-Modified: {MODIFIED}\r\nETag: W/"2"\r\n\r\n'.encode()
    row = row_of(stored(head=head))
    assert (row["content_type"], row["etag"], row["last_modified"]) == ("", 'W/"2"', MODIFIED)


@pytest.mark.parametrize(("name", "column"), [("ETag", "etag"), ("Last-Modified", "last_modified")])
def test_a_validator_longer_than_any_honest_one_is_left_out(name: str, column: str) -> None:
    for length, kept in ((VALIDATOR_LIMIT, True), (VALIDATOR_LIMIT + 1, False)):
        row = row_of(stored(head=f"HTTP/1.1 200 OK\r\n{name}: {'x' * length}\r\n\r\n".encode()))
        assert row[column] == ("x" * length if kept else "")


def test_a_content_type_may_have_any_length() -> None:
    value = "a/" + "b" * VALIDATOR_LIMIT
    row = row_of(stored(head=f"HTTP/1.1 200 OK\r\nContent-Type: {value}\r\n\r\n".encode()))
    assert row["content_type"] == value


def test_an_address_and_a_protocol_that_are_not_known_are_empty() -> None:
    row = row_of(stored(ip_address=None, protocol=None))
    assert (row["ip_address"], row["protocol"]) == ("", "")


def test_a_time_beyond_the_column_is_the_largest_that_it_holds() -> None:
    row = row_of(stored(ttfb_ms=2**31, duration_ms=2**40))
    assert (row["ttfb_ms"], row["duration_ms"]) == (2**31 - 1, 2**31 - 1)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://example.org/ü", "http://example.org/ü"),
        ("http://example.org/\x1b[2Jü", "http://example.org/%1B[2J%C3%BC"),
    ],
)
def test_a_redirect_that_a_terminal_might_obey_is_encoded(target: str, said: str) -> None:
    made = stored(status=301)
    made.final_url = target
    assert row_of(made)["final_url"] == said


def test_a_certificate_that_was_not_trusted_for_no_known_reason_is_said_to_be() -> None:
    made = item(capture(tls=Tls("tls/1.3", "", verified=False)))
    assert row_of(made)["meta_json"] == '{"tls_fault":"not verified"}'
