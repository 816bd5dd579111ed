"""Blocks of CDXJ lines into batches: all JSON of a block at once where it is even. Pure.

Arrow reads the JSON of a whole block into columns as long as every value is text. A block with numbers,
17-digit times or damaged lines goes line by line through `rows`, which gives the same and knows reasons.
"""

from __future__ import annotations

import io
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute
import pyarrow.json as pj

from amicrawl.report.batch import Batch, batch_of_rows
from amicrawl.report.cdx_batches import Lines
from amicrawl.report.rows import CDXJ_FACETS, MONTH_DAYS, MOST_DIGITS, row_of_cdxj, uniform_key

if TYPE_CHECKING:
    import numpy.typing as npt

pc: Any = pyarrow.compute  # its stubs know neither binary columns nor plain numbers

_TEXTS = ("url", "mime", "status", "digest", "length")
_LINES_LOOKED_AT = 64
_META = b"!meta"
_DAYS = np.array([0, *MONTH_DAYS])
_PLACES = 10 ** np.arange(13, -1, -1, dtype=np.int64)


def cdxj_lines(block: bytes) -> Lines:
    """Return what the whole lines of *block* are."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    fast = _fast(block if block.endswith(b"\n") else block + b"\n")
    return _slow(block.splitlines()) if fast is None else Lines(fast, Counter())


def _slow(lines: list[bytes]) -> Lines:
    skipped: Counter[str] = Counter()
    rows = []
    for line in lines:
        if not line.strip() or line.startswith(_META):
            continue
        try:
            rows.append(row_of_cdxj(line))
        except ValueError as error:
            skipped[str(error)] += 1
    return Lines(batch_of_rows(rows), skipped)


def _fast(block: bytes) -> Batch | None:
    words = pc.split_pattern(_lines(block), b" ", max_splits=2)
    if b"\r" in block or not len(words) or pc.min(pc.list_value_length(words)).as_py() < 3:
        return None
    texts = pc.list_element(words, 2)
    if not pc.all(pc.starts_with(texts, b"{")).as_py():
        return None
    fields = _parsed(texts)
    time = _times(pc.list_element(words, 1))
    if fields is None or time is None:
        return None
    status = _numbers(fields["status"], longest=3)
    size = _numbers(fields["length"], longest=MOST_DIGITS)
    if status is None or size is None or ((status >= 0) & (status < 100)).any():
        return None
    facets = {
        facet: fields[name].cast(pa.binary())
        for name, facet in CDXJ_FACETS.items()
        if name in fields and fields[name].null_count < len(words)
    }
    key = _uniform(pc.list_element(words, 0))
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


def _lines(block: bytes) -> Any:
    """Return the lines of *block*, each with its line feed, those left out that say nothing."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    lines = pa.Array.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(block)]
    )
    silent = pc.or_(pc.equal(lines, b"\n"), pc.starts_with(lines, _META))
    return lines.filter(pc.invert(silent)) if pc.any(silent).as_py() else lines


def _parsed(texts: Any) -> dict[str, Any] | None:
    """Read one object a text; None where that is not what *texts* are, or a value is no text."""
    joined = _octets(texts)
    try:
        if not joined.isascii():
            joined.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # A column costs as much where nothing fills it, and looking for names costs more than reading twice
    # the few blocks in which one turns up late.
    all_names = [*_TEXTS, *CDXJ_FACETS]
    looks: list[tuple[list[str], Literal["error", "ignore"]]]
    looks = [(_first_names(texts), "error"), (all_names, "ignore")]
    for names, unexpected in looks:
        schema = pa.schema([(name, pa.string()) for name in names])
        try:
            table = pj.read_json(
                io.BytesIO(joined),
                read_options=pj.ReadOptions(use_threads=False, block_size=len(joined) + 1),
                parse_options=pj.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior=unexpected
                ),
            )
        except pa.ArrowInvalid:
            continue
        if table.num_rows == len(texts):
            return {name: table[name].combine_chunks() for name in names}
    return None


def _first_names(texts: Any) -> list[str]:
    names = dict.fromkeys(_TEXTS)
    for text in texts.slice(0, _LINES_LOOKED_AT).to_pylist():
        with suppress(ValueError, TypeError):
            names |= dict.fromkeys(orjson.loads(text))
    return list(names)


def _octets(texts: Any) -> bytes:
    """Return what *texts* hold, one behind the other."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    return bytes(memoryview(texts.buffers()[2])[int(offsets[0]) : int(offsets[-1])])


def _uniform(keys: Any) -> Any:
    hostless = pc.equal(pc.find_substring(keys, b")"), -1)
    if not pc.any(hostless).as_py():
        return keys
    return pa.array(
        [uniform_key(key) if b")" not in key else key for key in keys.to_pylist()], pa.binary()
    )


def _times(times: Any) -> npt.NDArray[np.int64] | None:
    lengths = pc.min_max(pc.binary_length(times)).as_py()
    if lengths != {"min": 14, "max": 14}:
        return None
    digits = np.frombuffer(_octets(times), np.uint8).reshape(-1, 14)
    if ((digits < ord("0")) | (digits > ord("9"))).any():
        return None
    time = (digits - ord("0")).astype(np.int64) @ _PLACES
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
