"""Our spiders where Scrapy makes them without what they need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import warm_processes
from loopback import environment

SCRAPY = Path(sys.executable).with_name("scrapy")


@pytest.mark.parametrize(
    ("command", "spider", "needs"),
    [
        ("fetch", "seeds", "-a file=seeds.jsonl"),
        ("shell", "site", "-a url=https://example.org/"),
        ("parse", "recrawl", "-a dir=ami-out"),
    ],
)
def test_a_spider_that_lacks_its_list_says_so_in_a_sentence(
    tmp_path: Path, command: str, spider: str, needs: str
) -> None:
    done = warm_processes.run(
        [SCRAPY, command, "--spider", spider, "http://127.0.0.1:1/"],
        cwd=tmp_path,
        env={**environment(), "SCRAPY_SETTINGS_MODULE": "amicrawl.settings"},
        capture_output=True, text=True, check=False, timeout=60, input="",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(f"amicrawl: The spider `{spider}` needs ")
    assert needs in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_log_of_a_crawl_that_cannot_begin_says_why(tmp_path: Path) -> None:
    done = warm_processes.run(
        [SCRAPY, "crawl", "seeds", "-a", "file=nowhere.txt", "-s", "LOG_FILE=crawl.log"],
        cwd=tmp_path,
        env={**environment(), "SCRAPY_SETTINGS_MODULE": "amicrawl.settings"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    said = "Seed file nowhere.txt does not exist"
    assert done.returncode == 3
    assert done.stderr.count(said) == (tmp_path / "crawl.log").read_text().count(said) == 1
