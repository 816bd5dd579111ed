"""`amicrawl index`: files in, sorted indexes out, once, with a word on everything that is lost."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from index.archive_files import http, packed, parse_cdxj, warc
from typer.testing import CliRunner

from amicrawl.archive.index import looked_up
from amicrawl.cli import app
from amicrawl.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(app, ["index", *map(str, arguments)], input=stdin)


def archive(path: Path, *names: str) -> Path:
    path.write_bytes(packed(warc("response", f"http://{name}.example/", http()) for name in names))
    return path


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return [
        archive(tmp_path / "one.warc.gz", "d", "b"),
        archive(tmp_path / "two.warc.gz", "c", "a", "b"),
    ]


def keys(data: bytes) -> list[str]:
    return [parse_cdxj(line).key for line in data.splitlines(keepends=True)]


def test_each_file_has_an_index_in_byte_order(two: list[Path], tmp_path: Path) -> None:
    result = run(*two, "-o", tmp_path / "out", "--jobs", "1")
    assert result.exit_code == ExitCode.DONE
    assert "2 files: 5 lines of 5 records" in result.stderr
    assert keys((tmp_path / "out/one.warc.cdxj").read_bytes()) == ["example,b)/", "example,d)/"]
    assert keys((tmp_path / "out/two.warc.cdxj").read_bytes()) == [
        "example,a)/",
        "example,b)/",
        "example,c)/",
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "done",
        "one.warc.cdxj",
        "two.warc.cdxj",
    ]


def test_what_is_done_is_not_done_again_unless_it_changed_or_is_wanted(
    two: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(*two, "-o", out, "-j", "1")
    index = out / "one.warc.cdxj"
    first = index.stat().st_ino
    assert "2 of them before" in run(*two, "-o", out, "-j", "1").stderr
    assert index.stat().st_ino == first
    archive(two[0], "d", "b", "e")
    assert "1 of them before" in run(*two, "-o", out, "-j", "1").stderr
    assert len(keys(index.read_bytes())) == 3
    (out / "two.warc.cdxj").unlink()
    assert "1 of them before" in run(*two, "-o", out, "-j", "1").stderr
    assert "before" not in run(*two, "-o", out, "-j", "1", "--again").stderr
    assert "before" not in run(*two, "-o", out, "-j", "1", "--compat", "pywb").stderr


def test_all_files_can_have_one_index(two: list[Path], tmp_path: Path) -> None:
    expected = ["example,a)/", "example,b)/", "example,b)/", "example,c)/", "example,d)/"]
    assert run(*two, "--merge", tmp_path / "all.cdxj", "-j", "1").exit_code == ExitCode.DONE
    data = (tmp_path / "all.cdxj").read_bytes()
    assert keys(data) == expected
    assert data.splitlines() == sorted(data.splitlines())
    assert run(*two, "-o", "-", "-j", "1").stdout_bytes == data
    assert run(tmp_path, "--merge", "-", "-j", "1").stdout_bytes == data, (
        "a directory stands for its files"
    )
    run(*two, "--merge", tmp_path / "all.cdxj.gz", "--gzip", "-j", "1")
    assert gzip.decompress((tmp_path / "all.cdxj.gz").read_bytes()) == data
    assert not list(tmp_path.glob("*.parts"))


def test_a_merged_cdx_file_has_one_legend(two: list[Path], tmp_path: Path) -> None:
    run(*two, "--merge", tmp_path / "all.cdx", "--format", "cdx11", "-j", "1")
    lines = (tmp_path / "all.cdx").read_bytes().splitlines()
    assert lines[0] == b" CDX N b a m s k r M S V g"
    assert len(lines) == 6
    assert lines == sorted(lines)


def test_all_files_can_become_a_zipnum_cluster(two: list[Path], tmp_path: Path) -> None:
    assert run(*two, "--zipnum", tmp_path / "cluster", "-j", "1").exit_code == ExitCode.DONE
    (shard,) = (tmp_path / "cluster").glob("*.gz")
    assert len(keys(gzip.decompress(shard.read_bytes()))) == 5
    assert (tmp_path / "cluster/cluster.idx").stat().st_size


def test_standard_input_is_a_file_too(two: list[Path]) -> None:
    result = run("-", "--merge", "-", stdin=two[0].read_bytes())
    assert keys(result.stdout_bytes) == ["example,b)/", "example,d)/"]
    assert json.loads(result.stdout_bytes.splitlines()[0].split(b" ", 2)[2])["filename"] == "-"


def test_files_are_named_below_a_directory_if_one_is_given(two: list[Path], tmp_path: Path) -> None:
    result = run(*two, "--merge", "-", "--dir-root", tmp_path.parent, "-j", "1")
    names = {parse_cdxj(line).fields["filename"] for line in result.stdout_bytes.splitlines()}
    assert names == {f"{tmp_path.name}/one.warc.gz", f"{tmp_path.name}/two.warc.gz"}


def test_what_is_lost_is_named_each_time_and_the_rest_is_indexed(
    two: list[Path], tmp_path: Path
) -> None:
    whole = two[0].read_bytes()
    two[0].write_bytes(whole[:-5])
    second = len(packed([warc("response", "http://d.example/", http())]))
    for again in (False, True):
        result = run(*two, "-o", tmp_path / "out", "-j", "1")
        assert result.exit_code == ExitCode.DAMAGED
        assert f"{two[0]}, byte {second}: the file ends inside a gzip member" in result.stderr
        assert ("before" in result.stderr) is again
    assert keys((tmp_path / "out/one.warc.cdxj").read_bytes()) == ["example,d)/"]
    assert len(keys((tmp_path / "out/two.warc.cdxj").read_bytes())) == 3


@pytest.mark.parametrize("content", [b"", packed([b""])], ids=["empty", "packed"])
def test_a_file_without_a_record_is_named(two: list[Path], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "nothing.warc.gz").write_bytes(content)
    result = run(*two, tmp_path / "nothing.warc.gz", "-o", tmp_path / "out", "--jobs", "1")
    assert result.exit_code == ExitCode.DAMAGED
    assert "nothing.warc.gz, byte 0: no record was found in it" in result.stderr
    assert "3 files: 5 lines of 5 records" in result.stderr


def test_a_file_that_cannot_be_read_does_not_keep_others_from_being(
    two: list[Path], tmp_path: Path
) -> None:
    fifo = tmp_path / "gone.warc.gz"
    fifo.symlink_to(tmp_path / "gone.warc.gz")
    result = run(*two, "-o", tmp_path / "out", "-j", "1")
    assert result.exit_code == ExitCode.DONE
    result = run(two[0], tmp_path / "missing.warc.gz", "-o", tmp_path / "out")
    assert isinstance(result.exception, InputError)


@pytest.mark.parametrize("arguments", [(), ("--zipnum", "cluster", "--format", "cdx11")])
def test_what_cannot_be_followed_is_refused(
    arguments: tuple[str, ...], two: list[Path], tmp_path: Path
) -> None:
    if not arguments:
        (tmp_path / "other").mkdir()
        two.append(archive(tmp_path / "other" / "one.warc.gz", "x"))
    result = run(*two, "-o", tmp_path / "out", *arguments)
    assert isinstance(result.exception, UsageError)


def test_files_are_indexed_in_several_processes(two: list[Path], tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "amicrawl",
        "index",
        *map(str, two),
        "-o",
        str(tmp_path / "out"),
        "-j",
        "2",
    ]
    finished = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONWARNINGS": "error"}
    )
    assert finished.returncode == ExitCode.DONE, finished.stderr
    assert b"2 files: 5 lines of 5 records" in finished.stderr
    assert len(list((tmp_path / "out").glob("*.cdxj"))) == 2


@pytest.fixture
def alike(tmp_path: Path) -> list[Path]:
    """Two directories, each with a file of the same name."""
    for name in ("k1", "k2"):
        (tmp_path / name).mkdir()
        archive(tmp_path / name / "ami-00000.warc.gz", name)
    return [tmp_path / "k1", tmp_path / "k2"]


def test_files_of_one_name_are_refused_with_the_option_that_tells_them_apart(
    alike: list[Path], tmp_path: Path
) -> None:
    result = run(*alike, "--merge", tmp_path / "x")
    assert isinstance(result.exception, UsageError)
    assert f"--dir-root {tmp_path}: it names them by their paths" in str(result.exception)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("out", [(), ("-o", "parts")])
def test_files_of_one_name_have_one_index_that_tells_them_apart(
    alike: list[Path], tmp_path: Path, out: tuple[str, ...]
) -> None:
    where = tuple(str(tmp_path / each) if each == "parts" else each for each in out)
    result = run(*alike, "--merge", tmp_path / "x", "--dir-root", tmp_path, "-j", "1", *where)
    assert result.exit_code == ExitCode.DONE
    lines = (tmp_path / "x").read_bytes().splitlines()
    assert [parse_cdxj(line).fields["filename"] for line in lines] == [
        "k1/ami-00000.warc.gz",
        "k2/ami-00000.warc.gz",
    ]
    assert len(list(tmp_path.glob("parts/*.cdxj"))) == len(out)


def test_a_file_that_is_named_twice_is_told(alike: list[Path], tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(tmp_path)
    root = ("--dir-root", tmp_path)
    twice = run(alike[0], tmp_path / "k1" / ".." / "k1", "--merge", "-", *root)
    assert "Name each file once." in str(twice.exception)


@pytest.mark.parametrize("spoilt", [{"size": 1e999}, {"at": "/\ud800"}, {"at": "/\0"}])
def test_a_mark_that_says_what_cannot_be_counts_as_none(spoilt: dict[str, Any], tmp_path: Path) -> None:
    archive(tmp_path / "x.warc.gz", "x")
    assert run(tmp_path / "x.warc.gz", "-o", tmp_path / "out").exit_code == ExitCode.DONE
    (mark,) = (tmp_path / "out/done").iterdir()
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "changed": 1, **spoilt}))
    assert run(tmp_path / "x.warc.gz", "-o", tmp_path / "out").exit_code == ExitCode.DONE
    assert json.loads(mark.read_text())["changed"] != 1


@pytest.mark.parametrize("option", ["--merge", "--blocks"])
def test_no_archive_is_written_over_with_an_index(option: str, two: list[Path], tmp_path: Path) -> None:
    before = two[0].read_bytes()
    # As a shell makes it of `--merge *.warc.gz`.
    result = run(option, *two)
    assert isinstance(result.exception, UsageError)
    assert two[0].read_bytes() == before
    assert [*tmp_path.iterdir()] == two


def test_an_index_on_standard_output_is_packed_where_that_is_wanted(two: list[Path]) -> None:
    plain, packed_ = run(*two, "--merge", "-", "-q"), run(*two, "--merge", "-", "-q", "--gzip")
    assert plain.stdout_bytes
    assert gzip.decompress(packed_.stdout_bytes) == plain.stdout_bytes


def test_a_cluster_may_be_made_where_the_command_runs(
    two: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(*two, "--zipnum", ".").exit_code == ExitCode.DONE
    assert (tmp_path / "here/cluster.idx").exists()
    assert not (tmp_path / "here.parts").exists()


@pytest.mark.parametrize("name", ["example.org.cdxj.gz", "index.cdx.gz", "x.gz"])
def test_blocks_are_found_whatever_their_file_is_called(
    name: str, two: list[Path], tmp_path: Path
) -> None:
    blocks = tmp_path / "blocks" / name
    blocks.parent.mkdir()
    assert run(*two, "--blocks", blocks).exit_code == ExitCode.DONE
    for path in (blocks, blocks.parent):
        (line,) = looked_up({"url": ["http://a.example/"]}, [path])
        assert line.startswith(b"example,a)/ ")
