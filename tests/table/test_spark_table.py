"""The table over Spark is the table: the same rows, the same schema, the same rejects."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
from spark_engine import needs_spark

from amicrawl.archive.location import Location
from amicrawl.archive.spark import LINE, damage_in, lines_of_file
from amicrawl.archive.table import CCINDEX, EOT, TableOptions, make_table
from amicrawl.archive.table.builder import REJECTS_SUFFIX, REPORT_SUFFIX, beside, file_metadata
from amicrawl.archive.table.spark import seal_table, write_part
from amicrawl.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Sequence

PROJECT = Path(__file__).parents[2]
FILENAME = "crawl-data/EOT-2012/segments/IA-00{}/warc/x-{}.warc.gz"


def sound_line(number: int) -> bytes:
    fields = {
        "url": f"http://www.site{number % 13}.co.uk:8080/Path/{number}?q={number}",
        "mime": "text/html",
        "status": "200" if number % 7 else "-",
        "length": str(number + 2**35),
        "offset": str(number),
        "filename": FILENAME.format(number % 3, number % 5) if number % 11 else "elsewhere.warc.gz",
        "languages": "eng,ile",
    }
    key = f"uk,co,site{number % 13}:8080)/path/{number}?q={number}"
    return f"{key} 201302250129{number % 60:02d} {json.dumps(fields)}".encode()


LINES = [
    *(sound_line(number) for number in range(400)),
    b"no line",
    b"\xff\xfe 20130225012936 {}",
    b"org,a)/ 20130225012936 {\xff}",
    b"org,a)/\r20130225012936 {}",
    'org,ä)/ 20220106150849300 {"url": "http://ä.org/\u2028", "status": 5}'.encode(),
    b'!meta 0 {"format": "x"}',
]


def test_what_tasks_write_is_what_the_local_engine_writes(tmp_path: Path) -> None:
    source = tmp_path / "a.cdxj"
    source.write_bytes(b"".join(line + b"\n" for line in sorted(LINES)))
    local = make_table([source], tmp_path / "local", disk=Disk())
    attempts, out = (Location.of(tmp_path / name) for name in ("task.attempts", "task"))
    (read,) = lines_of_file(Location.of(source))
    said = []
    for number, batch in enumerate((read.slice(0, 200), read.slice(200))):
        said.append(
            write_part(
                [batch],
                attempts,
                f"part-0000{number}-{7 + number}",
                options=TableOptions(),
                metadata=file_metadata(EOT, [source]),
            )
        )
    assert out.files() == {}, "nothing is in the table until all tasks have done their part"
    report = seal_table(said, attempts, out, [Location.of(source)])
    assert (report.lines, report.rows, report.headers) == (local.lines, local.rows, local.headers)
    assert report.rejects_by_reason == local.rejects_by_reason
    assert facts(tmp_path / "task") == facts(tmp_path / "local")
    assert rows_that_differ(tmp_path / "task", tmp_path / "local") == []
    assert rejects_of(tmp_path / "task") == rejects_of(tmp_path / "local")


def test_of_a_damaged_file_all_that_can_be_read_is_read_and_the_damage_told(tmp_path: Path) -> None:
    source = tmp_path / "a.cdxj.gz"
    source.write_bytes(gzip.compress(b"".join(line + b"\n" for line in LINES[:300]))[:-500])
    *whole, last = lines_of_file(Location.of(f"file://{source}"))
    assert LINES[0] in [line for batch in whole for line in batch[LINE].to_pylist()]
    (damage,) = damage_in(last)
    assert damage.sentence.startswith(f"file://{source}, byte ")
    assert "cannot be unpacked any further" in damage.reason


@needs_spark
def test_the_table_over_spark_is_the_table_of_the_local_engine(tmp_path: Path) -> None:
    """By the command to a path, and by the entry for spark-submit to a URI."""
    sources = write_sources(tmp_path)
    local, of_cc = tmp_path / "local", tmp_path / "local-cc"
    report = make_table(sources, local, disk=Disk())
    make_table(sources, of_cc, disk=Disk(), options=TableOptions(schema=CCINDEX, flat=True))
    here, entry = tmp_path / "spark", tmp_path / "entry"
    given = ["table", str(tmp_path / "in"), "--master", "local[2]"]
    more = ["--schema", "ccindex", "--flat", "--partitions", "2"]
    done = run(
        ["amicrawl.cli", *given, "-o", str(here), "--engine", "spark"],
        ["submit", *given, "-o", entry.as_uri(), *more],
    )
    assert "codes: 5 5" in done.stdout, done.stderr[-3000:]
    assert f"{report.rows:,} rows" in done.stdout
    assert "Filed by month, as crawl=" in done.stdout
    for made, expected in ((here, local), (entry, of_cc)):
        assert facts(made) == facts(expected)
        assert rows_that_differ(made, expected) == []
        assert rejects_of(made) == rejects_of(expected)
        reports = [json.loads(beside(table, REPORT_SUFFIX).read_bytes()) for table in (made, expected)]
        for name in ("lines", "rows", "rejects_by_reason", "rows_without_crawl", "suffix_list"):
            assert reports[0][name] == reports[1][name], name
        assert {path.suffix for path in made.rglob("*") if path.is_file()} == {".parquet"}
    assert not list(tmp_path.glob("*.attempts"))


def rejects_of(table: Path) -> list[bytes]:
    """Return the rejects of *table*, in some order."""
    return sorted(beside(table, REJECTS_SUFFIX).read_bytes().split(b"\n"))


def run_sql(sql: str) -> Any:
    """Return what DuckDB returns."""
    return duckdb.sql(sql)


def write_sources(tmp_path: Path) -> list[Path]:
    directory = tmp_path / "in"
    directory.mkdir()
    sources = [directory / "a.cdxj", directory / "b.cdxj"]
    for source, lines in zip(sources, (LINES[::2], LINES[1::2]), strict=True):
        source.write_bytes(b"\n".join(lines) + b"\n")
    return sources


def run(*commands: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run *commands*, each a module and the arguments of its `main`, in one process."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "examples" / "spark"))),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", _RUNNER, json.dumps(commands)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=380, check=False, env=environment
    )


_RUNNER = """
import importlib, json, sys
codes = []
for name, *arguments in json.loads(sys.argv[1]):
    module = importlib.import_module(name)
    try:
        sys.argv[1:] = arguments + (["--engine", "spark"] if name == "submit" else [])
        module.main()
    except SystemExit as end:
        codes.append(end.code)
print("codes:", *codes)
"""


def rows_that_differ(*tables: Path) -> list[Any]:
    one, other = (f"SELECT * FROM read_parquet('{table}/**/*.parquet')" for table in tables)
    differing: list[Any] = run_sql(
        f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})"
    ).fetchall()
    return differing


def facts(table: Path) -> dict[str, Any]:
    """Return what the files of *table* say about themselves, but not how the rows are cut into files."""
    paths = sorted(table.rglob("*.parquet"))
    described = run_sql(f"DESCRIBE SELECT * FROM read_parquet({list(map(str, paths))})").fetchall()
    files = [pq.ParquetFile(path) for path in paths]
    first: Any = files[0]
    assert all(
        file.schema_arrow.equals(first.schema_arrow) and file.schema.equals(first.schema)
        for file in files
    )
    assert all(_in_order(file) for file in files)
    metadata = {
        name: value
        for name, value in first.metadata.metadata.items()
        if name.startswith(b"amicrawl.") and b"source" not in name
    }
    filters = run_sql(
        f"SELECT path_in_schema FROM parquet_metadata('{paths[0]}') WHERE bloom_filter_offset > 0"
    )
    return {
        "described": described,
        "schema": first.schema_arrow,
        "metadata": metadata,
        "filters": filters.fetchall(),
        "places": sorted({str(path.parent.relative_to(table)) for path in paths}),
    }


def _in_order(file: pq.ParquetFile) -> bool:
    table = file.read(["url_surtkey", "fetch_time"])
    keys = list(zip(table["url_surtkey"].to_pylist(), table["fetch_time"].to_pylist(), strict=True))
    return keys == sorted(keys)
