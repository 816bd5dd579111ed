"""`make test` runs what failed once more, alone, if it is little."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FLAKY = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range({failing} + 1))
def test_one(number):
    ran = pathlib.Path(f"ran-{{number}}")
    count = len(ran.read_text()) if ran.exists() else 0
    ran.write_text("x" * (count + 1))
    assert number == {failing} or count >= {times}, "as on a busy machine"
"""


def run_in(directory: Path, *, failing: int, times: int) -> subprocess.CompletedProcess[str]:
    """Run that many failing tests and a good one in *directory*; they fail *times* times."""
    (directory / "test_flaky.py").write_text(FLAKY.format(failing=failing, times=times))
    (directory / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [PROJECT / ".ci" / "tests-twice", sys.executable, "-p", "xdist"],
        cwd=directory,
        # Installed plug-ins take longer to import than these tests take.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def runs(directory: Path) -> list[int]:
    """How often each test was run."""
    return [len(path.read_text()) for path in sorted(directory.glob("ran-*"))]


def test_a_test_that_passes_the_second_time_is_listed_with_its_traceback(tmp_path: Path) -> None:
    done = run_in(tmp_path, failing=1, times=1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as on a busy machine" in done.stdout
    assert done.stdout.splitlines()[-1] == "test_flaky.py::test_one[0]"
    assert runs(tmp_path) == [2, 1]


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    assert run_in(tmp_path, failing=1, times=2).returncode == 1
    assert runs(tmp_path) == [2, 1]


def test_where_more_than_ten_fail_none_is_run_again(tmp_path: Path) -> None:
    done = run_in(tmp_path, failing=11, times=1)
    assert done.returncode == 1
    assert "11 tests failed: too many to be run once more" in done.stderr
    assert runs(tmp_path) == [1] * 12


def test_where_pytest_does_not_get_through_its_status_is_kept(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("raise SystemExit(9)\n")
    assert run_in(tmp_path, failing=0, times=0).returncode not in {0, 1}
    assert runs(tmp_path) == []
