"""The records of an exchange: which fields they have, and how they refer to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from record.exchanges import BEGAN, HEAD, NOT_MODIFIED, REQUEST, capture, numbered_bytes

from amicrawl.capture import Tls, Truncation
from amicrawl.clock import warc_date
from amicrawl.record.deduplication import (
    Original,
    Profile,
    RevisitDecision,
    block_digest,
    digests_of,
)
from amicrawl.record.warc import (
    URI_LIMIT,
    RecordType,
    Resource,
    exchange_records,
    pieces_of,
    record_ids,
    resource_records,
    warcinfo_record,
)

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.record.warc import Record

STORE = RevisitDecision("", unchanged=False)


def encoded(record: Record) -> bytes:
    """Return *record* as it is in an uncompressed WARC file."""
    return b"".join(pieces_of(record))


def records_of(made: Capture, decision: RevisitDecision = STORE) -> list[Record]:
    return exchange_records(made, digests_of(made), decision=decision, ids=record_ids(numbered_bytes()))


def fields(record: Record) -> list[tuple[str, str]]:
    lines = [line.partition(": ") for line in record.lines.split("\r\n")[:-1]]
    return [(name, value) for name, _, value in lines]


def values(record: Record, name: str) -> list[str]:
    return [value for field, value in fields(record) if field == name]


def test_the_request_comes_first_and_both_name_each_other() -> None:
    request, response = records_of(capture())
    assert (request.type, response.type) == (RecordType.REQUEST, RecordType.RESPONSE)
    assert values(request, "WARC-Concurrent-To") == [response.record_id]
    assert values(response, "WARC-Concurrent-To") == [request.record_id]
    assert request.record_id != response.record_id


def test_both_records_hold_messages_of_http() -> None:
    for record, kind in zip(records_of(capture()), ("request", "response"), strict=True):
        assert values(record, "Content-Type") == [f"application/http;msgtype={kind}"]


def test_blocks_are_the_bytes_of_the_wire() -> None:
    request, response = records_of(capture(head=b"hTtP/1.1 200\nX:  y\n\n", body=b"\0\r\n"))
    assert request.lead == REQUEST
    assert encoded(response).endswith(b"\r\n\r\nhTtP/1.1 200\nX:  y\n\n\0\r\n\r\n\r\n")


def test_both_records_are_dated_at_the_start_of_the_request() -> None:
    assert {record.date for record in records_of(capture(duration_ms=5000))} == {warc_date(BEGAN)}


def test_a_capture_whose_request_is_not_known_has_a_response_alone() -> None:
    [response] = records_of(capture(request=b""))
    assert response.type is RecordType.RESPONSE
    assert values(response, "WARC-Concurrent-To") == []


def test_both_records_say_what_the_certificate_lacked_and_nothing_of_one_that_is_trusted() -> None:
    for tls, said in (
        (
            Tls("tls/1.3", "TLS_AES_128_GCM_SHA256", verified=False, fault="cert has expired"),
            ["cert has expired"],
        ),
        (Tls("tls/1.3", "TLS_AES_128_GCM_SHA256", verified=True), []),
        (None, []),
    ):
        for record in records_of(capture(tls=tls)):
            assert values(record, "WARC-TLS-Fault") == said


def test_the_protocols_are_named_from_the_upper_to_the_lower() -> None:
    tls = Tls("tls/1.3", "TLS_AES_128_GCM_SHA256", verified=True)
    for record in records_of(capture(protocol="h2", tls=tls)):
        assert values(record, "WARC-Protocol") == ["h2", "tls/1.3"]
        assert values(record, "WARC-Cipher-Suite") == ["TLS_AES_128_GCM_SHA256"]


@pytest.mark.parametrize("cipher", ["", "ECDHE-RSA-AES128-GCM-SHA256"])
def test_a_cipher_that_is_not_named_as_the_registry_does_is_left_out(cipher: str) -> None:
    for record in records_of(capture(tls=Tls("tls/1.2", cipher, verified=True))):
        assert values(record, "WARC-Cipher-Suite") == []


def test_what_is_not_known_has_no_field() -> None:
    _, response = records_of(capture(ip_address=None, protocol=None))
    assert [name for name, _ in fields(response)] == [
        "WARC-Target-URI",
        "WARC-Concurrent-To",
        "WARC-Payload-Digest",
        "WARC-Block-Digest",
        "Content-Type",
    ]


def test_a_cut_response_says_why() -> None:
    request, response = records_of(capture(truncated=Truncation.DISCONNECT))
    assert values(response, "WARC-Truncated") == ["disconnect"]
    assert values(request, "WARC-Truncated") == []


def test_a_response_that_was_rebuilt_says_by_whom() -> None:
    for record in records_of(capture(reconstructed_by="scrapy.core.Handler")):
        assert values(record, "WARC-Reconstructed-By") == ["scrapy.core.Handler"]


def test_an_identical_payload_leaves_the_head_and_points_at_its_original() -> None:
    original = Original("http://o.example/ü", 1767225600001, "sha1:ABC", "<urn:uuid:1>")
    decision = RevisitDecision("", unchanged=True, profile=Profile.IDENTICAL, original=original)
    _, revisit = records_of(capture(), decision)
    assert revisit.type is RecordType.REVISIT
    assert (revisit.lead, revisit.body) == (HEAD, None)
    assert dict(fields(revisit)) | {"WARC-Concurrent-To": ""} == {
        "WARC-Target-URI": "http://example.org/",
        "WARC-IP-Address": "192.0.2.7",
        "WARC-Protocol": "http/1.1",
        "WARC-Concurrent-To": "",
        "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
        "WARC-Refers-To": "<urn:uuid:1>",
        "WARC-Refers-To-Target-URI": "http://o.example/%C3%BC",
        "WARC-Refers-To-Date": "2026-01-01T00:00:00.001Z",
        "WARC-Payload-Digest": "sha1:ABC",
        "WARC-Truncated": "length",
        "WARC-Block-Digest": block_digest(HEAD),
        "Content-Type": "application/http;msgtype=response",
    }


def test_a_304_is_kept_as_received_and_is_not_called_truncated() -> None:
    decision = RevisitDecision(
        "", unchanged=True, profile=Profile.NOT_MODIFIED, original=Original("http://o/")
    )
    made = capture(head=NOT_MODIFIED, status=304, body=b"surplus")
    _, revisit = records_of(made, decision)
    assert encoded(revisit).endswith(NOT_MODIFIED + b"surplus\r\n\r\n")
    assert values(revisit, "WARC-Truncated") == []
    assert values(revisit, "WARC-Profile") == [
        "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    ]
    assert values(revisit, "WARC-Block-Digest") == [block_digest(NOT_MODIFIED + b"surplus")]
    assert values(revisit, "WARC-Refers-To-Date") == []
    assert values(revisit, "WARC-Payload-Digest") == []


def test_an_original_with_an_overlong_url_is_named_by_date_and_digest() -> None:
    original = Original("http://o/" + "x" * URI_LIMIT, 1, "sha1:ABC")
    decision = RevisitDecision("", unchanged=False, profile=Profile.IDENTICAL, original=original)
    _, revisit = records_of(capture(), decision)
    assert values(revisit, "WARC-Refers-To-Target-URI") == []
    assert values(revisit, "WARC-Refers-To-Date") == ["1970-01-01T00:00:00.001Z"]


def test_an_original_with_the_longest_url_is_named_by_it() -> None:
    url = "http://o/" + "x" * (URI_LIMIT - 9)
    decision = RevisitDecision("", unchanged=False, profile=Profile.IDENTICAL, original=Original(url))
    _, revisit = records_of(capture(), decision)
    assert values(revisit, "WARC-Refers-To-Target-URI") == [url]


def test_a_resource_that_a_record_cannot_name_is_left_out_and_the_others_stay() -> None:
    url = "http://o/" + "x" * (URI_LIMIT - 9 - len("urn:text:"))
    made = [Resource("urn:view:", "image/png", b"1"), Resource("urn:thumbnail:", "image/png", b"2")]
    records = resource_records(records_of(capture(url)), made, ids=record_ids(numbered_bytes()), url=url)
    assert [values(record, "WARC-Target-URI") for record in records] == [[f"urn:view:{url}"]]


def test_warcinfo_has_the_fields_that_a_record_must_have() -> None:
    record = warcinfo_record("ami-00000.warc.gz", {}, date=BEGAN, record_id="<urn:uuid:1>")
    assert encoded(record).startswith(
        b"WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
        + f"WARC-Date: {warc_date(BEGAN)}\r\n".encode()
    )
    assert values(record, "WARC-Block-Digest") == [block_digest(b"")]


def test_warcinfo_names_the_file_and_keeps_each_value_on_its_line() -> None:
    said = {"software": "amicrawl/1", "operator": "A\r\nforged: B\u2028\ud800"}
    record = warcinfo_record("ami-00000.warc.gz", said, date=BEGAN, record_id="<urn:uuid:1>")
    assert record.lead == b"software: amicrawl/1\r\noperator: A  forged: B  \r\n"
    assert ("WARC-Filename", "ami-00000.warc.gz") in fields(record)
    assert ("Content-Type", "application/warc-fields") in fields(record)
    assert values(record, "WARC-Target-URI") == []
