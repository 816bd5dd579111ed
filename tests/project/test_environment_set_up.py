"""`.ci/environment.py` makes `.venv` once, mends it when it has to, and says what went wrong.

The environments here hold stand-ins for Python and uv that write down how they were called.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from environment import Environment

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).parents[2] / ".ci" / "environment.py"
BOOTSTRAP = SCRIPT.with_name("bootstrap-requirements.txt")
NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "UV_OFFLINE": "1"}


class Project:
    """A project directory with the script, a lock file and an environment of stand-ins."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".ci").mkdir()
        shutil.copy(SCRIPT, root / ".ci")
        (root / ".ci" / BOOTSTRAP.name).write_text("uv==0 --hash=sha256:00\n")
        (root / "uv.lock").write_text("version = 1\n")
        (root / "pyproject.toml").write_text("[project]\n")
        self.venv = root / ".venv"
        (self.venv / "bin").mkdir(parents=True)
        (self.venv / "bin" / "activate").write_text(f"VIRTUAL_ENV={self.venv}\n")
        self.stand_in("python")
        self.stand_in("uv")

    def stand_in(self, name: str, script: str = "exit 0") -> None:
        path = self.venv / "bin" / name
        note = f'echo "{name} $* in $UV_PROJECT_ENVIRONMENT" >> "{self.root}/calls"'
        path.write_text(f"#!/bin/sh\n{note}\n{script}\n")
        path.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(self.root / ".ci" / "environment.py"), *words]
        return subprocess.run(
            command, env=os.environ | NO_INDEX, capture_output=True, text=True, check=False
        )

    def is_ready(self, need: str) -> bool:
        return self.run(need, "--check").returncode == 0

    def calls(self) -> list[str]:
        """Return the calls since the last look, without the probes."""
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line for line in lines if not line.startswith("python -c")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


def test_it_is_ready_once_the_locked_packages_are_in(project: Project) -> None:
    assert not project.is_ready("run")
    assert project.run("run").returncode == 0
    bootstrap, sync = project.calls()
    assert f"--require-hashes -r {project.root / '.ci' / BOOTSTRAP.name}" in bootstrap
    assert "sync --frozen" in sync
    assert "--no-dev" in sync
    assert project.is_ready("run")


def test_a_second_run_has_nothing_to_do(project: Project) -> None:
    project.run("run")
    project.calls()
    again = project.run("run")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert project.calls() == []


def test_what_the_tests_need_is_enough_for_a_crawl_but_not_the_reverse(project: Project) -> None:
    project.run("run")
    assert not project.is_ready("dev")
    project.run("dev")
    assert "--group dev" in project.calls()[-1]
    assert project.is_ready("dev")
    assert project.is_ready("run")


def test_the_extra_for_spark_is_installed_without_the_tools_of_the_other_tests(project: Project) -> None:
    project.run("suite")
    assert not project.is_ready("spark")
    project.calls()
    project.run("spark")
    assert project.calls()[-1].count("--no-dev --group spark") == 1
    assert project.is_ready("spark")
    assert not project.is_ready("run")


@pytest.mark.parametrize("name", ["uv.lock", "pyproject.toml", f".ci/{BOOTSTRAP.name}"])
def test_a_changed_lock_or_project_file_is_followed(project: Project, name: str) -> None:
    project.run("dev")
    (project.root / name).write_text("# changed\n")
    assert not project.is_ready("dev")
    project.calls()
    project.run("dev")
    assert len(project.calls()) == 2
    assert project.is_ready("dev")


def test_an_environment_can_be_made_in_another_place(project: Project) -> None:
    elsewhere = project.root / "peers" / ".venv"
    elsewhere.parent.mkdir()
    project.venv.rename(elsewhere)
    (elsewhere / "bin" / "activate").write_text(f"VIRTUAL_ENV={elsewhere}\n")
    assert project.run("run", "--directory", str(elsewhere)).returncode == 0
    assert project.calls()[-1].endswith(f"in {elsewhere}")
    assert project.run("run", "--check", "--directory", str(elsewhere)).returncode == 0
    assert not project.venv.exists()


def test_where_uv_fails_pip_gets_the_same_packages(project: Project) -> None:
    project.stand_in("uv", 'case "$*" in *sync*) exit 2;; esac')
    done = project.run("run")
    assert done.returncode == 0
    _, sync, export, pins, own = project.calls()
    assert "sync" in sync
    assert "export --frozen" in export
    assert "--require-hashes" in pins
    assert f"--no-build-isolation --editable {project.root}" in own
    assert project.is_ready("run")


def test_nothing_is_installed_that_no_digest_names(project: Project) -> None:
    """Neither uv, nor a package, nor what builds amicrawl; by uv as by pip."""
    project.stand_in("uv", 'case "$*" in *sync*) exit 2;; esac')
    project.run("run")
    installs = [call for call in project.calls() if " install " in call or " sync " in call]
    assert len(installs) == 4
    for call in installs:
        locked = "--require-hashes" in call or "--frozen" in call
        assert locked or "--no-deps --no-build-isolation --editable" in call, call
        assert "sync" not in call or "--no-build-isolation-package amicrawl" in call
    pins = re.split(r"\n(?=\w)", BOOTSTRAP.read_text().partition("\n\n")[0])
    backend = tomllib.loads((SCRIPT.parents[1] / "pyproject.toml").read_text())["build-system"]
    named = {re.split("[=<> ]", pin)[0] for pin in pins if "--hash=sha256:" in pin}
    assert named >= {"uv", *backend["requires"]}


def test_a_failure_is_told_and_nothing_counts_as_ready(project: Project) -> None:
    project.stand_in("uv", "exit 2")
    done = project.run("run")
    assert done.returncode == 1
    assert "start again" in done.stderr
    assert "Traceback" not in done.stderr
    assert not project.is_ready("run")


def half_made(project: Project) -> None:
    (project.venv / "amicrawl-unfinished").touch()


def without_python(project: Project) -> None:
    (project.venv / "bin" / "python").unlink()


def of_an_old_python(project: Project) -> None:
    project.stand_in("python", "exit 1")


def moved(project: Project) -> None:
    (project.venv / "bin" / "activate").write_text("VIRTUAL_ENV=/elsewhere/.venv\n")


def empty(project: Project) -> None:
    shutil.rmtree(project.venv)
    project.venv.mkdir()


def a_file(project: Project) -> None:
    shutil.rmtree(project.venv)
    project.venv.write_text("")


def ready_but_without_python(project: Project) -> None:
    project.run("run")
    without_python(project)


DAMAGES: dict[Callable[[Project], None], str] = {
    half_made: "interrupted",
    without_python: "does not run",
    of_an_old_python: "does not run",
    moved: "another place",
    empty: "another place",
    a_file: "another place",
    ready_but_without_python: "does not run",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_environment_that_cannot_be_built_upon_is_known(
    project: Project, damage: Callable[[Project], None]
) -> None:
    environment = Environment(project.root, project.venv)
    assert environment.fault() is None
    damage(project)
    assert DAMAGES[damage] in (environment.fault() or "")


def test_such_an_environment_is_made_anew(project: Project) -> None:
    ready_but_without_python(project)
    done = project.run("run")
    assert "Making .venv with Python" in done.stderr
    # Nothing can be installed here, without an index; but what is there now is an environment that runs.
    assert done.returncode == 1
    assert "installing uv with pip" in done.stderr
    python = project.venv / "bin" / "python"
    code = "import sys; print(sys.prefix)"
    prefix = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert prefix.stdout.strip() == str(project.venv)
