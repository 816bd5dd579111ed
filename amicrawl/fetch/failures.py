"""Why a connection failed: the system's errors as `Failure`. `resolver` has those of names.

| `errno` | `Failure` |
|---|---|
| `EHOSTUNREACH`, `ENETUNREACH`, `ENETDOWN`, `EADDRNOTAVAIL` | `no-route` |
| `ETIMEDOUT` | `connect-timeout` |
| `ECONNREFUSED` | `connection-refused` |
| `ECONNRESET`, `ECONNABORTED`, `EPIPE` | `connection-reset` |
| any of these from a proxy | `proxy` |
| `EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`: this machine has no descriptor or memory left | `ended-here` |
| anything else | `other` |

Pure: no I/O.
"""

from __future__ import annotations

import errno
import os

from amicrawl.capture import Failure

_BY_ERRNO: dict[int | None, Failure] = {
    errno.EHOSTUNREACH: Failure.NO_ROUTE,
    errno.ENETUNREACH: Failure.NO_ROUTE,
    errno.ENETDOWN: Failure.NO_ROUTE,
    errno.EADDRNOTAVAIL: Failure.NO_ROUTE,
    errno.ETIMEDOUT: Failure.CONNECT_TIMEOUT,
    errno.ECONNREFUSED: Failure.CONNECTION_REFUSED,
    errno.ECONNRESET: Failure.CONNECTION_RESET,
    errno.ECONNABORTED: Failure.CONNECTION_RESET,
    errno.EPIPE: Failure.CONNECTION_RESET,
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM), Failure.ENDED_HERE),
}

NOT_IN_TIME = "No connection was made in time."
NO_TUNNEL = "The proxy opened no tunnel"
"""How a sentence begins that says what an HTTP proxy made of `CONNECT`."""
_DETAIL_LIMIT = 300


class NotConnectedError(Exception):
    """No connection was made; the text says why."""

    def __init__(self, detail: str, failure: Failure, address: str | None = None) -> None:
        super().__init__(detail)
        self.failure = failure
        self.address = address
        """The last address that was tried."""


class TlsError(NotConnectedError):
    """TLS failed; the text says how."""

    def __init__(self, detail: str, failure: Failure = Failure.TLS_HANDSHAKE) -> None:
        super().__init__(detail, failure)


class ProxyError(NotConnectedError):
    """A proxy did not do what was requested; the text says what it did."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, Failure.PROXY)


def failure_of(error: OSError, *, proxied: bool = False) -> Failure:
    """Return what *error*, raised by a dial, means; *proxied*: a proxy was dialled."""
    failure = _BY_ERRNO.get(error.errno, Failure.OTHER)
    is_of_proxy = failure not in (Failure.OTHER, Failure.ENDED_HERE)
    return Failure.PROXY if proxied and is_of_proxy else failure


def sentence_of(error: OSError) -> str:
    """Return the system's words for *error*; event loops add addresses and call stacks of their own."""
    return f"{os.strerror(error.errno)}." if error.errno else one_line(str(error))


def one_line(text: str) -> str:
    """Return the untrusted *text* as one printable line of at most 300 characters."""
    text = text[: 4 * _DETAIL_LIMIT]
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(text.split())
    return line if len(line) <= _DETAIL_LIMIT else line[: _DETAIL_LIMIT - 1] + "\u2026"
