"""Secrets at rest: scrypt with a salt of their own (RFC 7914), compared in constant time.

    scrypt$14$8$1$SALT$KEY      log2 of N, r, p, and two texts in URL-safe base64

The costs stand in the text, so that they can be raised and old texts still hold. A text that is none, or
whose costs would be an attack, matches nothing. The secret itself is never kept.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

LEAST = 10
"""Characters that a password has at least."""
MOST = 1024
"""Characters of the longest secret that is looked at."""

_LOG_N, _R, _P = 14, 8, 1
"""16 MiB and some 50 ms: the least that RFC 7914 and OWASP name for a log-in."""
_DEAREST_LOG_N = 17
_LENGTH = 32


def hashed(secret: str, *, salt: bytes | None = None) -> str:
    """Return the text that *secret* is kept as; *salt* is drawn unless a test hands one in."""
    salt = secrets.token_bytes(16) if salt is None else salt
    key = _key(secret, salt, _LOG_N, _R, _P)
    return "$".join(["scrypt", str(_LOG_N), str(_R), str(_P), _encoded(salt), _encoded(key)])


def matches(secret: str, kept: str) -> bool:
    """Tell whether *kept* was made of *secret*."""
    if len(secret) > MOST:
        return False
    words = kept.split("$")
    if len(words) != 6 or words[0] != "scrypt":
        return False
    try:
        log_n, r, p = (int(word) for word in words[1:4])
        salt, key = (base64.urlsafe_b64decode(word) for word in words[4:])
    except (ValueError, binascii.Error):
        return False
    if not (1 <= log_n <= _DEAREST_LOG_N and 1 <= r <= 16 and 1 <= p <= 4 and len(key) == _LENGTH):
        return False
    return hmac.compare_digest(_key(secret, salt, log_n, r, p), key)


def _key(secret: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    cost = 1 << log_n
    return hashlib.scrypt(
        secret.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=cost,
        r=r,
        p=p,
        # 128 * N * r is what the algorithm holds; OpenSSL counts a little more.
        maxmem=128 * cost * r + (1 << 20),
        dklen=_LENGTH,
    )


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode()


DECOY = hashed("decoy", salt=bytes(16))
"""What the password of a name that is not there is compared with, so that both take as long."""
