"""Fields of an index line beyond the usual ones, by the names that a user gives.

Short names stand for what is asked for most; others are `http:NAME` (a field of the response),
`req.http:NAME` (of the request that belongs to it), or the name of a WARC header field. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

if TYPE_CHECKING:
    from amicrawl.index.reading.records import Record

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


def extra_field(name: str, record: Record, partner: Record | None) -> tuple[str, str] | None:
    """Return the field *name* of *record* and its value; None where it has none.

    *partner* is the record's other half, request or response.
    """
    source = SHORT_NAMES.get(name, name).lower()
    if source == "http:location":
        value = _redirect(record)
    elif source.startswith("http:"):
        value = _http(record if record.type != "request" else partner, source[5:])
    elif source.startswith("req.http:"):
        value = _of_request(record if record.type == "request" else partner, source[9:])
    else:
        value = record.fields.get(source, "")
        if source == "warc-record-id":
            value = value.removeprefix("<urn:uuid:").rstrip(">")
    return (name, value) if value else None


def _redirect(record: Record) -> str:
    """Return where a redirect leads to, as a URL of its own."""
    status = record.http_status
    if status is None or not 300 <= status < 400 or status == 304:
        return ""
    location = _http(record, "location")
    try:
        return urljoin(record.uri, location) if location else ""
    except ValueError:
        return location


def _http(record: Record | None, name: str) -> str:
    value = record.http_field(name.encode("latin-1", "replace")) if record is not None else None
    return value.decode("utf-8", "replace") if value is not None else ""


def _of_request(request: Record | None, name: str) -> str:
    if request is None or request.type != "request":
        return ""
    if name == "method":
        return request.http_head.partition(b" ")[0].decode("latin-1")
    return _http(request, name)
