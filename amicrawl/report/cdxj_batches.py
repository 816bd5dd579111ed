"""Blocks of CDXJ lines into batches: all JSON of a block at once where it is even. Pure.

Arrow reads the JSON of a whole block into columns as long as every value is text. A block with numbers,
17-digit times or damaged lines goes line by line through `rows`, which gives the same and knows reasons.
"""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.json as pj

from amicrawl.report.batch import Batch, batch_of_rows
from amicrawl.report.cdx_batches import Lines
from amicrawl.report.rows import CDXJ_FACETS, MONTH_DAYS, MOST_DIGITS, row_of_cdxj, uniform_key

if TYPE_CHECKING:
    import numpy.typing as npt

pc: Any = pyarrow.compute  # its stubs know neither binary columns nor plain numbers

_TEXTS = ("url", "mime", "status", "digest", "length", *CDXJ_FACETS)
_PARSE = pj.ParseOptions(
    explicit_schema=pa.schema([(name, pa.string()) for name in _TEXTS]),
    unexpected_field_behavior="ignore",
)
_META = b"!meta"
_DAYS = np.array([0, *MONTH_DAYS])


def cdxj_lines(block: bytes) -> Lines:
    """Return what the whole lines of *block* are."""
    lines = [line for line in block.splitlines() if line and not line.startswith(_META)]
    fast = _fast(lines)
    return _slow(lines) if fast is None else Lines(fast, Counter())


def _slow(lines: list[bytes]) -> Lines:
    skipped: Counter[str] = Counter()
    rows = []
    for line in lines:
        if not line.strip():
            continue
        try:
            rows.append(row_of_cdxj(line))
        except ValueError as error:
            skipped[str(error)] += 1
    return Lines(batch_of_rows(rows), skipped)


def _fast(lines: list[bytes]) -> Batch | None:
    split = [line.split(b" ", 2) for line in lines]
    if not split or any(len(words) != 3 or words[2][:1] != b"{" for words in split):
        return None
    keys, times, texts = zip(*split, strict=True)
    fields = _parsed(b"\n".join(texts), len(lines))
    time = _times(times)
    if fields is None or time is None:
        return None
    status = _numbers(fields["status"], longest=3)
    size = _numbers(fields["length"], longest=MOST_DIGITS)
    if status is None or size is None or ((status >= 0) & (status < 100)).any():
        return None
    facets = {
        facet: fields[name].cast(pa.binary())
        for name, facet in CDXJ_FACETS.items()
        if fields[name].null_count < len(lines)
    }
    key = pa.array([key if b")" in key else uniform_key(key) for key in keys], pa.binary())
    if pc.min(pc.binary_length(key)).as_py() == 0:
        return None
    return Batch(
        key=key,
        time=time,
        mime=_without_empty(fields["mime"]),
        status=status,
        size=size,
        url=fields["url"].fill_null("").cast(pa.binary()),
        digest=_without_empty(fields["digest"]),
        facets=facets,
    )


def _parsed(text: bytes, lines: int) -> dict[str, Any] | None:
    """Read one object a line; None where that is not what *text* is, or a value is no text."""
    try:
        if not text.isascii():
            text.decode("utf-8")
        table = pj.read_json(
            io.BytesIO(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=_PARSE,
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if table.num_rows != lines:
        return None
    return {name: table[name].combine_chunks() for name in _TEXTS}


def _times(times: tuple[bytes, ...]) -> npt.NDArray[np.int64] | None:
    if any(len(time) != 14 for time in times) or not b"".join(times).isdigit():
        return None
    time = np.array(times, "S14").astype(np.int64)
    month, day = time // 10**8 % 100, time // 10**6 % 100
    fit = (
        (month >= 1) & (month <= 12) & (day >= 1) & (day <= _DAYS[month % 13]) & (time % 10**6 < 240000)
    )
    return time if fit.all() else None


def _numbers(column: Any, *, longest: int) -> npt.NDArray[np.int64] | None:
    """Return text as numbers, -1 for a hyphen, empty or null; None where one is something else."""
    known = column.fill_null("-")
    hyphens = pc.or_(pc.equal(known, "-"), pc.equal(known, ""))
    digits = pc.if_else(hyphens, "0", known)
    if not pc.all(pc.ascii_is_decimal(digits)).as_py():
        return None
    lengths = pc.binary_length(digits)
    if pc.max(lengths).as_py() > longest:
        return None
    if longest == 3 and not pc.all(pc.or_(hyphens, pc.equal(lengths, 3))).as_py():
        return None
    numbers = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.where(hyphens.to_numpy(zero_copy_only=False), -1, numbers)


def _without_empty(column: Any) -> Any:
    known = column.fill_null("-")
    return pc.if_else(pc.equal(known, ""), "-", known).cast(pa.binary())
