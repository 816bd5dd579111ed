"""A crawl that tests fork is the process that they would start otherwise."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import warm_processes
from crawl_processes import started_by
from loopback import RawServer, environment, page, write_lines
from warm_processes import PRELOADED, SCRIPT, START

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_what_is_imported_beforehand_is_there() -> None:
    assert [name for name in PRELOADED if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize(
    "line",
    [
        [sys.executable, "-m", "amicrawl", "--version"],
        [sys.executable, "-m", "amicrawl", "inspect", "nothing there"],
        [SCRIPT, "crawl", "--no-such-option"],
        [sys.executable, "-m", "scrapy", "settings", "--get", "AMICRAWL_DELAY"],
        [sys.executable, "-P", "-m", START, "seeds", "--nolog"],
    ],
)
def test_a_fork_says_what_a_process_says(tmp_path: Path, line: Sequence[str]) -> None:
    wanted = {**environment(), "AMICRAWL_DELAY": "7.5"}
    ended = [
        run(line, cwd=tmp_path, env=wanted, capture_output=True, text=True, check=False)
        for run in (subprocess.run, warm_processes.run)
    ]
    said = [(each.returncode, each.stdout, each.stderr) for each in ended]
    assert said[0] == said[1]


def test_a_script_that_is_forked_finds_itself_as_in_a_process(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("print('beside')")
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nimport beside\n"
        "print(__name__, __file__, sys.path[0], sys.argv, sys.orig_argv, os.getcwd(), sys.argv[2])\n"
        "print('twisted.internet.reactor' in sys.modules)\nsys.exit(3)\n"
    )
    (tmp_path / "elsewhere").mkdir()
    ended = [
        run(
            [sys.executable, str(script), "a", "b c"],
            cwd=tmp_path / "elsewhere", env=environment(), capture_output=True, text=True, check=False,
        )
        for run in (subprocess.run, warm_processes.run)
    ]  # fmt: skip
    said = [(each.returncode, each.stdout, each.stderr) for each in ended]
    assert said[0] == said[1]
    assert (said[0][0], said[0][2]) == (3, "")


@pytest.mark.parametrize("code", ["-7", "'the reason'"])
def test_a_fork_ends_as_a_process_ends(tmp_path: Path, code: str) -> None:
    (tmp_path / "spider.py").write_text(
        "import atexit, sys, threading, time\n"
        "atexit.register(print, 'registered')\n"
        "threading.Thread(target=lambda: [time.sleep(0.2), print('of the thread')]).start()\n"
        f"print('of the program')\nsys.exit({code})\n"
    )
    line = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "--nolog"]
    ended = [
        run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        for run in (subprocess.run, warm_processes.run)
    ]
    said = [(each.returncode, each.stdout, each.stderr) for each in ended]
    assert said[0] == said[1]
    assert said[0][1] == "of the program\nof the thread\nregistered\n"


def test_a_fork_is_a_child_with_its_own_directory_that_signals_reach(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x"), pause=60) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [server.url])
        line = [SCRIPT, "crawl", str(seeds), "-o", "out", "-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
        with warm_processes.Popen(line, cwd=tmp_path, env=environment()) as child:
            while not server.requests:
                assert child.poll() is None
            status = Path(f"/proc/{child.pid}/status").read_text()
            assert f"PPid:\t{os.getpid()}\n" in status
            assert Path(f"/proc/{child.pid}/cwd").readlink() == tmp_path
            child.send_signal(signal.SIGKILL)
            assert child.wait(30) == -signal.SIGKILL
    assert (tmp_path / "out").is_dir()


def test_what_forks_the_crawls_of_a_pipeline_is_none_of_them_and_ends_with_it(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "amicrawl", "pipeline", "--data", str(tmp_path / "data")]
    line += ["--redis", "redis://127.0.0.1:1/0", "--min-free", "0"]
    with warm_processes.Popen(line, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        assert child.stderr.readline(), "it cannot reach Redis, and tries again"
        [source] = psutil.Process(child.pid).children()
        assert source.name() == warm_processes.SOURCE
        assert started_by(child.pid) == []
        child.kill()
        source.wait(30)
