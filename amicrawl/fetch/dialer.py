"""Dialer: connections to vetted addresses only, through a proxy and TLS where they are requested.

A name is looked up once, its addresses are judged by the guard, and those very addresses are dialled:
the first one and, after 250 ms without a connection or as soon as it fails, the next one beside it (RFC
8305).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from amicrawl.capture import Failure
from amicrawl.fetch.connection import Connection
from amicrawl.fetch.failures import NOT_IN_TIME, NotConnectedError, failure_of, sentence_of
from amicrawl.fetch.guard import literal
from amicrawl.fetch.proxy import ProxyKind, open_socks, open_tunnel, proxy_of
from amicrawl.fetch.resolver import Unresolved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amicrawl.fetch.guard import Guard
    from amicrawl.fetch.proxy import Proxy
    from amicrawl.fetch.request import Route
    from amicrawl.fetch.resolver import Resolver
    from amicrawl.fetch.tls import TlsClient

_NEXT_ADDRESS_AFTER = 0.25
_MOST_ADDRESSES = 8


@dataclass(slots=True)
class _Tried:
    """How far a dial has come."""

    addresses: list[str] = field(default_factory=list)
    """Those that are being dialled, and then the one that is connected."""
    is_connected: bool = False
    """Whether one of them is: what is still to come is for a proxy to do, or for TLS."""


class Dialer:
    """Makes connections on the running asyncio loop. *tls* is called once, for the first https URL."""

    def __init__(self, *, guard: Guard, resolver: Resolver, tls: Callable[[], TlsClient]) -> None:
        self._loop = asyncio.get_running_loop()
        self._guard = guard
        self._resolver = resolver
        self._make_tls = tls
        self._tls: TlsClient | None = None
        self.dials: dict[asyncio.Timeout, float] = {}
        """What is under way, and the moment at which its time is up."""
        self._aborted = ""

    async def dial(self, route: Route, *, within: float) -> Connection:
        """Return a connection for *route*; raises NotConnectedError after *within* seconds.

        That is, with the first call of `expire` behind them.
        """
        if self._aborted:
            raise NotConnectedError(self._aborted, Failure.ENDED_HERE)
        tried = _Tried()
        # Timers of their own, thousands of them, would cost more than all else that is done here.
        scope = asyncio.timeout(None)
        self.dials[scope] = time.monotonic() + within
        try:
            async with scope:
                return await self._dial(route, tried, within=within)
        except TimeoutError:
            address = tried.addresses[-1] if tried.addresses else None
            if self._aborted:
                raise NotConnectedError(self._aborted, Failure.ENDED_HERE, address) from None
            # A host must not be given up for a proxy that does not respond.
            is_proxys = route.proxy and address and not tried.is_connected
            failure = Failure.PROXY if is_proxys else Failure.CONNECT_TIMEOUT
            raise NotConnectedError(NOT_IN_TIME, failure, address) from None
        finally:
            del self.dials[scope]

    def expire(self, now: float) -> None:
        """End the dials whose time is up at *now*."""
        for scope in [scope for scope, due in self.dials.items() if due <= now]:
            if not scope.expired():
                scope.reschedule(self._loop.time())

    def postpone(self, seconds: float) -> None:
        """Let no dial that is under way count *seconds* that have just passed."""
        for scope in self.dials:
            self.dials[scope] += seconds

    def abort(self, why: str) -> None:
        """End every dial as a failure, those that come later, too."""
        self._aborted = why
        self._resolver.close(why)
        self.expire(inf)

    async def _dial(self, route: Route, tried: _Tried, *, within: float) -> Connection:
        host, port = route.host_and_port()
        proxy = proxy_of(route.proxy) if route.proxy else None
        wanted, dialled = host, (host, port)
        if proxy is not None:
            wanted, dialled = await self._for_proxy(proxy, host, within=within), proxy.host_and_port
        addresses = await self._addresses(dialled[0], within=within, proxied=proxy is not None)
        connection = await self._first_of(addresses, dialled[1], route, tried.addresses)
        tried.is_connected = True
        try:
            if proxy is not None:
                await self._through(connection, proxy, route, (wanted, port))
            if route.scheme == "https":
                await self._secure(connection, host, port, route)
                connection.tls = connection.top.tls
        except BaseException as error:
            connection.close()
            if isinstance(error, NotConnectedError):
                error.address = connection.address
            raise
        return connection

    async def _for_proxy(self, proxy: Proxy, host: str, *, within: float) -> str:
        """Return what *proxy* is to connect to in place of *host*.

        It is judged here, as far as it is known: the proxy has no guard of ours.
        """
        address = literal(host)
        if address is not None:
            return self._allowed([address])[0]
        if proxy.kind is not ProxyKind.SOCKS_BY_ADDRESS:
            return host
        addresses = await self._addresses(host, within=within)
        if proxy.scheme == "socks4":
            # It knows IPv4 only, and a host with both usually has its IPv6 addresses first.
            return next((each for each in addresses if ":" not in each), addresses[0])
        return addresses[0]

    async def _addresses(self, host: str, *, within: float, proxied: bool = False) -> list[str]:
        """Return the addresses of *host* that may be dialled."""
        address = literal(host)
        if address is not None:
            return self._allowed([address])
        found = await self._resolver.addresses(host, within=within)
        if isinstance(found, Unresolved):
            failure = Failure.PROXY if proxied else found.failure
            raise NotConnectedError(found.detail, failure)
        return self._allowed(found)

    def _allowed(self, addresses: Sequence[str]) -> list[str]:
        allowed = [address for address in addresses if self._guard.refusal(address) is None]
        if not allowed:
            why = self._guard.refusal(addresses[0])
            raise NotConnectedError(f"{addresses[0]} is {why}.", Failure.ADDRESS_REFUSED)
        return allowed[:_MOST_ADDRESSES]

    async def _first_of(
        self, addresses: list[str], port: int, route: Route, tried: list[str]
    ) -> Connection:
        """Return a connection to the first of *addresses* that can be reached.

        *tried* is made to hold those that are being dialled, and then the one that is connected.
        """
        waiting = iter(addresses)
        dials: dict[asyncio.Task[Connection], str] = {}
        # What went wrong, and not the error: its traceback leads here, which would be a cycle.
        fault = "", Failure.OTHER, addresses[0]
        try:
            while True:
                address = next(waiting, None)
                if address is not None:
                    tried.append(address)
                    if len(addresses) == 1:
                        return await self._connect(address, port, route)
                    dials[self._loop.create_task(self._connect(address, port, route))] = address
                elif not dials:
                    break
                ended, _ = await asyncio.wait(
                    dials,
                    timeout=None if address is None else _NEXT_ADDRESS_AFTER,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for dial in ended:
                    address, error = dials.pop(dial), dial.exception()
                    if error is None:
                        tried[:] = [address]
                        return dial.result()
                    if not isinstance(error, OSError):
                        raise error
                    tried.remove(address)
                    failure = failure_of(error, proxied=bool(route.proxy))
                    # That this machine has no IPv6, say, is nothing that the server did.
                    if failure is not Failure.NO_ROUTE or not fault[0]:
                        fault = sentence_of(error), failure, address
        except OSError as error:
            fault = sentence_of(error), failure_of(error, proxied=bool(route.proxy)), addresses[0]
        finally:
            for dial in dials:
                dial.cancel()
                dial.add_done_callback(_close_unwanted)
        raise NotConnectedError(*fault)

    async def _connect(self, address: str, port: int, route: Route) -> Connection:
        connection = Connection()
        connection.address = address
        here = (route.bind, 0) if route.bind else None
        await self._loop.create_connection(lambda: connection, address, port, local_addr=here)
        return connection

    async def _through(
        self, connection: Connection, proxy: Proxy, route: Route, target: tuple[str, int]
    ) -> None:
        """Have *proxy*, at the other end of *connection*, connect to *target* where it has to."""
        if proxy.scheme == "https":
            await self._secure(connection, *proxy.host_and_port, route)
        if proxy.takes_plain(route.scheme):
            return
        host, port = target
        if proxy.kind is ProxyKind.HTTP:
            authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            authorization = route.proxy_authorization or proxy.authorization
            await open_tunnel(connection, authority, authorization)
        else:
            await open_socks(connection, proxy, host, port)

    async def _secure(self, connection: Connection, host: str, port: int, route: Route) -> None:
        if self._tls is None:
            self._tls = self._make_tls()
        await connection.start_tls(self._tls.layer(host, port, route.policy))


def _close_unwanted(dial: asyncio.Task[Connection]) -> None:
    """Close the connection that came about although another one is used."""
    with suppress(asyncio.CancelledError, OSError):
        dial.result().close()
