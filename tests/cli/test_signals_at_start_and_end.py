"""A signal while a command starts or ends gives its exit code and no traceback, wherever it hits."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from loopback import environment

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

_HIT = """
import os, signal, sys
module, number, *sys.argv[1:] = sys.argv[1:]
class Finder:
    def find_spec(self, name, *_):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(number))
        return None
sys.meta_path.insert(0, Finder())
from amicrawl.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [2, 15])
@pytest.mark.parametrize(
    "module",
    ["typer", "amicrawl.cli.crawl", "scrapy", "amicrawl.spiders.seeds", "amicrawl.meguri.live"],
)
def test_a_signal_at_any_import_ends_a_crawl_in_order(tmp_path: Path, module: str, number: int) -> None:
    (tmp_path / "urls.txt").write_text("http://127.0.0.1:9/\n")
    words = ["crawl", "urls.txt", "-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
    done = subprocess.run(
        [sys.executable, "-c", _HIT, module, str(number), *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.STOPPED, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_a_command_that_is_interrupted_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", _HIT, "amicrawl.archive.index.merging", "2", "merge", "x", "-o", "y"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.STOPPED, done.stderr
    assert "Stopped" in done.stderr
    assert "Traceback" not in done.stderr


_HIT_AT_THE_END = """
import atexit, os, sys
when, *sys.argv[1:] = sys.argv[1:]
def hit():
    os.kill(os.getpid(), 2)
def watch(frame, event, _):
    if event == "return" and frame.f_code.co_name == when and "typer" in frame.f_code.co_filename:
        sys.setprofile(None)
        hit()
from amicrawl.__main__ import main
if when == "atexit":
    atexit.register(hit)
else:
    sys.setprofile(watch)
main()
"""


@pytest.mark.parametrize("when", ["atexit", "__call__", "main", "_main"])
@pytest.mark.parametrize("words", ["url http://a.example/", "table gone.cdxj -o table"])
def test_a_signal_while_a_command_ends_has_the_code_of_one(
    tmp_path: Path, words: str, when: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HIT_AT_THE_END, when, *words.split()],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.STOPPED, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
