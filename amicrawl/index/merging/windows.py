"""Both sides of a merge in byte order, cut alike: the lines of some keys and seconds, and their records.

`when` is key, space and second, as lines begin and are ordered by. Nothing is held but a window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.index.lines.arrow_texts import lengths_of, texts_of, truths
from amicrawl.index.merging.side_table import SECOND, Known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.index.lines.arrow_texts import Texts
    from amicrawl.index.lines.blocks import Block

MOST_RECORDS = 100_000
"""Records of a window; with more, it is cut."""
_MOST_ALIKE = 2
"""Times as many may have one key and second."""
LARGEST_GROUP = 64 << 20
"""Bytes that the lines of one key and second have at most."""
_MOST_OUT_OF_ORDER = 1000


class NotInOrder(Exception):  # noqa: N818  # nothing is wrong
    """What cannot be merged in windows; it is no fault of the input."""


class Window(NamedTuple):
    """What is joined at a time."""

    lines: bytes
    """Whole lines, each ended by LF; maybe none."""
    records: list[pa.RecordBatch]


def windows(
    blocks: Iterable[bytes], batches: Iterable[pa.RecordBatch], *, most_records: int = MOST_RECORDS
) -> Iterator[Window]:
    """Yield windows until both *blocks* of lines and *batches* of records are at their end.

    Raises NotInOrder where records are not in order, or too many have one key and second. That lines are
    in order is for the caller to see (`are_in_order`).
    """
    records = _Records(batches, most=most_records)
    for octets in _whole_groups(blocks):
        rest = octets
        while rest:
            last = _last_when(rest)
            border = records.read_to(last)
            if border is None:
                yield Window(rest, records.taken(last, bisect_right))
                break
            cut = _end_of_lines_before(rest, border)
            yield Window(rest[:cut], records.taken(border, bisect_left))
            rest = rest[cut:]
    while some := records.next():
        yield Window(b"", some)


def known_of(batch: pa.RecordBatch) -> Known:
    """Return what the records of *batch* are known by."""
    has_id, has_name, has_offset = (
        lengths_of(batch[name]) > 0 for name in ("record_id", "filename", "offset")
    )
    return Known(bool(has_id.any()), bool((has_name & has_offset).any()))


def are_in_order(block: Block, before: bytes) -> bool:
    """Tell whether the lines of *block* are in order, and behind the key and second *before*."""
    cuts = np.append(block.starts, len(block.octets)).astype(np.int32)
    lines = texts_of(block.all.view, cuts, kind=pa.binary())
    wrong = np.flatnonzero(~_ascend(lines))
    # Whole lines are compared at once. What follows key and second may be in any order.
    return (
        len(wrong) <= _MOST_OUT_OF_ORDER
        and before <= when_of(block.line(0))
        and all(when_of(block.line(at)) <= when_of(block.line(at + 1)) for at in wrong.tolist())
    )


def when_of(line: bytes) -> bytes:
    """Return key, space and second of *line*; something, where it is no CDXJ."""
    return b" ".join([part[:SECOND] if at else part for at, part in enumerate(line.split(b" ", 2)[:2])])


class _Records:
    """Batches of records, from the first that has not been taken on."""

    def __init__(self, batches: Iterable[pa.RecordBatch], *, most: int) -> None:
        self._batches = iter(batches)
        self._most = most
        self._held: list[pa.RecordBatch] = []
        self._last = ""

    def read_to(self, when: bytes) -> bytes | None:
        """Hold all records up to *when*, and return None.

        Where that would be too many, return the key and second before which all are held, some at least.
        """
        count = sum(batch.num_rows for batch in self._held)
        while not self._held or self._last.encode() <= when:
            if count >= self._most and self._held[0]["when"][0].as_py() < self._last:
                return self._last.encode()
            if count >= _MOST_ALIKE * self._most:
                raise NotInOrder
            batch = self._next_batch()
            if batch is None:
                return None
            self._held.append(batch)
            count += batch.num_rows
        return None

    def taken(self, when: bytes, bisect: Callable[[_Whens, bytes], int]) -> list[pa.RecordBatch]:
        """Return those held up to *when*, which *bisect* finds, and hold them no longer."""
        before, behind = [], []
        for batch in self._held:
            cut = bisect(_Whens(batch["when"]), when)
            if cut:
                before.append(batch.slice(0, cut))
            if cut < batch.num_rows:
                behind.append(batch.slice(cut))
        self._held = behind
        return before

    def next(self) -> list[pa.RecordBatch]:
        """Return some more; none at the end."""
        held, self._held = self._held, []
        if held:
            return held
        batch = self._next_batch()
        return [batch] if batch is not None else []

    def _next_batch(self) -> pa.RecordBatch | None:
        batch = next((batch for batch in self._batches if batch.num_rows), None)
        if batch is not None:
            whens = batch["when"]
            if whens[0].as_py() < self._last or not _ascend(whens).all():
                raise NotInOrder
            self._last = whens[-1].as_py()
        return batch


class _Whens:
    """A column of `when`, to be searched; octets are compared, as lines are ordered by them."""

    def __init__(self, whens: Texts) -> None:
        self._whens = whens

    def __len__(self) -> int:
        return len(self._whens)

    def __getitem__(self, number: int) -> bytes:
        when: str = self._whens[number].as_py()
        return when.encode()


def _ascend(texts: Texts) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell of each of *texts* but the last whether the next is not before it."""
    return truths(pc.less_equal(texts.slice(0, max(0, len(texts) - 1)), texts.slice(1)))


def _whole_groups(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *blocks* of lines so that each ends where a key and second does."""
    held = b""
    for block in blocks:
        when = _last_when(held) if held else b""
        if when and when_of(block[: block.index(b"\n")]) == when:
            cut = _end_of_lines_before(held, when)
            if cut:
                yield held[:cut]
            held = held[cut:] + block
            if len(held) > LARGEST_GROUP:
                raise NotInOrder
            continue
        if held:
            yield held
        held = block
    if held:
        yield held


def _last_when(octets: bytes) -> bytes:
    return when_of(octets[octets.rfind(b"\n", 0, -1) + 1 : -1])


def _end_of_lines_before(octets: bytes, when: bytes) -> int:
    """Return where in *octets*, lines in order, those end that are before *when*."""
    ends = np.flatnonzero(np.frombuffer(octets, np.uint8) == ord("\n"))
    starts = np.append(0, ends + 1)

    def when_at(number: int) -> bytes:
        return when_of(octets[starts[number] : ends[number]])

    return int(starts[bisect_left(range(len(ends)), when, key=when_at)])
