"""The clock of everything that has a deadline: it only runs forward, also through a machine's sleep."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_clock() -> float:
    """Return seconds that only run forward, those that the machine sleeps included."""
    return time.clock_gettime(_CLOCK)
