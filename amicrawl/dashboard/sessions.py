"""Sessions: who has signed in, kept in this process only, under the hash of what the browser holds.

A session is drawn from 256 bits of chance. It ends after twelve hours without a request, after seven
days, when the user's password changes, and when the dashboard does. The token that a form or a script
has to send along with a change is derived from the session, so a page of another site cannot know it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
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


IDLE = 12 * 3600.0
"""Seconds without a request after which a session is over."""
LONGEST = 7 * 86400.0
"""Seconds after which it is over in any case."""
_MOST = 1000


@dataclass(slots=True)
class Session:
    """One browser that has signed in."""

    name: str
    password: str
    """The user's password as it is kept: when that changes, the session is over."""
    began: float
    seen: float


class Sessions:
    """The sessions of one dashboard. For several threads."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._clock = clock
        self._most = most
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        """By the hash of their key; the one seen longest ago first."""

    def begin(self, name: str, password: str) -> str:
        """Return the key of a new session of *name*; the one unused for longest may have to go."""
        key = secrets.token_urlsafe(32)
        now = self._clock()
        with self._lock:
            self._sessions[_hash(key)] = Session(name, password, now, now)
            while len(self._sessions) > self._most:
                self._sessions.popitem(last=False)
        return key

    def get(self, key: str) -> Session | None:
        """Return the session of *key* unless it is over; it counts as used."""
        hashed, now = _hash(key), self._clock()
        with self._lock:
            session = self._sessions.get(hashed)
            if session is None:
                return None
            if now - session.seen > IDLE or now - session.began > LONGEST:
                del self._sessions[hashed]
                return None
            session.seen = now
            self._sessions.move_to_end(hashed)
            return session

    def end(self, key: str) -> None:
        """Forget the session of *key*."""
        with self._lock:
            self._sessions.pop(_hash(key), None)

    def csrf(self, key: str) -> str:
        """Return the token that changes made in the session of *key* carry; "" stands for none."""
        return hmac.new(self._secret, b"csrf " + key.encode(), "sha256").hexdigest()

    def is_csrf(self, token: str, key: str) -> bool:
        """Tell whether *token* is that of *key*."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.csrf(key).encode())


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
