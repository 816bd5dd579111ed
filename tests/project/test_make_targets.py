"""The Makefile keeps what the pages promise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SET_UP = {
    "crawl": "run",
    "test": "dev",
    "lint": "dev",
    "bench": "dev",
    "crash-test": "dev",
    "test-spark": "dev",
}
HANDED_DOWN = {
    "MAKEFLAGS",
    "MFLAGS",
    "MAKEOVERRIDES",
    "MAKELEVEL",
    "SEEDS",
    "OUT",
    "PYTHON",
    "PAGES",
    "ROUNDS",
}


def make(*words: str, directory: Path = PROJECT) -> subprocess.CompletedProcess[str]:
    # `make test` hands its own variables down to these tests.
    environment = {name: value for name, value in os.environ.items() if name not in HANDED_DOWN}
    command = ["make", *words]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def named_in_pages() -> set[str]:
    pages = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *(PROJECT / "docs").rglob("*.md")]
    # In code only: "make a crawl" in running text names no target.
    code = [
        part
        for page in pages
        for part in re.findall(r"```.*?```|`[^`\n]+`", page.read_text(), re.DOTALL)
    ]
    return {
        target
        for part in code
        for target in re.findall(r"(?:^|`|\$ )make ([a-z-]+)", part, re.MULTILINE)
    }


def test_every_target_that_the_pages_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    named = named_in_pages()
    assert {"crawl", "test", "bench"} <= named
    assert named <= targets


@pytest.mark.parametrize(("target", "need"), SET_UP.items())
def test_a_target_sets_up_what_it_needs_first(target: str, need: str) -> None:
    steps = make("--dry-run", target).stdout.splitlines()
    assert f".ci/environment.py {need} --check" in steps[0]


def test_help_names_every_target_that_is_meant_for_people() -> None:
    shown = make("help").stdout
    for target in (*SET_UP, "clean", "help"):
        assert f"make {target} " in shown


def test_cleaning_leaves_what_was_archived() -> None:
    steps = make("--dry-run", "clean").stdout
    assert ".venv" in steps
    assert "ami-out" not in steps


def test_integration_runs_the_tests_and_tries_the_wheel_and_the_recipes() -> None:
    lines = (PROJECT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == [
        "make test </dev/null",
        "make test-scrapy </dev/null",
        "make test-spark </dev/null",
        ".ci/wheel-check </dev/null",
        ".venv/bin/python .ci/recipe_check.py </dev/null",
    ]


def test_every_test_that_needs_spark_is_run_by_the_target_that_has_it() -> None:
    marked = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "tests").rglob("test_*.py")
        if "/." not in str(path.relative_to(PROJECT)) and "\n@needs_spark\n" in path.read_text()
    }
    command = make("--dry-run", "test-spark").stdout.splitlines()[-1]
    assert command.startswith("AMICRAWL_SPARK_TESTS=")
    assert len(marked) >= 2
    assert marked <= set(command.split())


class Stage:
    """A directory with the Makefile and stand-ins for the commands, which note their arguments."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copy(PROJECT / "Makefile", root)
        (root / ".venv" / "bin").mkdir(parents=True)
        self.stand_in("python")
        self.stand_in("scrapy")
        self.stand_in("amicrawl")

    def stand_in(self, name: str, script: str = "exit 0") -> None:
        path = self.root / ".venv" / "bin" / name
        note = f'for word in {name} "$@"; do printf "%s|" "$word"; done >> calls; echo >> calls'
        path.write_text(f"#!/bin/sh\n{note}\n{script}\n")
        path.chmod(0o755)

    def crawl(self, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [f"{name}={value}" for name, value in variables.items()]
        return make("crawl", *words, directory=self.root)

    def calls(self) -> list[list[str]]:
        """Return the calls but those that look after the environment."""
        lines = (self.root / "calls").read_text().splitlines()
        return [call for call in (line.split("|")[:-1] for line in lines) if "--check" not in call]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_without_seeds_the_demo_is_archived(stage: Stage) -> None:
    assert stage.crawl().returncode == 0
    assert stage.calls() == [["python", "examples/demo.py", "--out", "ami-out"]]


def test_seeds_and_out_reach_the_crawl_as_they_are(stage: Stage) -> None:
    out = stage.root / "it's my $out"
    out.mkdir()
    (out / "captures.parquet").touch()
    seeds = 'my "seeds" & more.jsonl'
    assert stage.crawl(SEEDS=seeds, OUT=str(out).replace("$", "$$")).returncode == 0
    assert stage.calls() == [
        ["scrapy", "crawl", "seeds", "-a", f"file={seeds}", "-a", f"out={out}"],
        ["amicrawl", "inspect", str(out)],
    ]


def test_the_exit_code_of_the_crawl_is_told(stage: Stage) -> None:
    stage.stand_in("scrapy", "mkdir -p ami-out; touch ami-out/captures.parquet; exit 7")
    done = stage.crawl(SEEDS="seeds.jsonl")
    assert "Error 7" in done.stderr
    assert stage.calls()[-1] == ["amicrawl", "inspect", "ami-out"]


def test_a_crawl_that_wrote_nothing_is_not_inspected(stage: Stage) -> None:
    stage.stand_in("scrapy", "exit 3")
    done = stage.crawl(SEEDS="none.jsonl")
    assert "Error 3" in done.stderr
    assert [call[0] for call in stage.calls()] == ["scrapy"]


def test_an_index_that_cannot_be_shown_is_a_failure(stage: Stage) -> None:
    stage.stand_in("scrapy", "mkdir -p ami-out; touch ami-out/captures.parquet; exit 0")
    stage.stand_in("amicrawl", "exit 5")
    assert stage.crawl(SEEDS="seeds.jsonl").returncode != 0
