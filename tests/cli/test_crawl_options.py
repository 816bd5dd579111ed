"""What people type: short options, `python -m amicrawl`, help that fits the terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import warm_processes
from loopback import PROJECT, environment

from amicrawl.errors import ExitCode


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", *words],
        cwd=PROJECT,
        env={**environment(), "COLUMNS": "80", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("words", [(), ("crawl",), ("recrawl",), ("frontier", "retry")])
def test_help_fits_80_columns_and_draws_no_boxes_on_a_dumb_terminal(words: tuple[str, ...]) -> None:
    done = run(*words, "-h", TERM="dumb")
    assert done.returncode == ExitCode.DONE
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.isascii()
    if not words:
        assert [line for line in done.stdout.splitlines() if re.match(r"\w+:$", line)][1:] == [
            "Crawl:",
            "Archives:",
            "Analysis:",
            "Jobs:",
        ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("seeds.txt", "--depth", "2"), "a seed list follows none"),
        (("seeds.txt", "--ignore", "x"), "a seed list follows none"),
        (("http://127.0.0.1:1/", "--ignore", "a b"), "white space"),
        (("http://127.0.0.1:1/", "-q", "-v"), "contradict"),
        (("http://127.0.0.1:1/", "--robots", "maybe"), "Invalid value for '--robots': 'maybe' is not"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(words: tuple[str, ...], says: str) -> None:
    seeds = "examples/seeds.txt" if (PROJECT / "examples/seeds.txt").exists() else "README.md"
    done = run("crawl", *(seeds if word == "seeds.txt" else word for word in words))
    assert done.returncode == ExitCode.USAGE
    assert says in done.stderr


def test_a_recrawl_takes_the_options_of_politeness_and_limits(tmp_path: Path) -> None:
    line = ("--delay", "0.5", "--robots", "ignore", "--operator", "me@example.org", "--max-time", "9")
    done = run("recrawl", str(tmp_path), *line, "--max-pages", "x")
    assert "--max-pages" in done.stderr
    done = run("recrawl", str(tmp_path), *line, "--max-pages", "3")
    assert done.returncode == ExitCode.INPUT
    assert "nothing was crawled into it" in done.stderr


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("amicrawl crawl -s AMICRAWL_DEL", "AMICRAWL_DELAY="),
        ("amicrawl share work x -s AMICRAWL_DEL", "AMICRAWL_DELAY="),
        ("amicrawl query out captures_by_st", "captures_by_status"),
        ("amicrawl job submit --ignore-set nog", "nogravatar"),
    ],
)
def test_a_shell_completes_names_of_settings_queries_and_ignore_sets(line: str, wanted: str) -> None:
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("amicrawl"))],
        env={**environment(), "_AMICRAWL_COMPLETE": "complete_bash", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert wanted in done.stdout.split(), done.stderr
