"""WAT and WET files: the metadata of every record of a file as JSON, and the text of every page.

WAT has one `metadata` record for each source record, of any type, to which it refers; `links.py` has
what is extracted of a page. All numbers are strings, as in every WAT file. A header that occurs more
than once has a list of values. A digest is left out where only a part of the block was kept.

WET has a `conversion` record for each page of HTML or plain text (`page.py`) that is not empty. The
warcinfo of the source, where it is the first record, names who crawled: those fields are copied.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.archive.index.derivatives.file import (
    DerivativeFile,
    Maker,
    date_of,
    reference_to,
    uri_of,
)
from amicrawl.archive.index.derivatives.links import html_metadata
from amicrawl.clock import warc_date
from amicrawl.reading import Container, header_text
from amicrawl.record import block_digest, target_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amicrawl.archive.index.collection.products import FileJob, SeenRecord
    from amicrawl.archive.index.derivatives.page import ExtractedPage
    from amicrawl.reading import Record


_CARRIED_OVER = ("robots", "isPartOf", "operator", "description", "publisher")
_ARC_FIELDS = {
    "warc-target-uri": "Target-URI",
    "warc-ip-address": "IP-Address",
    "warc-date": "Date",
    "content-length": "Content-Length",
}


class WatFile:
    """The WAT file of one source, being written."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        """Begin *path*; InputError where the source of *job* cannot be read."""
        self._container = Container(job.source)
        try:
            self._file = DerivativeFile(path, maker=maker, about=())
        except BaseException:
            self._container.close()
            raise

    def add(self, seen: SeenRecord) -> None:
        """Add what a record, and the page in it, say."""
        record, page = seen.record, seen.page
        is_arc = record.version.startswith("ARC")
        uri = uri_of(record)
        if not uri and record.type == "warcinfo":
            uri = target_uri(record.fields.get("warc-filename", ""))
        date = date_of(record) if is_arc else None
        self._file.add(
            "metadata",
            orjson.dumps(wat_of(record, page, container=self._container)),
            date=date or warc_date(self._file.began),
            fields=[
                ("WARC-Target-URI", uri),
                ("WARC-Refers-To", reference_to(record)),
                ("Content-Type", "application/json"),
            ],
        )

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its records, the warcinfo aside, and its size in bytes."""
        self._container.close()
        return self._file.records, self._file.seal()

    def close(self) -> None:
        """Leave the file as it is."""
        self._container.close()
        self._file.close()


def wat_of(record: Record, page: ExtractedPage | None, *, container: Container) -> dict[str, Any]:
    """Return what WAT says of *record*, which is stored in *container*, and of the *page* in it."""
    envelope = _arc_header(record) if record.version.startswith("ARC") else _header(record)
    envelope["Payload-Metadata"] = payload_metadata(record, page)
    return {"Container": _place(record, container), "Envelope": envelope}


def _place(record: Record, container: Container) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Filename": header_text(record.path.name.encode("utf-8", "replace")),
        "Compressed": container.is_compressed,
        "Offset": str(record.offset),
    }
    member = container.member(record)
    if member is not None:
        found["Gzip-Metadata"] = {
            "Deflate-Length": str(member.length),
            "Header-Length": str(member.header_length),
            "Footer-Length": "8",
            "Inflated-CRC": str(member.crc),
            "Inflated-Length": str(member.inflated_length),
        }
        if member.name:
            found["Gzip-Metadata"]["Filename"] = member.name
    return found


def _header(record: Record) -> dict[str, Any]:
    return {
        "Format": record.version,
        "WARC-Header-Length": str(len(record.head)),
        "WARC-Header-Metadata": gathered(_fields(record)),
    }


def _fields(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the fields of *record* as they are written; a folded line belongs to the one before."""
    name, value = "", ""
    for line in header_text(record.head).replace("\r\n", "\n").split("\n")[1:]:
        if line[:1] in (" ", "\t") and name:
            value = f"{value} {line.strip()}"
            continue
        if name:
            yield name, value
        name, _, value = (part.strip() for part in line.partition(":"))
    if name:
        yield name, value


def _arc_header(record: Record) -> dict[str, Any]:
    fields = {name: record.fields[key] for key, name in _ARC_FIELDS.items() if key in record.fields}
    fields["Content-Type"] = record.fields.get("arc-content-type", record.fields.get("content-type", ""))
    return {
        "Format": "ARC",
        "ARC-Header-Length": str(len(record.head)),
        "ARC-Header-Metadata": fields,
    }


_MOST_LINES = 20_000
_FIELDS_LIMIT = 1 << 20
_RESPONSE_LINE = re.compile(r"(\S+)[ \t]+([0-9]{3})(?:[ \t]+(.*))?")
_REQUEST_LINE = re.compile(r"(\S+)[ \t]+(.*?)(?:[ \t]+(HTTP/[0-9.]+))?")


def payload_metadata(record: Record, page: ExtractedPage | None) -> dict[str, Any]:
    """Return the `Payload-Metadata` of *record*, in which `page_of` found *page*."""
    kind, name, about = _described(record, page)
    found: dict[str, Any] = {}
    if kind:
        found["Actual-Content-Type"] = kind
    found["Actual-Content-Length"] = str(record.block_length)
    if not record.is_cut:
        found["Block-Digest"] = block_digest(record.block)
    found["Trailing-Slop-Length"] = "0"
    if name:
        found[name] = about
    return found


def _described(record: Record, page: ExtractedPage | None) -> tuple[str, str, Any]:
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
    return "application/warc-fields", "WARC-Info-Metadata", gathered(_block_fields(record))


def _response(record: Record, page: ExtractedPage | None) -> dict[str, Any]:
    first = _first_line(record.http_head)
    match = _RESPONSE_LINE.fullmatch(first)
    message: dict[str, str] = {}
    if match is not None:
        message = {"Version": match[1], "Status": match[2], "Reason": match[3] or ""}
    found = {"Response-Message": message, **_http(record, corrupt=match is None)}
    if page is not None and page.is_html:
        found["HTML-Metadata"] = html_metadata(page.pieces)
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
        "Headers": gathered(
            (header_text(name), header_text(value)) for name, value in record.http_fields
        ),
        "Headers-Length": str(len(record.http_head)),
    }
    if corrupt:
        found["Headers-Corrupt"] = True
    found["Entity-Length"] = str(record.block_length - (len(record.block) - len(body)))
    if not record.is_cut:
        found["Entity-Digest"] = block_digest(body)
    found["Entity-Trailing-Slop-Length"] = "0"
    return found


def _metadata(record: Record) -> dict[str, Any]:
    entries = [{"Name": name, "Value": value} for name, value in _block_fields(record)]
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


def _block_fields(record: Record) -> Iterable[tuple[str, str]]:
    for line in _lines(record):
        name, colon, value = line.partition(":")
        if colon and name.strip():
            yield name.strip(), value.strip()


def _lines(record: Record) -> list[str]:
    return header_text(record.block[:_FIELDS_LIMIT]).splitlines()[:_MOST_LINES]


def _first_line(head: bytes) -> str:
    return header_text(head.lstrip(b"\r\n").partition(b"\n")[0]).strip()


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


class WetFile:
    """The WET file of one source, being written."""

    def __init__(self, path: Path, _: FileJob, maker: Maker) -> None:
        """Name the file *path*; it is begun with the first record, whose warcinfo it quotes."""
        self._path = path
        self._maker = maker
        self._file: DerivativeFile | None = None

    def add(self, seen: SeenRecord) -> None:
        """Add the text of the page in a record, if there is one."""
        record, page = seen.record, seen.page
        file = self._begun(record)
        if page is None or not page.text:
            return
        block = page.text.encode("utf-8", "replace")
        fields = [
            ("WARC-Target-URI", uri_of(record)),
            ("WARC-Refers-To", reference_to(record)),
            ("WARC-Block-Digest", block_digest(block)),
            (
                "WARC-Identified-Content-Language",
                record.fields.get("warc-identified-content-language", ""),
            ),
            ("Content-Type", "text/plain"),
        ]
        file.add("conversion", block, date=date_of(record) or warc_date(file.began), fields=fields)

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its records, the warcinfo aside, and its size in bytes."""
        file = self._begun(None)
        return file.records, file.seal()

    def close(self) -> None:
        """Leave the file as it is."""
        if self._file is not None:
            self._file.close()

    def _begun(self, first: Record | None) -> DerivativeFile:
        if self._file is None:
            about = _about(first) if first is not None and first.type == "warcinfo" else []
            self._file = DerivativeFile(self._path, maker=self._maker, about=about)
        return self._file


def _about(warcinfo: Record) -> list[tuple[str, str]]:
    said: dict[str, str] = {}
    for line in warcinfo.block[:65_536].decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            said.setdefault(name.strip(), value.strip())
    return [(name, said[name]) for name in _CARRIED_OVER if said.get(name)]
