"""What the files of a table hold does not depend on how little memory there is to write them in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.archive.arrow_texts import numbers_from
from amicrawl.archive.table import EOT
from amicrawl.archive.table.convert import converted
from amicrawl.archive.table.writer import HeldRows, MemoryLimits, TableWriter, in_one, seal, some_of
from amicrawl.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

_HOSTS = 50


def block(first: int, count: int, *, crawls: int) -> pa.RecordBatch:
    """Return *count* rows of a host each, from *first* on, dealt out to so many *crawls*."""
    lines = [
        b'org,h%d)/%06d 20200101000000 {"url": "http://h%d.org/%d", "digest": "%032d", "filename": '
        b'"crawl-data/C%d/segments/S%d/warc/f%d.warc.gz"}'
        % (at % _HOSTS, at, at % _HOSTS, at, at, at % crawls, at % 3, at % 100)
        for at in range(first, first + count)
    ]
    rows, rejects, _ = converted(lines, EOT)
    assert not rejects
    return rows


def run_sql(sql: str) -> list[Any]:
    """Return the rows that DuckDB returns."""
    result: Any = duckdb.sql(sql)
    rows: list[Any] = result.fetchall()
    return rows


def different(column: Any) -> int:
    """Return how many texts the dictionary of *column* has."""
    return len(column.dictionary)


@pytest.mark.parametrize(
    "limits",
    [
        MemoryLimits(),
        MemoryLimits(row_group=200_000, dealt=100_000),
        MemoryLimits(held_back=500_000, dealt=1),
        MemoryLimits(held_back=500_000, dealt=1, kept=1_000_000),
        MemoryLimits(row_group=1, held_back=1, dealt=1, kept=1),
    ],
)
def test_rows_are_the_same_in_whatever_memory_they_are_written(
    tmp_path: Path, limits: MemoryLimits
) -> None:
    writer = TableWriter(tmp_path / "table", EOT, disk=Disk(), limits=limits)
    blocks = [block(first, 800, crawls=5) for first in range(0, 8000, 800)]
    for each in blocks:
        writer.add(each)
    seal(writer.finish(), disk=Disk())
    columns = [name for name in EOT.columns.names if name not in ("crawl", "subset")]
    given = pa.Table.from_batches(blocks).select(columns)
    written: Any = pa.concat_tables(
        pq.ParquetFile(path).read() for path in sorted((tmp_path / "table").rglob("*.parquet"))
    )
    assert written.sort_by("url").to_pylist() == given.sort_by("url").to_pylist()
    for crawl in range(5):
        # In each partition they come as they were given.
        found = run_sql(f"SELECT url FROM read_parquet('{tmp_path}/table/crawl=C{crawl}/*/*.parquet')")
        urls = [url for (url,) in found]
        assert urls == [f"http://h{at % _HOSTS}.org/{at}" for at in range(crawl, 8000, 5)]


def test_files_are_ended_when_what_is_kept_of_them_is_much(tmp_path: Path) -> None:
    """However many crawls there are, what Parquet keeps of all open files stays below the limit."""
    writer = TableWriter(
        tmp_path, EOT, disk=Disk(), limits=MemoryLimits(dealt=1, held_back=1, kept=500_000)
    )
    for first in range(0, 8000, 1000):
        writer.add(block(first, 1000, crawls=10))
    groups = [pq.ParquetFile(path).metadata.num_row_groups for path in _sealed(writer)]
    # A row group of 29 columns is taken for some 60 kB: eight are kept, of whichever files.
    assert len(groups) > 20
    assert max(groups) <= 8


def test_a_partition_whose_row_groups_grow_is_given_a_file_with_larger_filters(tmp_path: Path) -> None:
    """A filter of too many values would tell of every value that it may be there."""
    limits = MemoryLimits(dealt=1, row_group=1)
    writer = TableWriter(tmp_path, EOT, disk=Disk(), flat=True, limits=limits)
    for first, count in ((0, 100), (100, 900), (1000, 3000), (4000, 5000)):
        writer.add(block(first, count, crawls=1))
    paths = _sealed(writer)
    assert [pq.ParquetFile(path).metadata.num_row_groups for path in paths] == [2, 2]
    for at, path in ((99, paths[0]), (8000, paths[1])):
        found = _may_have(path, f"{at:032d}")
        assert any(found)
    others = [found for at in range(10_000, 10_100) for found in _may_have(paths[1], f"{at:032d}")]
    assert sum(others) < 40, "of 200 queries, a twentieth may give wrong rows"


def test_rows_taken_out_of_a_block_keep_what_they_use_of_its_dictionaries() -> None:
    rows = block(0, 300, crawls=4)
    few = some_of(rows, numbers_from(np.array([7, 7, 211])))
    assert few.to_pylist() == rows.take(pa.array([7, 7, 211])).to_pylist()
    assert different(few["url_host_name"]) == 2
    assert few["url_host_5th_last_part"].null_count == 3
    assert few.nbytes < rows.nbytes / 50


def test_blocks_that_are_held_share_one_dictionary_and_no_memory_with_what_they_were() -> None:
    rows = [block(first, 100, crawls=2) for first in (0, 100, 200)]
    one = in_one(rows)
    assert one.to_pylist() == [row for each in rows for row in each.to_pylist()]
    assert different(one["url_host_name"]) == _HOSTS
    holding = HeldRows()
    for piece in rows * 10:
        holding.add(piece)
    assert holding.rows == 3000
    assert holding.take().num_rows == 3000
    assert (holding.rows, holding.held_bytes) == (0, 0)


def _may_have(path: Path, digest: str) -> list[bool]:
    """Tell of each row group of *path* whether it may have *digest*, by its filter."""
    found = run_sql(
        f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{path}', 'content_digest', '{digest}')"
    )
    return [not excluded for (excluded,) in found]


def _sealed(writer: TableWriter) -> list[Path]:
    paths = writer.finish()
    seal(paths, disk=Disk())
    return paths
