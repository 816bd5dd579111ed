"""What this machine lacks is never the outcome of a URL."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from archive_reading import rows
from loopback import PROJECT, QUICK, RawServer, command, environment, page, write_lines

from amicrawl.crawl.wiring import most_at_once
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

HOSTS, PAGES = 120, 2


def test_descriptors_never_raise_what_was_requested() -> None:
    assert most_at_once(1) == 1
    assert most_at_once(2) == 2


def test_a_crawl_with_few_descriptors_fetches_every_url(tmp_path: Path) -> None:
    """With 64 of them, every connection beyond was a URL that failed, and was never fetched."""
    with RawServer(lambda _: page(b"ok"), keep_open=True, pause=0.05) as server:
        urls = [
            f"http://127.0.2.{host}:{server.port}/{number}"
            for number in range(PAGES)
            for host in range(1, HOSTS + 1)
        ]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        line = shlex.join(command(seeds, tmp_path / "out", settings=QUICK))
        done = subprocess.run(
            ["bash", "-c", f"ulimit -n 64; exec {line}"],
            cwd=PROJECT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
            check=False,
        )
    assert done.returncode == ExitCode.DONE, done.stderr
    found = rows(tmp_path / "out")
    assert {row["status"] for row in found} == {200}, done.stderr
    assert sorted(row["url"] for row in found) == sorted(urls)
