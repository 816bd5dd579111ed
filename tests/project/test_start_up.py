"""Starting: what a crawl has no use for is not loaded."""

from __future__ import annotations

import subprocess
import sys

from loopback import PROJECT, environment

_LOADS = """
import sys
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.project import get_project_settings
import amicrawl.crawl.addon

spiders = SpiderLoader.from_settings(get_project_settings()).list()
assert {"seeds", "site", "job", "queue"} <= set(spiders)
print(sorted(name for name in ("redis", "starlette", "duckdb", "typer") if name in sys.modules))
"""


def test_a_crawl_without_redis_loads_nothing_that_talks_to_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADS],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[]\n"
