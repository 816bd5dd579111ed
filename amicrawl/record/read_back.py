"""The capture that a record of ours stands for, made of the record. Reads only.

Of a capture, what the record does not say stays unknown: when the fetch was complete (the start of the
request stands for it), how long it took, how often it was tried, and what the seed list said of the URL.
"""

from __future__ import annotations

import base64
import binascii
import io
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from amicrawl.capture import Capture, Truncation, final_url
from amicrawl.clock import unix_ms
from amicrawl.disk import OPEN_SUFFIX
from amicrawl.message import final_head, status_of
from amicrawl.reading import MemberBody, Members
from amicrawl.record.captures import CaptureItem, Provenance
from amicrawl.record.deduplication import Original, Profile, digests_of
from amicrawl.record.writer import RecordLocation
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.reading import RecordMember

_GZIP_BEGIN = b"\x1f\x8b\x08"
_REQUEST_LIMIT = 1024**2

RECORD_TYPES = frozenset({"response", "revisit"})
"""The types of record that have a row."""
HEAD_LIMIT = 1024**2
"""Bytes of a block in which the end of the response's head is looked for."""


def stored(directory: Path, warc_file: str, offset: int) -> CaptureItem | None:
    """Return what the record at *offset* of the file *warc_file* in *directory* tells of its capture.

    None where no record of a response can be read there, since the file was moved away or is damaged.
    """
    path = directory / warc_file
    if not warc_file or path.name != warc_file:
        return None
    unsealed = path.with_name(path.name + OPEN_SUFFIX)
    path = unsealed if not path.exists() and unsealed.exists() else path
    try:
        with path.open("rb") as stream:
            member = next(iter(Members(stream, start=offset)), None)
        if member is None or member.fields.get("warc-type") not in RECORD_TYPES:
            return None
        return rebuilt(path, member, warc_file=warc_file)
    except OSError:
        return None


def request_before(path: Path, offset: int) -> bytes | None:
    """Return the block of the request record that ends at *offset* of the file *path*, if one does.

    That is where the request of a response lies. One of more than a megabyte is not looked for.
    """
    try:
        with path.open("rb") as stream:
            start = max(0, offset - _REQUEST_LIMIT)
            stream.seek(start)
            before = stream.read(offset - start)
            at = len(before)
            while (at := before.rfind(_GZIP_BEGIN, 0, at)) >= 0:
                member = next(iter(Members(io.BytesIO(before), start=at)), None)
                if member is None or member.offset + member.length != len(before):
                    continue
                if member.fields.get("warc-type") != "request":
                    return None
                found = replace(member, offset=start + at)
                return b"".join(MemberBody(path, found, start=0).blocks())
    except OSError:
        pass
    return None


def rebuilt(path: Path, member: RecordMember, *, warc_file: str) -> CaptureItem:
    """Return what the record *member* of the file *path*, a response or revisit, tells of its capture.

    *warc_file* is the name that the file has, or will have, once it is sealed.
    """
    fields = member.fields
    head = _head_of(MemberBody(path, member, start=0))
    url = fields.get("warc-target-uri", "")
    status = status_of(final_head(head))
    capture = Capture(
        url=url,
        started_ms=_moment(fields.get("warc-date", "")),
        duration_ms=0,
        head=head,
        body=MemberBody(path, member, start=len(head)),
        status=200 if status is None else status,
        ip_address=fields.get("warc-ip-address"),
        protocol=fields.get("warc-protocol"),
    )
    item = CaptureItem(
        capture,
        Seed(url),
        final_url=final_url(capture),
        provenance=Provenance(),
        location=RecordLocation(warc_file, member.offset, member.length),
        record_id=fields.get("warc-record-id", ""),
    )
    if fields.get("warc-type") == "revisit":
        _describe_revisit(item, fields)
    else:
        _describe_response(item, fields)
    return item


def _describe_response(item: CaptureItem, fields: dict[str, str]) -> None:
    truncated = fields.get("warc-truncated")
    if truncated:
        known = truncated in set(Truncation)
        item.capture.truncated = Truncation(truncated) if known else Truncation.UNSPECIFIED
    digests = digests_of(item.capture)
    item.digest, item.body_length = digests.payload, digests.payload_length
    item.payload_digest = digests.wire_payload or "" if digests.differs else ""


def _describe_revisit(item: CaptureItem, fields: dict[str, str]) -> None:
    label, record_id = fields.get("warc-payload-digest", ""), fields.get("warc-refers-to", "")
    item.is_revisit = True
    item.original = Original(
        fields.get("warc-refers-to-target-uri", ""),
        _moment(fields.get("warc-refers-to-date", "")),
        label,
        record_id,
    )
    # An original that the seed knew has no record id. One of the same crawl has, and its label may be
    # that of a chunked body: then the digest of the payload is not known.
    item.unchanged = not record_id
    if item.unchanged and not item.capture.is_chunked:
        item.digest = _hex_digest(label)
    item.payload_digest = item.original.label_besides(item.digest)
    if fields.get("warc-profile") == Profile.NOT_MODIFIED:
        item.body_length = len(item.capture.body)


def _head_of(block: MemberBody) -> bytes:
    """Return the head of the response in *block*, to the blank line after its final header section."""
    start = b""
    for piece in block.blocks():
        start += piece
        if len(start) >= HEAD_LIMIT:
            break
    if status_of(start) is None:
        return b""  # an HTTP/0.9 response
    last = final_head(start)
    ends = [at + len(line) for line in (b"\r\n\r\n", b"\n\n", b"\n\r\n") if (at := last.find(line)) >= 0]
    end = min(ends, default=len(last))
    return start[: len(start) - len(last) + end]


def _moment(text: str) -> int:
    """Return a `WARC-Date` in Unix milliseconds; 0 where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    return unix_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _hex_digest(label: str) -> str:
    """Return the digest of a `sha1:` label in hex; empty where it is none."""
    algorithm, _, value = label.partition(":")
    try:
        raw = base64.b32decode(value) if algorithm == "sha1" else b""
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) == 20 else ""
