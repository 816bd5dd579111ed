"""The summary over Spark is the summary of the local engine, to the bit, while an executor is killed."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from index.archive_files import exchange, packed
from object_store import CREDENTIALS, ObjectStore
from report.summary_lines import cdx11
from spark_engine import needs_spark, over_a_cluster
from typer.testing import CliRunner

from amicrawl.archive.location import Location
from amicrawl.archive.report.counts import CORRECTED
from amicrawl.archive.report.inputs import InputFile, files_of
from amicrawl.archive.report.reading import count_in_task, read_counts
from amicrawl.archive.spark import TransientError, came_of
from amicrawl.archive.table import make_table
from amicrawl.cli import app
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def write_inputs(directory: Path) -> list[str]:
    """Write inputs of each kind below *directory*; return their names, in some order."""
    for number in range(3):
        records = [exchange(f"http://site{n * 7 % 5}.org/{number}/{n}")[0] for n in range(30)]
        path = directory / "warc" / f"{number}.warc.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(packed(records))
    cut = directory / "warc" / "1.warc.gz"
    cut.write_bytes(cut.read_bytes()[:-40])
    lines = "".join(f"{cdx11(key=f'com,example)/{n}', size=str(n))}\n" for n in range(500))
    (directory / "lines.cdx.gz").write_bytes(gzip.compress(f"{lines}no line\n".encode()))
    fields = json.dumps({"url": "http://a.org/", "mime": "text/html", "status": "200"})
    cdxj = directory / "a.cdxj"
    cdxj.write_text("".join(f"org,a)/{n:04d} 20121026215942 {fields}\n" for n in range(700)))
    make_table([cdxj], directory / "table", disk=Disk())
    part = CliRunner().invoke(app, ["summary", "--json", str(cdxj)])
    (directory / "part.json").write_text(part.stdout)
    return ["warc", "part.json", "table", "lines.cdx.gz", "a.cdxj"]


def upload(directory: Path, store: ObjectStore) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            Location.of(store.url(path.relative_to(directory).as_posix())).put(path)


@needs_spark
def test_the_summary_over_spark_is_the_local_one_though_an_executor_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    names = write_inputs(tmp_path)
    other = ["--overlap", str(tmp_path / "a.cdxj"), "--json"]
    local = CliRunner().invoke(app, ["summary", *(str(tmp_path / name) for name in names), *other])
    with ObjectStore() as store:
        upload(tmp_path, store)
        over_spark = over_a_cluster(["summary", *map(store.url, names), *other], store)
    assert "killed" in over_spark.stdout, over_spark.stderr[-3000:]
    assert over_spark.returncode == local.exit_code == ExitCode.DAMAGED, over_spark.stderr[-3000:]
    assert json.loads(over_spark.stdout.replace("killed\n", "")) == json.loads(local.stdout)
    skipped, *lost = local.stderr.replace(str(tmp_path), "s3://archive").splitlines()
    where = f"?{store.url('').partition('?')[2]}"
    assert skipped in over_spark.stderr
    assert len(lost) > 1
    assert all(sentence in over_spark.stderr.replace(where, "") for sentence in lost)


def test_inputs_in_a_bucket_have_the_summary_of_their_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    names = write_inputs(tmp_path)
    local = read_counts([str(tmp_path / name) for name in names])
    with ObjectStore() as store:
        upload(tmp_path, store)
        remote = read_counts([store.url(name) for name in names])
        with pytest.raises(InputError, match="holds no ZipNum cluster"):
            files_of(store.url("nothing"))
        for name in ("cdxj/a.cdxj", "merged/a.cdxj"):
            Location.of(store.url(f"all/{name}")).put(tmp_path / "a.cdxj")
        with pytest.raises(UsageError, match="cdxj and merged hold the same captures"):
            files_of(store.url("all"))
        table = ["table", store.url("all"), "-o", str(tmp_path / "new"), "--engine", "spark"]
        assert isinstance(CliRunner().invoke(app, table).exception, UsageError)
    assert remote.counts == local.counts
    assert len(remote.damage) == len(local.damage) > 0
    assert all("s3://archive/warc/1.warc.gz?" in sentence for sentence in remote.damage)


def test_a_task_raises_what_may_pass_until_its_last_attempt(tmp_path: Path) -> None:
    unreachable = Location(tmp_path.as_uri())
    missing = InputFile(Location(str(tmp_path / "missing.cdx")), 0)
    damaged = tmp_path / "x.json"
    damaged.write_text("{}")

    def reason(file: InputFile, *, is_last: bool) -> str:
        return came_of([file], partial(count_in_task, rules=CORRECTED, kind=None), is_last=is_last)[2]

    with pytest.raises(TransientError, match="cannot be reached"):
        reason(InputFile(unreachable, 0), is_last=False)
    assert "cannot be reached" in reason(InputFile(unreachable, 0), is_last=True)
    assert "cannot be read" in reason(missing, is_last=False)
    assert "begins like the JSON" in reason(InputFile(Location(str(damaged)), 0), is_last=False)


@pytest.mark.parametrize("given", [["-"], ["a.cdx", "--quick"], ["a.cdx", "--compat", "cdx-summarize"]])
def test_what_needs_this_machine_is_refused_over_spark(given: list[str]) -> None:
    refused = CliRunner().invoke(app, ["summary", *given, "--engine", "spark"])
    assert isinstance(refused.exception, UsageError)
