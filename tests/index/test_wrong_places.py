"""Inputs and outputs of commands that are not what they should be: each is told in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import warm_processes
from index.archive_files import ARC_HEADER, http, packed, warc
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import AmicrawlError, ExitCode

if TYPE_CHECKING:
    from pathlib import Path

LINE = 'org,a)/ 20240101000000 {"url": "http://a.org/", "offset": "0", "filename": "x.warc.gz"}\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("cdxj", "merged", "place.wacz", "empty", "above/one/cdxj", "above/one/merged"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "latin\udce9.warc.gz").write_bytes(b"")
    for name in ("", "above/one/"):
        (tmp_path / name / "cdxj/x.cdxj").write_text(LINE)
        (tmp_path / name / "merged/x.cdxj").write_text(LINE)
    (tmp_path / "side.cdxj").write_text(LINE)
    (tmp_path / "x.warc.gz").write_bytes(packed([warc("response", block=http())]))
    (tmp_path / "x.zst").write_bytes(b"\x28\xb5\x2f\xfd and more")
    (tmp_path / "x.arc").write_bytes(ARC_HEADER)
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04 and more")
    (tmp_path / "rows.dat").write_bytes(b"PAR1" + b"\x28\xb5\x2f\xfd and more")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        # An archive in place of its index.
        (
            "cdx zipnum x.arc -o out",
            3,
            "x.arc is a WARC or ARC file, and what is wanted is an index of one.",
        ),
        ("cdx query x.arc --url x", 3, "x.arc is a WARC or ARC file"),
        ("cdx query x.zip --url x", 3, "x.zip is a package. Unpack it, and name the index in"),
        ("table x.zip -o out", 3, "x.zip is a package. Unpack it, and name the index in"),
        ("merge x.zip side.cdxj -o out", 3, "x.zip is a package. Unpack it, and name the index in"),
        ("summary x.zip", 3, "x.zip is a package. Unpack it, and name the index in"),
        ("cdx zipnum x.zip -o out", 3, "x.zip is a package. Unpack it, and name the index in"),
        ("table x.arc -o out", 3, "Make it first: amicrawl index x.arc"),
        ("table x.warc.gz -o out", 3, "x.warc.gz is a WARC or ARC file"),
        ("table x.zst -o out", 3, "x.zst is packed with Zstandard, and what is wanted is an"),
        (
            "cdx query x.zst --url x",
            3,
            "If it is an archive, make its index: amicrawl index x.zst",
        ),
        ("merge x.warc.gz side.cdxj -o out", 3, "x.warc.gz is a WARC or ARC file"),
        ("cdx zipnum x.warc.gz -o out", 3, "x.warc.gz is a WARC or ARC file"),
        # A table in place of what it is made of.
        ("table rows.dat -o out", 3, "rows.dat is a Parquet file, and what is wanted is an index"),
        ("cdx query rows.dat --url x", 3, "rows.dat is a Parquet file"),
        # A directory in which each capture is twice.
        ("table . -o out", 2, "cdxj and merged hold the same captures. Name one of the two."),
        ("summary .", 2, "cdxj and merged hold the same captures."),
        ("cdx zipnum . -o out", 2, "cdxj and merged hold the same captures."),
        ("merge side.cdxj . -o out", 2, "cdxj and merged hold the same captures."),
        ("table above -o out", 2, "above/one: cdxj and merged hold the same captures."),
        ("summary above", 2, "above/one: cdxj and merged hold the same captures."),
        # A file in place of a directory, and the other way round.
        ("table cdxj -o x.arc", 4, "x.arc cannot be created: File exists. Name another place"),
        ("merge cdxj side.cdxj -o x.arc", 4, "x.arc cannot be created: File exists. Name another place"),
        ("index x.warc.gz --merge empty", 4, "empty is a directory. Name a file with --merge."),
        ("index x.warc.gz -c empty", 4, "empty is a directory. Name a file with --blocks."),
        ("summary cdxj --html empty", 4, "empty is a directory. Name a file with --html."),
        ("summary cdxj --html gone/x.html", 4, "gone/x.html cannot be written: there is no directory"),
        ("query x.arc --sql FROM -o empty", 4, "empty is a directory. Name a file with -o."),
        ("wacz x.warc.gz -o place.wacz", 4, "place.wacz is a directory. Name a file with -o."),
        ("wacz x.warc.gz -o gone/x.wacz", 4, "Make it, or name another place with -o."),
        ("summary - -", 2, "- is standard input, which can be read once. Name it once."),
        ("summary cdxj --overlap - --overlap -", 2, "- is standard input"),
        ("wacz latin\udce9.warc.gz -o x.wacz", 2, "the name is not UTF-8. Give it another one."),
        ("summary cdxj --quick", 3, "--quick is for index tables, and cdxj/x.cdxj is not one."),
        ("summary - --quick", 3, "--quick is for index tables, and - is not one."),
        (
            "index x.warc.gz --dir-root gone",
            2,
            "--dir-root gone is not a directory. Name one that is above",
        ),
        ("collection x.warc.gz -o out --dir-root x.arc", 2, "--dir-root x.arc is not a directory."),
        ("summary cdxj --monthly", 2, "are options of --compat cdx-summarize. Add that, or leave"),
        ("summary cdxj --compat cdx-summarize --json", 2, "--compat cdx-summarize prints lines of its"),
        (
            "wacz x.warc.gz -o x.wacz --pages gone",
            3,
            "gone is not a file. Name the captures.parquet of",
        ),
        # What is not there.
        ("wacz gone -o x.wacz", 3, "gone does not exist. Check the path."),
        ("wat empty", 3, "empty: no file that ends in .warc, .warc.gz, .warc.zst, .arc or"),
    ],
)
def test_what_is_not_as_it_should_be_is_said(command: str, code: int, sentence: str) -> None:
    done = CliRunner().invoke(app, command.split())
    assert isinstance(done.exception, AmicrawlError), done.output
    assert done.exception.exit_code == code
    assert sentence in str(done.exception)


@pytest.mark.usefixtures("work")
def test_merging_has_its_processes_by_the_name_that_others_have() -> None:
    for option in ("-j", "--jobs", "--processes"):
        done = CliRunner().invoke(app, ["merge", "cdxj", "side.cdxj", "-o", "out", option, "1"])
        assert done.exit_code == ExitCode.DONE, done.output


def test_a_file_that_cannot_be_read_is_told_in_its_sentence_and_the_others_are_made(work: Path) -> None:
    """`/proc/self/mem` is there, and reading its beginning fails."""
    (work / "y.warc.gz").write_bytes((work / "x.warc.gz").read_bytes())
    files = ["x.warc.gz", "/proc/self/mem", "y.warc.gz"]
    sentence = "/proc/self/mem cannot be read: Input/output error. Check path and permissions."
    for command, code, made in (
        ("wat", ExitCode.INPUT, "out/y.warc.wat.gz"),
        ("index", ExitCode.INPUT, "out/y.warc.cdxj"),
        ("collection", ExitCode.DAMAGED, "out/cdxj/y.warc.cdxj"),
    ):
        more = ["--products", "cdxj", "-j", "1"] if command == "collection" else []
        done = CliRunner().invoke(app, [command, *files, "-o", "out", *more])
        assert done.exit_code == code, done.output
        assert (work / made).exists()
        said = f"failed: /proc/self/mem, byte 0: {sentence} Nothing of it was kept."
        assert (said if command == "collection" else sentence) in (
            done.stdout + done.stderr
        ).splitlines()


def test_what_of_a_directory_cannot_go_into_a_package_is_named(work: Path) -> None:
    (work / "latin\udce9.warc.gz").unlink()
    done = CliRunner().invoke(app, ["wacz", str(work), "-o", "x.wacz"])
    assert done.exit_code == ExitCode.DONE, done.output
    assert done.stderr.startswith("Left out, as only .warc and .warc.gz can go into a package: ")
    assert done.stderr.endswith("x.arc\n")
    assert done.stdout.startswith("x.wacz: 1 WARC file, ")


def test_a_line_that_says_how_far_it_is_leaves_nothing_on_the_terminal(work: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "amicrawl", "merge", "cdxj", "side.cdxj", "-o", "out"]
    done = warm_processes.run(
        command, cwd=work, stderr=theirs, stdout=subprocess.PIPE, timeout=90, check=True
    )
    shown = os.read(ours, 4096)
    assert shown.startswith(b"\r\x1b[J[")
    assert shown.endswith(b"] 100 % 1 of 1 file, 1 line\r\r\x1b[J")
    assert done.stdout.startswith(b"1 line in 1 file below out. ")
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize(
    "command",
    ["index x.warc.gz -o /proc/1/x", "wat x.warc.gz -o /proc/1/x", "table cdxj -o /proc/sys/kernel/x"],
)
@pytest.mark.usefixtures("work")
def test_a_place_that_cannot_be_written_to_is_a_fault_of_the_output(command: str) -> None:
    """Nobody, root included, can make a directory there."""
    done = CliRunner().invoke(app, command.split())
    assert isinstance(done.exception, AmicrawlError), done.output
    assert done.exception.exit_code == ExitCode.OUTPUT
    assert "cannot be created" in str(done.exception)


@pytest.mark.usefixtures("work")
def test_a_parquet_file_is_no_archive_that_is_packed() -> None:
    done = CliRunner().invoke(app, ["index", "rows.dat"])
    assert done.exit_code == 5
    assert "rows.dat, byte 0: no record begins here" in done.output
