"""`amicrawl check`: for eyes, for CI, for editors."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.crawlfile.keys import crawl_file_schema
from amicrawl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

GOOD = (
    "public = false\nextends = 'common.toml'\n[seeds]\nurl = 'http://a.example/'\n"
    "[output]\nrun_id = '%Y'\n"
)


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    good, bad, common = (tmp_path / f"{name}.toml" for name in ("good", "bad", "common"))
    good.write_text(GOOD)
    bad.write_text("public = false\n[politeness]\ndealy = 1\n")
    common.write_text("[politeness]\ndelay = 2.5\n")
    return good, bad, common


def test_good_files_have_a_line_each_and_end_with_0(tmp_path: Path) -> None:
    good, _, common = files(tmp_path)
    done = check(common, good)
    assert done.exit_code == 0
    assert done.stdout == (
        f"{common}: good, as a part of others.\n"
        f"{good}: good. Spider site, seeds http://a.example/, delay 2.5 s, out ami-out/%Y\n"
    )


def test_faults_have_a_line_each_and_end_with_2(tmp_path: Path) -> None:
    good, bad, _ = files(tmp_path)
    done = check(bad, good)
    assert done.exit_code == ExitCode.USAGE
    assert done.stdout.splitlines() == [
        f'{bad}: no seeds. Write file = "seeds.jsonl" below [seeds].',
        f"{bad}, line 3: unknown key dealy in [politeness]. Did you mean delay?",
        f"{good}: good. Spider site, seeds http://a.example/, delay 2.5 s, out ami-out/%Y",
    ]


def test_a_pipe_is_refused_as_it_can_be_read_only_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.toml")
    done = check(tmp_path / "f.toml")
    assert done.exit_code == ExitCode.INPUT
    assert "is a pipe, and may be read more than once" in done.stdout


def test_a_missing_file_ends_with_3_and_the_others_are_checked(tmp_path: Path) -> None:
    good, _, _ = files(tmp_path)
    done = check(tmp_path / "none.toml", good)
    assert done.exit_code == ExitCode.INPUT
    assert "none.toml cannot be read: No such file or directory." in done.stdout
    assert "good.toml: good." in done.stdout


def test_json_says_the_same(tmp_path: Path) -> None:
    good, bad, common = files(tmp_path)
    done = check("--json", good, bad, common, tmp_path / "none.toml")
    assert done.exit_code == ExitCode.INPUT
    of_good, of_bad, of_common, of_none = json.loads(done.stdout)["files"]
    assert (of_good["ok"], of_good["spider"], of_good["delay"]) == (True, "site", 2.5)
    assert of_bad["faults"][1] == {
        "path": str(bad),
        "line": 3,
        "sentence": "unknown key dealy in [politeness]. Did you mean delay?",
    }
    assert (of_common["ok"], of_common["part"]) == (True, True)
    assert "cannot be read" in of_none["missing"]


def test_the_merged_file_is_printed(tmp_path: Path) -> None:
    good, bad, _ = files(tmp_path)
    told = tomllib.loads(check("--effective", good).stdout)
    assert told == {
        "public": False,
        "seeds": {"url": "http://a.example/"},
        "politeness": {"delay": 2.5},
        "output": {"run_id": "%Y"},
    }
    wrong = check("--effective", bad)
    assert (wrong.exit_code, wrong.stdout) == (ExitCode.USAGE, "")
    assert isinstance(check("--effective", good, bad).exception, UsageError)


def test_the_schema_is_printed() -> None:
    assert json.loads(check("--schema").stdout) == crawl_file_schema()


def test_what_a_file_holds_cannot_steer_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('"\\u001b[2J" = 1\n[politeness]\nrobots = "\\u001b]0;x"\n')
    done = check(tmp_path / "x.toml")
    assert "\x1b" not in done.stdout
    assert "\\x1b[2J" in done.stdout


def test_two_files_that_crawl_into_one_directory_are_noted(tmp_path: Path) -> None:
    """The second crawl would go on with what the first left, or never find itself due."""
    good, _, common = files(tmp_path)
    twin, other = tmp_path / "twin.toml", tmp_path / "other.toml"
    twin.write_text(GOOD.replace("a.example", "b.example"))
    other.write_text(GOOD.replace("'%Y'", "'other'"))
    done = check(common, good, twin, other, tmp_path / "." / good.name)
    assert done.exit_code == 0
    notes = [line for line in done.stdout.splitlines() if "(a note)" in line]
    assert notes == [f"{twin}: its directory is that of {good}, too: write another out. (a note)"]


def test_no_file_is_a_wrong_usage() -> None:
    assert isinstance(check().exception, UsageError)


def test_a_bucket_that_a_crawl_would_refuse_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "secret.toml"
    path.write_text(
        f"{GOOD}bucket = 's3://key:word@bucket/path'\n".replace("extends = 'common.toml'\n", "")
    )
    done = check(path)
    assert done.exit_code == ExitCode.USAGE
    assert "must hold no credentials" in done.stdout
    assert "word" not in done.stdout
