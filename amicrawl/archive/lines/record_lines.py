"""The line of a record in an index: which records have one, and what it says. Pure.

A line is to the byte what the indexer writes that `Compat` names. Values that are missing are left out,
never invented, except where the named indexer invents them.

Fields beyond the usual have short names (`SHORT_NAMES`); others are `http:NAME` (a field of the
response), `req.http:NAME` (of the request that belongs to it), or the name of a WARC header field.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from amicrawl.archive.lines.cdxj import CdxjLine, percent_encoded
from amicrawl.archive.lines.post_key import keyed_by_body
from amicrawl.reading import header_text
from amicrawl.record import labelled
from amicrawl.urls import surt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amicrawl.reading import Record


SHORT_NAMES = {
    "recordid": "warc-record-id",
    "ipaddress": "warc-ip-address",
    "truncated": "warc-truncated",
    "redirect": "http:location",
    "lastmod": "http:last-modified",
    "server": "http:server",
    "refers-to": "warc-refers-to",
    "refers-to-uri": "warc-refers-to-target-uri",
    "refers-to-date": "warc-refers-to-date",
    "profile": "warc-profile",
    "mime-detected": "warc-identified-payload-type",
    "referrer": "req.http:referer",
    "method": "req.http:method",
}
"""Name in the line -> what it is taken from."""

_NOT_DIGITS = re.compile(r"[^0-9]+")
_USUAL_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})")
_DATE_PARTS = ("0000", "01", "01", "00", "00", "00")
_MIME_END = re.compile(r"[;\s]")
_UNFIT_IN_URL = re.compile(r"[\x00-\x20\x7f]")
_UNFIT_IN_KEY = re.compile(r"[\s\x00-\x1f\x7f]")
_WARC_FIELDS = "application/warc-fields"
_OF_REQUESTS = ("referrer", "method")


class Compat(StrEnum):
    """Whose lines are written, to the byte."""

    CDXJ_INDEXER = "cdxj-indexer"
    """Status of revisits, labelled digests, nothing where nothing is known."""
    PYWB = "pywb"
    """As EOT collections: bare SHA-1, no status of revisits, `unk`, `200` where it is not HTTP."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How lines are made."""

    compat: Compat = Compat.CDXJ_INDEXER
    post: bool = False
    """Whether the method and body of a POST or PUT are part of the key; needs records in pairs."""
    all_records: bool = False
    """Whether requests, warcinfo and all others get lines too."""
    fields: tuple[str, ...] = ()
    """Fields beyond the usual: see `extra_field`."""
    only_fields: bool = False
    """Whether these are all that a line has, in this order; usual ones may be among them."""
    records: tuple[str, ...] = ()
    """Types of records that get lines, whatever they hold, in place of those that get them usually."""
    stored_digests: bool = False
    """Whether a line has the digest of the record's bytes as they are stored."""

    @property
    def needs_pairs(self) -> bool:
        """Whether a line says something of the request that belongs to the response."""
        return self.post or any(name.startswith("req.") or name in _OF_REQUESTS for name in self.fields)


DEFAULT_OPTIONS = IndexOptions()


def cdxj_lines(
    record: Record,
    *,
    filename: str,
    options: IndexOptions = DEFAULT_OPTIONS,
    partner: Record | None = None,
) -> Iterator[CdxjLine]:
    """Yield the lines of *record*: one, or none.

    *filename* is the file's name in the line. *partner* is the request of a response, or the response
    of a request, where it is known (`paired`). A record without a date has no line (`timestamp_of`).
    """
    if wanted_by(options)(record):
        line = line_of_wanted(record, filename=filename, options=options, partner=partner)
        if line is not None:
            yield line


def line_of_wanted(
    record: Record,
    *,
    filename: str,
    options: IndexOptions,
    partner: Record | None,
    stored_digest: str = "",
) -> CdxjLine | None:
    """Return the line of *record*, of a kind that has lines; None where what a line needs is missing.

    *stored_digest* goes into it as `recordDigest`.
    """
    pywb = options.compat is Compat.PYWB
    timestamp = timestamp_of(record.date)
    url = url_of(record)
    if not timestamp or (pywb and not url):
        return None
    fields = _pywb_fields(record, url) if pywb else _fields(record, url)
    key = ""
    if record.seekable:
        fields["length"] = str(record.length)
        fields["offset"] = str(record.offset)
    if not pywb:
        fields["filename"] = filename
    if stored_digest:
        fields["recordDigest"] = stored_digest
    if options.post and partner is not None:
        request = record if record.type == "request" else partner
        body = keyed_by_body(request, url, pywb=pywb)
        if body is not None:
            key = surt(body.url)
            if record.type != "request":
                _add_body(fields, body.method, body.query, pywb=pywb)
    if pywb:
        fields["filename"] = filename
    for name in options.fields:
        value = extra_field(name, record, partner)
        if value:
            fields.setdefault(*value)
    if options.only_fields:
        fields = {name: fields[name] for name in options.fields if name in fields}
    return CdxjLine(key_of(key or surt(url)), timestamp, fields)


def _add_body(fields: dict[str, str], method: str, query: str, *, pywb: bool) -> None:
    if pywb:
        fields["method"] = method
        if query:
            fields["requestBody"] = query
    else:
        fields["requestBody"] = query
        fields["method"] = method


def wanted_by(options: IndexOptions) -> Callable[[Record], bool]:
    """Return a predicate: whether a record is of a kind that has lines."""
    if options.all_records:
        return lambda _: True
    if options.records:
        types = frozenset(options.records)
        return lambda record: record.type in types
    return _wanted_by_pywb if options.compat is Compat.PYWB else _wanted


def timestamp_of(date: str) -> str:
    """Return the 14 digits of *date*, in either of its forms; empty where there is none.

    A date that is less precise (WARC 1.1) begins at the beginning: `2016` is its first second.
    """
    usual = _USUAL_DATE.match(date)
    if usual is not None:
        return "".join(usual.groups())
    digits = _NOT_DIGITS.sub("", date)[:14]
    if len(digits) == 14:
        return digits
    given = (digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:14])
    if len(digits) < 4 or len(digits) % 2:
        return ""
    return "".join([part or default for part, default in zip(given, _DATE_PARTS, strict=True)])


def url_of(record: Record) -> str:
    """Return the URL of *record* as a line has it: on one line, without spaces."""
    uri = record.uri
    if uri.isprintable() and " " not in uri:
        return uri
    return _UNFIT_IN_URL.sub(lambda match: percent_encoded(match[0]), uri)


def key_of(key: str) -> str:
    """Return *key* fit to be one: what would end it, or the line, escaped."""
    return (
        _UNFIT_IN_KEY.sub(lambda match: percent_encoded(match[0]).lower(), key)
        if not key.isprintable() or " " in key
        else key
    )


def _wanted(record: Record) -> bool:
    kind = record.type
    if kind in ("response", "revisit"):
        return True
    return kind in ("resource", "metadata") and record.field("content-type") != _WARC_FIELDS


def _wanted_by_pywb(record: Record) -> bool:
    content_type = record.field("content-type")
    if record.type in ("warcinfo", "request") or content_type == _WARC_FIELDS:
        return False
    return not (record.type == "metadata" and _mime(content_type) == "text/anvl")


def _fields(record: Record, url: str) -> dict[str, str]:
    fields = {"url": url} if url else {}
    if record.type == "revisit":
        fields["mime"] = "warc/revisit"
    elif record.type in ("response", "request"):
        declared = record.http_field(b"content-type")
        if declared is not None:
            fields["mime"] = _mime(declared.decode("latin-1"))
    elif "content-type" in record.fields:
        fields["mime"] = _mime(record.fields["content-type"])
    if record.http_status is not None:
        fields["status"] = f"{record.http_status:03d}"
    digest = record.field("warc-payload-digest")
    if not digest and record.type != "warcinfo":
        digest = _computed_digest(record)
    if digest:
        fields["digest"] = digest
    return fields


def _pywb_fields(record: Record, url: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    if metadata := record.fields.get("warc-json-metadata"):
        fields["metadata"] = metadata
    fields["url"] = url
    if record.type == "revisit":
        fields["mime"] = "warc/revisit"
    else:
        if record.is_http and record.block and "arc-content-type" not in record.fields:
            declared = (record.http_field(b"content-type") or b"").decode("latin-1")
        else:
            declared = record.field("arc-content-type") or record.field("content-type")
        mime = _mime(declared) or ("unk" if record.type != "request" else "")
        if mime:
            fields["mime"] = mime
        if detected := record.fields.get("warc-identified-payload-type"):
            fields["mime-detected"] = detected
        if record.type == "response" and (status := _pywb_status(record)):
            fields["status"] = status
    digest = record.field("warc-payload-digest")
    if not digest and record.type != "request":
        digest = _computed_digest(record)
    if digest:
        fields["digest"] = digest.removeprefix("sha1:")
    return fields


def _pywb_status(record: Record) -> str:
    if not record.is_http or not record.block:
        return "200"
    if record.http_status == 204 and b"Error" in record.http_head.partition(b"\n")[0]:
        return ""
    return "" if record.http_status is None else f"{record.http_status:03d}"


def _mime(declared: str) -> str:
    # There are few in a file. A long one is not in earnest, and would fill the memory.
    return _remembered_mime(declared) if len(declared) < 256 else _before_parameters(declared)


@lru_cache(maxsize=1024)
def _remembered_mime(declared: str) -> str:
    return _before_parameters(declared)


def _before_parameters(declared: str) -> str:
    return _MIME_END.split(declared, maxsplit=1)[0]


def _computed_digest(record: Record) -> str:
    """Return the digest of what is stored behind the HTTP header; empty for revisits."""
    digest = record.body_sha1 if record.type != "revisit" else b""
    return labelled(digest) if digest else ""


def extra_field(name: str, record: Record, partner: Record | None) -> tuple[str, str] | None:
    """Return the field *name* of *record* and its value, which may be empty; None where it has none.

    *partner* is the record's other half, request or response.
    """
    source = SHORT_NAMES.get(name, name).lower()
    if name == "redirect":
        value = _redirect(record)
    elif source.startswith("http:"):
        value = _http(record if record.type != "request" else partner, source[5:])
    elif source.startswith("req.http:"):
        value = _of_request(record if record.type == "request" else partner, source[9:])
    else:
        value = record.fields.get(source)
        if source == "warc-record-id" and value is not None:
            value = value.removeprefix("<urn:uuid:").rstrip(">")
    return (name, value) if value is not None else None


def _redirect(record: Record) -> str | None:
    """Return where a redirect leads to, as a URL of its own; None where it does not say."""
    status = record.http_status
    if status is None or not 300 <= status < 400 or status == 304:
        return None
    location = _http(record, "location")
    try:
        return urljoin(record.uri, location) if location else None
    except ValueError:
        return location


def _http(record: Record | None, name: str) -> str | None:
    value = record.http_field(name.encode("latin-1", "replace")) if record is not None else None
    return header_text(value) if value is not None else None


def _of_request(request: Record | None, name: str) -> str | None:
    if request is None or request.type != "request":
        return None
    if name == "method":
        return request.http_head.partition(b" ")[0].decode("latin-1")
    return _http(request, name)
