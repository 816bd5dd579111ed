"""Both sides in order are merged a window at a time, and it cannot be told from what comes out."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index.merging_lines import FOUND, INDEX_FIELDS, any_line, by_the_rules

from amicrawl.disk import Disk
from amicrawl.index.merging import windows as cutting
from amicrawl.index.merging.join import Counts
from amicrawl.index.merging.merge import MergeJob, merge_job
from amicrawl.index.merging.ordered import join_in_order
from amicrawl.index.merging.side_blocks import side_batches
from amicrawl.index.merging.windows import NotInOrder, when_of, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from amicrawl.index.merging.windows import Window

ONE, TWO, THREE = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))


class _Lines:
    """What was handed on."""

    def __init__(self) -> None:
        self.octets = b""

    def write(self, octets: bytes | memoryview) -> None:
        self.octets += octets

    def end_file(self) -> None:
        """Do nothing: there is one file."""


def _text(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _blocks(lines: Sequence[bytes], size: int) -> Iterator[bytes]:
    for at in range(0, len(lines), size):
        yield _text(lines[at : at + size])


def _records(sidecar: Path, size: int, counts: Counts) -> Iterator[pa.RecordBatch]:
    def told(_: str) -> None:
        counts.records_broken += 1

    for batch in side_batches(sidecar, told=told):
        for at in range(0, batch.num_rows, size):
            yield batch.slice(at, size)


def _merged(
    tmp_path: Path, index: Sequence[bytes], side: Sequence[bytes], *, size: int = 1, most: int = 100
) -> tuple[list[bytes], Counts]:
    """Merge in windows of about *size* lines; NotInOrder where that cannot be."""
    sidecar = tmp_path / "side.cdxj"
    sidecar.write_bytes(_text(side))
    found, counts = _Lines(), Counts()
    join_in_order(
        _blocks(index, size),
        _records(sidecar, size, counts),
        found,
        counts,
        scratch=tmp_path,
        disk=Disk(),
        most_records=most,
    )
    return found.octets.split(b"\n")[:-1], counts


@settings(max_examples=250, deadline=None)
@given(
    index=st.lists(any_line(INDEX_FIELDS), max_size=12),
    side=st.lists(any_line(FOUND), max_size=10),
    size=st.integers(1, 4),
    most=st.sampled_from([1, 2, 100]),
    sorts=st.booleans(),
)
def test_whatever_can_be_merged_in_windows_is_merged_by_the_rules(
    tmp_path_factory: pytest.TempPathFactory,
    index: list[bytes],
    side: list[bytes],
    size: int,
    most: int,
    sorts: bool,
) -> None:
    tmp_path = tmp_path_factory.mktemp("ordered")
    if sorts:
        index, side = sorted(index), sorted(side)
    try:
        lines, counts = _merged(tmp_path, index, side, size=size, most=most)
    except NotInOrder:
        return
    expected, expected_counts = by_the_rules(_text(index), tmp_path / "side.cdxj", by_key_only=False)
    assert lines == expected
    assert counts == expected_counts


def _line(key: str, *, second: int = 10, recordid: str = "", more: str = "") -> bytes:
    tie = f', "recordid": "{recordid}"' if recordid else ""
    return f'org,a)/{key} 201210262159{second} {{"url": "http://a.org/{key}"{more}{tie}}}'.encode()


def _side(key: str, puid: str, *, second: int = 10, recordid: str = "") -> bytes:
    tie = f', "recordid": "{recordid}"' if recordid else ""
    said = f'{{"Preservation-Identifier": "{puid}"{tie}}}'
    return f"org,a)/{key} 201210262159{second} {said}".encode()


def _puids(lines: Sequence[bytes]) -> list[str]:
    return [line.partition(b'"puid": "')[2].partition(b'"')[0].decode() for line in lines]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("most", [1, 2, 100])
def test_lines_in_order_need_no_other_way(tmp_path: Path, size: int, most: int) -> None:
    keys = [f"{number:03d}" for number in range(50)]
    index = [_line(key, recordid=f"id-{key}") for key in keys]
    side = [_side(key, f"fmt/{key}", recordid=f"id-{key}") for key in keys if int(key) % 3]
    lines, counts = _merged(tmp_path, index, side, size=size, most=most)
    assert _puids(lines) == [f"fmt/{key}" if int(key) % 3 else "" for key in keys]
    assert (counts.lines, counts.by_id, counts.records, counts.records_unused) == (50, 33, 33, 0)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_key_and_second_is_never_cut(tmp_path: Path, size: int) -> None:
    index = [_line("a"), *[_line("b", more=f', "n": {number}') for number in range(7)], _line("c")]
    side = [_side("b", "fmt/1"), _side("c", "fmt/2")]
    lines, counts = _merged(tmp_path, index, side, size=size)
    assert _puids(lines) == ["", *["fmt/1"] * 7, "fmt/2"]
    assert (counts.by_key, counts.records_unused) == (8, 0)


def test_records_before_between_and_behind_all_lines_are_counted(tmp_path: Path) -> None:
    side = [_side(key, "fmt/1") for key in ("a", "b", "c", "d", "e", "f", "g")]
    lines, counts = _merged(tmp_path, [_line("c"), _line("e")], side, most=2)
    assert _puids(lines) == ["fmt/1", "fmt/1"]
    assert (counts.records, counts.records_unused) == (7, 5)


def test_without_lines_or_without_records_nothing_is_amiss(tmp_path: Path) -> None:
    assert _merged(tmp_path, [], [])[0] == []
    assert _merged(tmp_path, [_line("a")], [])[0] == [_line("a")]
    assert _merged(tmp_path, [], [_side("a", "fmt/1")])[1].records_unused == 1


@pytest.mark.parametrize(
    ("index", "side"),
    [
        ([_line("b"), _line("a")], [_side("a", "fmt/1")]),
        ([_line("a"), _line("b")], [_side("b", "fmt/1"), _side("a", "fmt/1")]),
        ([_line("a", second=11), _line("a", second=10)], [_side("a", "fmt/1")]),
        # The line of a POST has a key of its own.
        (
            [_line("a", recordid=ONE), _line("z?__wb_method=post", recordid=TWO)],
            [_side("a", "fmt/1", recordid=ONE), _side("b", "fmt/2", recordid=TWO)],
        ),
        # What ties records comes to light when lines have gone by that might have it.
        ([_line("a"), _line("b")], [_side("a", "fmt/1"), _side("b", "fmt/2", recordid=ONE)]),
    ],
    ids=["lines", "records", "seconds", "another key", "late identifiers"],
)
def test_what_cannot_be_merged_in_windows_is_merged_all_the_same(
    tmp_path: Path, index: list[bytes], side: list[bytes]
) -> None:
    with pytest.raises(NotInOrder):
        _merged(tmp_path, index, side)
    source, sidecar, out = tmp_path / "in.cdxj", tmp_path / "side.cdxj", tmp_path / "out"
    source.write_bytes(_text(index))
    sidecar.write_bytes(_text(side))
    out.mkdir()
    merged = merge_job(MergeJob((source,), (sidecar,), out))
    expected, counts = by_the_rules(_text(index), sidecar, by_key_only=False)
    assert (out / "in.cdxj").read_bytes() == _text(expected)
    assert merged.counts == counts
    assert [path.name for path in out.iterdir()] == ["in.cdxj"]


def test_a_damaged_sidecar_is_told_once(tmp_path: Path) -> None:
    source, sidecar, out = tmp_path / "in.cdxj", tmp_path / "side.cdxj", tmp_path / "out"
    source.write_bytes(_text([_line("b"), _line("a")]))
    sidecar.write_bytes(_text([_side("a", "fmt/1"), b"no line of a sidecar"]))
    out.mkdir()
    merged = merge_job(MergeJob((source,), (sidecar,), out))
    assert merged.counts.records_broken == len(merged.faults) == 1


def test_of_records_alike_a_line_gets_that_of_its_own_key(tmp_path: Path) -> None:
    index = [_line("a", recordid=ONE), _line("b", recordid=ONE), _line("c", recordid=ONE)]
    side = [_side("a", "fmt/1", recordid=ONE), _side("b", "fmt/2", recordid=ONE)]
    sidecar = tmp_path / "side.cdxj"
    sidecar.write_bytes(_text(side))
    lines, _ = by_the_rules(_text(index), sidecar, by_key_only=False)
    assert _puids(lines) == ["fmt/1", "fmt/2", "fmt/2"]


@settings(max_examples=70, deadline=None)
@given(
    lines=st.lists(st.integers(0, 12), max_size=20),
    records=st.lists(st.integers(0, 12), max_size=20),
    size=st.integers(1, 5),
    most=st.integers(1, 6),
)
def test_windows_hold_everything_once_and_keep_together_what_is_alike(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[int],
    records: list[int],
    size: int,
    most: int,
) -> None:
    sidecar = tmp_path_factory.mktemp("windows") / "side.cdxj"
    index = [_line(f"{number:02d}") for number in sorted(lines)]
    side = [_side(f"{number:02d}", "fmt/1") for number in sorted(records)]
    sidecar.write_bytes(_text(side))
    try:
        found = list(windows(_blocks(index, size), _records(sidecar, size, Counts()), most_records=most))
    except NotInOrder:
        assert max(records.count(number) for number in records) >= 2 * most
        return
    lines_of = [[when_of(line) for line in window.lines.split(b"\n")[:-1]] for window in found]
    records_of = [_whens(window) for window in found]
    assert list(chain.from_iterable(lines_of)) == [when_of(line) for line in index]
    assert list(chain.from_iterable(records_of)) == [when_of(line) for line in side]
    for cut in range(1, len(found)):
        for before, after in ((lines_of, records_of), (records_of, lines_of), (lines_of, lines_of)):
            earlier, later = chain.from_iterable(before[:cut]), chain.from_iterable(after[cut:])
            assert max(earlier, default=b"") < min(later, default=b"\xff")


def _whens(window: Window) -> list[bytes]:
    return [str(when).encode() for batch in window.records for when in batch["when"].to_pylist()]


def test_the_lines_of_one_key_and_second_are_not_held_without_end(tmp_path: Path) -> None:
    block = _text([_line("a", more=', "x": "' + "y" * 1_000_000 + '"')] * 8)
    with pytest.raises(NotInOrder):
        for _ in windows((block for _ in range(cutting.LARGEST_GROUP // len(block) + 1)), []):
            pass
