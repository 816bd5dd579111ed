"""Columns of the index from journal lines: the rows that are read line by line, many at once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq
import pytest
from faulty_disks import QuickDisk
from hypothesis import given
from hypothesis import strategies as st
from record.exchanges import item, pages

from amicrawl.errors import DamagedFileError
from amicrawl.record import table as table_module
from amicrawl.record.captures import COLUMNS, row_of
from amicrawl.record.journal import DamagedLine, encode_row, read_rows
from amicrawl.record.table import take_in_journals

if TYPE_CHECKING:
    from pathlib import Path

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=20),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
}
ROWS = st.fixed_dictionaries({name: KINDS[kind] for name, kind in COLUMNS})
ODD: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, -1, 1.0, 2**31, 2**63, "", "7", [], {}])
LINE = encode_row(row_of(item()))
_ALONE = """
import sys
from pathlib import Path
from amicrawl.disk import Disk
from amicrawl.record.table import take_in_journals

print(take_in_journals(Path(sys.argv[1]), disk=Disk()).records, "pandas" in sys.modules)
"""


def rows_by_line(path: Path) -> list[tuple[Any, ...]] | None:
    """Return the rows of the journal *path*, read one by one; None where a line holds none."""
    damage: list[DamagedLine] = []
    rows = list(read_rows(path, on_damage=damage.append))
    return None if damage else rows


def rows_by_table(path: Path) -> list[tuple[Any, ...]] | None:
    """Return the rows that the table takes in from the journal *path*; None where it refuses."""
    try:
        take_in_journals(path.parent, disk=QuickDisk())
    except DamagedFileError:
        return None
    rows = pq.read_table(path.parent / "captures.parquet").to_pylist()
    return [tuple(row.values()) for row in rows]


def assert_read_alike(directory: Path, content: bytes) -> None:
    path = directory / "captures-00000.open"
    path.write_bytes(content)
    expected = rows_by_line(path)
    assert rows_by_table(path) == expected


@given(st.lists(ROWS, max_size=4))
def test_rows_of_any_value_are_taken_in(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    assert_read_alike(tmp_path_factory.mktemp("any"), b"".join(map(encode_row, rows)))


@given(st.data())
def test_the_table_refuses_what_is_refused_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    row = data.draw(ROWS)
    name = data.draw(st.sampled_from([name for name, _ in COLUMNS]))
    row[name] = data.draw(ODD)
    content = LINE + orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) + LINE
    assert_read_alike(tmp_path_factory.mktemp("odd"), content)


@pytest.mark.parametrize(
    "content",
    [
        LINE + b"\n" + LINE,
        LINE + LINE.rstrip() + LINE,
        LINE + LINE.rstrip(),
        LINE + LINE[:-20],
        LINE + LINE.replace(b"http", b"\xff\xfe"),
        LINE + LINE.replace(b"http", b"\\ud800"),
        LINE + LINE.replace(b'{"url"', b'{"new":[1],"url"'),
        LINE + LINE.replace(b'{"url"', b'{"url":"","url"'),
        LINE + LINE.replace(b"}\n", b",}\n"),
        LINE + LINE.replace(b",", b",\n", 1),
        b"\xef\xbb\xbf" + LINE,
        b"\0" * 100,
        b"[]\n",
    ],
)
def test_odd_lines_are_read_as_they_are_one_by_one(tmp_path: Path, content: bytes) -> None:
    assert_read_alike(tmp_path, content)


def test_lines_are_never_cut_between_blocks(tmp_path: Path) -> None:
    entries = [row_of(entry) | {"meta_json": "x" * 50_000} for entry in pages(200)]
    content = b"".join(map(encode_row, entries))
    assert len(content) > 2 * table_module._BLOCK_BYTES
    assert_read_alike(tmp_path, content)


def test_a_block_that_is_read_line_by_line_gives_no_row_of_the_blocks_before_it_again(
    tmp_path: Path,
) -> None:
    entries = [row_of(entry) | {"meta_json": "x" * 50_000} for entry in pages(100)]
    content = b"".join(map(encode_row, entries))
    assert len(content) > table_module._BLOCK_BYTES
    assert_read_alike(tmp_path, content + LINE[:-1])


def test_columns_are_made_without_pandas(tmp_path: Path) -> None:
    (tmp_path / "captures-00000.open").write_bytes(LINE * 3)
    command = [sys.executable, "-c", _ALONE, str(tmp_path)]
    for journal in (LINE * 3, LINE[:-1]):
        (tmp_path / "captures-00000.open").write_bytes(journal)
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout == "3 False\n"
