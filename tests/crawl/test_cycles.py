"""What a fetch leaves is freed at once: nothing waits for the collector, which stops the crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import warm_processes
from loopback import PROJECT, RawServer, command, environment, page, site_command, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

COUNTING = """
import gc
from amicrawl.crawl.run import run_of

class Cycles:
    def __init__(self, run):
        self.rows = 0
        run.tally.on_count.append(self.counted)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(run_of(crawler))

    def counted(self, item):
        self.rows += 1
        if self.rows == 200:
            gc.collect()
            gc.disable()
        if self.rows == 1200:
            with open("found.txt", "w") as file:
                file.write(str(gc.collect()))
"""


@pytest.mark.parametrize(("spider", "kept"), [("seeds", True), ("site", False)])
def test_a_thousand_fetches_leave_no_cycles(spider: str, kept: bool, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING)

    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1]
        links = b"".join(b"<a href=/%d>%d</a>" % (n, n) for n in range(1300)) if path == b"/" else b""
        return page(b"page %b%b" % (path, links), "Content-Type: text/html")

    with RawServer(respond, keep_open=kept) as server:
        settings = {"EXTENSIONS": '{"counting.Cycles": 500}'}
        if spider == "seeds":
            seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(1300)])
            line = command(seeds, tmp_path / "out", settings=settings)
        else:
            line = site_command(f"{server.url}/", tmp_path / "out", settings=settings)
        done = warm_processes.run(
            line,
            cwd=tmp_path,
            env={
                **environment(),
                "PYTHONPATH": f"{tmp_path}:{PROJECT}",
                "SCRAPY_SETTINGS_MODULE": "amicrawl.settings",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == ExitCode.DONE, done.stderr
    # A connection that both sides close in one moment may leave a dozen objects; all would leave 13,000.
    assert int((tmp_path / "found.txt").read_text()) < 500
