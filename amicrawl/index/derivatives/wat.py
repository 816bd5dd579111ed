"""WAT: what every record of a file says of itself, and every page of its head and links, as JSON.

One `metadata` record a source record, of whatever type, which it refers to; `wat_message.py` and
`page_links.py` say what of block and page is in it. All numbers are texts, as in every WAT file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.index.derivatives.file import (
    DerivativeFile,
    Maker,
    date_of,
    reference_to,
    uri_of,
)
from amicrawl.index.derivatives.wat_message import gathered, payload_metadata, text_of
from amicrawl.index.reading.container import Container
from amicrawl.record.warc import target_uri, warc_date

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.index.pages.page import Page
    from amicrawl.index.reading.records import Record

_ARC_FIELDS = {
    "warc-target-uri": "Target-URI",
    "warc-ip-address": "IP-Address",
    "warc-date": "Date",
    "content-length": "Content-Length",
}


class WatFile:
    """The WAT file of one source, being written."""

    def __init__(self, path: Path, *, source: Path, maker: Maker) -> None:
        """Begin *path*; InputError where *source* cannot be read."""
        self._container = Container(source)
        try:
            self._file = DerivativeFile(path, maker=maker, about=())
        except BaseException:
            self._container.close()
            raise

    def add(self, record: Record, page: Page | None) -> None:
        """Take in *record*, in which `page_of` found *page*."""
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


def wat_of(record: Record, page: Page | None, *, container: Container) -> dict[str, Any]:
    """Return what WAT says of *record*, which lies in *container*, and of the *page* in it."""
    envelope = _arc_header(record) if record.version.startswith("ARC") else _header(record)
    envelope["Payload-Metadata"] = payload_metadata(record, page)
    return {"Container": _place(record, container), "Envelope": envelope}


def _place(record: Record, container: Container) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Filename": text_of(record.path.name.encode("utf-8", "replace")),
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
    for line in text_of(record.head).replace("\r\n", "\n").split("\n")[1:]:
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
