"""What a command costs: processor time of it and its descendants, wall time, peak memory."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a command took."""

    exit_code: int
    """Negative: the signal it was ended by."""
    cpu_s: float
    """User and system time of the process and of every descendant that was waited for."""
    wall_s: float
    peak_rss_bytes: int
    """Of the largest single process; never below the caller's own: the kernel counts from the fork."""


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, timeout: float) -> Cost:
    """Run *command* in *cwd* with its output in *log*; after *timeout* seconds it is killed."""
    with log.open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        clock = threading.Timer(timeout, os.killpg, (process.pid, signal.SIGKILL))
        clock.start()
        try:
            # Not `process.wait`: only wait4 tells the resources of this child and no other.
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            clock.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        exit_code=process.returncode,
        cpu_s=used.ru_utime + used.ru_stime,
        wall_s=time.perf_counter() - began,
        peak_rss_bytes=used.ru_maxrss * 1024,
    )
