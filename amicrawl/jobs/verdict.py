"""What follows from the end of a crawl: whether its job is done. Pure."""

from __future__ import annotations

import signal
from enum import Enum

from amicrawl.errors import ExitCode


class Verdict(Enum):
    """What becomes of a job whose crawl has ended."""

    DONE = "done"
    ABORTED = "aborted"
    """It was asked to end, and has."""
    RELEASED = "released"
    """Its pipeline has stopped it; another may go on with it."""
    CRASHED = "crashed"
    UNABLE = "unable"
    """Not for want of the job's: the disk, the bucket or Redis failed."""


_DONE = {ExitCode.DONE, ExitCode.SEEDS_BAD, ExitCode.LIMIT, ExitCode.UNREACHED}
"""Every URL was taken care of; some seeds were unreadable; a limit was reached; no server responded."""
_UNABLE = {ExitCode.OUTPUT, ExitCode.UNAVAILABLE}


def verdict(exit_code: int, *, was_stopped: bool, abort_requested: bool) -> Verdict:
    """Judge a crawl by its *exit_code*, minus the signal for one that was killed.

    *was_stopped*: its pipeline asked it to stop. *abort_requested*: a user asked the job to end.
    """
    if exit_code in _DONE:
        return Verdict.DONE
    if abort_requested and (exit_code == ExitCode.STOPPED or was_stopped):
        return Verdict.ABORTED
    if was_stopped:
        return Verdict.RELEASED
    return Verdict.UNABLE if exit_code in _UNABLE else Verdict.CRASHED


def sentence(exit_code: int) -> str:
    """Say how a process ended."""
    if exit_code >= 0:
        return f"the crawl ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"the crawl was ended by {name}"
