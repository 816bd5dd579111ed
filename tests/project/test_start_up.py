"""Starting: what a crawl or a command has no use for is not loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from loopback import PROJECT, environment

if TYPE_CHECKING:
    from pathlib import Path

_LOADS = """
import sys
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.project import get_project_settings
import amicrawl.crawl.addon

spiders = SpiderLoader.from_settings(get_project_settings()).list()
assert {"seeds", "site", "job", "queue"} <= set(spiders)
print(sorted({"redis", "starlette", "duckdb", "typer", "tomllib"} & set(sys.modules)))
"""

_RUNS = """
import sys
from amicrawl.cli import main

for line in sys.stdin.read().splitlines():
    sys.argv = ["amicrawl", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(line, end.code, file=sys.stderr)
print("loaded:", *sorted(set(sys.modules)))
"""

_THREADS = """
import os, sys

os.environ.pop("OPENBLAS_NUM_THREADS", None)
if sys.argv[1:] == ["scrapy"]:
    import amicrawl.settings
else:
    from amicrawl.cli import main

    sys.argv = ["amicrawl", "--version"]
    try:
        main()
    except SystemExit:
        pass
import numpy

print(len(os.listdir("/proc/self/task")))
"""

_NO_REDIS = "--redis redis://127.0.0.1:1"
_RUNNING = {"scrapy", "twisted", "starlette", "duckdb"}
_TABLES = {"numpy", "pyarrow"}
_COMMANDS = [
    (
        ["--help", "url http://example.org/", "index --help"],
        {*_RUNNING, *_TABLES, "redis", "amicrawl.config", "OpenSSL"},
    ),
    (["index --help"], {"multiprocessing", "concurrent.futures", "amicrawl.archive.spark"}),
    (["summary --help"], {"amicrawl.capture", "amicrawl.record", "amicrawl.urls"}),
    (["wat --help", "wet --help"], {*_RUNNING, "redis", "amicrawl.config", "OpenSSL"}),
    (
        [f"job ls {_NO_REDIS}", f"pipeline ls {_NO_REDIS}", "job submit --help"],
        {*_RUNNING, *_TABLES, "scrapy_redis", "amicrawl.config", "OpenSSL"},
    ),
    (
        [f"share status gov {_NO_REDIS}", "share work --help", "dashboard --help"],
        {*_RUNNING, *_TABLES, "scrapy_redis", "OpenSSL"},
    ),
    (
        ["check --schema", "crawl --help"],
        {*_RUNNING, *_TABLES, "redis", "OpenSSL"},
    ),
    (
        ["explain http://a.example/ --start http://a.example/"],
        {*_RUNNING, *_TABLES, "redis", "OpenSSL"},
    ),
    (["frontier --help"], {*_RUNNING, "pyarrow", "redis", "OpenSSL"}),
    (["upload --help", "wacz --help", "inspect --help"], {*_RUNNING, *_TABLES, "redis", "OpenSSL"}),
]


def run(program: str, directory: Path, typed: str = "", *words: str) -> subprocess.CompletedProcess[str]:
    """Run *program* with *words* in *directory*, with *typed* on its standard input."""
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=directory,
        env={**environment(), "PYTHONPATH": str(PROJECT)},
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_a_crawl_loads_nothing_for_jobs_and_crawl_files_that_it_has_not() -> None:
    assert run(_LOADS, PROJECT).stdout == "[]\n"


@pytest.mark.parametrize(("lines", "unused"), _COMMANDS, ids=lambda each: min(each).split()[0])
def test_commands_load_nothing_that_they_have_no_use_for(
    lines: list[str], unused: set[str], tmp_path: Path
) -> None:
    done = run(_RUNS, tmp_path, "\n".join(lines))
    loaded = done.stdout.splitlines()[-1].split()[1:]
    assert unused & set(loaded) == set()
    ended = [line for line in done.stderr.splitlines() if line.rpartition(" ")[0] in lines]
    assert [line.rpartition(" ")[2] for line in ended] == ["9" if _NO_REDIS in x else "0" for x in lines]


def test_in_a_project_its_settings_are_read_without_scrapy() -> None:
    done = run(_RUNS, PROJECT, f"job ls {_NO_REDIS}")
    assert {"amicrawl.settings", "redis"} <= set(loaded := done.stdout.splitlines()[-1].split())
    assert "scrapy" not in loaded


@pytest.mark.parametrize("way", ["scrapy", "amicrawl"])
def test_numpy_starts_no_threads_in_our_commands(way: str) -> None:
    assert run(_THREADS, PROJECT, "", way).stdout.splitlines()[-1] == "1"
