"""Retry-After: how long a server asks to be left alone (RFC 9110, section 10.2.3).

Read as a number of seconds in digits or as a date (`message.http_date`).
Anything else names no moment and is ignored; an exaggerated one is cut to what the caller bears. The
caller decides with which statuses the field counts.
"""

from __future__ import annotations

import re

from amicrawl.message import http_date

_LONGEST_VALUE = 64
"""Bytes."""
_DIGITS = re.compile(r"[0-9]+")


def retry_after_seconds(value: bytes | str, *, now: float, cap: float) -> float:
    """Return the wait in seconds that *value* requests, at most *cap*; 0 if it requests none.

    *now* is in Unix seconds: a date is measured against our clock, not the server's. A moment that has
    passed, a sign, a fraction, a list, and a value longer than any date give 0.
    """
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if len(text) > _LONGEST_VALUE:
        return 0.0
    text = text.strip(" \t")
    if _DIGITS.fullmatch(text):
        return min(float(int(text)), cap)
    moment = http_date(text)
    return 0.0 if moment is None else min(max(moment - now, 0.0), cap)
