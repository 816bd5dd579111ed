"""`amicrawl replay` ends what it has started, however it is ended itself."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from record.exchanges import capture, item, open_archive

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


_SIGNALLED_AT_THE_START = """
import signal, sys
from amicrawl.__main__ import main
number = signal.Signals[sys.argv.pop(1)]

def look(frame, event, called):
    if event == "c_return" and called.__name__ == "fork_exec":
        sys.setprofile(None)
        signal.raise_signal(number)

sys.setprofile(look)
main()
"""
"""The command line, with the signal that its first argument names once it has started a process."""


def _replay_of(tmp_path: Path, start: list[str], *options: str) -> subprocess.Popen[str]:
    """Return `amicrawl replay`, run by *start*, of a crawl; its pywb writes `pid` and sleeps."""
    for name in ("crawl", "tmp"):
        (tmp_path / name).mkdir()
    archive = open_archive(tmp_path / "crawl")
    archive.store([item(capture("http://a.example/", body=b"<p>A page"))])
    archive.seal()
    archive.close()
    pywb = tmp_path / "wayback"
    pywb.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/begun\nmv {tmp_path}/begun {tmp_path}/pid\nexec sleep 300\n"
    )
    pywb.chmod(0o755)
    line = [sys.executable, *start, "replay", str(tmp_path / "crawl"), "--wayback", str(pywb)]
    line += options
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=env)


def _left_of(pid: int) -> bool:
    """Return whether the process *pid* still ran, and kill it."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("hangup_counts")
@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_neither_pywb_nor_a_temporary_directory_outlives_the_command(
    ended_by: signal.Signals, tmp_path: Path
) -> None:
    with _replay_of(tmp_path, ["-m", "amicrawl"]) as process:
        while not (tmp_path / "pid").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(ended_by)
        _, said = process.communicate(timeout=60)
    assert not _left_of(int((tmp_path / "pid").read_text()))
    assert process.returncode == 0
    assert said.endswith("Stopped.\n")
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.usefixtures("hangup_counts")
@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_in_the_moment_in_which_pywb_is_started_ends_it_too(
    ended_by: signal.Signals, tmp_path: Path
) -> None:
    with _replay_of(tmp_path, ["-c", _SIGNALLED_AT_THE_START, ended_by.name]) as process:
        process.wait()
        # It may have been ended before it wrote its number; one that was not writes it soon.
        deadline = time.monotonic() + 1
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        left = (tmp_path / "pid").exists() and _left_of(int((tmp_path / "pid").read_text()))
        assert process.stderr is not None
        said = process.stderr.read()
    assert not left
    assert process.returncode == 0, said
    assert said.endswith("Stopped.\n")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_crawl_of_several_processes_is_replayed_before_it_has_ended(tmp_path: Path) -> None:
    """Its WARC files are in directories of the processes until then."""
    for number in ("0", "1"):
        place = tmp_path / "crawl" / "processes" / number
        place.mkdir(parents=True)
        archive = open_archive(place, prefix=f"ami-p{number}")
        archive.store([item(capture(f"http://a.example/{number}", body=b"<p>A page"))])
        archive.seal()
        archive.close()
    (tmp_path / "crawl" / "processes" / "plan.json").write_text("{}")
    pywb = tmp_path / "wayback"
    # pywb -b ADDRESS -p PORT -d DIRECTORY
    pywb.write_text(
        f'#!/bin/sh\ncp "$6/config.yaml" {tmp_path}\ncat "$6"/index/*.cdxj > {tmp_path}/index\n'
    )
    pywb.chmod(0o755)
    line = [sys.executable, "-m", "amicrawl", "replay", str(tmp_path / "crawl"), "--wayback", str(pywb)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 files indexed" in done.stderr
    archives = json.loads((tmp_path / "config.yaml").read_text())["collections"]["crawl"][
        "archive_paths"
    ]
    for number in ("0", "1"):
        assert f"ami-p{number}-00000.warc.gz" in (tmp_path / "index").read_text()
        assert f"{tmp_path}/crawl/processes/{number}/" in archives


def test_the_browser_of_a_proxy_has_a_profile_that_no_one_else_can_make_before(tmp_path: Path) -> None:
    """One at a fixed place, which all users of the machine may write to, could be another user's."""
    with _replay_of(tmp_path, ["-m", "amicrawl"], "--proxy") as process:
        while not (tmp_path / "pid").exists() and process.poll() is None:
            time.sleep(0.05)
        (private,) = (tmp_path / "tmp").iterdir()
        assert private.stat().st_mode & 0o077 == 0
        (private / "browser").mkdir()
        process.terminate()
        _, said = process.communicate(timeout=60)
    line = next(line for line in said.splitlines() if line.startswith("chromium "))
    assert shlex.split(line)[-1] == f"--user-data-dir={private}/browser", "a list has no start URL"
    assert list((tmp_path / "tmp").iterdir()) == []
