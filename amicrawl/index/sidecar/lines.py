"""A sidecar's records as an index takes them in: fields, what ties them to a capture, the line. Pure.

Sidecars of warc-metadata-sidecar read the same way.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.index.lines.cdxj import key_of, timestamp_of, url_of
from amicrawl.index.sidecar.file import SOURCE_FILE, SOURCE_OFFSET
from amicrawl.index.sidecar.findings import ERROR, parse_block
from amicrawl.urls import surt

if TYPE_CHECKING:
    from amicrawl.index.reading.records import Record

_TIES = ("warc-refers-to", "warc-concurrent-to", "warc-concurrent-id")
_OFFSET = re.compile(r"(?a)[0-9]{1,18}")


class Tie(NamedTuple):
    """What ties a record of a sidecar to the capture that it tells of."""

    record_id: str
    """Of the source record, with its angle brackets; empty for ARC."""
    filename: str
    """Of the source, without directories; empty in sidecars of others."""
    offset: int
    """Of the source record in its file; -1 where it is not known."""


def is_sidecar_record(record: Record) -> bool:
    """Tell whether *record* is one that says what a payload is."""
    return (
        record.type == "metadata" and record.fields.get("content-type", "") == "application/warc-fields"
    )


def sidecar_fields(record: Record) -> dict[str, Any]:
    """Return what the sidecar's *record* says, by the names of its lines and in their order.

    JSON is what it stands for, anything else is text. Failures of detectors are left out.
    """
    fields = parse_block(record.block)
    fields.pop(ERROR, None)
    return fields


def sidecar_tie(record: Record) -> Tie:
    """Return what ties the sidecar's *record* to a capture."""
    record_id = next((record.fields[name] for name in _TIES if record.fields.get(name)), "")
    offset = record.fields.get(SOURCE_OFFSET.lower(), "")
    return Tie(
        record_id if record_id.startswith("<") else "",
        record.fields.get(SOURCE_FILE.lower(), ""),
        int(offset) if _OFFSET.fullmatch(offset) else -1,
    )


def sidecar_line(record: Record) -> str:
    """Return the CDXJ line of the sidecar's *record*, line end included; empty where it has no date."""
    timestamp = timestamp_of(record.date)
    if not timestamp:
        return ""
    return f"{key_of(surt(url_of(record)))} {timestamp} {json.dumps(sidecar_fields(record))}\n"
