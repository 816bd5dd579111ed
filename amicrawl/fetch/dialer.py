"""Dialer: connections by libcurl, to vetted addresses only.

libcurl races IPv6 against IPv4, speaks to the proxy and shakes hands over TLS; then it steps aside
(`CONNECT_ONLY`). Of HTTP itself it would lose or refuse what an archive must keep: it joins folded
lines, and ends the exchange at a NUL, a bare CR or a header without a colon.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pycurl

from amicrawl.capture import Failure
from amicrawl.config import TlsPolicy
from amicrawl.fetch.attempt import Attempt
from amicrawl.fetch.connection import Connection
from amicrawl.fetch.failures import NotConnected, one_line
from amicrawl.fetch.guard import literal
from amicrawl.fetch.multi import Multi
from amicrawl.fetch.request import ProxyKind, proxy_of
from amicrawl.fetch.resolver import Unresolved

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.fetch.guard import Guard
    from amicrawl.fetch.request import Route
    from amicrawl.fetch.resolver import Resolver


class Dialer:
    """Makes connections on the running asyncio loop."""

    def __init__(self, *, guard: Guard, ca_file: Path | None, resolver: Resolver) -> None:
        self._loop = asyncio.get_running_loop()
        self._guard = guard
        self._ca_file = ca_file
        self._resolver = resolver
        self._multi = Multi(self._loop)

    async def dial(self, route: Route, *, within: float) -> Connection | NotConnected:
        """Return a connection for *route*, or why there is none after at most *within* seconds.

        Under `TlsPolicy.RECORD` a server whose certificate is not trusted is dialled once more, without
        the check.
        """
        deadline = self._loop.time() + within
        pins = await self._look_up(route, within=within)
        if isinstance(pins, NotConnected):
            return pins
        made = await self._connect(route, pins, deadline=deadline, verify=True)
        if (
            isinstance(made, NotConnected)
            and made.failure is Failure.TLS_CERTIFICATE
            and route.policy is TlsPolicy.RECORD
        ):
            made = await self._connect(route, pins, deadline=deadline, verify=False)
        return made

    def abort(self, why: str) -> None:
        """End every dial as a failure."""
        self._resolver.close(why)
        self._multi.abort(why)

    def close(self) -> None:
        """Give libcurl back; every connection must be closed."""
        self._multi.close()

    async def _connect(
        self, route: Route, pins: list[str], *, deadline: float, verify: bool
    ) -> Connection | NotConnected:
        attempt = Attempt(self._guard)
        easy = pycurl.Curl()
        try:
            self._set_up(easy, route, attempt=attempt)
            easy.setopt(pycurl.RESOLVE, pins)
            easy.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int((deadline - self._loop.time()) * 1000)))
            if not verify:
                easy.setopt(pycurl.SSL_VERIFYPEER, 0)
                easy.setopt(pycurl.SSL_VERIFYHOST, 0)
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
        # Nobody wants the answer to CONNECT, and libcurl would print it.
        easy.setopt(pycurl.HEADERFUNCTION, len)
        easy.setopt(pycurl.WRITEFUNCTION, len)
        if not proxy_of(route.proxy).takes_plain(route.scheme):
            easy.setopt(pycurl.HTTPPROXYTUNNEL, 1)
        if self._ca_file is not None:
            easy.setopt(pycurl.PROXY_CAINFO, str(self._ca_file))

    async def _look_up(self, route: Route, *, within: float) -> list[str] | NotConnected:
        """Return the names that libcurl will ask for with their addresses, in its own notation.

        What a proxy is asked to dial is judged here, as far as it is known; nobody else would.
        """
        host, port = route.host_and_port()
        if not route.proxy:
            return await self._pin(host, port, within=within)
        refusal = self._refusal(literal(host))
        if refusal is not None:
            return refusal
        proxy = proxy_of(route.proxy)
        pins = await self._pin(*proxy.host_and_port, within=within)
        if isinstance(pins, NotConnected):
            return NotConnected(Failure.PROXY, pins.detail)
        if proxy.kind is not ProxyKind.SOCKS_BY_ADDRESS:
            return pins
        more = await self._pin(host, port, within=within, judged=True)
        return more if isinstance(more, NotConnected) else pins + more

    async def _pin(
        self, host: str, port: int, *, within: float, judged: bool = False
    ) -> list[str] | NotConnected:
        # libcurl reads addresses itself, in every spelling, and knows localhost (RFC 6761).
        if literal(host) or host.lower().rstrip(".").rpartition(".")[2] == "localhost":
            return []
        answer = await self._resolver.addresses(host, within=within)
        if isinstance(answer, Unresolved):
            return NotConnected(answer.failure, one_line(answer.detail))
        if judged:
            allowed = tuple(address for address in answer if self._refusal(address) is None)
            if not allowed:
                return self._refusal(answer[0]) or []
            answer = allowed
        addresses = ",".join(f"[{address}]" if ":" in address else address for address in answer)
        return [f"{host}:{port}:{addresses}"]

    def _refusal(self, address: str | None) -> NotConnected | None:
        reason = self._guard.refusal(address) if address else None
        return NotConnected(Failure.ADDRESS_REFUSED, f"{address} is {reason}.") if reason else None
