"""Counting ahead: as many as there are lines or rows, or None."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from amicrawl.seed import SeedFormat, count_entries

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "count"),
    [(b"", 0), (b"a\n", 1), (b"a\nb", 2), (b"a\n" * 100_000, 100_000), (b"a\n" * 200_000, 200_000)],
)
def test_lines_are_counted_packed_or_not(tmp_path: Path, text: bytes, count: int) -> None:
    (tmp_path / "plain.txt").write_bytes(text)
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "packed.txt.zst").write_bytes(zstandard.compress(text))
    for name in ("plain.txt", "packed.txt.gz", "packed.txt.zst"):
        assert count_entries(str(tmp_path / name), SeedFormat.LINES) == count


def test_rows_are_counted_from_the_footer(tmp_path: Path) -> None:
    pq.write_table(pa.table({"url": ["http://a/"] * 7}), tmp_path / "s.parquet")
    assert count_entries(str(tmp_path / "s.parquet"), SeedFormat.PARQUET) == 7


def test_what_cannot_be_counted_is_none(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but no more")
    assert count_entries(str(tmp_path / "bad.parquet"), SeedFormat.PARQUET) is None
    assert count_entries(str(tmp_path / "missing"), SeedFormat.LINES) is None
    assert count_entries("-", SeedFormat.LINES) is None
