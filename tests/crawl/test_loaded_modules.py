"""What a whole crawl loads: nothing that is switched off."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from loopback import PROJECT, environment

if TYPE_CHECKING:
    from pathlib import Path

_CRAWL = """
import sys
from scrapy.cmdline import execute

try:
    execute(["scrapy", *sys.argv[1:]])
finally:
    looked_for = {"aiohttp", "duckdb", "redis", "starlette", "tldextract", "twisted.conch.telnet"}
    print(sorted(looked_for & set(sys.modules)))
"""


def loaded_by_a_crawl(directory: Path, *settings: str) -> str:
    """Return what of the modules in question is loaded once a crawl of no seeds has ended."""
    seeds = directory / "none.txt"
    seeds.write_text("")
    given = ["crawl", "seeds", "-a", f"file={seeds}", "-a", f"out={directory / 'out'}", "-L", "ERROR"]
    done = subprocess.run(
        [sys.executable, "-c", _CRAWL, *given, *settings],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_a_crawl_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    assert loaded_by_a_crawl(tmp_path) == "[]"


@pytest.mark.parametrize(
    ("switch", "module"),
    [
        ("TELNETCONSOLE_ENABLED", "twisted.conch.telnet"),
        ("REMOTE_CONTROL_ENABLED", "aiohttp"),
        ("COOKIES_ENABLED", "tldextract"),
    ],
)
def test_what_a_project_switches_on_is_there(tmp_path: Path, switch: str, module: str) -> None:
    assert module in loaded_by_a_crawl(tmp_path, "-s", f"{switch}=True")
