"""Files whose names are not UTF-8: used where that is possible, refused by name where it is not."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
import warm_processes
from index.archive_files import http, packed, warc
from loopback import environment

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

NAME = os.fsdecode(b"caf\xe9")
SQL = "SELECT count(*) AS captures FROM ccindex"


def amicrawl(directory: Path, *arguments: str) -> CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", *arguments],
        cwd=directory,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with an archive, its index and its table, once more by names that are not UTF-8."""
    for name in ("plain", NAME):
        (tmp_path / f"{name}.warc.gz").write_bytes(packed([warc("response", block=http())]))
    assert amicrawl(tmp_path, "index", "plain.warc.gz", "-o", ".").returncode == 0
    (tmp_path / f"{NAME}.cdxj").write_bytes((tmp_path / "plain.warc.cdxj").read_bytes())
    for name in ("plain", NAME):
        assert amicrawl(tmp_path, "table", "plain.warc.cdxj", "-o", f"{name}-table").returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("table", f"{NAME}.cdxj", "-o", "out"),
        ("summary", f"{NAME}.cdxj"),
        ("summary", f"{NAME}.warc.gz"),
        ("summary", f"{NAME}-table"),
        ("cdx", "query", f"{NAME}.cdxj", "--url", "http://www.example.org/"),
        ("cdx", "zipnum", f"{NAME}.cdxj", "-o", f"{NAME}-cluster"),
        ("index", f"{NAME}.warc.gz", "-o", NAME, "--format", "cdx11"),
        ("wat", f"{NAME}.warc.gz", "-o", NAME),
        ("inspect", f"{NAME}.warc.gz"),
        ("wacz", "plain.warc.gz", "-o", f"{NAME}.wacz"),
        ("query", "plain-table", "--sql", SQL, "-o", f"{NAME}.csv"),
    ],
)
def test_what_names_no_file_in_its_result_takes_any_name(
    directory: Path, arguments: tuple[str, ...]
) -> None:
    done = amicrawl(directory, *arguments)
    assert done.returncode == 0, done.stderr
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("index", f"{NAME}.warc.gz", "-o", "out"), ExitCode.INPUT),
        (("collection", f"{NAME}.warc.gz", "-o", "out"), ExitCode.DAMAGED),
        (("wacz", f"{NAME}.warc.gz", "-o", "out.wacz"), ExitCode.USAGE),
        (("query", f"{NAME}-table", "--sql", SQL), ExitCode.INPUT),
        (("query", f"{NAME}-table", "--list"), ExitCode.INPUT),
        (("summary", "--quick", f"{NAME}-table"), ExitCode.INPUT),
    ],
)
def test_what_cannot_name_such_a_file_says_so(
    directory: Path, arguments: tuple[str, ...], code: ExitCode
) -> None:
    done = amicrawl(directory, *arguments)
    assert done.returncode == code, done.stderr
    assert "not UTF-8" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
