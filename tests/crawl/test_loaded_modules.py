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
    looked_for = {"aiohttp", "duckdb", "prometheus_client", "redis", "regex", "starlette", "tldextract",
                  "twisted.conch.telnet", "amicrawl.discovery", "amicrawl.crawl.guest.settings"}
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


def test_a_first_request_waits_for_no_library_of_tables(tmp_path: Path) -> None:
    """Arrow takes a tenth of the time that a crawl takes to start, and is needed when it ends."""
    code = (
        "import os, sys, threading\n"
        "from loopback import RawServer, page\n"
        "seen = []\n"
        "def answer(head):\n"
        "    seen.append('pyarrow' in sys.modules)\n"
        "    return page(b'x')\n"
        "with RawServer(answer) as server:\n"
        "    open('seeds.txt', 'w').write(server.url + '/1')\n"
        "    from scrapy.cmdline import execute\n"
        "    try:\n"
        "        execute(['scrapy', 'crawl', 'seeds', '-a', 'file=seeds.txt', '-a', 'out=out', '-s',\n"
        "            'AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8', '-s', 'AMICRAWL_ROBOTS=ignore'])\n"
        "    finally:\n"
        "        print(seen, 'pyarrow' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            **environment(),
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}",
            "SCRAPY_SETTINGS_MODULE": "amicrawl.settings",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[False] True"
