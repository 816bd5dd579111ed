"""The index over Spark is the index of the local engine, byte for byte."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from index.archive_files import exchange, packed
from object_store import CREDENTIALS, ObjectStore
from spark_engine import needs_spark
from typer.testing import CliRunner

from amicrawl.archive.index.collection.products import MARKS, jobs_for
from amicrawl.archive.index.collection.remote import PlacedJob, do_placed, do_placed_alone
from amicrawl.archive.location import Location, PathFacts
from amicrawl.archive.spark import came_of
from amicrawl.cli import app
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from typer.testing import Result

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


def placed(sources: list[Location], out: Location) -> list[PlacedJob]:
    jobs = jobs_for(
        [source.as_path for source in sources], Path(), products=["cdxj"], in_directories=False
    )
    return [
        PlacedJob(job, source, source.facts() or PathFacts(0, 0), out)
        for job, source in zip(jobs, sources, strict=True)
    ]


def test_what_spark_maps_indexes_each_file_and_a_failure_costs_that_one_only(
    archives: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sources = [archives / "a.warc.gz", archives / "missing.warc.gz"]
    jobs = placed(list(map(Location.of, sources)), Location.of(out))
    _, error, reason = came_of(jobs[1], do_placed_alone, is_last=False)
    assert error == "InputError"
    assert str(sources[1]) in reason
    outcome, error, _ = came_of(jobs[0], do_placed_alone, is_last=False)
    assert (outcome.products["cdxj"].entries, error) == (9, "")
    assert [path.name for path in sorted((out / MARKS).iterdir())] == ["a.warc.cdxj.json"]
    assert not list(tmp_path.rglob("*.open"))


def test_two_attempts_at_one_file_leave_it_whole_whichever_is_last(
    archives: Path, tmp_path: Path
) -> None:
    """A speculative copy of a task, or one that was believed dead."""
    out = Location.of(tmp_path / "out")
    (job,) = placed([Location.of(archives / "a.warc.gz")], out)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: do_placed(job, lambda _: None), range(4)))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert sorted(out.files()) == ["a.warc.cdxj", "done/a.warc.cdxj.json"]
    data = out.below("a.warc.cdxj").read()
    assert data is not None
    assert data.count(b"\n") == 9
    late = do_placed(job, lambda _: None)
    assert late == outcomes[0]


def test_what_may_pass_is_raised_for_spark_to_try_again_and_told_at_the_last_attempt(
    archives: Path, tmp_path: Path
) -> None:
    full = tmp_path / "file"
    full.touch()
    jobs = placed([Location.of(archives / "a.warc.gz")], Location.of(full / "below a file"))
    with pytest.raises(OSError, match="below a file"):
        came_of(jobs[0], do_placed_alone, is_last=False)
    _, error, _ = came_of(jobs[0], do_placed_alone)
    assert error


def test_files_in_a_bucket_are_indexed_into_a_bucket_and_not_twice(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    here = str(tmp_path / "here")
    assert CliRunner().invoke(app, ["index", str(archives), "-o", here]).exit_code == ExitCode.DAMAGED
    with ObjectStore() as store:
        for path in archives.iterdir():
            Location.of(store.url(f"warc/{path.name}")).put(path)
        command = ["index", store.url("warc"), "-o", store.url("cdxj"), "-j", "1"]
        first = CliRunner().invoke(app, [*command[:-2], "-j", "2"])
        assert first.exit_code == ExitCode.DAMAGED, first.output
        made = store.contents("cdxj")
        assert {name: made[name] for name in made if name.endswith(".cdxj")} == files_of(Path(here))
        again = CliRunner().invoke(app, command)
        assert "3 of them before" in again.output
        assert again.exit_code == ExitCode.DAMAGED
        assert store.contents("cdxj") == made


def test_table_and_summary_of_a_collection_are_made_in_a_bucket_as_on_a_disk(
    archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    products = ("--products", "cdxj,table,summary", "-j", "1", "-q")
    here = tmp_path / "here"

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["collection", *arguments, *products])

    assert run(str(archives), "-o", str(here)).exit_code == ExitCode.DAMAGED
    with ObjectStore() as store:
        first = run(str(archives), "-o", store.url("out"))
        assert first.exit_code == ExitCode.DAMAGED, first.output
        made = store.contents("out")
        told = [json.loads(octets["report.json"])["steps"] for octets in (made, files_of(here))]
        assert told[0] == told[1]
        assert told[0]["table"]["rows"] == 26
        tables = []
        for name, octets in sorted(made.items()):
            if name.endswith(".parquet"):
                assert (here / name).is_file(), "the partitions are those of a table on a disk"
                tables.append(pq.read_table(pa.BufferReader(octets)))
        rows = pa.concat_tables(tables)
        assert rows.equals(pq.read_table(next((here / "table").rglob("*.parquet")), partitioning=None))
        for name in ("summary.json", "summary.txt", "table.report.json"):
            assert made[name] == (here / name).read_bytes()
        run(str(archives), "-o", store.url("out"))
        assert store.contents("out") == {
            **made,
            **{name: store.contents("out")[name] for name in ("report.json", "report.txt")},
        }, "steps are not taken again"
        run(str(archives / "a.warc.gz"), "-o", store.url("out"))
        fewer = json.loads(store.contents("out")["report.json"])["steps"]
        assert (fewer["table"]["rows"], fewer["summary"]["captures"]) == (9, 9)


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
    given = ["index", str(archives), "-o", str(entry), *where]
    done = subprocess.run(
        [
            *(sys.executable, "-c", _RUNNER),
            *(*arguments, "-o", str(here), "--engine", "spark", *where, "then", *given),
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
import sys
from amicrawl.cli import app
at = sys.argv.index("then")
codes = [app(sys.argv[1:at], standalone_mode=False)]
codes.append(app([*sys.argv[at + 1:], "--engine", "spark"], standalone_mode=False))
print("codes:", *codes)
"""


@needs_spark
def test_what_came_of_a_file_is_known_while_others_are_at_work(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ONE_WAITS_FOR_THE_OTHER, str(tmp_path / "go")],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.stdout.split("\n")[:3] == [
        "JobDone quick",
        "Lost hopeless ValueError",
        "JobDone patient",
    ], done.stderr[-3000:]


_ONE_WAITS_FOR_THE_OTHER = """
import sys, time
from pathlib import Path
from amicrawl.archive.spark import done_on_spark
from amicrawl.archive.spark import session

go = Path(sys.argv[1])

def work(job):
    if job == "hopeless":
        raise ValueError("no")
    deadline = time.monotonic() + 300
    while job == "patient" and not go.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return go.exists()

heard = []
with session("local[3]") as spark:
    for event in done_on_spark(spark, ["patient", "quick", "hopeless"], work):
        heard.append(" ".join([type(event).__name__, event.job, getattr(event, "error", "")]).strip())
        if len(heard) == 2:
            heard.sort()
            go.touch()
        assert event.job != "patient" or event.result
print(*heard, sep="\\n")
"""
