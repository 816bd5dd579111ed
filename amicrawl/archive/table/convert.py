"""CDXJ lines into the columns of a table, by reading each, and why a line gives no row.

A line is `urlkey SP timestamp SP object`. The timestamp has 14 digits, or 17, of which the last three
are dropped. Numbers may be JSON numbers or strings. What the line does not have is null, a missing
offset or length is -1, a status that is not a number of 16 bits is -1. Anything else that is not as it
should be makes the line a reject, with one of the reasons that `fault_of` gives.

This says what the row of a line is; `block_rows.py` comes to the same rows for most lines without
reading each. Lines are taken in batches. A batch whose lines are all sound is turned into columns by one
pass each; a batch that holds a line which is not is sifted line by line first (`fault_of`), so
that the work falls on the batches that need it. Either way the same lines give the same rows: a line is
a reject if and only if a batch of it alone cannot be turned into columns.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import (
    Octets,
    Spans,
    have_other_than_digits,
    missing_in,
    numbers_from,
    numbers_of,
    octets_from,
    pairs_of_digits,
    texts_from,
    whole_numbers,
)
from amicrawl.archive.lines import is_utf8
from amicrawl.archive.table.schema import DEFAULT_SUBSET, MONTH_PREFIX, NOWHERE, CapturePlace, place_of
from amicrawl.archive.table.url_columns import columns_of_urls, dictionary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from amicrawl.archive.table.schema import TableSchema


MISSING_NUMBER = -1
LARGEST_NUMBER = 2**63 - 1
LARGEST_STATUS = 2**15 - 1

_TIMESTAMP = re.compile(rb"[0-9]{14}(?:[0-9]{3})?")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_NUMBER_FIELDS = ("offset", "length")


def fault_of(line: bytes, text_fields: Mapping[str, str]) -> str | None:
    """Return why *line*, without its LF, gives no row; None where it does.

    *text_fields* are the columns taken as they are, each with the field of the line that holds it.
    """
    parts = line.split(b" ", 2)
    if len(parts) < 3:
        return "not a key, a timestamp and an object with a space between each"
    key, timestamp, written = parts
    if not key or not is_utf8(key):
        return "the key is not text in UTF-8" if key else "the key is empty"
    if reason := _fault_of_timestamp(timestamp):
        return reason
    try:
        fields = orjson.loads(written)
    except orjson.JSONDecodeError:
        return "what follows the timestamp is not one JSON value"
    if not isinstance(fields, dict):
        return "what follows the timestamp is not a JSON object"
    return _fault_of_fields(fields, text_fields)


def number_of(value: object) -> int:
    """Return the offset or length that *value* stands for; ValueError, with a reason, for others."""
    if value is None or value in ("", "-"):
        return MISSING_NUMBER
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("is not a whole number")  # noqa: TRY004  # it is the data's fault, not the caller's
    if not MISSING_NUMBER <= value <= LARGEST_NUMBER:
        raise ValueError("is negative, or does not fit in 64 bits")
    return value


def status_of(value: object) -> int:
    """Return the HTTP status that *value* stands for; -1 where it is not a whole number of 16 bits."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_STATUS:
        return MISSING_NUMBER
    return value


def _fault_of_timestamp(timestamp: bytes) -> str | None:
    if not _TIMESTAMP.fullmatch(timestamp):
        return "the timestamp is not of 14 digits"
    try:
        datetime.strptime(timestamp[:14].decode(), "%Y%m%d%H%M%S")  # noqa: DTZ007  # only whether it is one
    except ValueError:
        return "the timestamp is not a moment of the calendar"
    return None


def _fault_of_fields(fields: Mapping[str, Any], text_fields: Mapping[str, str]) -> str | None:
    if fields.get("url") is None:
        return "the field url is missing"
    for name in ("url", "filename", *text_fields.values()):
        if not isinstance(fields.get(name, ""), str | None):
            return f"{name} is not a text"
    for name in _NUMBER_FIELDS:
        try:
            number_of(fields.get(name))
        except ValueError as error:
            return f"{name} {error}"
    return None


_SHA1 = "sha1:"
_YEAR_ZERO = np.datetime64("0000-01-01", "M")


class Reject(NamedTuple):
    """A line that gives no row."""

    line: bytes
    reason: str


class Converted(NamedTuple):
    """What a batch of lines came to, and which lines gave the rows."""

    rows: pa.RecordBatch
    """With dictionaries, as rows are held."""
    rejects: list[Reject]
    places: NDArray[np.int64]
    """Of each row, the number of its line."""


def converted(
    lines: Sequence[bytes], schema: TableSchema, *, place: CapturePlace = NOWHERE
) -> Converted:
    """Return the rows of *lines*, each without its LF, and the lines that give none; order is kept.

    Crawl, segment and subset are those of *place*; what it leaves open is derived from the file's name.
    """
    try:
        return Converted(_rows(lines, schema, place), [], np.arange(len(lines)))
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (LookupError, ValueError, TypeError, AttributeError, pa.ArrowException):
        faults = [fault_of(line, schema.text_fields) for line in lines]
        sound = [line for line, fault in zip(lines, faults, strict=True) if fault is None]
        rejects = [
            Reject(line, fault) for line, fault in zip(lines, faults, strict=True) if fault is not None
        ]
        places = np.array([number for number, fault in enumerate(faults) if fault is None], np.int64)
        return Converted(_rows(sound, schema, place), rejects, places)


def _rows(lines: Sequence[bytes], schema: TableSchema, place: CapturePlace) -> pa.RecordBatch:
    """Return the rows of *lines*; raises one of several errors where a line is not sound."""
    parts = [line.split(b" ", 2) for line in lines]
    objects = [orjson.loads(part[2]) for part in parts]
    urls = _texts(objects, "url")
    if urls.null_count:
        raise ValueError("the field url is missing")
    filenames = _texts(objects, "filename")
    columns: dict[str, pa.Array[Any]] = {
        "url_surtkey": _keys([part[0] for part in parts]),
        "url": urls,
        "fetch_time": _moments_of([part[1] for part in parts]),
        "fetch_status": _statuses([fields.get("status") for fields in objects]),
        "warc_filename": filenames,
        "warc_record_offset": _numbers([fields.get("offset") for fields in objects]),
        "warc_record_length": _numbers([fields.get("length") for fields in objects]),
    }
    columns |= {column: _texts(objects, field) for column, field in schema.text_fields.items()}
    columns |= columns_of_urls(urls)
    columns |= places_of(filenames, place, columns["fetch_time"])
    if "warc_record_id" in schema.columns.names:
        columns["warc_record_id"] = record_ids([fields.get("recordid") for fields in objects])
    return rows_of_columns(columns, schema)


def rows_of_columns(columns: Mapping[str, pa.Array[Any]], schema: TableSchema) -> pa.RecordBatch:
    """Return *columns*, by name, as rows, with dictionaries for what repeats and for nothing else."""
    given = []
    for column in schema.held:
        values: Any = columns[column.name]
        if column.name == "content_digest":
            values = _bare_digests(values)
        if pa.types.is_dictionary(values.type) and not pa.types.is_dictionary(column.type):
            values = values.dictionary.take(values.indices)
        elif pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        given.append(values)
    return pa.RecordBatch.from_arrays(given, schema=schema.held)


def _bare_digests(digests: Any) -> Any:
    """Return *digests* without the label of SHA-1, which the tables that exist have without it, too."""
    if pc.any(pc.starts_with(digests, _SHA1)).as_py():
        return pc.replace_substring_regex(digests, f"^{_SHA1}", "")
    return digests


def record_ids(values: Iterable[object]) -> pa.Array[Any]:
    """Return the octets of the UUIDs *values*; null for what is none."""
    octets: pa.Array[Any] = octets_from([_uuid_octets(value) for value in values])
    return octets


def _texts(objects: Sequence[dict[str, Any]], field: str) -> pa.Array[Any]:
    return _only_texts([fields.get(field) for fields in objects])


def _only_texts(values: Sequence[object]) -> pa.Array[Any]:
    """Return *values* as texts, null where one is None; TypeError where one is anything else."""
    if not all(value is None or isinstance(value, str) for value in values):
        raise TypeError("a value is not a string")
    texts: pa.Array[Any] = texts_from(cast("Sequence[str | None]", values))
    return texts


def _keys(keys: list[bytes]) -> pa.Array[Any]:
    if not all(keys):
        raise ValueError("a key is empty")
    texts: pa.Array[Any] = octets_from(keys).cast(pa.string())
    return texts


def _moments_of(timestamps: list[bytes]) -> pa.Array[Any]:
    """Return *timestamps* as moments; ValueError where one is none."""
    lengths = set(map(len, timestamps))
    if lengths - {14}:
        if lengths - {14, 17} or not all(map(bytes.isdigit, timestamps)):
            raise ValueError("a timestamp is not of 14 digits")
        timestamps = [timestamp[:14] for timestamp in timestamps]
    ends = np.arange(14, 14 * len(timestamps) + 1, 14)
    return moments(Spans(Octets(b"".join(timestamps)), ends - 14, ends))


def moments(timestamps: Spans) -> pa.Array[Any]:
    """Return *timestamps*, each of 14 octets, as moments; ValueError where one is none."""
    # Two digits each: the first eight octets, and the last, of which the first two are there already.
    date, time = timestamps.words(0), timestamps.words(6)
    if (have_other_than_digits(date) | have_other_than_digits(time)).any():
        raise ValueError("a timestamp is not of 14 digits")
    century, rest, month, day = _pairs(date)
    _, hour, minute, second = _pairs(time)
    year = century * 100 + rest
    if (
        (year < 1) | (month < 1) | (month > 12) | (day < 1) | (hour > 23) | (minute > 59) | (second > 59)
    ).any():
        raise ValueError("a timestamp is not a moment")
    months = _YEAR_ZERO + (year * 12 + month - 1)
    days = months.astype("M8[D]") + (day - 1)
    if (days.astype("M8[M]") != months).any():
        raise ValueError("a month has fewer days")
    milliseconds = ((days.astype(np.int64) * 24 + hour) * 60 + minute) * 60_000 + second * 1000
    return numbers_from(milliseconds, kind=pa.timestamp("ms"))


def _pairs(words: NDArray[np.uint64]) -> list[NDArray[np.int64]]:
    """Return the numbers that each two of the eight digits in *words* are, first to last."""
    pairs = pairs_of_digits(words)
    return [((pairs >> np.uint64(at)) & np.uint64(0xFF)).astype(np.int64) for at in (0, 16, 32, 48)]


def _statuses(values: list[object]) -> pa.Array[Any]:
    try:
        texts = _only_texts(values)
    except (TypeError, ValueError):
        return numbers_from(np.array(list(map(status_of, values)), np.int16))
    return statuses(Spans.of(texts), missing_in(texts))


def statuses(spans: Spans, missing: NDArray[np.bool_] | None) -> pa.Array[Any]:
    """Return *spans* as statuses; -1 where one is none, or *missing*."""
    found, are = whole_numbers(spans)
    others = np.flatnonzero(~are | (found > LARGEST_STATUS))
    found[others] = list(map(status_of, spans.some(others).texts().to_pylist()))
    if missing is not None:
        found[missing] = MISSING_NUMBER
    return numbers_from(found.astype(np.int16))


def _numbers(values: list[object]) -> pa.Array[Any]:
    """Return *values* as whole numbers; ValueError where one is none."""
    try:
        texts = _only_texts(values)
    except (TypeError, ValueError):
        return numbers_from(np.array(list(map(number_of, values)), np.int64))  # numbers among them
    return numbers(Spans.of(texts), missing_in(texts))


def numbers(spans: Spans, missing: NDArray[np.bool_] | None) -> pa.Array[Any]:
    """Return *spans* as offsets or lengths; -1 where one is *missing*, ValueError where one is none."""
    found, are = whole_numbers(spans)
    if missing is not None:
        found[missing] = MISSING_NUMBER
        are |= missing
    others = np.flatnonzero(~are)
    found[others] = list(map(number_of, spans.some(others).texts().to_pylist()))
    return numbers_from(found)


def places_of(
    filenames: pa.Array[Any], place: CapturePlace, fetched: pa.Array[Any]
) -> dict[str, pa.Array[Any]]:
    """Return crawl, segment and subset of captures in *filenames* that were *fetched* then.

    Only a segment can be null.
    """
    spelled: Any = filenames if pa.types.is_dictionary(filenames.type) else filenames.dictionary_encode()
    known = [_place_of(name) for name in [*spelled.dictionary.to_pylist(), None]]
    if place != NOWHERE:
        known = [place.over(its) for its in known]
    which = numbers_of(spelled.indices)
    if (missing := missing_in(spelled.indices)) is not None:
        which = np.where(missing, len(known) - 1, which)
    crawls, segments, subsets = zip(*known, strict=True)
    return {
        "crawl": _crawls(crawls, which, fetched),
        "warc_segment": dictionary(segments, which),
        "subset": dictionary([subset or DEFAULT_SUBSET for subset in subsets], which),
    }


def _crawls(
    known: Sequence[str | None], which: NDArray[np.integer[Any]], fetched: pa.Array[Any]
) -> pa.Array[Any]:
    """Return the crawls *known* at the places *which*; of captures without one, that of their month."""
    unknown = np.array([crawl is None for crawl in known])[which]
    if not unknown.any():
        return dictionary(known, which)
    months = numbers_of(fetched.view(pa.int64())).astype("M8[ms]").astype("M8[M]")[unknown]
    each, places = np.unique(months, return_inverse=True)
    both = which.astype(np.int64)
    both[unknown] = len(known) + places
    return dictionary([*known, *[f"{MONTH_PREFIX}{month}" for month in each]], both)


@lru_cache(maxsize=32_768)
def _place_of(filename: str | None) -> CapturePlace:
    return _first_like(place_of(filename))


@lru_cache(maxsize=1024)
def _first_like(place: CapturePlace) -> CapturePlace:
    """Return the first that equals *place*: files are many, and places few, which may lie there once."""
    return place


def _uuid_octets(value: object) -> bytes | None:
    """Return the 16 octets of the UUID *value*, with or without brackets and `urn:uuid:`."""
    if not isinstance(value, str):
        return None
    try:
        return UUID(value.strip("<>").removeprefix("urn:uuid:")).bytes
    except ValueError:
        return None
