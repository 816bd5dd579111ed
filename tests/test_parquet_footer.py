"""A Parquet footer is read as Arrow reads it, within limits, and every damaged one is refused."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.errors import InputError
from amicrawl.parquet import NotWholeError, ParquetTable
from amicrawl.parquet_footer import MOST_COLUMNS, FooterError, read_footer
from amicrawl.thrift import CompactReader


def written(table: pa.Table, **options: Any) -> bytes:
    into = io.BytesIO()
    pq.write_table(table, into, **options)
    return into.getvalue()


def footer_of(octets: bytes) -> bytes:
    return octets[-8 - int.from_bytes(octets[-8:-4], "little") : -8]


NESTED = pa.table(
    {
        "url": ["a", "b", "a", None],
        "tags": [["x"], [], None, ["y", "z"]],
        "of": [{"a": 1, "b": [{"c": b"x"}]}, None, {"a": None, "b": []}, {"a": 2, "b": None}],
        "fixed": pa.array([b"abcd"] * 4, pa.binary(4)),
        "n": range(4),
    }
)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_what_is_read_of_a_footer_is_what_arrow_reads(version: str, compression: str) -> None:
    octets = written(NESTED, version=version, compression=compression, row_group_size=3)
    footer, theirs = read_footer(footer_of(octets)), pq.ParquetFile(io.BytesIO(octets))
    assert footer.rows == theirs.metadata.num_rows
    columns = [theirs.schema.column(number) for number in range(len(theirs.schema))]
    assert [leaf.path for leaf in footer.leaves] == [column.path for column in columns]
    assert [leaf.is_repeated for leaf in footer.leaves] == [
        bool(column.max_repetition_level) for column in columns
    ]
    assert [leaf.width for leaf in footer.leaves] == [max(column.length or 0, 0) for column in columns]
    for number, group in enumerate(footer.groups):
        their_group = theirs.metadata.row_group(number)
        assert group.rows == their_group.num_rows
        for place, chunk in enumerate(group.chunks):
            of_them = their_group.column(place)
            assert chunk.values == of_them.num_values
            assert chunk.size == of_them.total_compressed_size
            assert chunk.data == of_them.data_page_offset
            assert chunk.dictionary == (of_them.dictionary_page_offset or 0)


def test_every_cut_of_a_footer_is_damage() -> None:
    footer = footer_of(written(NESTED))
    for cut in range(len(footer) - 1):
        with pytest.raises(FooterError) as refused:
            read_footer(footer[:cut])
        assert refused.value.is_damage


def test_a_table_of_too_many_columns_is_refused_in_a_sentence() -> None:
    octets = written(pa.table({f"c{number}": [1] for number in range(MOST_COLUMNS + 1)}))
    with pytest.raises(InputError, match=r"wide.parquet is refused: it has .*4,09[67].*columns"):
        ParquetTable(io.BytesIO(octets), "wide.parquet")


def test_a_column_in_another_file_is_refused() -> None:
    octets = written(pa.table({"url": ["a"]}))
    collected: list[Any] = []
    pq.write_table(pa.table({"url": ["a"]}), io.BytesIO(), metadata_collector=collected)
    collected[0].set_file_path("/etc/passwd")
    into = io.BytesIO()
    collected[0].write_metadata_file(into)
    footer = into.getvalue()[4:]
    with pytest.raises(InputError, match="in another file"):
        ParquetTable(io.BytesIO(octets[: -8 - len(footer_of(octets))] + footer), "x.parquet")


def test_a_file_that_does_not_end_as_one_is_damaged() -> None:
    octets = written(pa.table({"url": ["a"]}))
    for wrong in (octets[:-1], octets[:-4] + b"PARE", b"PAR1\xff\xff\xff\x7fPAR1", b""):
        with pytest.raises(NotWholeError, match="not a complete Parquet file"):
            ParquetTable(io.BytesIO(wrong), "x.parquet")


@pytest.mark.parametrize("number", [2, 4])
def test_a_footer_that_has_its_columns_or_row_groups_twice_is_damaged(number: int) -> None:
    octets = written(pa.table({"url": ["a"]}))
    wider = footer_of(written(pa.table({"url": ["a"], "more": ["b"]})))
    reader = CompactReader(wider)
    for field, kind in reader.fields():
        begin = reader.at
        reader.skip(kind)
        if field == number:
            again = bytes([kind, number << 1]) + wider[begin : reader.at]
    footer = footer_of(octets)[:-1] + again + b"\0"
    with pytest.raises(FooterError, match="twice"):
        read_footer(footer)
    whole = octets[: -8 - len(footer_of(octets))] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(InputError, match="twice"):
        ParquetTable(io.BytesIO(whole), "x.parquet")
