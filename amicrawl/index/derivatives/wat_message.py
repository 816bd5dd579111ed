"""What WAT says of the block of a record: as HTTP message, as fields, as an answer of the DNS. Pure.

Numbers are texts, as in every WAT file; a header that occurs more than once has a list of values. A
digest is left out where the block is longer than what was kept of it, instead of being one of a part.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amicrawl.index.derivatives.file import sha1
from amicrawl.index.pages.links import html_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.index.pages.page import Page
    from amicrawl.index.reading.records import Record

_MOST_LINES = 20_000
_FIELDS_LIMIT = 1 << 20
_RESPONSE_LINE = re.compile(r"(\S+)[ \t]+([0-9]{3})(?:[ \t]+(.*))?")
_REQUEST_LINE = re.compile(r"(\S+)[ \t]+(.*?)(?:[ \t]+(HTTP/[0-9.]+))?")


def payload_metadata(record: Record, page: Page | None) -> dict[str, Any]:
    """Return the `Payload-Metadata` of *record*, in which `page_of` found *page*."""
    kind, name, about = _described(record, page)
    found: dict[str, Any] = {}
    if kind:
        found["Actual-Content-Type"] = kind
    found["Actual-Content-Length"] = str(record.block_length)
    if not record.is_cut:
        found["Block-Digest"] = sha1(record.block)
    found["Trailing-Slop-Length"] = "0"
    if name:
        found[name] = about
    return found


def _described(record: Record, page: Page | None) -> tuple[str, str, Any]:
    """Return the content type, and name and value of what is said besides."""
    declared = record.fields.get("content-type", "")
    is_arc = record.version.startswith("ARC")
    if record.is_http and record.type == "request":
        return "application/http; msgtype=request", "HTTP-Request-Metadata", _request(record)
    if record.is_http:
        return "application/http; msgtype=response", "HTTP-Response-Metadata", _response(record, page)
    if is_arc and record.type == "warcinfo":
        return "alexa/filedesc", "Filedesc-Metadata", _filedesc(record)
    if record.uri[:4].lower() == "dns:":
        return "text/dns", "DNS-Metadata", _dns(record)
    if declared.lower().startswith("application/warc-fields"):
        return _described_fields(record)
    return "alexa/dat" if is_arc else declared, "", None


def _described_fields(record: Record) -> tuple[str, str, Any]:
    if record.type == "metadata":
        return "application/metadata-fields", "WARC-Metadata-Metadata", _metadata(record)
    return "application/warc-fields", "WARC-Info-Metadata", gathered(_fields(record))


def _response(record: Record, page: Page | None) -> dict[str, Any]:
    first = _first_line(record.http_head)
    match = _RESPONSE_LINE.fullmatch(first)
    message: dict[str, str] = {}
    if match is not None:
        message = {"Version": match[1], "Status": match[2], "Reason": match[3] or ""}
    found = {"Response-Message": message, **_http(record, corrupt=match is None)}
    if page is not None and page.is_html:
        found["HTML-Metadata"] = html_metadata(page.tokens)
    return found


def _request(record: Record) -> dict[str, Any]:
    match = _REQUEST_LINE.fullmatch(_first_line(record.http_head))
    message: dict[str, str] = {}
    if match is not None:
        message = {"Method": match[1], "Path": match[2], "Version": match[3] or ""}
    return {"Request-Message": message, **_http(record, corrupt=match is None)}


def _http(record: Record, *, corrupt: bool) -> dict[str, Any]:
    body = record.body
    found: dict[str, Any] = {
        "Headers": gathered((text_of(name), text_of(value)) for name, value in record.http_fields),
        "Headers-Length": str(len(record.http_head)),
    }
    if corrupt:
        found["Headers-Corrupt"] = True
    found["Entity-Length"] = str(record.block_length - (len(record.block) - len(body)))
    if not record.is_cut:
        found["Entity-Digest"] = sha1(body)
    found["Entity-Trailing-Slop-Length"] = "0"
    return found


def _metadata(record: Record) -> dict[str, Any]:
    entries = [{"Name": name, "Value": value} for name, value in _fields(record)]
    found: dict[str, Any] = {"Metadata-Records": entries}
    if any(line.strip() and ":" not in line for line in _lines(record)):
        found["FIELDS_CORRUPT"] = True
    return found


def _filedesc(record: Record) -> dict[str, str]:
    lines = _lines(record)
    parts = (lines[0] if lines else "").split(maxsplit=2)
    found = dict(zip(("Major-Version", "Minor-Version", "Organization"), parts, strict=False))
    if len(lines) > 1:
        found["Format"] = lines[1]
    found["Data"] = "\n".join(lines[2:]).strip()
    return found


def _dns(record: Record) -> dict[str, Any]:
    lines = [line.strip() for line in _lines(record) if line.strip()]
    entries = []
    names = ("Name", "TTL", "Net-Class", "Type", "Value")
    for line in lines[1:]:
        parts = line.split(maxsplit=4)
        if len(parts) == len(names):
            entries.append(dict(zip(names, parts, strict=True)))
    return {"Date": lines[0] if lines else "", "Entries": entries}


def _fields(record: Record) -> Iterable[tuple[str, str]]:
    for line in _lines(record):
        name, colon, value = line.partition(":")
        if colon and name.strip():
            yield name.strip(), value.strip()


def _lines(record: Record) -> list[str]:
    return text_of(record.block[:_FIELDS_LIMIT]).splitlines()[:_MOST_LINES]


def _first_line(head: bytes) -> str:
    return text_of(head.lstrip(b"\r\n").partition(b"\n")[0]).strip()


def gathered(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return *fields* as an object; what occurs more than once has a list of its values."""
    found: dict[str, Any] = {}
    for name, value in fields:
        before = found.get(name)
        if before is None:
            found[name] = value
        elif isinstance(before, list):
            before.append(value)
        else:
            found[name] = [before, value]
    return found


def text_of(octets: bytes) -> str:
    """Return *octets* as UTF-8 or, where they are none, as Latin-1: nothing of a header is lost."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets.decode("latin-1")
