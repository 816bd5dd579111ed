"""WARC records as bytes (ISO 28500, WARC/1.1), and those of one exchange. Pure.

    WARC/1.1 CRLF
    name: value CRLF            one line a field
    CRLF
    block                       Content-Length bytes
    CRLF CRLF

Each is compressed, by ISA-L, as a gzip member of its own. Every value from outside goes through one
serialiser, which refuses what is not printable: no URL, header or setting can end a line and forge a
field or a record.

An exchange is a request record (where the bytes that were sent are known) and, right behind it, the
response or revisit record. Each names the other by `WARC-Concurrent-To`, so that a reader who was sent
to one of them finds the other, and both bear the moment the request began as `WARC-Date`. Where the
crawl requests it, a metadata record is before them, with the fields that Heritrix writes: `via`,
`hopsFromSeed`, `fetchTimeMs`, and `seed` for a start URL.

The block of an identical-digest revisit is the response's head alone, which the standard wants marked
`WARC-Truncated: length`; that of a 304 is the 304 as received. Both carry the digest of the payload
they stand for where it is known, as 6.7.2 demands and replay needs; `fastwarc check -p`, which compares
it with the block, is wrong to call that a failure.

Two fields are ours and not the standard's: `WARC-Reconstructed-By` names the foreign download handler
whose parsed response the block was rebuilt from, so that it is not taken for the bytes of the wire, and
`WARC-TLS-Fault` says why the certificate of the server was not trusted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote_from_bytes

from isal import igzip_lib, isal_zlib

from amicrawl.clock import warc_date, warc_date_of_ms
from amicrawl.errors import AmicrawlError
from amicrawl.record.deduplication import Profile, block_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from amicrawl.capture import Body, Capture, Tls
    from amicrawl.record.captures import Provenance
    from amicrawl.record.deduplication import Digests, Original, RevisitDecision

    Fields = list[tuple[str, str]]
    RecordIds = Callable[[], str]
    # Returns another record id at each call: `<urn:uuid:...>` (RFC 9562, version 4).

LEVEL = 1
"""ISA-L's level. Of real pages, per 26 KB: level 0 took 30 us at a ratio of 3.62, level 1 38 us at 3.89,
level 2 61 us at 3.93, level 3 105 us at 4.05. (zlib's level 6 takes ten times as long as level 1.)"""
GZIP_WINDOW = 31
"""`wbits` for a gzip header and trailer around a 32 KiB window."""
URI_LIMIT = 15_000
"""Bytes of the longest URI that a record can name: fastwarc reads heads of up to 32 KiB, and a revisit
names two."""

_UUID_FIXED = bytes.fromhex("00000000000040008000000000000000")
"""The version of a random UUID, 4, and its variant (RFC 9562, 5.4) ..."""
_UUID_FREE = bytes.fromhex("ffffffffffff0fff3fffffffffffffff")
"""... and the bits that are random."""
_UUID_PARTS = re.compile("(.{8})(.{4})(.{4})(.{4})(.{12})").findall
_NOT_IN_URI = re.compile(rb"[^!-~]")
_NO_BLOCKS: Iterable[bytes] = ()


class RecordType(StrEnum):
    """The types of record that are written here."""

    WARCINFO = "warcinfo"
    METADATA = "metadata"
    REQUEST = "request"
    RESPONSE = "response"
    REVISIT = "revisit"
    RESOURCE = "resource"


@dataclass(slots=True)
class Record:
    """A WARC record before it is bytes. Its block is `lead` followed by `body`."""

    type: RecordType
    record_id: str
    date: str
    """As `warc_date` gives it."""
    lines: str
    """The fields between `WARC-Date` and `Content-Length`, in order, as `field_lines` gives them."""
    lead: bytes = b""
    body: Body | None = None
    """None where `lead` is the whole block."""


def field_lines(fields: Sequence[tuple[str, str]]) -> str:
    """Return *fields*, names and values, as lines of a record's header.

    Raises AmicrawlError where a value holds a control or another unprintable character.
    """
    if not "".join([value for _, value in fields]).isprintable():
        _refuse_unprintable(fields)
    return "".join([f"{name}: {value}\r\n" for name, value in fields])


def pieces_of(record: Record) -> Iterable[bytes]:
    """Return *record* exactly as it is in an uncompressed WARC file, a piece at a time."""
    length, blocks = len(record.lead), _NO_BLOCKS
    if record.body is not None:
        length, blocks = length + len(record.body), record.body.blocks()
    head = (
        f"WARC/1.1\r\nWARC-Type: {record.type}\r\nWARC-Record-ID: {record.record_id}\r\n"
        f"WARC-Date: {record.date}\r\n{record.lines}Content-Length: {length}\r\n\r\n"
    ).encode()
    return chain((head, record.lead), blocks, (b"\r\n\r\n",))


def gzip_member(record: Record) -> bytes:
    """Return *record* as one gzip member."""
    return igzip_lib.compress(b"".join(pieces_of(record)), LEVEL, igzip_lib.COMP_GZIP)


def write_gzip_member(record: Record, write: Callable[[bytes], object]) -> int:
    """Give *record* as one gzip member to *write*, piece by piece, and return its length in bytes."""
    compressor = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, GZIP_WINDOW)
    length = 0
    for piece in pieces_of(record):
        compressed = compressor.compress(piece)
        length += len(compressed)
        write(compressed)
    rest = compressor.flush()
    write(rest)
    return length + len(rest)


def target_uri(url: str) -> str:
    """Return *url* as `WARC-Target-URI` may hold it: what is not printable ASCII percent-encoded.

    URLs arrive encoded; this is the last defence against one that forges a record.
    """
    if url.isascii() and url.isprintable() and " " not in url:
        return url
    return _NOT_IN_URI.sub(
        lambda match: quote_from_bytes(match[0]).encode(), url.encode("utf-8", "surrogatepass")
    ).decode()


def record_ids(random: Callable[[int], bytes], *, batch: int = 1024) -> RecordIds:
    """Return what returns another id at each call; they are made in batches, of *random* bytes."""
    fixed, free = int.from_bytes(_UUID_FIXED * batch), int.from_bytes(_UUID_FREE * batch)

    def made() -> list[str]:
        digits = f"{int.from_bytes(random(16 * batch)) & free | fixed:0{32 * batch}x}"
        return [f"<urn:uuid:{'-'.join(parts)}>" for parts in _UUID_PARTS(digits)]

    return chain.from_iterable(iter(made, None)).__next__


def _refuse_unprintable(fields: Sequence[tuple[str, str]]) -> None:
    for name, value in fields:
        if not value.isprintable():
            raise AmicrawlError(
                f"The WARC field {name} would hold a control character ({value[:100]!r}), "
                "which could forge a record; this is a fault in amicrawl, please report it."
            )


RECONSTRUCTED_BY = "WARC-Reconstructed-By"
"""The field that marks a block as rebuilt from a parsed response; its value names who parsed it."""
TLS_FAULT = "WARC-TLS-Fault"
"""Extension field: why the certificate of the server was not trusted; absent where it was."""


def exchange_records(
    capture: Capture,
    digests: Digests,
    *,
    decision: RevisitDecision,
    ids: RecordIds,
    found: Provenance | None = None,
) -> list[Record]:
    """Return the records of *capture* in the order they are written, the response or revisit last.

    A metadata record says how the URL was *found*; None for no such record.

    Raises AmicrawlError where a value cannot stand in a field. A capture without a response (status 0)
    has no records and must not be given.
    """
    date = warc_date_of_ms(capture.started_ms)
    lines = f"WARC-Target-URI: {target_uri(capture.url)}\r\n" + _connection_lines(
        capture.ip_address, capture.protocol, capture.tls, capture.reconstructed_by
    )
    response_id = ids()
    records = [] if found is None else [_metadata_record(capture, found, response_id, ids)]
    if capture.request:
        request_id = ids()
        request_lines = (
            f"{lines}WARC-Concurrent-To: {response_id}\r\n"
            f"WARC-Block-Digest: {digests.request}\r\n"
            "Content-Type: application/http;msgtype=request\r\n"
        )
        records.append(Record(RecordType.REQUEST, request_id, date, request_lines, capture.request))
        lines += f"WARC-Concurrent-To: {request_id}\r\n"
    if decision.profile is None:
        lines += _response_lines(capture, digests)
        kind = RecordType.RESPONSE
    else:
        lines += _revisit_lines(capture, digests, decision=decision)
        kind = RecordType.REVISIT
    # What a revisit of an equal payload leaves out is that payload.
    body = None if decision.profile is Profile.IDENTICAL else capture.body
    lines += "Content-Type: application/http;msgtype=response\r\n"
    records.append(Record(kind, response_id, date, lines, capture.head, body))
    return records


def _metadata_record(capture: Capture, found: Provenance, response_id: str, ids: RecordIds) -> Record:
    """Return what is known of *capture* besides, as `application/warc-fields`."""
    fields = [("via", target_uri(found.via))] if found.via else []
    if found.route:
        fields.append(("hopsFromSeed", found.route))
    elif found.link == "seed":
        fields.append(("seed", ""))
    fields.append(("fetchTimeMs", str(capture.duration_ms)))
    block = field_lines(fields).encode()
    lines = (
        f"WARC-Target-URI: {target_uri(capture.url)}\r\nWARC-Concurrent-To: {response_id}\r\n"
        f"WARC-Block-Digest: {block_digest(block)}\r\nContent-Type: application/warc-fields\r\n"
    )
    return Record(RecordType.METADATA, ids(), warc_date_of_ms(capture.started_ms), lines, block)


class Resource(NamedTuple):
    """What was made of a capture: the text of a page, a picture of it."""

    prefix: str
    """What stands before the URL of the capture in that of the record: `urn:text:`."""
    content_type: str
    content: bytes


def resource_records(
    exchange: Sequence[Record], resources: Iterable[Resource], *, ids: RecordIds, url: str
) -> list[Record]:
    """Return a record for each of *resources*, made of the capture of *url*; *exchange* are its own.

    One that a record cannot name is left out.
    """
    response = exchange[-1]
    uri = target_uri(url)
    return [
        Record(
            RecordType.RESOURCE,
            ids(),
            response.date,
            field_lines(
                [
                    ("WARC-Target-URI", resource.prefix + uri),
                    ("WARC-Concurrent-To", response.record_id),
                    ("WARC-Block-Digest", block_digest(resource.content)),
                    ("Content-Type", resource.content_type),
                ]
            ),
            resource.content,
        )
        for resource in resources
        if len(resource.prefix) + len(uri) <= URI_LIMIT
    ]


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


def _revisit_lines(capture: Capture, digests: Digests, *, decision: RevisitDecision) -> str:
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
        fields.append(("WARC-Refers-To-Date", warc_date_of_ms(original.captured_at)))
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
