"""Why no connection came about: libcurl's error codes in our words. What has no address is `resolver`'s.

| libcurl | `Failure` |
|---|---|
| `URL_MALFORMAT`, `UNSUPPORTED_PROTOCOL` | `unfetchable-url` |
| `COULDNT_RESOLVE_HOST` | `name-not-found` |
| `COULDNT_CONNECT` | by `errno`: `no-route`, `connect-timeout`, else `connection-refused` |
| `OPERATION_TIMEDOUT` | `connect-timeout` |
| `PEER_FAILED_VERIFICATION`, `SSL_ISSUER_ERROR`, `SSL_INVALIDCERTSTATUS` | `tls-certificate` |
| other `SSL_*` | `tls-handshake` |
| `COULDNT_RESOLVE_PROXY`, `PROXY`, and any broken connection to a proxy | `proxy` |
| `SEND_ERROR`, `RECV_ERROR`, `GOT_NOTHING` | `connection-reset` |
| anything else | `other` |

Pure: no I/O.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

import pycurl

from amicrawl.capture import Failure

_PROXY_HANDSHAKE = 97  # CURLE_PROXY, which pycurl has no name for

_BY_CODE: dict[int, Failure] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: Failure.UNFETCHABLE_URL,
    pycurl.E_URL_MALFORMAT: Failure.UNFETCHABLE_URL,
    pycurl.E_COULDNT_RESOLVE_PROXY: Failure.PROXY,
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.NAME_NOT_FOUND,
    pycurl.E_COULDNT_CONNECT: Failure.CONNECTION_REFUSED,
    pycurl.E_OPERATION_TIMEDOUT: Failure.CONNECT_TIMEOUT,
    pycurl.E_SSL_CONNECT_ERROR: Failure.TLS_HANDSHAKE,
    pycurl.E_SSL_CERTPROBLEM: Failure.TLS_HANDSHAKE,
    pycurl.E_SSL_CIPHER: Failure.TLS_HANDSHAKE,
    pycurl.E_SSL_CACERT_BADFILE: Failure.TLS_HANDSHAKE,
    pycurl.E_PEER_FAILED_VERIFICATION: Failure.TLS_CERTIFICATE,
    pycurl.E_SSL_ISSUER_ERROR: Failure.TLS_CERTIFICATE,
    pycurl.E_SSL_INVALIDCERTSTATUS: Failure.TLS_CERTIFICATE,
    _PROXY_HANDSHAKE: Failure.PROXY,
    pycurl.E_GOT_NOTHING: Failure.CONNECTION_RESET,
    pycurl.E_SEND_ERROR: Failure.CONNECTION_RESET,
    pycurl.E_RECV_ERROR: Failure.CONNECTION_RESET,
}

_BY_ERRNO: dict[int, Failure] = {
    errno.EHOSTUNREACH: Failure.NO_ROUTE,
    errno.ENETUNREACH: Failure.NO_ROUTE,
    errno.ENETDOWN: Failure.NO_ROUTE,
    errno.EADDRNOTAVAIL: Failure.NO_ROUTE,
    errno.ETIMEDOUT: Failure.CONNECT_TIMEOUT,
}

_PROXYS_FAULT = {
    pycurl.E_GOT_NOTHING,
    pycurl.E_SEND_ERROR,
    pycurl.E_RECV_ERROR,
    pycurl.E_COULDNT_CONNECT,
}

_DETAIL_LIMIT = 300


@dataclass(frozen=True, slots=True)
class NotConnected:
    """A dial that came to nothing."""

    failure: Failure
    detail: str
    address: str | None = None
    """The last address that was tried."""


def failure_of(code: int, *, os_errno: int = 0, proxied: bool = False) -> Failure:
    """Return what libcurl's error *code* of a dial means.

    *os_errno* is the system's own error; *proxied* tells whether a proxy was dialled.
    """
    if proxied and code in _PROXYS_FAULT:
        return Failure.PROXY
    if code == pycurl.E_COULDNT_CONNECT:
        return _BY_ERRNO.get(os_errno, Failure.CONNECTION_REFUSED)
    return _BY_CODE.get(code, Failure.OTHER)


def one_line(text: str) -> str:
    """Return the untrusted *text* as one printable line of at most 300 characters."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * _DETAIL_LIMIT])
    line = " ".join(printable.split())
    return line if len(line) <= _DETAIL_LIMIT else line[: _DETAIL_LIMIT - 1] + "\u2026"
