"""How long a fetch that failed waits for its next attempt.

Short on purpose: it spreads what failed together. How hard a host may be pressed is its gate's
matter, which holds for a second attempt as for the first.
"""

from __future__ import annotations

_STEP = 0.075
_LONGEST = 0.5


def backoff(attempt: int) -> float:
    """Return the seconds to wait after attempt number *attempt* (the first is 1) failed."""
    return min(_STEP * attempt, _LONGEST)
