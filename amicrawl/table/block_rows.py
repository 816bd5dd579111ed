"""Blocks of CDXJ lines into rows of a table, without reading each line.

Most lines are plain and like others (`index/lines/blocks.py`): their values are found, and made columns
of, all at once. The others are read one by one (`convert.py`), and the rows put in the lines' order.
Which way a line goes makes no difference to its row, nor to whether it is a reject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from amicrawl.index.lines.blocks import Block
from amicrawl.table.convert import (
    converted_with_places,
    moments,
    numbers,
    places_of,
    record_ids,
    rows_of_columns,
    statuses,
)
from amicrawl.table.partition import NOWHERE, Place
from amicrawl.table.url_columns import columns_of_urls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from amicrawl.index.lines.arrow_texts import Texts
    from amicrawl.index.lines.shapes import Shape
    from amicrawl.table.convert import Reject
    from amicrawl.table.schema import TableSchema

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


def rows_of_block(octets: bytes, schema: TableSchema, *, place: Place = NOWHERE) -> BlockRows:
    """Return the rows of the lines in *octets*, each ended by LF; order is kept.

    Crawl, segment and subset are those of *place*; what it leaves open is told by the file's name.
    """
    block = Block(octets)
    wanted = {**schema.text_fields, **_NUMBER_FIELDS, "url": "url", "warc_filename": "filename"}
    wanted["fetch_status"] = "status"
    if "warc_record_id" in schema.columns.names:
        wanted["warc_record_id"] = "recordid"
    fields, rows = _taken(block, wanted)
    plain = None
    if len(rows):
        try:
            plain = _plain_rows(block, fields, rows, schema, place)
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
    read = converted_with_places([block.line(number) for number in others], schema, place=place)
    headers = block.lines - len(rows) - len(others)
    if plain is None:
        return BlockRows(read.rows, read.rejects, block.lines, headers)
    order = np.argsort(np.concatenate((rows, np.array(others, np.int64)[read.places])))
    both = pa.Table.from_batches([plain, read.rows]).unify_dictionaries().take(order)
    return BlockRows(both.combine_chunks().to_batches()[0], read.rejects, block.lines, headers)


def _taken(
    block: Block, wanted: Mapping[str, str]
) -> tuple[list[tuple[NDArray[np.int64], dict[str, int | None]]], NDArray[np.int64]]:
    """Return lines whose fields are texts, with the places of *wanted* ones, and all such lines."""
    fields, taken = [], []
    for shape, rows in block.shapes:
        places = _places_in(shape, wanted)
        if places is not None:
            fields.append((rows, places))
            taken.append(rows[block.first_octets(rows) != _EXCLAMATION_MARK])
    return fields, np.sort(np.concatenate(taken)) if taken else np.empty(0, np.int64)


def _places_in(shape: Shape, wanted: Mapping[str, str]) -> dict[str, int | None] | None:
    try:
        places = {column: shape.text(field) for column, field in wanted.items()}
    except LookupError:
        return None
    return places if places["url"] is not None else None


def _plain_rows(
    block: Block,
    fields: list[tuple[NDArray[np.int64], dict[str, int | None]]],
    rows: NDArray[np.int64],
    schema: TableSchema,
    place: Place,
) -> pa.RecordBatch:
    """Return the rows of the plain lines *rows*; raises one of several errors where one gives none."""

    def texts(column: str) -> Texts:
        return block.column(rows, [(some, places[column]) for some, places in fields])

    columns = {name: texts(name) for name in ("url", "warc_filename", *schema.text_fields)}
    columns["url_surtkey"] = block.keys(rows)
    columns["fetch_time"] = moments(block.timestamps(rows))
    columns["fetch_status"] = statuses(texts("fetch_status"))
    columns["warc_filename"] = columns["warc_filename"].dictionary_encode()
    columns |= {name: numbers(texts(name)) for name in _NUMBER_FIELDS}
    columns |= columns_of_urls(columns["url"])
    columns |= places_of(columns["warc_filename"], place)
    if "warc_record_id" in schema.columns.names:
        columns["warc_record_id"] = record_ids(texts("warc_record_id").to_pylist())
    return rows_of_columns(columns, schema)


def _is_header(line: bytes) -> bool:
    return not line or line[:1] == _HEADER or line == b"\r"
