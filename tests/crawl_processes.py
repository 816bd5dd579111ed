"""Processes that tests start, with those that these start: gone when the test is over."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import psutil
from warm_processes import SOURCE

if TYPE_CHECKING:
    import subprocess


def started_by(pid: int) -> list[psutil.Process]:
    """Return what process *pid* has started, and what that has; the oldest first."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            child for child in psutil.Process(pid).children(recursive=True) if child.name() != SOURCE
        ]
    return []


def end(process: subprocess.Popen[Any]) -> None:
    """Kill *process* and what it has started, and wait for it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in [
            *psutil.Process(process.pid).children(recursive=True),
            psutil.Process(process.pid),
        ]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    process.communicate()
