"""A process that crawls a loopback server, killed some time after its first request."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import warm_processes
from loopback import PROJECT, environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopback import RawServer


def is_killed(line: Sequence[str], server: RawServer, *, after: float) -> bool:
    """Run *line* and kill it *after* so many seconds from its first request; False if it ends before."""
    child = warm_processes.Popen(
        line, cwd=PROJECT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    requested, deadline = len(server.requests), time.monotonic() + 100
    while child.poll() is None and len(server.requests) == requested:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        child.wait(after)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(30)
        return True
    return False
