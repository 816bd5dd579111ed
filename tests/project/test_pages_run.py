"""The commands that README and tutorial show are run here as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from demo_site.server import DemoSite
from loopback import environment

PROJECT = Path(__file__).parents[2]
SETTINGS = """from amicrawl.settings import *

AMICRAWL_ALLOW_PRIVATE = "127.0.0.0/8"
AMICRAWL_DELAY = 0.02
# The site has a page that always fails; nobody has to wait for it here.
AMICRAWL_BACKOFF_MAX = 0.1
"""


def shell_blocks(page: str) -> list[str]:
    """Return the sh blocks of *page* that use an installed amicrawl, those that install it left out."""
    blocks = re.findall(r"```sh\n(.*?)```", (PROJECT / page).read_text(), re.DOTALL)
    return [block for block in blocks if re.search(r"^(amicrawl|\.venv/bin/)", block, re.MULTILINE)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory as after `make crawl`: an environment, settings, a seed list, an output."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = page_settings\n")
    (tmp_path / "page_settings.py").write_text(SETTINGS)
    return tmp_path


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_blocks_of_a_page_run_one_after_the_other(page: str, place: Path) -> None:
    blocks = shell_blocks(page)
    assert len(blocks) >= 2
    with DemoSite() as site:
        site.seeds(place / "seeds.jsonl")
        if page != "README.md":
            _run(".venv/bin/scrapy crawl seeds -a file=seeds.jsonl -a out=ami-out", place)
        (place / "examples").symlink_to(PROJECT / "examples")
        for block in blocks:
            block = block.replace("https://example.org/", site.url)  # noqa: PLW2901  # a site that is there
            done = _run(block, place)
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    assert pq.read_table(place / "ami-out" / "captures.parquet").num_rows > 20


def _run(block: str, place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-euc", block],
        cwd=place,
        env=environment() | {"PATH": f".venv/bin{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
