"""A crawl works without the wings, and a command that needs one that is not installed says so."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("amicrawl.archive", "amicrawl.fleet"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv[0] = "amicrawl"
from amicrawl.cli import main
main()
"""


def _run(*words: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *words], cwd=where, capture_output=True, text=True, check=False
    )


def test_a_site_is_crawled_explained_and_inspected_without_the_wings(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("http://127.0.0.1:9/\n")
    crawled = _run("crawl", "seeds.txt", "-o", "out", where=tmp_path)
    assert (tmp_path / "out" / "captures.parquet").exists(), crawled.stderr
    for command in (
        ["explain", "http://127.0.0.1:9/", "--dir", "out"],
        ["inspect", "out"],
        ["frontier", "show", "out"],
        ["url", "http://example.org/"],
    ):
        ran = _run(*command, where=tmp_path)
        assert "not installed" not in ran.stderr
        assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("command", "wing"),
    [("table", "archive"), ("summary", "archive"), ("job", "fleet"), ("share", "fleet")],
)
def test_a_command_of_a_missing_wing_says_what_is_not_installed(
    command: str, wing: str, tmp_path: Path
) -> None:
    ran = _run(command, "--help", where=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert f"amicrawl.{wing}" in ran.stderr
    assert "not installed" in ran.stderr


def test_the_spiders_of_a_missing_wing_say_what_is_not_installed(tmp_path: Path) -> None:
    program = WITHOUT.replace(
        "from amicrawl.cli import main", "from scrapy.cmdline import execute as main"
    )
    environment = {"SCRAPY_SETTINGS_MODULE": "amicrawl.settings", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program, "crawl", "queue", "-a", "redis_key=seeds"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "amicrawl.fleet" in ran.stderr
    assert "Traceback" not in ran.stderr
