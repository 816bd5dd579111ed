"""Dialer: connections by libcurl, to vetted addresses only.

libcurl looks the name up, races IPv6 against IPv4, speaks to the proxy and shakes hands over TLS; then
it steps aside (`CONNECT_ONLY`). Of HTTP itself it would lose or refuse what an archive must keep: it
joins folded lines, and ends the exchange at a NUL, a bare CR or a header without a colon.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pycurl

from amicrawl.capture import Failure
from amicrawl.config import TlsPolicy
from amicrawl.fetch.attempt import Attempt
from amicrawl.fetch.connection import Connection
from amicrawl.fetch.failures import NotConnected, one_line
from amicrawl.fetch.guard import literal
from amicrawl.fetch.multi import Multi
from amicrawl.fetch.request import sends_absolute_form

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from amicrawl.fetch.guard import Guard
    from amicrawl.fetch.request import Route

    Resolve = Callable[[str], Sequence[str]]

_DNS_CACHE = 300
_SECOND_OPINION = 5.0
_NO_SUCH_NAME = {socket.EAI_NONAME, socket.EAI_NODATA}


class Dialer:
    """Makes connections on one asyncio loop."""

    def __init__(
        self, loop: AbstractEventLoop, *, guard: Guard, ca_file: Path | None, resolve: Resolve | None
    ) -> None:
        self._loop = loop
        self._guard = guard
        self._ca_file = ca_file
        self._resolve = resolve
        self._multi = Multi(loop)
        self._lookups: set[asyncio.Task[Any]] = set()

    async def dial(self, route: Route, *, within: float) -> Connection | NotConnected:
        """Return a connection for *route*, or why there is none after at most *within* seconds.

        Under `TlsPolicy.RECORD` a server whose certificate is not trusted is dialled once more, without
        the check.
        """
        refusal = self._refusal_behind_proxy(route)
        if refusal:
            return NotConnected(Failure.ADDRESS_REFUSED, refusal)
        begun = self._loop.time()
        made = await self._dial_once(route, within=within, verify=True)
        if (
            isinstance(made, NotConnected)
            and made.failure is Failure.TLS_CERTIFICATE
            and route.policy is TlsPolicy.RECORD
        ):
            left = within - (self._loop.time() - begun)
            made = await self._dial_once(route, within=left, verify=False)
        return made

    def abort(self, why: str) -> None:
        """End every dial as a failure."""
        self._multi.abort(why)
        for lookup in self._lookups:
            lookup.cancel()

    def close(self) -> None:
        """Give libcurl back; every connection must be closed."""
        self._multi.close()

    async def _dial_once(
        self, route: Route, *, within: float, verify: bool
    ) -> Connection | NotConnected:
        attempt = Attempt(self._guard)
        easy = pycurl.Curl()
        try:
            self._set_up(easy, route, attempt=attempt)
            easy.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(within * 1000)))
            if not verify:
                easy.setopt(pycurl.SSL_VERIFYPEER, 0)
                easy.setopt(pycurl.SSL_VERIFYHOST, 0)
            if not self._pin(easy, route):
                easy.close()
                return NotConnected(Failure.NAME_NOT_FOUND, "The resolver knows no address.")
            ended = self._multi.run(easy)
        except (pycurl.error, UnicodeError) as error:
            easy.close()
            return NotConnected(Failure.UNFETCHABLE_URL, one_line(str(error.args[-1])))
        try:
            code, text = await ended
        except asyncio.CancelledError:
            self._drop(easy)
            raise
        if code == pycurl.E_OK:
            easy.setopt(pycurl.VERBOSE, 0)
            tls = attempt.tls(verified=verify) if route.scheme == "https" else None
            return Connection(easy, route, loop=self._loop, multi=self._multi, tls=tls)
        failed = attempt.failed(easy, code, text=text, proxied=bool(route.proxy))
        self._drop(easy)
        if failed.failure is Failure.NAME_NOT_FOUND:
            return await self._second_opinion(route, failed)
        return failed

    def _drop(self, easy: Any) -> None:
        self._multi.remove(easy)
        easy.close()

    def _set_up(self, easy: Any, route: Route, *, attempt: Attempt) -> None:
        easy.setopt(pycurl.URL, f"{route.scheme}://{route.authority}/")
        easy.setopt(pycurl.CONNECT_ONLY, 1)
        easy.setopt(pycurl.NOSIGNAL, 1)
        easy.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        easy.setopt(pycurl.OPENSOCKETFUNCTION, attempt.open_socket)
        easy.setopt(pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE)
        # An empty text also keeps libcurl from following the environment's http_proxy.
        easy.setopt(pycurl.PROXY, route.proxy)
        easy.setopt(pycurl.NOPROXY, "")
        if self._ca_file is not None:
            easy.setopt(pycurl.CAINFO, str(self._ca_file))
        if route.scheme == "https":
            easy.setopt(pycurl.VERBOSE, 1)
            easy.setopt(pycurl.DEBUGFUNCTION, attempt.note)
        if route.proxy:
            self._set_up_proxy(easy, route)

    def _set_up_proxy(self, easy: Any, route: Route) -> None:
        # Where the answer to CONNECT has a body, libcurl would print it.
        easy.setopt(pycurl.SUPPRESS_CONNECT_HEADERS, 1)
        easy.setopt(pycurl.WRITEFUNCTION, len)
        if not sends_absolute_form(route.scheme, route.proxy):
            easy.setopt(pycurl.HTTPPROXYTUNNEL, 1)
        if self._ca_file is not None:
            easy.setopt(pycurl.PROXY_CAINFO, str(self._ca_file))

    def _pin(self, easy: Any, route: Route) -> bool:
        """Give libcurl the addresses that the handed-in resolver names; return False for none."""
        if self._resolve is None or route.proxy:
            return True
        host, port = route.host_and_port()
        if literal(host):
            return True
        addresses = ",".join(
            f"[{address}]" if ":" in address else address for address in self._resolve(host)
        )
        easy.setopt(pycurl.RESOLVE, [f"{host}:{port}:{addresses}"])
        return bool(addresses)

    def _refusal_behind_proxy(self, route: Route) -> str | None:
        """Judge an address that a proxy would be asked to dial, where the URL spells one out."""
        address = literal(route.host_and_port()[0]) if route.proxy else None
        reason = self._guard.refusal(address) if address else None
        return f"{address} is {reason}." if reason else None

    async def _second_opinion(self, route: Route, failed: NotConnected) -> NotConnected:
        """Tell a name that does not exist from a resolver that could not say; libcurl does not."""
        lookup = self._loop.create_task(self._looks_dead(*route.host_and_port()))
        self._lookups.add(lookup)
        try:
            await asyncio.wait({lookup}, timeout=_SECOND_OPINION)
        finally:
            self._lookups.discard(lookup)
            lookup.cancel()
        if lookup.done() and not lookup.cancelled() and lookup.result():
            return failed
        return NotConnected(Failure.NAME_LOOKUP_FAILED, failed.detail)

    async def _looks_dead(self, host: str, port: int) -> bool:
        """Ask the system whether *host* is a name that does not exist."""
        try:
            await self._loop.getaddrinfo(host, port)
        except socket.gaierror as error:
            return error.errno in _NO_SUCH_NAME
        except (OSError, UnicodeError):
            return False
        return False
