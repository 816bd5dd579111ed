"""Merging and ZipNum clusters over Spark: the files of the local engine, byte for byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from index.test_merge import line, side_line
from object_store import CREDENTIALS, ObjectStore
from spark_engine import PROJECT, needs_spark, over_a_cluster
from typer.testing import CliRunner

from amicrawl.archive.index.merging import spark as merging
from amicrawl.archive.index.merging.merge import Merged, merge
from amicrawl.archive.index.zipnum import spark as clusters
from amicrawl.archive.index.zipnum.writer import descriptions, write_zipnum
from amicrawl.archive.location import Location
from amicrawl.archive.spark import batch_of_lines
from amicrawl.cli import app
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

FILES = 3
LINES = 400


def write_inputs(directory: Path) -> tuple[list[Path], list[Path]]:
    """Write CDXJ files and sidecars whose lines belong together in every way, and damaged ones."""
    indexes, sidecars = [], []
    for file in range(FILES):
        lines, records = [], []
        for number in range(LINES):
            key = f"org,site{number % 17})/{number}"
            second = f"201210262159{number % 60:02d}"
            warc = f"{number % 5}.warc.gz"
            tie: dict[str, Any] = [
                {"recordid": f"<urn:uuid:{file}-{number}>", "filename": warc, "offset": str(number)},
                {"filename": f"a/{file}-{warc}", "offset": str(number)},
                {"digest": f"sha1:{file}-{number}"},
                {"digest": ""},
            ][number % 4]
            lines.append(line(key=key, second=second, **tie))
            if number % 7:
                records.append(side_line(f"fmt/{number % 9}", key=key, second=second, **tie))
        index, sidecar = directory / f"{file}.cdxj", directory / f"side-{file}.cdxj"
        index.write_text("\n".join([*lines, "no line", ""]))
        sidecar.write_text("\n".join([*records, "no record", ""]))
        indexes.append(index)
        # Records of other files' lines: all have to be merged with all.
        sidecars.append(sidecar)
    (directory / "empty.cdxj").touch()
    return [*indexes, directory / "empty.cdxj"], sidecars


def in_parts(
    indexes: list[Path], sidecars: list[Path], out: Path, *, parts: int, by_key_only: bool
) -> Merged:
    """Do as Spark does with the functions that it is given: deal out, join, put together."""
    job = merging.Merge(
        tuple(map(Location.of, sidecars)), tuple(map(Location.of, indexes)), Location.of(out),
        by_key_only, parts,
    )  # fmt: skip
    pieces = [
        row
        for number in range(len(sidecars) + len(indexes))
        for batch in merging.dealt(job, number)
        for row in batch.to_pylist()
    ]
    joined = [row for part in range(parts) for row in _stage(pieces, "part", part, merging.joined, job)]
    whole = Merged(files=len(indexes))
    for file in range(-1, len(indexes)):
        for row in _stage(joined, "file", file, merging.written, job):
            whole.add(merging.report_in(row["octets"]))
    return whole


def _stage(rows: list[Any], column: str, value: int, work: Any, job: Any) -> list[Any]:
    some = sorted(
        (row for row in rows if row[column] == value), key=lambda row: (row["file"], row["block"])
    )
    if not some:
        return []
    batch = pa.RecordBatch.from_pylist(some, schema=merging.PIECES)
    # Spark cuts rows into batches as it likes.
    halves = [batch.slice(0, len(some) // 2), batch.slice(len(some) // 2)]
    return [row for made in work(job, halves) for row in made.to_pylist()]


@pytest.mark.parametrize("by_key_only", [False, True])
@pytest.mark.parametrize("parts", [1, 300])
def test_what_tasks_merge_is_what_one_machine_merges(
    tmp_path: Path, parts: int, *, by_key_only: bool
) -> None:
    indexes, sidecars = write_inputs(tmp_path)
    local = merge(indexes, sidecars, tmp_path / "local", by_key_only=by_key_only)
    if not by_key_only:
        counts = local.counts
        assert min(counts.by_id, counts.by_place, counts.by_digest, counts.by_key) > 50
        assert counts.records_unused == 0
    out = tmp_path / "spark"
    made = in_parts(indexes, sidecars, out, parts=parts, by_key_only=by_key_only)
    assert (made.counts, made.files) == (local.counts, local.files)
    assert sorted(made.faults) == sorted(local.faults)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "local").iterdir()
    }


@needs_spark
def test_a_merge_over_a_cluster_is_that_of_one_machine_though_an_executor_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    write_directories(tmp_path)
    local = run_here("merge", tmp_path / "cdxj", tmp_path / "meta", "-o", tmp_path / "local")
    with ObjectStore() as store:
        upload(store, tmp_path / "cdxj", tmp_path / "meta")
        command = ["merge", store.url("cdxj"), store.url("meta"), "-o", store.url("merged")]
        merged = over_a_cluster([*command, "--partitions", "5"], store)
        assert "killed" in merged.stdout, merged.stdout + merged.stderr[-3000:]
        assert merged.returncode == local.exit_code == ExitCode.DAMAGED, merged.stderr[-3000:]
        assert figures(merged.stdout) == figures(local.stdout)
        assert store.contents("merged") == contents(tmp_path / "local")


@needs_spark
def test_a_cluster_made_over_spark_is_that_of_one_machine_though_an_executor_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    write_directories(tmp_path)
    local = run_here("cdx", "zipnum", tmp_path / "cdxj", "-o", tmp_path / "zipnum", *ZIPNUM)
    with ObjectStore() as store:
        upload(store, tmp_path / "cdxj")
        command = ["cdx", "zipnum", store.url("cdxj"), "-o", store.url("zipnum"), *ZIPNUM]
        made = over_a_cluster([*command, "--partitions", "4"], store)
        assert "killed" in made.stdout, made.stdout + made.stderr[-3000:]
        assert made.returncode == local.exit_code == ExitCode.DAMAGED, made.stderr[-3000:]
        assert figures(made.stdout) == figures(local.stdout)
        assert "no line" in made.stderr
        assert store.contents("zipnum") == contents(tmp_path / "zipnum")
        assert store.contents("zipnum.attempts") == {}


def write_directories(directory: Path) -> None:
    """Write CDXJ files and sidecars, each kind in a directory of its own."""
    indexes, sidecars = write_inputs(directory)
    for name, paths in (("cdxj", indexes), ("meta", sidecars)):
        (directory / name).mkdir()
        for path in paths:
            path.rename(directory / name / path.name)


def upload(store: ObjectStore, *directories: Path) -> None:
    for directory in directories:
        for path in directory.iterdir():
            Location.of(store.url(f"{directory.name}/{path.name}")).put(path)


ZIPNUM = ("--block-lines", "7", "--shard-lines", "100", "--title", "Sites")


def run_here(*command: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in command])


def figures(output: str) -> list[str]:
    """Return the numbers that a command printed, whatever directory it names."""
    sentences = output.partition(" files ")[2] or output.partition(": ")[2]
    return re.findall(r"[0-9][0-9,]*", re.sub(r"\S*/\S*", "", sentences))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@needs_spark
def test_each_file_is_merged_with_its_own_sidecar_by_a_task(tmp_path: Path) -> None:
    write_directories(tmp_path)
    for path in (tmp_path / "meta").iterdir():
        path.rename(path.with_name(path.name.removeprefix("side-")))
    (tmp_path / "cdxj" / "empty.cdxj").unlink()
    inputs = (tmp_path / "cdxj", tmp_path / "meta")
    local = run_here("merge", *inputs, "-o", tmp_path / "local")
    command = ["merge", *map(str, inputs), "-o", str(tmp_path / "spark")]
    done = subprocess.run(
        [sys.executable, "-m", "amicrawl", *command, "--engine", "spark", "--master", "local[2]"],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True, text=True, timeout=380, check=False,
    )  # fmt: skip
    assert done.returncode == local.exit_code == ExitCode.DAMAGED, done.stderr[-3000:]
    assert figures(done.stdout) == figures(local.stdout)
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")


def test_what_tasks_make_of_sorted_ranges_is_the_cluster_of_one_machine(tmp_path: Path) -> None:
    lines = sorted(f"org,a)/{number:04d} 20200101000000 {{}}".encode() for number in range(97))
    write_zipnum(
        [*lines[:40], lines[39] + b"\r\n", *lines[40:]], tmp_path / "local",
        disk=Disk(), block_lines=4, shard_lines=22,
    )  # fmt: skip
    out = Location.of(tmp_path / "spark")
    ranges = []
    for number, some in enumerate((lines[:3], [], lines[3:50], lines[50:])):
        batch = batch_of_lines(some)
        file = Location.of(tmp_path / f"{number}.gz")
        said = clusters.write_range([batch], file)
        ranges.append(clusters.Slice(file, 0, said["lines"]))
    shards = clusters.shards_of(ranges, out, block_lines=4, blocks=5)
    idx = b"".join(clusters.write_one_shard(shard)[0] for shard in shards)
    local = contents(tmp_path / "local")
    assert idx == local.pop("cluster.idx")
    assert descriptions(len(shards), "") == {"cluster.loc": local.pop("cluster.loc")}
    assert contents(tmp_path / "spark") == local


def test_uris_are_for_spark() -> None:
    for command in (["merge", "s3://a/cdxj", "meta"], ["cdx", "zipnum", "s3://a/cdxj"]):
        result = CliRunner().invoke(app, [*command, "-o", "out"])
        assert "Add --engine spark" in str(result.exception)
