"""`.ci/find-python` finds a Python that works, whatever else bears the name of one."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "find-python"

BROKEN = "echo 'version not installed' >&2; exit 127"
OLD = "exit 1"
WITHOUT_VENV = 'case "$2" in *ensurepip*) exit 1;; esac; exit 0'
COMPLETE = "exit 0"


def command(directory: Path, name: str, script: str) -> Path:
    """Put a stand-in for a Python there: it ends as *script* does, which sees `-c` and the code."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def find(*directories: Path) -> subprocess.CompletedProcess[str]:
    path = ":".join(map(str, directories))
    return subprocess.run(
        ["/bin/sh", str(SCRIPT)], env={"PATH": path}, capture_output=True, text=True, check=False
    )


def test_a_command_that_only_fails_does_not_hide_one_that_works(tmp_path: Path) -> None:
    command(tmp_path / "shims", "python3.12", BROKEN)
    works = command(tmp_path / "bin", "python3.12", COMPLETE)
    assert find(tmp_path / "shims", tmp_path / "bin").stdout.strip() == str(works)


def test_an_old_python_is_passed_over(tmp_path: Path) -> None:
    command(tmp_path, "python3", OLD)
    works = command(tmp_path, "python3.13", COMPLETE)
    assert find(tmp_path).stdout.strip() == str(works)


def test_one_that_can_make_environments_is_taken_before_one_that_cannot(tmp_path: Path) -> None:
    command(tmp_path, "python3.11", WITHOUT_VENV)
    works = command(tmp_path, "python3", COMPLETE)
    assert find(tmp_path).stdout.strip() == str(works)


def test_one_that_cannot_make_environments_is_better_than_none(tmp_path: Path) -> None:
    works = command(tmp_path, "python3.11", WITHOUT_VENV)
    assert find(tmp_path).stdout.strip() == str(works)


def test_where_there_is_none_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    command(tmp_path, "python3", OLD)
    found = find(tmp_path)
    assert found.returncode == 1
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) == 1
    assert "PYTHON=" in found.stderr


def test_a_directory_with_a_space_is_searched_too(tmp_path: Path) -> None:
    works = command(tmp_path / "my programs", "python3", COMPLETE)
    assert find(tmp_path / "my programs").stdout.strip() == str(works)
