"""Guard: which addresses may be dialled.

Refused is whatever does not belong to the public Internet by IANA's special-purpose registries (RFC 6890
and successors), and the addresses at which clouds hand out credentials. An operator can allow networks.

The rule is applied to the address a socket is about to connect to, at every connection, the proxy's
included, and never about a name. So it does not matter how a URL spells an address (`0x7f.1`,
`2130706433`, `[::ffff:127.0.0.1]`), nor that a name resolves to a public address when it is looked at
and to a private one when it is dialled: there is one look-up, and its result is what is judged. Behind a
proxy the proxy dials; what it may reach is for the proxy to say.

Pure: no I/O.
"""

from __future__ import annotations

import ipaddress
import socket
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.config import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Single addresses, most of them metadata services of clouds. Azure's (168.63.129.16) is a public one.
_SPECIAL_ADDRESSES = {
    "169.254.169.254": "a cloud metadata address",
    "100.100.100.200": "a cloud metadata address",
    "192.0.0.192": "a cloud metadata address",
    "fd00:ec2::254": "a cloud metadata address",
    "168.63.129.16": "a cloud metadata address",
    "255.255.255.255": "the broadcast address",
    "0.0.0.0": "the unspecified address",  # noqa: S104 - named to be refused, not bound to
}

_SPECIAL_V4 = {
    "0.0.0.0/8": "an address of this network",
    "10.0.0.0/8": "a private address",
    "100.64.0.0/10": "a shared (carrier-grade NAT) address",
    "127.0.0.0/8": "a loopback address",
    "169.254.0.0/16": "a link-local address",
    "172.16.0.0/12": "a private address",
    "192.0.0.0/24": "a protocol assignment",
    "192.0.2.0/24": "a documentation address",
    "192.31.196.0/24": "an AS112 address",
    "192.52.193.0/24": "an AMT address",
    "192.88.99.0/24": "a 6to4 relay address",
    "192.168.0.0/16": "a private address",
    "192.175.48.0/24": "an AS112 address",
    "198.18.0.0/15": "a benchmarking address",
    "198.51.100.0/24": "a documentation address",
    "203.0.113.0/24": "a documentation address",
    "224.0.0.0/4": "a multicast address",
    "240.0.0.0/4": "a reserved address",
}

# Where ranges overlap the first one speaks.
_SPECIAL_V6 = {
    "::/128": "the unspecified address",
    "::1/128": "the loopback address",
    "::/96": "an IPv4-compatible address",
    "64:ff9b:1::/48": "a local NAT64 address",
    "100::/64": "a discard address",
    "2001::/32": "a Teredo address",
    "2001:2::/48": "a benchmarking address",
    "2001:10::/28": "an ORCHID address",
    "2001::/23": "a protocol assignment",
    "2001:db8::/32": "a documentation address",
    "2002::/16": "a 6to4 address",
    "2620:4f:8000::/48": "an AS112 address",
    "3fff::/20": "a documentation address",
    "5f00::/16": "a segment routing address",
    "fc00::/7": "a unique local address",
    "fe80::/10": "a link-local address",
    "fec0::/10": "a site-local address",
    "ff00::/8": "a multicast address",
}

_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def _bounds(networks: dict[str, str]) -> tuple[tuple[int, int, str], ...]:
    pairs = ((ipaddress.ip_network(network), reason) for network, reason in networks.items())
    return tuple((int(net.network_address), int(net.broadcast_address), reason) for net, reason in pairs)


_BOUNDS_V4 = sorted(_bounds(_SPECIAL_V4))  # no two overlap
_STARTS_V4 = [low for low, _, _ in _BOUNDS_V4]
_BOUNDS_V6 = _bounds(_SPECIAL_V6)
_POINTS = {ipaddress.ip_address(address): reason for address, reason in _SPECIAL_ADDRESSES.items()}
_POINTS_V4 = {int(address): reason for address, reason in _POINTS.items() if address.version == 4}


class Guard:
    """Says which addresses may be dialled."""

    def __init__(self, allow: Iterable[Network] = ()) -> None:
        allow = tuple(allow)
        self._allow_v4 = [
            (int(each.network_address), int(each.broadcast_address))
            for each in allow
            if each.version == 4
        ]
        self._allow_v6 = [each for each in allow if each.version == 6]

    def refusal(self, address: Address | str) -> str | None:
        """Return why *address* must not be dialled, as a noun phrase, or None where it may be.

        An IPv4 address inside an IPv6 one (mapped, or NAT64) is what the packets reach, so it decides;
        either form may be allowed. A string that is not an address is refused.
        """
        if isinstance(address, str):
            with suppress(OSError, ValueError):
                # A broad crawl checks each connection, and `ipaddress` takes five times as long.
                return self._refusal_v4(int.from_bytes(socket.inet_pton(socket.AF_INET, address)))
            try:
                address = ipaddress.ip_address(address)
            except ValueError:
                return "no address"
        if isinstance(address, ipaddress.IPv4Address):
            return self._refusal_v4(int(address))
        # A scope (`fe80::1%eth0`) makes an address unequal to itself without one.
        if address.scope_id:
            address = ipaddress.IPv6Address(int(address))
        if any(address in network for network in self._allow_v6):
            return None
        if embedded := _embedded(address):
            return self._refusal_v4(int(embedded))
        number = int(address)
        special = (reason for low, high, reason in _BOUNDS_V6 if low <= number <= high)
        return (
            _POINTS.get(address)
            or next(special, None)
            or (None if address in _GLOBAL_V6 else "an address outside of global unicast")
        )

    def _refusal_v4(self, number: int) -> str | None:
        if any(low <= number <= high for low, high in self._allow_v4):
            return None
        if number in _POINTS_V4:
            return _POINTS_V4[number]
        at = bisect_right(_STARTS_V4, number) - 1
        return _BOUNDS_V4[at][2] if number <= _BOUNDS_V4[at][1] else None


def literal(host: str) -> str | None:
    """Return the address that the URL host *host* spells, in any spelling of `inet_aton`, or None."""
    host = host.strip("[]").rstrip(".").partition("%")[0]
    if ":" in host:
        with suppress(ValueError):
            return str(ipaddress.IPv6Address(host))
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped
