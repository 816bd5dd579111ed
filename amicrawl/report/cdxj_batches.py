"""Blocks of CDXJ lines into batches: plain lines all at once, the others one by one. Pure.

`index/lines/blocks.py` finds the values of lines that one program wrote alike. Lines that are odd
(escapes, numbers in place of text, keys without host, 17-digit times) go through `rows`, which alone
decides; both ways give the same rows, in the same order.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from amicrawl.index.lines.blocks import Block, Fields
from amicrawl.index.lines.numerals import whole_numbers
from amicrawl.report.batch import (
    Lines,
    Ruled,
    are_uniform,
    batch_of,
    chosen,
    numbers_in,
    statuses_in,
    with_odd_lines,
)
from amicrawl.report.rows import CDXJ_FACETS, MOST_DIGITS, row_of_cdxj
from amicrawl.report.times import are_dates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.index.lines.shapes import Shape
    from amicrawl.report.batch import Flags, Numbers

_TEXTS = ("url", "mime", "digest")
_NAMES = (*_TEXTS, "status", "length", *CDXJ_FACETS)
_META = b"!meta"


def cdxj_lines(octets: bytes) -> Lines:
    """Return what the whole lines of *octets* are."""
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n")
    block = Block(octets if octets.endswith(b"\n") else octets + b"\n")
    known = [(alike, places) for alike in block.alike if (places := _places_in(alike.shape))]
    fields = Fields(block, known)
    facets = [name for name in CDXJ_FACETS if any(places[name] is not None for _, places in known)]
    whole, fit = _checked(block, fields, facets)
    batch, even = chosen(whole, fit), fields.rows[fit]
    if len(even) == block.lines:
        return Lines(batch, Counter())
    return with_odd_lines(Ruled(list(_odd_lines(block, even)), batch, even), row_of_cdxj)


def _places_in(shape: Shape) -> dict[str, int | None] | None:
    """Return where the texts of lines of that *shape* are; None where one of them is not a string."""
    try:
        return {name: shape.text(name) for name in _NAMES}
    except LookupError:
        return None


def _checked(block: Block, fields: Fields, facets: list[str]) -> tuple[pa.RecordBatch, Flags]:
    """Return the batch of the lines *fields*, and which are surely as the slow path would have them."""
    key = block.keys(fields.rows).texts(kind=pa.binary())
    time, _ = whole_numbers(block.seconds(fields.rows))
    status, fit = statuses_in(fields.spans("status")[0])
    size, readable = numbers_in(fields.spans("length")[0], longest=MOST_DIGITS)
    fit &= readable & are_dates(time) & are_uniform(key)
    columns = {name: fields.texts(name).view(pa.binary()) for name in _TEXTS}
    columns |= {CDXJ_FACETS[name]: fields.texts(name).view(pa.binary()) for name in facets}
    return batch_of({"key": key, "time": time, "status": status, "size": size, **columns}), fit


def _odd_lines(block: Block, even: Numbers) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not among the *even*, but for blank ones and those of metadata."""
    odd = np.delete(np.arange(block.lines), even)
    for number in odd[block.starts[odd] < block.ends[odd]].tolist():
        for line in block.line(number).splitlines():
            if line.strip() and not line.startswith(_META):
                yield number, line
