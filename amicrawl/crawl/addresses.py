"""Whose turn it is at an address, for a crawl that knows hosts by their names.

    row handed out -> address known? -- no --> looked up by the politeness middleware
                          | yes
                          '-- open --> asked; else it goes back to the frontier, and its host's gate is
                                       held until it is called

A name has the address that was dialled for it last. A literal is its own. Behind a proxy nobody here
knows addresses, and none is gated.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING

from amicrawl.fetch.guard import literal
from amicrawl.politeness.addresses import AddressGates
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from amicrawl.politeness import Gates, HostBreaker

_MOST_NAMES = 100_000
_LEAST_PATIENCE = 0.25


class AddressPace:
    """The pace of addresses: what is known of names, and the hosts that stand in line.

    Memory follows the names that were asked last, at most 100,000 of them, and the hosts in line.
    """

    def __init__(self, delay: float, gates: Gates, breaker: HostBreaker) -> None:
        """Ask an address every *delay* seconds at most; the hosts in line are held in *gates*."""
        # A host that is called comes with its next row, as soon as the frontier has got to it.
        self._lines = AddressGates(delay, patience=max(2 * delay, _LEAST_PATIENCE))
        self._gates = gates
        self._breaker = breaker
        self._known: OrderedDict[str, str] = OrderedDict()
        self._stands: dict[int, str] = {}
        """The address in whose line a host stands, one for each host."""

    def address_of(self, url: str) -> str | None:
        """Return the address that *url* leads to, as far as that is known."""
        authority = _authority(url)
        address = self._known.get(authority)
        if address is None:
            target = fetchable(url)
            if not isinstance(target, Refused) and (address := literal(target.host)) is not None:
                self._know(authority, address)
        return address

    def learn(self, url: str, address: str) -> None:
        """Note that *url* led to *address*."""
        authority = _authority(url)
        if self._known.get(authority) != address:
            self._know(authority, address)

    def enter(self, address: str, host: int, now: float) -> bool:
        """Start a request of *host* at *address*; or return False and hold it until it is called."""
        if self._lines.enter(address, host, now):
            return True
        stands = self._stands.setdefault(host, address)
        if stands != address:
            # One line is enough: when it is called there, all of its rows come again.
            self._lines.leave(address, host, now)
        self._gates.hold(host)
        return False

    def start(self, address: str, now: float) -> None:
        """Note a request to *address* at *now* that cannot wait for a turn."""
        self._lines.start(address, now)

    def call(self, now: float) -> None:
        """Let go of the hosts whose turn it is at *now*."""
        while hosts := self._lines.called(now):
            for host in hosts:
                address = self._stands.pop(host, "")
                self._gates.let_go(host, now)
                if self._breaker.is_open(host) or now < self._gates.opens_at(host) < inf:
                    self._lines.leave(address, host, now)

    def next_moment(self) -> float | None:
        """Return the moment at which `call` may let somebody go; None while nobody stands in line."""
        return self._lines.next_moment()

    def _know(self, authority: str, address: str) -> None:
        self._known[authority] = address
        if len(self._known) > _MOST_NAMES:
            self._known.popitem(last=False)


def _authority(url: str) -> str:
    # A crawl does this for every page; the urls room knows more than that, and takes ten times as long.
    parts = url.split("/", 3)
    return parts[2] if len(parts) > 2 else ""
