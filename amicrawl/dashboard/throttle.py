"""Throttle: how often a password may be wrong. Pure but for the clock handed in.

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

    def taken(self, key: str) -> float:
        """Take a try from *key* and return 0; where it has none, the seconds until one comes back.

        Whether the try was wrong is not known yet: several at a time must not be more than there are.
        """
        now = self._clock()
        with self._lock:
            full_at = max(now, self._full_at.get(key, now))
            wait = full_at - now - (self._tries - 1) * EVERY
            if wait > 0:
                return wait
            self._full_at[key] = full_at + EVERY
            self._full_at.move_to_end(key)
            while len(self._full_at) > _REMEMBERED:
                self._full_at.popitem(last=False)
            return 0.0

    def returned(self, key: str) -> None:
        """Give *key* back the try that was taken last: it was right, or not made."""
        with self._lock:
            if key in self._full_at:
                self._full_at[key] -= EVERY

    def succeeded(self, *keys: str) -> None:
        """Give *keys* all of their tries back."""
        with self._lock:
            for key in keys:
                self._full_at.pop(key, None)
