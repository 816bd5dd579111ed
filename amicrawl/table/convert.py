"""Many CDXJ lines at once into the columns of a table.

Lines are taken in batches. A batch whose lines are all sound is turned into columns by one pass each; a
batch that holds a line which is not is sifted line by line first (`line_faults.py`), so that the work
falls on the batches that need it. Either way the same lines give the same rows: a line is a reject if
and only if a batch of it alone cannot be turned into columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.table.line_faults import fault_of, number_of, status_of
from amicrawl.table.partition import NOWHERE, Place, place_of
from amicrawl.table.url_columns import columns_of_urls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.table.schema import TableSchema

BATCH_LINES = 32_768
"""Lines of a batch: enough that what is done once a batch does not count."""

_YEAR_ZERO = np.datetime64("0000-01-01", "M")
_POWERS = np.array([1000, 100, 10, 1], dtype=np.int64)


class Reject(NamedTuple):
    """A line that gives no row."""

    line: bytes
    reason: str


class Converted(NamedTuple):
    """What a batch of lines came to."""

    rows: pa.RecordBatch
    rejects: list[Reject]


def converted(lines: Sequence[bytes], schema: TableSchema, *, place: Place = NOWHERE) -> Converted:
    """Return the rows of *lines*, each without its LF, and the lines that give none; order is kept.

    Crawl, segment and subset are those of *place*; what it leaves open is told by the file's name.
    """
    try:
        return Converted(_rows(lines, schema, place), [])
    except (LookupError, ValueError, TypeError, AttributeError, pa.ArrowException):
        sound, rejects = _sifted(lines, schema)
        return Converted(_rows(sound, schema, place), rejects)


def _sifted(lines: Sequence[bytes], schema: TableSchema) -> tuple[list[bytes], list[Reject]]:
    sound, rejects = [], []
    for line in lines:
        if reason := fault_of(line, schema.text_fields):
            rejects.append(Reject(line, reason))
        else:
            sound.append(line)
    return sound, rejects


def _rows(lines: Sequence[bytes], schema: TableSchema, place: Place) -> pa.RecordBatch:
    """Return the rows of *lines*; raises one of several errors where a line is not sound."""
    parts = [line.split(b" ", 2) for line in lines]
    objects = [orjson.loads(part[2]) for part in parts]
    urls = _texts(objects, "url")
    if urls.null_count:
        raise ValueError("there is no url")
    filenames = _texts(objects, "filename")
    columns: dict[str, pa.Array[Any]] = {
        "url_surtkey": _keys([part[0] for part in parts]),
        "url": urls,
        "fetch_time": _moments([part[1] for part in parts]),
        "fetch_status": _statuses([fields.get("status") for fields in objects]),
        "warc_filename": filenames,
        "warc_record_offset": _numbers([fields.get("offset") for fields in objects]),
        "warc_record_length": _numbers([fields.get("length") for fields in objects]),
    }
    columns |= {column: _texts(objects, field) for column, field in schema.text_fields.items()}
    columns |= columns_of_urls(urls)
    columns |= _places(filenames, place)
    if "warc_record_id" in schema.columns.names:
        identifiers = [_uuid_octets(fields.get("recordid")) for fields in objects]
        columns["warc_record_id"] = pa.array(identifiers, pa.binary())
    return pa.RecordBatch.from_arrays(
        [columns[name] for name in schema.columns.names], schema=schema.columns
    )


def _texts(objects: Sequence[dict[str, Any]], field: str) -> pa.Array[Any]:
    return pa.array([fields.get(field) for fields in objects], pa.string())


def _keys(keys: list[bytes]) -> pa.Array[Any]:
    if not all(keys):
        raise ValueError("a key is empty")
    return pa.array(keys, pa.binary()).cast(pa.string())


def _moments(timestamps: list[bytes]) -> pa.Array[Any]:
    """Return *timestamps* as moments; ValueError where one is none."""
    lengths = set(map(len, timestamps))
    if lengths - {14}:
        if lengths - {14, 17} or not all(map(bytes.isdigit, timestamps)):
            raise ValueError("a timestamp is not of 14 digits")
        timestamps = [timestamp[:14] for timestamp in timestamps]
    digits = np.frombuffer(b"".join(timestamps), np.uint8).reshape(-1, 14).astype(np.int64) - ord("0")
    if ((digits < 0) | (digits > 9)).any():
        raise ValueError("a timestamp is not of 14 digits")
    year = digits[:, :4] @ _POWERS
    month, day, hour, minute, second = (digits[:, at] * 10 + digits[:, at + 1] for at in range(4, 14, 2))
    if (
        (year < 1) | (month < 1) | (month > 12) | (day < 1) | (hour > 23) | (minute > 59) | (second > 59)
    ).any():
        raise ValueError("a timestamp is no moment")
    months = _YEAR_ZERO + (year * 12 + month - 1)
    days = months.astype("M8[D]") + (day - 1)
    if (days.astype("M8[M]") != months).any():
        raise ValueError("a month has fewer days")
    milliseconds = ((days.astype(np.int64) * 24 + hour) * 60 + minute) * 60_000 + second * 1000
    return pa.array(milliseconds.astype("M8[ms]"), pa.timestamp("ms"))


def _statuses(values: list[object]) -> pa.Array[Any]:
    try:
        spelled: Any = pa.array(values, pa.string()).dictionary_encode()
    except (TypeError, ValueError):
        return pa.array(list(map(status_of, values)), pa.int16())
    known = pa.array([*map(status_of, spelled.dictionary.to_pylist()), -1], pa.int16())
    return known.take(spelled.indices.fill_null(len(known) - 1))


def _numbers(values: list[object]) -> pa.Array[Any]:
    """Return *values* as whole numbers; ValueError where one is none."""
    try:
        texts = pa.array(values, pa.string())
        if (
            not texts.null_count
            and pc.all(pc.ascii_is_decimal(texts)).as_py()
            and pc.max(pc.binary_length(texts)).as_py() < 20
        ):
            return texts.cast(pa.int64())
    except (TypeError, ValueError):
        pass  # numbers among them
    return pa.array(list(map(number_of, values)), pa.int64())


def _places(filenames: pa.Array[Any], place: Place) -> dict[str, pa.Array[Any]]:
    spelled: Any = filenames.dictionary_encode()
    known = [place.over(_place_of(name)) for name in [*spelled.dictionary.to_pylist(), None]]
    which = spelled.indices.fill_null(len(known) - 1)
    return {
        name: pa.array(values, pa.string()).take(which)
        for name, values in zip(
            ("crawl", "warc_segment", "subset"), zip(*known, strict=True), strict=True
        )
    }


@lru_cache(maxsize=65_536)
def _place_of(filename: str | None) -> Place:
    return place_of(filename)


def _uuid_octets(value: object) -> bytes | None:
    """Return the 16 octets of the UUID *value*, with or without brackets and `urn:uuid:`."""
    if not isinstance(value, str):
        return None
    try:
        return UUID(value.strip("<>").removeprefix("urn:uuid:")).bytes
    except ValueError:
        return None
