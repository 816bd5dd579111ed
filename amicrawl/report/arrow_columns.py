"""Columns of Arrow as texts, codes and numbers, with as little copying and loading as can be. Pure.

Arrow's compute functions are left alone: to load them, and pandas behind them where that is installed,
takes longer than to count a hundred thousand captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from amicrawl.report.coding import Coded
from amicrawl.report.texts import PADDING, Texts

if TYPE_CHECKING:
    from amicrawl.report.words import Flags, Numbers


def texts_of(column: Any) -> Texts:
    """Return a column of text or octets; nothing where there is a null."""
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    octets = _octets(plain)
    _, places, run = octets.buffers()
    width = np.int64 if pa.types.is_large_binary(octets.type) else np.int32
    edges = np.frombuffer(places, width)[octets.offset :][: len(octets) + 1].astype(np.int64)
    first, last = int(edges[0]), int(edges[-1])
    held = bytes(memoryview(run)[first:last]) if run else b""
    begins, ends = edges[:-1] - first, edges[1:] - first
    if not octets.null_count:
        return Texts(held + PADDING, begins, ends, listed=octets.to_pylist)
    return Texts(held + PADDING, begins, np.where(_known(octets), ends, begins))


def coded_of(column: Any, *, nothing: bytes) -> Coded:
    """Return a column of text as codes; *nothing* where there is a null."""
    if pa.types.is_null(column.type):
        return Coded(np.zeros(len(column), np.int64), [nothing])
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    names = _octets(encoded.dictionary).to_pylist()
    codes = numbers_of(encoded.indices, nothing=-1)
    if encoded.indices.null_count:
        if nothing not in names:
            names.append(nothing)
        codes = np.where(codes < 0, names.index(nothing), codes)
    return Coded(codes, names)


def numbers_of(column: Any, *, nothing: int) -> Numbers:
    """Return a column of numbers, or of times in their unit; *nothing* where there is a null."""
    return _filled(_values(column).astype(np.int64), column, nothing)


def seconds_of(column: Any) -> Numbers:
    """Return a column of times as Unix seconds, rounded down; 0 where there is a null."""
    return _filled(_values(column).astype("datetime64[s]").astype(np.int64), column, 0)


def known_of(column: Any) -> Flags:
    """Return where *column* has no null."""
    return _known(column) if column.null_count else np.ones(len(column), np.bool_)


def _filled(numbers: Numbers, column: Any, nothing: int) -> Numbers:
    return np.where(_known(column), numbers, nothing) if column.null_count else numbers


def _octets(column: Any) -> Any:
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    return column.view(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())


def _values(column: Any) -> Any:
    """Return the values of *column* as they lie there, whatever stands where there are nulls."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_floating(kind):
        return column.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(kind):
        form = str(kind)
    elif pa.types.is_timestamp(kind):
        form = f"datetime64[{kind.unit}]"
    else:
        return column.to_numpy(zero_copy_only=False)
    return np.frombuffer(column.buffers()[1], form)[column.offset :][: len(column)]


def _known(column: Any) -> Flags:
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    valid = np.frombuffer(column.buffers()[0], np.uint8)
    bits = np.unpackbits(valid, bitorder="little")[column.offset :][: len(column)]
    return bits.astype(np.bool_)
