"""What becomes of jobs whose process dies, raises, or hangs; and of the processes when nobody waits."""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from amicrawl.archive.workers import JobDone, JobProgress, Lost, run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def fate(job: str, tell: Callable[[Any], None]) -> str:
    """Do what *job* says; runs in a worker."""
    tell(f"at {job}")
    if job == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif job == "gone":
        os._exit(3)
    elif job == "raises":
        raise ValueError("no such thing")
    elif job == "hangs":
        signal.pause()
    return job.upper()


def test_a_process_that_dies_costs_its_own_job_only() -> None:
    jobs = ["one", "killed", "two", "gone", "raises", "hangs", "three"]
    heard = list(run_jobs(jobs, fate, processes=2, patience=timedelta(seconds=6)))
    done = {told.job: told.result for told in heard if isinstance(told, JobDone)}
    lost = {told.job: told for told in heard if isinstance(told, Lost)}
    assert done == {"one": "ONE", "two": "TWO", "three": "THREE"}
    assert set(lost) == {"killed", "gone", "raises", "hangs"}
    assert lost["killed"].reason == "its process was ended by SIGKILL"
    assert lost["gone"].reason == "its process ended with code 3"
    assert (lost["raises"].error, lost["raises"].reason) == ("ValueError", "no such thing")
    assert lost["hangs"].reason.startswith("it reported nothing for 0:00:06")
    assert all(told.last == f"at {job}" for job, told in lost.items())
    progress = Counter(told.job for told in heard if isinstance(told, JobProgress))
    assert progress == Counter(jobs)


def test_no_process_is_left_when_nobody_waits_for_the_rest() -> None:
    running = run_jobs(["hangs", "hangs"], own_number, processes=2)
    told = next(running)
    assert isinstance(told, JobProgress)
    running.close()
    assert not _is_alive(told.message)


def test_ctrl_c_is_left_to_the_one_that_started_a_process_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal sends it to all; a process that was loading modules printed where it stood."""
    (tmp_path / "interrupted.py").write_text(
        "import multiprocessing, os, signal\n"
        "if multiprocessing.current_process().name != 'MainProcess':\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "def work(job, tell):\n"
        "    return job\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module("interrupted").work
    heard = list(run_jobs(["one", "two"], work, processes=2))
    assert Counter(heard) == Counter([JobDone("one", "one"), JobDone("two", "two")])


def own_number(_: str, tell: Callable[[Any], None]) -> None:
    """Tell the process's number and stay; runs in a worker."""
    tell(os.getpid())
    signal.pause()


def _is_alive(number: int) -> bool:
    for _ in range(600):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True
