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


_FIRST_REQUEST = """
import sys
from loopback import RawServer, page

loaded = []
searched = []
def watch(event, arguments):
    if event == "open" and str(arguments[0]).endswith("entry_points.txt"):
        searched.append(arguments[0])

sys.addaudithook(watch)
def respond(head):
    loaded.append({*sys.modules})
    return page(b"x")

with RawServer(respond) as server:
    open("seeds.txt", "w").write(server.url + "/1")
    given = ["-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "-s", "AMICRAWL_ROBOTS=ignore"]
    try:
        if sys.argv[1] == "scrapy":
            from scrapy.cmdline import execute
            execute(["scrapy", "crawl", "seeds", "-a", "file=seeds.txt", "-a", "out=out", *given])
        else:
            from amicrawl.cli import main
            sys.argv[1:] = ["crawl", "seeds.txt", "-o", "out", *given]
            main()
    finally:
        names = sys.stdin.read().split()
        print(*(name for name in names if name in loaded[0]), "|", "pyarrow" in sys.modules,
              len(searched))
"""


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        # Arrow takes a tenth of the time that a crawl takes to start, and is needed when it ends.
        ("scrapy", {"pyarrow"}),
        # Scrapy's other commands bring adapters of every kind of item with them.
        (
            "amicrawl",
            {
                "pyarrow",
                "rich",
                "re2",
                "itemadapter",
                "pydantic.v1",
                "scrapy.commands.parse",
            }
            | {"amicrawl.discovery", "amicrawl.crawlfile.checks"},
        ),
    ],
)
def test_a_first_request_waits_for_nothing_that_it_does_not_need(
    tmp_path: Path, command: str, unused: set[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_REQUEST, command],
        cwd=tmp_path,
        env={
            **environment(),
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}",
            "SCRAPY_SETTINGS_MODULE": "amicrawl.settings",
        },
        input=" ".join(sorted(unused)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    unused_words, _, rest = done.stdout.splitlines()[-1].partition("|")
    assert unused_words.strip() == ""
    loads_arrow_at_the_end, searched = rest.split()
    assert loads_arrow_at_the_end == "True"
    # Scrapy's command line looks for commands of other packages.
    assert command == "scrapy" or searched == "0", "no installed package is searched for plugins"
