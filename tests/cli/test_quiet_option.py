"""`-q`: commands that make files of archives print errors only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from index.archive_files import http, packed, warc
from typer.testing import CliRunner

from amicrawl.cli import app

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = [
    ("index", "in", "-o", "out"),
    ("collection", "in", "-o", "out", "--products", "cdxj,table,summary"),
    ("sidecar", "in", "-o", "out"),
    ("wat", "in", "-o", "out"),
]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a WARC file in its `in`; commands run there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.warc.gz").write_bytes(packed([warc("response", block=http())]))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_what_went_well_is_not_said(directory: Path, command: tuple[str, ...]) -> None:
    said = CliRunner().invoke(app, [*command, "-j", "1"])
    assert (said.exit_code, bool(said.output)) == (0, True)
    quiet = CliRunner().invoke(app, [*(word.replace("out", "other") for word in command), "-j1", "-q"])
    assert (quiet.exit_code, quiet.output) == (0, "")
    assert sorted(path.name for path in (directory / "other").rglob("*.gz")) == sorted(
        path.name for path in (directory / "out").rglob("*.gz")
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_what_was_lost_is_said_nonetheless(directory: Path, command: tuple[str, ...]) -> None:
    path = directory / "in" / "a.warc.gz"
    path.write_bytes(path.read_bytes()[:-20])
    quiet = CliRunner().invoke(app, [*command, "-j", "1", "-q"])
    assert quiet.exit_code == 5
    assert "a.warc.gz, byte 0" in quiet.output


def test_a_table_is_made_without_a_word(directory: Path) -> None:
    CliRunner().invoke(app, ["index", "in", "-o", "cdxj", "-q", "-j", "1"])
    made = CliRunner().invoke(app, ["table", "cdxj", "-o", "table", "-q"])
    assert (made.exit_code, made.output) == (0, "")
    assert list((directory / "table").rglob("*.parquet"))
    summary = CliRunner().invoke(app, ["summary", "table", "-q"])
    assert (summary.exit_code, summary.stderr) == (0, "")
    assert "captures" in summary.stdout.lower()
