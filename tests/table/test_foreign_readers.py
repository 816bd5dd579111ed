"""The table of a collection of our own in the readers that people have: columns, types and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from index.archive_files import gzip_member, http, warc
from typer.testing import CliRunner

from amicrawl.archive.table import CCINDEX, EOT
from amicrawl.cli import app

if TYPE_CHECKING:
    from pathlib import Path

MONTHS = ("2025-12", "2026-11")
CRAWLS = [f"captures-{month}" for month in MONTHS]


def collected(directory: Path, *options: str) -> Path:
    """Return the table of a WARC file that no crawl is named by; one of its lines gives no row."""
    source = directory / "ami-00000.warc.gz"
    dates = [*(f"{month}-03T04:05:06Z" for month in MONTHS), "2024-13-01T00:00:00Z"]
    source.write_bytes(
        b"".join(gzip_member(warc("response", block=http(), WARC_Date=date)) for date in dates)
    )
    out = directory / "c"
    made = ["collection", str(source), "-o", str(out), "-j", "1", "--products", "cdxj,table"]
    done = CliRunner().invoke(app, [*made, *options])
    assert done.exit_code == 5, done.output
    assert (out / "table.rejects.txt").read_bytes().count(b"\n") == 1
    return out / "table"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collected(tmp_path_factory.mktemp("foreign"))


def in_words(kind: Any) -> str:
    """Return the name that DuckDB has for *kind*; readers may put texts in a dictionary."""
    kind = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "VARCHAR"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return {pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT"}[kind]


EXPECTED = {field.name: in_words(field.type) for field in EOT.columns}


def kinds(table: Any) -> dict[str, str]:
    return {field.name: in_words(field.type) for field in table.schema}


def test_a_table_of_our_own_crawl_opens_in_pandas(table: Path) -> None:
    frame = pd.read_parquet(table)
    # Of numbers that are missing, pandas' own types make floating-point ones.
    typed = pd.read_parquet(table, dtype_backend="pyarrow")
    assert kinds(pa.Table.from_pandas(typed, preserve_index=False)) == EXPECTED
    assert list(frame.columns) == list(EXPECTED)
    assert sorted(frame["crawl"]) == CRAWLS
    assert list(frame["subset"]) == ["warc", "warc"]
    assert frame["fetch_time"].dtype == "datetime64[ms]"


def test_a_table_of_our_own_crawl_opens_in_pyarrow(table: Path) -> None:
    opened: Any
    for opened in (pq.read_table(table), ds.dataset(table, partitioning="hive").to_table()):
        assert kinds(opened) == EXPECTED
        assert sorted(opened["crawl"].to_pylist()) == CRAWLS
        assert opened["subset"].to_pylist() == ["warc", "warc"]


@pytest.mark.parametrize("named", ["", "/**/*.parquet"])
def test_a_table_of_our_own_crawl_opens_in_polars(table: Path, named: str) -> None:
    frame = pl.read_parquet(f"{table}{named}", hive_partitioning=True)
    assert kinds(frame.to_arrow()) == EXPECTED
    assert sorted(frame["crawl"]) == CRAWLS
    assert list(frame["subset"]) == ["warc", "warc"]


def test_a_table_of_our_own_crawl_opens_in_duckdb(table: Path) -> None:
    found: Any = duckdb.sql(f"SELECT * FROM read_parquet('{table}/**/*.parquet')")
    assert dict(zip(found.columns, map(str, found.types), strict=True)) == EXPECTED
    assert sorted(row[-2:] for row in found.fetchall()) == [(crawl, "warc") for crawl in CRAWLS]


def test_every_reader_gives_the_same_rows(table: Path) -> None:
    by_pyarrow = pq.read_table(table).to_pylist()
    by_pandas = pd.read_parquet(table).astype(object)
    by_duckdb: Any = duckdb.sql(f"SELECT * FROM read_parquet('{table}/**/*.parquet')")
    rows = [
        by_pyarrow,
        [dict(row) for row in pl.read_parquet(table).iter_rows(named=True)],
        [dict(zip(by_duckdb.columns, row, strict=True)) for row in by_duckdb.fetchall()],
        [
            {name: None if pd.isna(value) else value for name, value in row.items()}
            for row in by_pandas.to_dict("records")
        ],
    ]
    first, *others = [sorted(each, key=lambda row: str(row["fetch_time"])) for each in rows]
    for other in others:
        assert other == first


def test_a_collection_takes_the_options_of_a_table(tmp_path: Path) -> None:
    table = collected(tmp_path, "--crawl", "mine", "--subset", "all", "--segment", "s", "--flat",
                      "--schema", "ccindex")  # fmt: skip
    opened = pq.read_table(table)
    assert opened.schema.names == CCINDEX.columns.names
    assert set(zip(*[opened[name].to_pylist() for name in ("crawl", "warc_segment", "subset")],
                   strict=True)) == {("mine", "s", "all")}  # fmt: skip
    assert [path.parent for path in table.rglob("*.parquet")] == [table]


def test_a_table_has_one_more_column_where_shares_of_languages_are_requested(tmp_path: Path) -> None:
    without = pq.read_table(collected(tmp_path))
    table = pq.read_table(collected(tmp_path, "--language-shares"))
    assert len(without.schema.names) == 31
    assert set(table.schema.names) - set(without.schema.names) == {"content_language_shares"}


def test_a_collection_makes_the_table_again_for_other_options(tmp_path: Path) -> None:
    collected(tmp_path)
    table = collected(tmp_path, "--crawl", "mine")
    assert [path.name for path in table.iterdir()] == ["crawl=mine"]
