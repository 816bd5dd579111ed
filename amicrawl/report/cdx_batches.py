"""Blocks of CDX lines into batches: columns at a time where every line has its form. Pure.

What keeps a block, or a line of it, from the fast path (other white space than single blanks, another
number of columns, a key without host, a strange number) goes line by line through `rows`, which alone
decides; both ways give the same rows, in the same order.
"""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pv

from amicrawl.report.batch import Batch, batch_of_rows, interleaved
from amicrawl.report.counts import CDX_SUMMARY
from amicrawl.report.layout import layout_of_count, layout_of_letters, legend
from amicrawl.report.rows import MOST_DIGITS, Row, row_like_cdx_summary, row_of_cdx

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from amicrawl.report.layout import Layout

pc: Any = pyarrow.compute  # its stubs know neither binary columns nor plain numbers

_OPTIONAL = {"r", "M"}
_FIRST_SIX = {"N": 0, "b": 1, "a": 2, "m": 3, "s": 4, "k": 5}
_READ_AS_SIZE = {
    7: {"S": 6},
    9: {"r": 6, "S": 7},
    10: {"r": 6, "M": 7, "S": 8},
    11: {"r": 6, "M": 7, "S": 8},
}
"""What cdx-summary takes for the size by how many columns there are; of 9 and 10 it is the offset."""
_PARSE = pv.ParseOptions(delimiter=" ", quote_char=False, double_quote=False, escape_char=False)


class Lines(NamedTuple):
    """What became of some lines."""

    batch: Batch
    skipped: Counter[str]


class Piece(NamedTuple):
    """Whole lines of one layout, known from a legend or a wish; else None."""

    block: bytes
    layout: Layout | None


class Legends:
    """Cuts the blocks of one CDX file at its legends, and remembers the last from block to block."""

    def __init__(self, layout: Layout | None = None) -> None:
        """Begin with *layout*, which holds until a legend says otherwise."""
        self._layout = layout

    def pieces(self, block: bytes) -> Iterator[Piece]:
        """Yield the whole lines of *block* between legends, each of which is obeyed on the way."""
        if not block.endswith(b"\n"):
            block += b"\n"
        begin = look = 0
        while (found := block.find(b"CDX ", look)) >= 0:
            look = found + 4
            start = max(block.rfind(b"\n", begin, found) + 1, begin)
            end = block.index(b"\n", found)
            letters = legend(block[start:end])
            if letters is None or block[start:found].strip():
                continue
            if start > begin:
                yield Piece(block[begin:start], self._layout)
            begin = look = end + 1
            self._obey(letters)
        if begin < len(block):
            yield Piece(block[begin:], self._layout)

    def _obey(self, letters: str) -> None:
        try:
            self._layout = layout_of_letters(letters)
        except ValueError:
            self._layout = None


def cdx_lines(piece: Piece, *, rules: str) -> Lines:
    """Return what the lines of *piece* are."""
    block = piece.block.replace(b"\r\n", b"\n") if b"\r\n" in piece.block else piece.block
    fast = _fast(block, piece.layout, rules=rules) if _is_even(block) else None
    if fast is not None:
        return fast
    return _lines_of_rows(_rows(block.split(b"\n"), piece.layout, rules=rules))


def _rows(lines: Iterable[bytes], layout: Layout | None, *, rules: str) -> Iterator[Row | str]:
    for line in lines:
        if not line.strip():
            continue
        try:
            yield row_like_cdx_summary(line) if rules == CDX_SUMMARY else row_of_cdx(line, layout)
        except ValueError as error:
            yield str(error)


def _fast(block: bytes, layout: Layout | None, *, rules: str) -> Lines | None:
    columns = block[: block.index(b"\n")].count(b" ") + 1
    wanted = _wanted(columns, layout, rules=rules)
    table = None if wanted is None else _parsed(block, columns, wanted)
    if table is None:
        return None
    batch, fit = _checked(table, rules=rules)
    if fit.all():
        return Lines(batch, Counter())
    lines = block.split(b"\n")
    at, rows = [], []
    skipped: Counter[str] = Counter()
    unfit = np.flatnonzero(~fit).tolist()
    strange = _rows([lines[number] for number in unfit], layout, rules=rules)
    for number, row in zip(unfit, strange, strict=True):
        if isinstance(row, str):
            skipped[row] += 1
        else:
            at.append(number)
            rows.append(row)
    return Lines(interleaved(batch, fit, batch_of_rows(rows), at), skipped)


def _is_even(block: bytes) -> bool:
    """Whether single blanks and line feeds are the only white space, and no number is hexadecimal.

    The CSV reader would take two blanks for an empty column, and `0x10` for sixteen.
    """
    octets = np.frombuffer(block, np.uint8)
    gaps = (octets <= 32).view(np.uint8)
    if not len(gaps) or gaps[0] or np.count_nonzero(octets < 32) != block.count(b"\n"):
        return False
    for shift in (0, 1):
        pairs = gaps[shift : len(gaps) - (len(gaps) - shift) % 2].view(np.uint16)
        if (pairs == 0x0101).any():
            return False
    return b" 0x" not in block and b" 0X" not in block


def _lines_of_rows(rows: Iterator[Row | str]) -> Lines:
    skipped: Counter[str] = Counter()
    good = []
    for row in rows:
        if isinstance(row, str):
            skipped[row] += 1
        else:
            good.append(row)
    return Lines(batch_of_rows(good), skipped)


def _wanted(columns: int, layout: Layout | None, *, rules: str) -> dict[str, int] | None:
    """Return the columns to read by name, or None where the slow path has to."""
    if rules == CDX_SUMMARY:
        further = _READ_AS_SIZE.get(columns)
        return None if further is None else {**_FIRST_SIX, **further}
    if layout is None:
        layout = layout_of_count(columns)
    if layout is None or columns != layout.columns:
        return None
    named = {"N": layout.key, "b": layout.time, "a": layout.url, "m": layout.mime, "s": layout.status}
    named |= {"k": layout.digest}
    if min(named.values()) < 0:
        return None
    return named | {name: at for name, at in (("S", layout.size), ("V", layout.offset)) if at >= 0}


def _parsed(block: bytes, columns: int, wanted: dict[str, int]) -> pa.Table | None:
    """Read the *wanted* columns; None where a line has others, or no number where one goes."""
    names = [f"_{index}" for index in range(columns)]
    for name, index in wanted.items():
        names[index] = name
    numbers = {"b", "s", "S", "V"}
    types: dict[str, Any] = {name: pa.int64() if name in numbers else pa.binary() for name in wanted}
    try:
        return pv.read_csv(
            io.BytesIO(block),
            read_options=pv.ReadOptions(
                column_names=names, block_size=len(block) + 1, use_threads=False
            ),
            parse_options=_PARSE,
            convert_options=pv.ConvertOptions(
                check_utf8=False,
                column_types=types,
                include_columns=list(wanted),
                null_values=["-"],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None


def _checked(table: pa.Table, *, rules: str) -> tuple[Batch, npt.NDArray[np.bool_]]:
    """Return the batch of *table*, and which of its rows are surely as the slow path would have them."""
    column = {name: table[name].combine_chunks() for name in table.column_names}
    key = column["N"]
    fit = pc.greater_equal(pc.find_substring(key, b")"), 1).to_numpy(zero_copy_only=False)
    time = _filled(column["b"], 0)
    fit &= (time >= 10**13) & (time < 10**14)
    status = _filled(column["s"], -1)
    fit &= ((status >= 100) & (status <= 999)) | ((status == -1) & _nulls(column["s"]))
    size = _filled(column["S"], -1) if "S" in column else np.full(len(key), -1, np.int64)
    limit = 10**MOST_DIGITS
    if rules == CDX_SUMMARY:
        fit &= (size >= 0) & (size < limit)
        for name in _OPTIONAL & column.keys():
            fit &= pc.equal(column[name], b"-").to_numpy(zero_copy_only=False)
    else:
        month, day = time // 10**8 % 100, time // 10**6 % 100
        fit &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= 28) & (time % 10**6 < 240000)
        if "S" in column:
            fit &= ((size >= 0) & (size < limit)) | _nulls(column["S"])
        if "V" in column:
            fit &= _filled(column["V"], 0) >= 0
    batch = Batch(key, time, column["m"], status, size, column["a"], column["k"], {})
    return batch, fit


def _filled(column: Any, value: int) -> npt.NDArray[np.int64]:
    known = column.fill_null(value) if column.null_count else column
    numbers: npt.NDArray[np.int64] = known.to_numpy(zero_copy_only=False)
    return numbers


def _nulls(column: Any) -> npt.NDArray[np.bool_]:
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    nulls: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls
