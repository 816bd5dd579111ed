"""What differs between two partitions, row by row.

Rows are paired by their keys; where a key comes more than once, the first with the first. A reference
differs where its string does, wherever that lies, so that compacting makes no difference; floats differ
in their bits. An annex is compared as one more column, `url_annex` or `etag_annex`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.schema import HOST_COLUMNS, URL_COLUMNS
from amicrawl.meguri.format.strings import MOST_OVERLAP, annex_spans, spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.meguri.format.schema import Column, Columns, Partition

_ROWS = 65_536  # rows compared at a time
_OCTETS = 4 << 20  # octets of strings that are compared in any case
_ANNEXES = {"url_ref": "url_annex", "etag_ref": "etag_annex"}

Table = Literal["urls", "hosts"]


class RowDifference(NamedTuple):
    """A row that only one partition has, or that differs."""

    table: Table
    old: int | None
    """The number of the row in the old partition; None where it was added."""
    new: int | None
    """The number of the row in the new partition; None where it was removed."""
    fields: tuple[str, ...]
    """The columns that differ, in their order; none of an added or removed row."""


def head_differences(old: Partition, new: Partition) -> dict[str, tuple[object, object]]:
    """Return what the two say of the whole and differ in, by name: the old and the new value.

    Of two filters only their sizes are returned.
    """
    names = ("partition_id", "created", "host_key_lo", "host_key_hi", "meta")
    found: dict[str, tuple[object, object]] = {
        name: (getattr(old, name), getattr(new, name))
        for name in names
        if getattr(old, name) != getattr(new, name)
    }
    if old.seen_filter != new.seen_filter:
        found["seen_filter"] = (len(old.seen_filter), len(new.seen_filter))
    return found


def row_differences(old: Partition, new: Partition) -> Iterator[RowDifference]:
    """Yield what differs between the URL rows, then between the host rows, each in the order of keys.

    Raises Malformed where the strings of one overlap beyond reason.
    """
    yield from _table_differences(
        "urls", URL_COLUMNS, _PartitionSide.of(old, "urls"), _PartitionSide.of(new, "urls")
    )
    yield from _table_differences(
        "hosts", HOST_COLUMNS, _PartitionSide.of(old, "hosts"), _PartitionSide.of(new, "hosts")
    )


@dataclass(frozen=True, slots=True)
class _PartitionSide:
    """A table of one of the partitions."""

    table: Columns
    keys: np.ndarray
    arena: bytes | memoryview

    @classmethod
    def of(cls, partition: Partition, name: Table) -> _PartitionSide:
        table: Columns = getattr(partition, name)
        parts = ("host_key", "path_key") if name == "urls" else ("host_key",)
        # Big-endian octets compare as the numbers do, two of them together as well.
        image = np.stack([table[part] for part in parts], axis=1).astype(">u8")
        keys = image.view(f"S{8 * len(parts)}").ravel()
        return cls(table, keys, partition.arena)


def _table_differences(
    name: Table, columns: Sequence[Column], old: _PartitionSide, new: _PartitionSide
) -> Iterator[RowDifference]:
    first = behind = 0
    while first < len(old.keys) or behind < len(new.keys):
        ends = _common_end(old.keys, new.keys, first, behind)
        old_rows, new_rows = _paired(old.keys[first : ends[0]], new.keys[behind : ends[1]])
        old_rows = np.where(old_rows >= 0, old_rows + first, -1)
        new_rows = np.where(new_rows >= 0, new_rows + behind, -1)
        both = (old_rows >= 0) & (new_rows >= 0)
        fields = _changed(columns, old, new, old_rows[both], new_rows[both])
        yield from _described(name, old_rows, new_rows, both, fields)
        first, behind = ends


def _common_end(old: np.ndarray, new: np.ndarray, first: int, behind: int) -> tuple[int, int]:
    """Return where a stretch of rows ends in both tables, so that no key lies on both sides of it."""
    bounds = [keys[at + _ROWS] for keys, at in ((old, first), (new, behind)) if at + _ROWS < len(keys)]
    if not bounds:
        return len(old), len(new)
    bound = min(bounds)
    ends = int(np.searchsorted(old, bound)), int(np.searchsorted(new, bound))
    if ends == (first, behind):
        # One key fills the stretch: then all of its rows belong to it, however many.
        ends = int(np.searchsorted(old, bound, "right")), int(np.searchsorted(new, bound, "right"))
    return ends


def _paired(ours: np.ndarray, theirs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of two stretches side by side in the order of keys, -1 where one side has none."""
    begin = np.searchsorted(ours, ours)
    at = np.searchsorted(theirs, ours) + (np.arange(len(ours)) - begin)
    until = np.searchsorted(theirs, ours, "right")
    partner = np.where(at < until, at, -1)
    alone = np.ones(len(theirs), np.bool_)
    alone[partner[partner >= 0]] = False
    added = np.flatnonzero(alone)
    left = np.concatenate([np.arange(len(ours)), np.full(len(added), -1)])
    right = np.concatenate([partner, added])
    order = np.argsort(np.concatenate([ours, theirs[added]]), kind="stable")
    return left[order], right[order]


def _changed(
    columns: Sequence[Column],
    old: _PartitionSide,
    new: _PartitionSide,
    old_rows: np.ndarray,
    new_rows: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return for each column, by name, in which of the paired rows it differs."""
    found: dict[str, np.ndarray] = {}
    for column in columns:
        left, right = old.table[column.name][old_rows], new.table[column.name][new_rows]
        if column.name.endswith("_ref"):
            ours, theirs = spans(old.arena, left), spans(new.arena, right)
            found[column.name] = _strings_differ(old.arena, new.arena, ours, theirs)
            if column.name in _ANNEXES:
                behind = annex_spans(old.arena, *ours), annex_spans(new.arena, *theirs)
                found[_ANNEXES[column.name]] = _strings_differ(old.arena, new.arena, *behind)
        elif column.dtype.kind == "f":
            found[column.name] = left.view("<u4") != right.view("<u4")
        else:
            found[column.name] = left != right
    return found


def _strings_differ(
    old: bytes | memoryview,
    new: bytes | memoryview,
    ours: tuple[np.ndarray, np.ndarray],
    theirs: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return which of the paired strings, given as starts and lengths, are not equal."""
    (left, lengths), (right, other_lengths) = ours, theirs
    differ: np.ndarray = lengths != other_lengths
    rows = np.flatnonzero(~differ & (lengths > 0))
    # Thousands of rows may share an ETag; a pair is compared once. 32 bits hold the number of a string
    # among these rows, and not its offset: that may be behind the first 4 GiB.
    of_left, of_right = (np.unique(side[rows], return_inverse=True)[1] for side in (left, right))
    _, first, inverse = np.unique(of_left << 32 | of_right, return_index=True, return_inverse=True)
    distinct = rows[first]
    if int(lengths[distinct].sum()) > MOST_OVERLAP * (len(old) + len(new)) + _OCTETS:
        raise Malformed("its strings overlap each other, so that comparing them would not end")
    triples = zip(*(side[distinct].tolist() for side in (left, right, lengths)), strict=True)
    unequal = np.fromiter(
        (bytes(old[at : at + size]) != bytes(new[to : to + size]) for at, to, size in triples),
        np.bool_,
        len(distinct),
    )
    differ[rows] = unequal[inverse]
    return differ


def _described(
    name: Table,
    old_rows: np.ndarray,
    new_rows: np.ndarray,
    both: np.ndarray,
    fields: dict[str, np.ndarray],
) -> Iterator[RowDifference]:
    differs = ~both
    changed = np.zeros(int(both.sum()), np.bool_)
    for values in fields.values():
        changed |= values
    differs[both] = changed
    pair = np.cumsum(both) - 1
    for at in np.flatnonzero(differs).tolist():
        old, new = int(old_rows[at]), int(new_rows[at])
        if both[at]:
            names = tuple(field for field, values in fields.items() if values[pair[at]])
            yield RowDifference(name, old, new, names)
        else:
            yield RowDifference(name, old if old >= 0 else None, new if new >= 0 else None, ())
