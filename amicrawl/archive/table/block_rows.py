"""Blocks of CDXJ lines into rows of a table, without reading each line.

Most lines are plain and like others (`archive/lines/blocks.py`): their values are found, and made
columns of, all at once. The others are read one by one (`convert.py`), and the rows put in the lines'
order. Which way a line goes makes no difference to its row, nor to whether it is a reject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from amicrawl.archive.arrow_texts import numbers_from
from amicrawl.archive.lines import Block, Fields
from amicrawl.archive.table.convert import (
    converted,
    moments,
    numbers,
    places_of,
    record_ids,
    rows_of_columns,
    statuses,
)
from amicrawl.archive.table.schema import NOWHERE, CapturePlace
from amicrawl.archive.table.url_columns import columns_of_urls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.archive.lines import LineShape
    from amicrawl.archive.table.convert import Reject
    from amicrawl.archive.table.schema import TableSchema

_HEADER = b"!"
_EXCLAMATION_MARK = ord("!")
_NUMBER_FIELDS = {"warc_record_offset": "offset", "warc_record_length": "length"}


class BlockRows(NamedTuple):
    """What a block of lines came to."""

    rows: pa.RecordBatch
    """With dictionaries for what repeats, as rows are held."""
    rejects: list[Reject]
    lines: int
    headers: int
    """Blank lines, and those that begin with an exclamation mark."""


def rows_of_block(octets: bytes, schema: TableSchema, *, place: CapturePlace = NOWHERE) -> BlockRows:
    """Return the rows of the lines in *octets*, each ended by LF; order is kept.

    Crawl, segment and subset are those of *place*; what it leaves open is derived from the file's name.
    """
    block = Block(octets)
    fields = _taken(block, schema)
    rows = fields.rows
    plain = None
    if len(rows):
        try:
            plain = _plain_rows(block, fields, schema, place)
        except MemoryError:  # Arrow's is an ArrowException, too
            raise
        except (LookupError, ValueError, pa.ArrowException):
            # Some line is a reject: they are all looked at, to find which.
            rows = rows[:0]
    if plain is not None and len(rows) == block.lines:
        return BlockRows(plain, [], block.lines, 0)
    is_taken = np.zeros(block.lines, np.bool_)
    is_taken[rows] = True
    others = [
        number for number in np.flatnonzero(~is_taken).tolist() if not _is_header(block.line(number))
    ]
    read = converted([block.line(number) for number in others], schema, place=place)
    headers = block.lines - len(rows) - len(others)
    if plain is None:
        return BlockRows(read.rows, read.rejects, block.lines, headers)
    order = np.argsort(np.concatenate((rows, np.array(others, np.int64)[read.places])))
    both = pa.Table.from_batches([plain, read.rows]).unify_dictionaries().take(numbers_from(order))
    return BlockRows(both.combine_chunks().to_batches()[0], read.rejects, block.lines, headers)


def _taken(block: Block, schema: TableSchema) -> Fields:
    """Return the plain lines whose fields are texts, with those that columns are made of."""
    wanted = {**schema.text_fields, **_NUMBER_FIELDS, "url": "url", "warc_filename": "filename"}
    wanted["fetch_status"] = "status"
    if "warc_record_id" in schema.columns.names:
        wanted["warc_record_id"] = "recordid"
    taken = []
    for alike in block.alike:
        places = _places_in(alike.shape, wanted)
        if places is not None:
            taken.append((alike.some(block.first_octets(alike.rows) != _EXCLAMATION_MARK), places))
    return Fields(block, taken)


def _places_in(shape: LineShape, wanted: Mapping[str, str]) -> dict[str, int | None] | None:
    try:
        places = {column: shape.text(field) for column, field in wanted.items()}
    except LookupError:
        return None
    return places if places["url"] is not None else None


def _plain_rows(
    block: Block, fields: Fields, schema: TableSchema, place: CapturePlace
) -> pa.RecordBatch:
    """Return the rows of the plain lines *fields*; raises one of several errors where one gives none."""
    columns = {name: fields.texts(name) for name in ("url", "warc_filename", *schema.text_fields)}
    columns["url_surtkey"] = block.keys(fields.rows).texts()
    columns["fetch_time"] = moments(block.seconds(fields.rows))
    columns["fetch_status"] = statuses(*fields.spans("fetch_status"))
    columns["warc_filename"] = columns["warc_filename"].dictionary_encode()
    columns |= {name: numbers(*fields.spans(name)) for name in _NUMBER_FIELDS}
    columns |= columns_of_urls(columns["url"])
    columns |= places_of(columns["warc_filename"], place, columns["fetch_time"])
    if "warc_record_id" in schema.columns.names:
        columns["warc_record_id"] = record_ids(fields.texts("warc_record_id").to_pylist())
    return rows_of_columns(columns, schema)


def _is_header(line: bytes) -> bool:
    return not line or line[:1] == _HEADER or line == b"\r"
