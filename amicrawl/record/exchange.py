"""The records of one exchange, and the record that opens a file. Pure.

An exchange is a request record (where the bytes that were sent are known) and, right behind it, the
response or revisit record. Each names the other by `WARC-Concurrent-To`, so that a reader who was sent
to one of them finds the other, and both bear the moment the request began as `WARC-Date`.

The block of an identical-digest revisit is the response's head alone, which the standard wants marked
`WARC-Truncated: length`; that of a 304 is the 304 as received. Both carry the digest of the payload
they stand for where it is known, as 6.7.2 demands and replay needs; `fastwarc check -p`, which compares
it with the block, is wrong to call that a failure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from amicrawl.capture import NO_BODY
from amicrawl.record.digests import block_digest
from amicrawl.record.revisit import Profile
from amicrawl.record.warc import (
    URI_LIMIT,
    Record,
    RecordType,
    field_lines,
    from_unix_ms,
    target_uri,
    warc_date,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from amicrawl.capture import Capture, Tls
    from amicrawl.record.digests import Digests
    from amicrawl.record.revisit import Decision, Original
    from amicrawl.record.warc import RecordIds

    Fields = list[tuple[str, str]]

RECONSTRUCTED_BY = "WARC-Reconstructed-By"
"""The field that marks a block as rebuilt from a parsed response; its value names who parsed it."""
TLS_FAULT = "WARC-TLS-Fault"
"""Extension field: why the certificate of the server was not trusted; absent where it was."""


def exchange_records(
    capture: Capture, digests: Digests, *, decision: Decision, ids: RecordIds
) -> list[Record]:
    """Return the records of *capture* in the order they are written, the response or revisit last.

    Raises AmicrawlError where a value cannot stand in a field. A capture without a response (status 0)
    has no records and must not be given.
    """
    date = warc_date(capture.started)
    lines = f"WARC-Target-URI: {target_uri(capture.url)}\r\n" + _connection_lines(
        capture.ip_address, capture.protocol, capture.tls, capture.reconstructed_by
    )
    answer_id = ids()
    records = []
    if capture.request:
        request_id = ids()
        request_lines = (
            f"{lines}WARC-Concurrent-To: {answer_id}\r\n"
            f"WARC-Block-Digest: {digests.request}\r\n"
            "Content-Type: application/http;msgtype=request\r\n"
        )
        records.append(Record(RecordType.REQUEST, request_id, date, request_lines, capture.request))
        lines += f"WARC-Concurrent-To: {request_id}\r\n"
    if decision.profile is None:
        lines += _response_lines(capture, digests)
        kind, body = RecordType.RESPONSE, capture.body
    else:
        lines += _revisit_lines(capture, digests, decision=decision)
        kind = RecordType.REVISIT
        body = capture.body if decision.profile is Profile.NOT_MODIFIED else NO_BODY
    lines += "Content-Type: application/http;msgtype=response\r\n"
    records.append(Record(kind, answer_id, date, lines, capture.head, body))
    return records


def warcinfo_record(
    filename: str, fields: Mapping[str, str], *, date: datetime, record_id: str
) -> Record:
    """Return the record that opens the file *filename*: *fields* say who wrote it, and how.

    In names and values whatever is not printable becomes a space, so that each stays on its line.
    """
    lines = [f"{_on_one_line(name)}: {_on_one_line(value)}\r\n" for name, value in fields.items()]
    block = "".join(lines).encode()
    return Record(
        RecordType.WARCINFO,
        record_id,
        warc_date(date),
        field_lines(
            [
                ("WARC-Filename", filename),
                ("WARC-Block-Digest", block_digest(block)),
                ("Content-Type", "application/warc-fields"),
            ]
        ),
        block,
    )


def _response_lines(capture: Capture, digests: Digests) -> str:
    lines = f"WARC-Block-Digest: {digests.block}\r\n"
    if digests.wire_payload is not None:
        lines = f"WARC-Payload-Digest: {digests.wire_payload}\r\n{lines}"
    if capture.truncated is not None:
        lines = f"WARC-Truncated: {capture.truncated.value}\r\n{lines}"
    return lines


def _revisit_lines(capture: Capture, digests: Digests, *, decision: Decision) -> str:
    fields = [("WARC-Profile", str(decision.profile))]
    if decision.original is not None:
        fields += _reference_fields(decision.original)
    if decision.profile is Profile.NOT_MODIFIED:
        fields.append(("WARC-Block-Digest", digests.block))
    else:
        fields.append(("WARC-Truncated", "length"))
        fields.append(("WARC-Block-Digest", block_digest(capture.head)))
    return field_lines(fields)


def _reference_fields(original: Original) -> Fields:
    """Return the fields that say which record a revisit stands for."""
    fields = []
    if original.record_id:
        fields.append(("WARC-Refers-To", original.record_id))
    uri = target_uri(original.url)
    if len(uri) <= URI_LIMIT:
        fields.append(("WARC-Refers-To-Target-URI", uri))
    if original.captured_at:
        fields.append(("WARC-Refers-To-Date", warc_date(from_unix_ms(original.captured_at))))
    if original.payload_digest:
        fields.append(("WARC-Payload-Digest", original.payload_digest))
    return fields


@lru_cache(maxsize=1024)
def _connection_lines(
    ip_address: str | None, protocol: str | None, tls: Tls | None, reconstructed_by: str | None
) -> str:
    """Return the fields that all records of captures over one connection have."""
    fields = []
    if ip_address:
        fields.append(("WARC-IP-Address", ip_address))
    if protocol:
        fields.append(("WARC-Protocol", protocol))
    if tls is not None:
        fields.append(("WARC-Protocol", tls.version))
        # The field is defined for names of the IANA registry, and OpenSSL's own are others.
        if tls.cipher.startswith("TLS_"):
            fields.append(("WARC-Cipher-Suite", tls.cipher))
        if not tls.verified:
            fields.append((TLS_FAULT, _on_one_line(tls.fault or "not verified")))
    if reconstructed_by:
        fields.append((RECONSTRUCTED_BY, reconstructed_by))
    return field_lines(fields)


def _on_one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
