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


def _run(directory: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run *script* with *words* in *directory*, as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("number", [2, 15])
@pytest.mark.parametrize(
    "module",
    ["typer", "amicrawl.cli.crawl", "scrapy", "amicrawl.spiders.seeds", "amicrawl.meguri.live"],
)
def test_a_signal_at_any_import_ends_a_crawl_in_order(tmp_path: Path, module: str, number: int) -> None:
    (tmp_path / "urls.txt").write_text("http://127.0.0.1:9/\n")
    words = ["crawl", "urls.txt", "-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
    done = _run(tmp_path, _HIT, module, str(number), *words)
    assert done.returncode == ExitCode.STOPPED, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_a_command_that_is_interrupted_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"")
    done = _run(tmp_path, _HIT, "amicrawl.archive.index.merging", "2", "merge", "x", "-o", "y")
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
class Last:
    def __init__(self):
        self.hit = hit
    def __del__(self):
        self.hit()
from amicrawl.__main__ import main
if when == "atexit":
    atexit.register(hit)
elif when == "__del__":
    last = Last()
else:
    sys.setprofile(watch)
main()
"""


@pytest.mark.parametrize("when", ["_main", "main", "__call__", "atexit", "__del__"])
@pytest.mark.parametrize(
    ("words", "code"),
    [("url http://a.example/", ExitCode.DONE), ("table gone.cdxj -o table", ExitCode.INPUT)],
)
def test_a_signal_while_a_command_ends_has_no_other_code_than_its_own_or_that_of_one(
    tmp_path: Path, words: str, code: ExitCode, when: str
) -> None:
    """Its own once Python is ended, when no handler would be called any more."""
    done = _run(tmp_path, _HIT_AT_THE_END, when, *words.split())
    is_ended = when in ("atexit", "__del__")
    assert done.returncode == (code if is_ended else ExitCode.STOPPED), done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


_HIT_IN_GENERATED_CODE = """
import os, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "publicsuffixlist":
            sys.meta_path.remove(self)
            exec("os.kill(os.getpid(), 2)\\nfor _ in range(10): pass")
        return None
sys.meta_path.insert(0, Finder())
"""


def test_a_signal_in_generated_code_has_the_code_of_one(tmp_path: Path) -> None:
    """Python remembers a KeyboardInterrupt there, as of a named tuple being made, whoever catches it."""
    (tmp_path / "sitecustomize.py").write_text(_HIT_IN_GENERATED_CODE)
    (tmp_path / "a.cdxj").write_text('com,example)/ 20240101000000 {"url": "http://example.com/"}\n')
    done = subprocess.run(
        [sys.executable, "-m", "amicrawl", "summary", "a.cdxj"],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Stopped. No partial file" in done.stderr
    assert done.returncode == ExitCode.STOPPED, done.stderr
