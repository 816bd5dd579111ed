"""Index and table over a cluster, from a bucket into a bucket, while an executor is killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
from index.archive_files import exchange, packed
from object_store import CREDENTIALS, ObjectStore
from spark_engine import needs_spark, over_a_cluster

from amicrawl.archive.location import Location
from amicrawl.archive.table import make_table
from amicrawl.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FILES = 4
PAGES = 30


@needs_spark
def test_an_executor_that_is_killed_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    for number in range(FILES):
        records = [
            exchange(f"http://site{number * 7919 % 11}.org/{number}/{page}")[0] for page in range(PAGES)
        ]
        (tmp_path / f"{number}.warc.gz").write_bytes(packed(records))
    with ObjectStore() as store:
        for path in tmp_path.glob("*.warc.gz"):
            Location.of(store.url(f"warc/{path.name}")).put(path)
        index = ["index", store.url("warc"), "-o", store.url("cdxj")]
        first = over_a_cluster(index, store)
        assert "killed" in first.stdout, first.stdout + first.stderr[-3000:]
        assert first.returncode == 0, first.stderr[-3000:]
        assert f"{FILES} files: {FILES * PAGES} lines" in first.stderr
        Location.of(store.url("cdxj/odd.cdxj")).write(b"no line\n")
        table = ["table", store.url("cdxj"), "-o", store.url("table"), "--partitions", "3"]
        second = over_a_cluster(table, store)
        assert "killed" in second.stdout, second.stderr[-3000:]
        assert second.returncode == 5, second.stderr[-3000:]
        assert f"{FILES * PAGES} rows in" in second.stdout
        assert "1 line in s3://" in second.stderr
        made = store.contents("cdxj")
        in_table = store.contents("table")
        rejects = Location.of(store.url("table.rejects.txt")).read()
        report = Location.of(store.url("table.report.json")).read()
        assert Location.of(store.url("table.attempts")).files() == {}
    for name, data in made.items():
        if name.endswith(".cdxj"):
            (tmp_path / name).write_bytes(data)
    make_table(sorted(tmp_path.glob("*.cdxj")), tmp_path / "local", disk=Disk())
    for name, data in in_table.items():
        assert name.endswith(".zstd.parquet")
        (tmp_path / "table" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "table" / name).write_bytes(data)
    one, other = (
        f"SELECT * FROM read_parquet('{tmp_path}/{name}/**/*.parquet')" for name in ("table", "local")
    )
    differing: Any = duckdb.sql(f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})")
    assert differing.fetchall() == []
    assert rejects == (tmp_path / "local.rejects.txt").read_bytes()
    assert json.loads(report or b"{}")["rows"] == FILES * PAGES
