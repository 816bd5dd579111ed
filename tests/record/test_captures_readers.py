"""The index as its users read it: the documented queries in DuckDB, and pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pytest
from record.exchanges import capture, item, open_archive, pages

from amicrawl.seed import Seed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the crawl `ami-out` in it, which is made the current one."""
    out = tmp_path / "ami-out"
    out.mkdir()
    archive = open_archive(out)
    seed = Seed("http://x.example/", meta_json='{"source":"sitemap","depth":"1"}')
    archive.store([*pages(10), item(capture("http://x.example/", body=b"0123456789"), seed)])
    archive.seal()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_sql(query: str) -> list[Any]:
    result = duckdb.sql(query)
    assert result is not None
    return result.fetchall()


def test_the_status_breakdown(run: Path) -> None:
    query = """
        SELECT status, count(*) AS n
        FROM 'ami-out/captures.parquet'
        GROUP BY status ORDER BY n DESC;
    """
    assert run_sql(query) == [(200, 9), (0, 2)]


def test_the_hosts_that_contributed_the_most_bytes(run: Path) -> None:
    query = """
        SELECT host, sum(body_length) AS bytes, count(*) AS pages
        FROM 'ami-out/captures.parquet'
        WHERE error = ''
        GROUP BY host ORDER BY bytes DESC LIMIT 25;
    """
    found = run_sql(query)
    assert [host for host, _, _ in found][-1] == "x.example"
    assert found[-1] == ("x.example", 10, 1)
    assert sum(count for _, _, count in found) == 9


def test_everything_that_failed_with_the_reason(run: Path) -> None:
    query = "SELECT url, error FROM 'ami-out/captures.parquet' WHERE error <> '';"
    assert run_sql(query) == [
        ("http://h1.example/4", "connection-refused: Failed to connect"),
        ("http://h0.example/9", "connection-refused: Failed to connect"),
    ]


def test_a_seeds_metadata(run: Path) -> None:
    query = """
        SELECT url, json_extract_string(meta_json, '$.source') AS source
        FROM 'ami-out/captures.parquet' WHERE meta_json <> '';
    """
    assert ("http://x.example/", "sitemap") in run_sql(query)


def test_several_runs_are_one_table(run: Path) -> None:
    for name in ("a", "b"):
        out = run / "runs" / name
        out.mkdir(parents=True)
        archive = open_archive(out)
        archive.store(pages(5))
        archive.seal()
    assert run_sql("SELECT count(*) FROM 'runs/*/captures.parquet';") == [(10,)]


def test_a_crawl_that_runs_can_be_explained_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = open_archive(tmp_path)
    archive.store(pages(5))
    monkeypatch.chdir(tmp_path)
    query = (
        "SELECT count(*) FROM read_json('captures-*.open', format='newline_delimited') WHERE status=200"
    )
    assert run_sql(query) == [(4,)]
    archive.close()


def test_pandas_reads_it(run: Path) -> None:
    frame = pd.read_parquet("ami-out/captures.parquet")
    assert len(frame) == 11
    assert list(frame.columns)[:3] == ["url", "host", "status"]
    assert frame.status.sum() == 9 * 200
    assert not frame.drop(columns="ttfb_ms").isna().any().any()
