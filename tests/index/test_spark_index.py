"""The index over Spark is the index of the local engine, byte for byte."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from index.archive_files import exchange, packed
from spark_engine import needs_spark
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import ExitCode
from amicrawl.index.collection.collecting import jobs_for
from amicrawl.index.collection.file import MARKS
from amicrawl.index.spark import came_of

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A directory with two archive files, and one that breaks off."""
    directory = tmp_path / "warc"
    directory.mkdir()
    for name in ("a", "b"):
        records = [
            exchange(f"http://{name}{number}.org/x?b=1&a={number}")[0] for number in range(9, 0, -1)
        ]
        (directory / f"{name}.warc.gz").write_bytes(packed(records))
    whole = (directory / "a.warc.gz").read_bytes()
    (directory / "cut.warc.gz").write_bytes(whole[:-30])
    return directory


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the files of *directory*; of packed ones, what is in them."""
    return {
        str(path.relative_to(directory)): gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and MARKS not in path.parts
    }


def test_what_spark_maps_indexes_each_file_and_a_failure_costs_that_one_only(
    archives: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / MARKS).mkdir(parents=True)
    sources = [archives / "a.warc.gz", archives / "missing.warc.gz"]
    jobs = jobs_for(sources, out, products=["cdxj"], in_directories=False)
    batches = [pa.record_batch({"id": [number]}) for number in (1, 0)]
    came = pa.Table.from_batches(came_of(batches, jobs)).to_pylist()
    assert [(row["job"], row["error"]) for row in came] == [(1, "InputError"), (0, "")]
    assert str(sources[1]) in came[0]["reason"]
    assert [path.name for path in sorted((out / MARKS).iterdir())] == ["a.warc.cdxj.json"]


def test_spark_is_not_given_standard_input(tmp_path: Path) -> None:
    for arguments in (["-", "-o", str(tmp_path)], ["x.warc.gz", "--merge", "-"]):
        result = CliRunner().invoke(app, ["index", *arguments, "--engine", "spark"])
        assert "Name files, and a directory" in str(result.exception)


@needs_spark
def test_the_index_over_spark_is_the_index_of_the_local_engine(archives: Path, tmp_path: Path) -> None:
    """The command, and the entry for spark-submit."""
    local, here, entry = (tmp_path / name for name in ("local", "spark", "entry"))
    arguments = ["index", str(archives), "-f", "recordid", "--gzip", "--jobs", "1"]
    assert CliRunner().invoke(app, [*arguments, "-o", str(local)]).exit_code == ExitCode.DAMAGED
    plain = ["index", str(archives), "-o", str(tmp_path / "plain"), "--jobs", "1"]
    assert CliRunner().invoke(app, plain).exit_code == ExitCode.DAMAGED
    where = ["--master", "local[2]"]
    done = subprocess.run(
        [
            *(sys.executable, "-c", _RUNNER),
            *(*arguments, "-o", str(here), "--engine", "spark", *where, "then"),
            *("--index", str(archives), "-o", str(entry), *where),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(PROJECT), str(PROJECT / "examples" / "spark"))),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert "codes: 5 5" in done.stdout, done.stderr[-3000:]
    assert "cut.warc.gz" in done.stderr
    assert files_of(here) == files_of(local)
    assert files_of(entry) == files_of(tmp_path / "plain")
    assert len(files_of(here)) == 3
    # What Spark has done, this machine does not do again.
    again = CliRunner().invoke(app, [*arguments, "-o", str(here)])
    assert "3 of them before" in again.output


_RUNNER = """
import sys, submit
from amicrawl.cli import app
at = sys.argv.index("then")
first = app(sys.argv[1:at], standalone_mode=False)
print("codes:", first, submit.main(sys.argv[at + 1:]))
"""
