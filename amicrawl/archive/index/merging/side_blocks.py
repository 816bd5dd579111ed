"""Sidecars as columns: those that are CDXJ without reading each line, where lines are plain.

`sides.py` has the rules, and parses lines that are not plain. The shape of a line says where its strings
are; what follows from them is made once for all lines with the same strings.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.archive.arrow_texts import (
    Spans,
    Texts,
    are_as_python_writes,
    are_zero,
    numbers_from,
    numbers_of,
    octets_of,
    texts_from,
)
from amicrawl.archive.index.merging.joining import bare_ids, base_names_of
from amicrawl.archive.index.merging.sides import (
    CDXJ,
    batch_of,
    ending_of,
    side_of,
    sides_as_rows,
    sides_of,
)
from amicrawl.archive.index.sidecar.findings import (
    CHARSET,
    LANGUAGES,
    MOST_LANGUAGES,
    PUID,
    SOFT_404,
    TYPES,
    language_fields,
    written,
)
from amicrawl.archive.lines import Block, octet_blocks
from amicrawl.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from amicrawl.archive.index.merging.sides import Side
    from amicrawl.archive.lines import Alike, LineShape, Scalar

_BATCH = 4096
_BLOCK_BYTES = 2 << 20
_EXCLAMATION_MARK, _COLON = b"!:"
_COVERED = "text-covered"
_BETWEEN = "\t"
"""What a plain line does not hold."""
_TAB = texts_from([_BETWEEN])[0]


def side_batches(path: Path, *, report: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    """Yield what the sidecar *path* says, as columns; faults go to *report*."""
    if not path.name.endswith(CDXJ):
        records = sides_of(path, report=report)
        while some := list(islice(records, _BATCH)):
            yield sides_as_rows(some)
        return
    number = 0
    try:
        for octets in octet_blocks(path, block_bytes=_BLOCK_BYTES):
            block = Block(octets)
            yield _rows_of(block, lambda at, before=number: report(_fault(path, before + at)))  # type: ignore[misc]
            number += block.lines
    except DamagedFileError as error:
        report(str(error))


def _fault(path: Path, number: int) -> str:
    return f"{path.name}, line {number + 1}: no line of a sidecar"


class _Places(NamedTuple):
    """Where a shape has what counts; None for what it has not."""

    record_id: int | None
    filename: int | None
    offset: int | None
    digest: int | None
    magic: int | None
    own: int | None
    fido: int | None
    puid: int | None
    charset: int | None
    codes: tuple[int, ...]
    shares: tuple[Scalar, ...]
    """Of each code, the percent of the text; empty where that is not known."""
    probability: Scalar | None


def _rows_of(block: Block, broken: Callable[[int], None]) -> pa.RecordBatch:
    batches, numbers = [], []
    taken = np.zeros(block.lines, np.bool_)
    for alike in block.alike:
        places = _places_in(alike.shape)
        if places is None:
            continue
        columns, rows = _columns_of(
            block, alike.some(block.first_octets(alike.rows) != _EXCLAMATION_MARK), places
        )
        taken[rows] = True
        batches.append(columns)
        numbers.append(rows)
    sides: list[Side] = []
    read = []
    for number in np.flatnonzero(~taken).tolist():
        line = block.line(number)
        if not line or line.startswith(b"!"):
            continue
        side = side_of(line)
        if side is None:
            broken(number)
        else:
            sides.append(side)
            read.append(number)
    if not sides and len(batches) == 1:
        return batches[0]
    numbers.append(np.array(read, np.int64))
    table = pa.Table.from_batches([*batches, sides_as_rows(sides)])
    # Of records with the same tie the last one counts, so they stay in order.
    table = table.take(numbers_from(np.argsort(np.concatenate(numbers)))).combine_chunks()
    return table.to_batches()[0] if table.num_rows else sides_as_rows([])


def _places_in(shape: LineShape) -> _Places | None:
    """Return where the lines of *shape* have what counts; None where its lines have to be parsed."""
    fields = shape.fields
    if {"recordid", "warc-record-id"} <= fields.keys():
        return None
    probability = fields.get(SOFT_404)
    number = None
    if type(probability) in (int, float):
        found = shape.numbers.get(SOFT_404, ())
        if len(found) != 1:
            return None
        number = found[0]
    try:
        record_id = shape.text("recordid")
        return _Places(
            record_id if record_id is not None else shape.text("warc-record-id"),
            shape.text("filename"),
            shape.text("offset"),
            shape.text("digest"),
            shape.text(TYPES, "python-magic"),
            shape.text(TYPES, "amicrawl"),
            shape.text(TYPES, "fido"),
            shape.text(PUID),
            shape.text(CHARSET, "encoding"),
            _codes(fields.get(LANGUAGES)),
            _shares(fields.get(LANGUAGES), shape.numbers.get(_COVERED, ())),
            number,
        )
    except LookupError:
        return None


def _codes(found: object) -> tuple[int, ...]:
    """Return the places of the codes; LookupError where that is not plain."""
    if found is None:
        return ()
    if not isinstance(found, dict) or not isinstance(found.get("languages", []), list):
        raise LookupError("languages are not in a list")  # noqa: TRY004  # it is the data's fault
    listed = found.get("languages", [])[:MOST_LANGUAGES]
    if not all(isinstance(each, dict) and isinstance(each.get("code"), str) for each in listed):
        raise LookupError("a language has no code")
    return tuple(int(each["code"]) for each in listed)


def _shares(found: object, numbers: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Return where the shares of the codes are; LookupError where that is not plain."""
    listed = found.get("languages", []) if isinstance(found, dict) else []
    if any(_COVERED in each for each in listed) and (
        len(numbers) != len(listed) or not all(type(each.get(_COVERED)) is int for each in listed)
    ):
        raise LookupError("a language has no share, or a share is elsewhere")
    return numbers[: min(len(listed), MOST_LANGUAGES)]


def _columns_of(block: Block, alike: Alike, places: _Places) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    """Return what lines of one shape say; and which of them, for some may have to be read."""
    is_zero = probabilities = None
    if places.probability is not None:
        alike = alike.some(are_as_python_writes(block.scalars(alike, places.probability)))
        spans = block.scalars(alike, places.probability)
        # A probability of 0 is left out.
        is_zero = are_zero(spans)
        probabilities = Spans(spans.octets, spans.starts, np.where(is_zero, spans.starts, spans.ends))
    rows = alike.rows
    nothing = texts_from([""]).take(numbers_from(np.zeros(len(rows), np.int64)))

    def texts(place: int | None) -> Texts:
        return nothing if place is None else block.texts(alike, place).texts()

    shares = [block.scalars(alike, place).texts() for place in places.shares]
    columns: list[Texts] = [
        block.whens(rows).texts(),
        bare_ids(texts(places.record_id)),
        nothing if places.filename is None else base_names_of(texts(places.filename)),
        texts(places.offset),
        _bare_digests(texts(places.digest)),
        _endings(places, texts, shares, is_zero),
        nothing if probabilities is None else probabilities.texts(),
    ]
    return batch_of(columns), rows


def _endings(
    places: _Places,
    texts: Callable[[int | None], Texts],
    shares: list[Texts],
    is_zero: NDArray[np.bool_] | None,
) -> Texts:
    """Return what lines get that the records belong to, but for their probability.

    *is_zero* says of which that is 0; None where they have none.
    """
    names = [places.magic, places.own, places.fido, places.puid, places.charset, *places.codes]
    said = [*map(texts, names), *shares]
    together: Any = pc.binary_join_element_wise(*said, _TAB)
    spelled = together.dictionary_encode()
    endings = [
        ending_of(_addition(places, text.split(_BETWEEN))) for text in spelled.dictionary.to_pylist()
    ]
    if is_zero is None:
        return pa.DictionaryArray.from_arrays(spelled.indices, texts_from(endings))
    which = numbers_of(spelled.indices) + np.where(is_zero, 0, len(endings)).astype(np.int32)
    begins = texts_from([*endings, *[f'{ending}, "soft-404-detected": ' for ending in endings]])
    return pa.DictionaryArray.from_arrays(numbers_from(which), begins)


def _addition(places: _Places, said: list[str]) -> str:
    magic, own, fido, puid, charset, *rest = said
    codes, shares = rest[: len(places.codes)], rest[len(places.codes) :]
    fields = {}
    if magic or own or places.fido is not None:
        fields["mime-detected"] = magic or own or fido
    if places.puid is not None:
        fields["puid"] = puid
    if places.charset is not None:
        fields["charset"] = charset
    # A whole number, as JSON has it: no share has a fraction.
    percents = tuple(int(share) for share in shares if share.lstrip("-").isdecimal())
    fields |= language_fields(tuple(codes), percents)
    return written(fields).decode()


def _bare_digests(texts: Texts) -> Texts:
    if not (octets_of(texts)[0] == _COLON).any():
        return texts
    return texts_from([text.rpartition(":")[2] for text in texts.to_pylist()])
