"""The table over Spark is the table: the same rows, the same schema, the same rejects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from spark_engine import needs_spark

from amicrawl.disk import Disk
from amicrawl.table import CCINDEX, EOT, TableOptions, make_table
from amicrawl.table.convert import converted
from amicrawl.table.making import REJECTS_SUFFIX, REPORT_SUFFIX, beside, file_metadata
from amicrawl.table.spark import LINE, REASON, REJECTED, rows_of_batches, with_rejects, write_part
from amicrawl.table.writer import seal

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


def test_what_spark_maps_gives_the_rows_and_rejects_of_the_local_engine() -> None:
    batches = [pa.record_batch({LINE: pa.array(part, pa.binary())}) for part in (LINES[:7], LINES[7:])]
    found = pa.Table.from_batches(rows_of_batches(batches), with_rejects(EOT.columns))
    sound = found.filter(pa.compute.is_null(found[REJECTED])).drop_columns([REJECTED, REASON])
    expected = converted(LINES[:-1], EOT)
    assert sound.cast(EOT.columns).to_pylist() == expected.rows.to_pylist()
    refused = found.filter(pa.compute.is_valid(found[REJECTED])).select([REJECTED, REASON]).to_pylist()
    assert [(row[REJECTED], row[REASON]) for row in refused] == expected.rejects
    assert len(refused) == 4


def test_what_a_task_writes_is_what_the_local_engine_writes(tmp_path: Path) -> None:
    source = tmp_path / "a.cdxj"
    source.write_bytes(b"\n".join(sorted(LINES)))
    make_table([source], tmp_path / "local", disk=Disk())
    batches = rows_of_batches([pa.record_batch({LINE: pa.array(sorted(LINES), pa.binary())})])
    rows = [batch.filter(batch[REJECTED].is_null()).select(EOT.columns.names) for batch in batches]
    options, metadata = TableOptions(), file_metadata(EOT, [source])
    written: Any
    [written] = write_part(rows, tmp_path / "task", "part-00001-7", options=options, metadata=metadata)
    assert not list((tmp_path / "task").rglob("*.parquet"))
    seal([Path(path) for path in written["path"].to_pylist()], disk=Disk())
    assert sum(written["rows"].to_pylist()) == len(LINES) - 5
    assert facts(tmp_path / "task") == facts(tmp_path / "local")


@needs_spark
def test_the_table_over_spark_is_the_table_of_the_local_engine(tmp_path: Path) -> None:
    """The command, the entry for spark-submit, and Spark's own writer."""
    sources = write_sources(tmp_path)
    local, of_cc = tmp_path / "local", tmp_path / "local-cc"
    report = make_table(sources, local, disk=Disk())
    make_table(sources, of_cc, disk=Disk(), options=TableOptions(schema=CCINDEX, flat=True))
    here, entry, elsewhere = (tmp_path / name for name in ("spark", "entry", "elsewhere"))
    where = ["--master", "local[2]"]
    done = run(
        ["amicrawl.cli", "table", str(tmp_path / "in"), "-o", str(here), "--engine", "spark", *where],
        [
            "submit",
            str(tmp_path / "in"),
            "-o",
            str(entry),
            "--schema",
            "ccindex",
            "--flat",
            "--partitions",
            "2",
            *where,
        ],
        ["submit", *map(str, sources), "-o", elsewhere.as_uri(), *where],
    )
    assert "codes: 5 5 0" in done.stdout, done.stderr[-3000:]
    assert f"{report.rows:,} rows" in done.stdout
    assert "Filed by month, as crawl=" in done.stdout
    assert facts(here) == facts(local)
    assert rows_that_differ(here, local) == []
    assert facts(entry) == facts(of_cc)
    assert rows_that_differ(entry, of_cc) == []
    assert rows_that_differ(elsewhere / "crawl=*", local) == []
    assert facts(elsewhere, ours=False)["described"] == facts(local)["described"]
    rejects = [
        sorted(beside(table, REJECTS_SUFFIX).read_bytes().split(b"\n")) for table in (here, local)
    ]
    assert rejects[0] == rejects[1]
    reports = [json.loads(beside(table, REPORT_SUFFIX).read_bytes()) for table in (here, local)]
    for name in ("rows", "rejects", "rejects_by_reason", "rows_without_crawl", "suffix_list"):
        assert reports[0][name] == reports[1][name], name


def ask(sql: str) -> Any:
    """Return what DuckDB answers."""
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
        sys.argv[1:] = arguments
        codes.append(module.main(arguments) if name == "submit" else module.main())
    except SystemExit as end:
        codes.append(end.code)
print("codes:", *codes)
"""


def rows_that_differ(*tables: Path) -> list[Any]:
    one, other = (f"SELECT * FROM read_parquet('{table}/**/*.parquet')" for table in tables)
    differing: list[Any] = ask(
        f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})"
    ).fetchall()
    return differing


def facts(table: Path, *, ours: bool = True) -> dict[str, Any]:
    """Return what the files of *table* say about themselves, but not how the rows are cut into files."""
    paths = sorted(path for path in table.rglob("*.parquet") if "_rejects" not in path.parts)
    described = ask(f"DESCRIBE SELECT * FROM read_parquet({list(map(str, paths))})").fetchall()
    if not ours:
        return {"described": described}
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
    filters = ask(
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
