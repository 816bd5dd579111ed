"""The clock of everything that has a deadline, and moments as records and tables have them.

The clock only runs forward, also through a machine's sleep.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def steady_clock() -> float:
    """Return seconds that only run forward, those that the machine sleeps included."""
    return time.clock_gettime(_CLOCK)


def warc_date(moment: datetime) -> str:
    """Return *moment* as `WARC-Date`: UTC with three digits of fraction, which WARC/1.1 allows."""
    return warc_date_of_ms(unix_ms(moment))


def warc_date_of_ms(milliseconds: int) -> str:
    """Return *milliseconds*, Unix time, as `WARC-Date`; OverflowError beyond the years 1 to 9999."""
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(0, seconds)).isoformat()[:-6]


def unix_ms(moment: datetime) -> int:
    """Return *moment* in Unix milliseconds; exact, unlike a float of seconds."""
    return (moment - _EPOCH) // _MILLISECOND


def unix_ms_now() -> int:
    """Return the present moment in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def from_unix_ms(milliseconds: int) -> datetime:
    """Return the UTC moment of *milliseconds*; OverflowError beyond the years 1 to 9999."""
    return _EPOCH + timedelta(milliseconds=milliseconds)
