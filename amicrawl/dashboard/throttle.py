"""Throttle: how often somebody may be wrong about a password. Pure but for the clock handed in.

A key (an address, a name) has some tries; one comes back every three minutes. What is remembered is
bounded: the keys that were wrong longest ago are forgotten first.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TRIES = 5
EVERY = 180.0
"""Seconds until a try comes back."""
_REMEMBERED = 10_000


class Throttle:
    """Counts the failures of keys. For several threads."""

    def __init__(self, *, tries: int = TRIES, clock: Callable[[], float] = time.monotonic) -> None:
        self._tries = tries
        self._clock = clock
        self._lock = threading.Lock()
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """When a key will have all of its tries again."""

    def wait(self, *keys: str) -> float:
        """Return the seconds until all of *keys* have a try; 0 where they have one now."""
        now = self._clock()
        with self._lock:
            missing = (max(0.0, self._full_at.get(key, now) - now) for key in keys)
            return max(0.0, max(missing, default=0.0) - (self._tries - 1) * EVERY)

    def failed(self, *keys: str) -> None:
        """Take a try from each of *keys*."""
        now = self._clock()
        with self._lock:
            for key in keys:
                self._full_at[key] = max(now, self._full_at.get(key, now)) + EVERY
                self._full_at.move_to_end(key)
            while len(self._full_at) > _REMEMBERED:
                self._full_at.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """Give *keys* all of their tries back."""
        with self._lock:
            for key in keys:
                self._full_at.pop(key, None)
