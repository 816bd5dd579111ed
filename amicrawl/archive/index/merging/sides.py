"""The records of sidecars, and what ties each of them to a capture: from WARC and from CDXJ.

A sidecar as WARC names the record that it describes, or its file and offset. As CDXJ, which other tools
make of it, mostly only key and timestamp are left; `recordid`, `filename` with `offset`, and `digest`
count where a line has them. Sidecars of warc-metadata-sidecar are read the same way. A record without a
date, or that cannot be read, is reported and left out.

As columns they are rows of `SIDES`, which `side_table.py` finds by what ties them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa

from amicrawl.archive.arrow_texts import Texts, texts_from
from amicrawl.archive.index.sidecar.findings import (
    ERROR,
    SOURCE_FILE,
    SOURCE_OFFSET,
    added_fields,
    parse_block,
    written,
)
from amicrawl.archive.lines import key_of, timestamp_of, url_of
from amicrawl.reading import read_records
from amicrawl.urls import surt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from amicrawl.reading import Broken, Record


CDXJ = (".cdxj", ".cdxj.gz")
"""How the names of sidecars end that are CDXJ."""
_SIDECAR_BLOCK = 1 << 20


class JoinKeys(NamedTuple):
    """What a capture is known by; empty where something is not known."""

    when: str
    """Key and second, a space between: how the line begins."""
    record_id: str
    """A UUID without its brackets, or what else identifies the record."""
    filename: str
    """Without directories."""
    offset: str
    digest: str
    """Without the name of its algorithm."""


class Side(NamedTuple):
    """One record of a sidecar."""

    ties: JoinKeys
    addition: bytes
    """The fields it adds, as they stand within an object."""


def sides_of(path: Path, *, report: Callable[[str], None]) -> Iterator[Side]:
    """Yield what the sidecar *path*, a WARC file, says; faults go to *report*."""

    def broken(what: Broken) -> None:
        report(f"{path.name}, byte {what.offset}: {what.reason}")

    for record in read_records(path, on_broken=broken, block_cap=_SIDECAR_BLOCK):
        if not is_sidecar_record(record):
            continue
        timestamp = timestamp_of(record.date)
        if not timestamp:
            report(f"{path.name}, byte {record.offset}: a record has no date")
            continue
        tie = sidecar_tie(record)
        ties = JoinKeys(
            f"{key_of(surt(url_of(record)))} {timestamp}",
            bare_id(tie.record_id),
            intern(tie.filename),
            str(tie.offset) if tie.offset >= 0 else "",
            "",
        )
        yield Side(ties, written(added_fields(sidecar_fields(record))))


def ties_of(key: bytes, timestamp: bytes, fields: dict[str, Any]) -> JoinKeys:
    """Return what the capture of a line is known by; UnicodeDecodeError where the key is not UTF-8."""
    get = fields.get
    record_id = get("recordid") or get("warc-record-id")
    filename, offset, digest = get("filename"), get("offset"), get("digest")
    return JoinKeys(
        (b"%s %s" % (key, timestamp[:14])).decode(),
        bare_id(record_id) if isinstance(record_id, str) else "",
        base_name(filename) if isinstance(filename, str) else "",
        "" if offset is None else str(offset),
        digest.rpartition(":")[2] if isinstance(digest, str) else "",
    )


def ties_in(line: bytes) -> JoinKeys | None:
    """Return what the capture of *line* is known by; None where it is not CDXJ."""
    try:
        key, timestamp, text = line.split(b" ", 2)
        return ties_of(key, timestamp, orjson.loads(text))
    except (ValueError, AttributeError):
        return None


def bare_id(record_id: str) -> str:
    """Return *record_id* without the brackets and the scheme that some write and some do not."""
    if record_id.startswith("<") or not record_id.islower():
        record_id = record_id.strip("<>").removeprefix("urn:uuid:").lower()
    return record_id.removeprefix("urn:uuid:")


@lru_cache(maxsize=4096)
def base_name(filename: str) -> str:
    """Return *filename* without its directories."""
    return filename.rpartition("/")[2]


def side_of(line: bytes) -> Side | None:
    """Return what the *line* of a sidecar as CDXJ says; None where it is none."""
    try:
        key, timestamp, text = line.split(b" ", 2)
        found = orjson.loads(text)
        return Side(ties_of(key, timestamp, found), written(added_fields(found)))
    except (ValueError, AttributeError):
        return None


_TIES = ("warc-refers-to", "warc-concurrent-to", "warc-concurrent-id")
_OFFSET = re.compile(r"(?a)[0-9]{1,18}")


class Tie(NamedTuple):
    """What ties a record of a sidecar to the capture that it describes."""

    record_id: str
    """Of the source record, with its angle brackets; empty for ARC."""
    filename: str
    """Of the source, without directories; empty in sidecars of others."""
    offset: int
    """Of the source record in its file; -1 where it is not known."""


def is_sidecar_record(record: Record) -> bool:
    """Return whether *record* is one that says what a payload is."""
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


_FIELDS: list[pa.Field[Any]] = [
    pa.field("when", pa.string()),
    pa.field("record_id", pa.string()),
    pa.field("filename", pa.string()),
    pa.field("offset", pa.string()),
    pa.field("digest", pa.string()),
    pa.field("ending", pa.string()),
    pa.field("number", pa.string()),
]
SIDES = pa.schema(_FIELDS)
"""The fields of `JoinKeys`, and what is inserted before the brace that ends a line; may be empty.

That is an ending, which many records have in common, and the number that follows it. In memory an array
has each ending once and a code for each record (Arrow's dictionaries); `spelled` is for what leaves it.
"""
_BEFORE = ", "
SECOND = 14
"""Bytes of the timestamp with which every `when` ends."""


def sides_as_rows(sides: Sequence[Side]) -> pa.RecordBatch:
    """Return *sides* as columns."""
    rows = [(*side.ties, ending_of(side.addition.decode()), "") for side in sides]
    columns = list(zip(*rows, strict=True)) or [()] * len(SIDES)
    *ties, endings, numbers = [texts_from(column) for column in columns]
    return batch_of([*ties, endings.dictionary_encode(), numbers])


def batch_of(columns: Sequence[Texts]) -> pa.RecordBatch:
    """Return *columns*, those of `SIDES`, the endings as codes, as one batch."""
    return pa.RecordBatch.from_arrays(columns, names=SIDES.names)


def spelled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* as `SIDES` has it, each ending where its record is."""
    return batch.cast(SIDES)


def rows_as_sides(rows: pa.Table) -> Iterator[Side]:
    """Yield the records of *rows*, as `sides_as_rows` made them."""
    for batch in rows.to_batches(max_chunksize=4096):
        for *ties, ending, number in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            yield Side(JoinKeys(*ties), (ending + number)[len(_BEFORE) :].encode())


def ending_of(addition: str) -> str:
    """Return what is inserted behind the last value of a line for *addition*."""
    return f"{_BEFORE}{addition}" if addition else ""
