"""Attempt: what is seen of one dial while it goes on, and the say over each address."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any

import pycurl

from amicrawl.capture import Failure, Tls
from amicrawl.fetch.failures import NotConnected, failure_of, one_line

if TYPE_CHECKING:
    from amicrawl.fetch.guard import Guard

_TLS_LINE = re.compile(rb"SSL connection using ((?:TLS|SSL)v[0-9.]+) / ([^ /\n]+)")


class Attempt:
    """What is seen of one dial while it goes on."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._refused = ""
        self._address: str | None = None
        self._local_fault = ""
        self._tls_line: re.Match[bytes] | None = None

    def open_socket(self, _purpose: int, wanted: Any) -> int:
        """Open a socket for the address that libcurl is about to dial, or refuse it."""
        family, kind, protocol, address = wanted
        if family not in (socket.AF_INET, socket.AF_INET6):
            self._refused = self._refused or "Only Internet addresses are dialled."
            return pycurl.SOCKET_BAD  # type: ignore[no-any-return]
        host: str = address[0]
        reason = self._guard.refusal(host)
        if reason:
            self._refused = self._refused or f"{host} is {reason}."
            return pycurl.SOCKET_BAD  # type: ignore[no-any-return]
        try:
            opened = socket.socket(family, kind, protocol)
        except OSError as error:
            self._local_fault = f"No socket could be opened: {error.strerror}."
            return pycurl.SOCKET_BAD  # type: ignore[no-any-return]
        self._address = host
        return opened.detach()

    def note(self, kind: int, text: bytes) -> None:
        """Look through what libcurl says for the outcome of the TLS handshake.

        With a TLS proxy there are two; the server's comes last.
        """
        if kind == pycurl.INFOTYPE_TEXT:
            self._tls_line = _TLS_LINE.match(text) or self._tls_line

    def tls(self, *, verified: bool) -> Tls:
        """Return what was negotiated."""
        if self._tls_line is None:
            return Tls(version="tls", cipher="", verified=verified)
        version, cipher = self._tls_line[1].decode(), self._tls_line[2].decode(errors="replace")
        name, _, number = version.partition("v")
        return Tls(f"{name.lower()}/{number if '.' in number else number + '.0'}", cipher, verified)

    def failed(self, easy: Any, code: int, *, text: str, proxied: bool) -> NotConnected:
        """Return why the dial, which ended with libcurl's *code* and *text*, came to nothing."""
        if self._address is None and self._local_fault:
            return NotConnected(Failure.OTHER, self._local_fault)
        if self._address is None and self._refused:
            return NotConnected(Failure.ADDRESS_REFUSED, self._refused)
        failure = failure_of(code, os_errno=easy.getinfo(pycurl.OS_ERRNO), proxied=proxied)
        return NotConnected(failure, one_line(text), self._address)
