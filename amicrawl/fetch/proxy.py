"""Proxies: reading their URLs, and having them connect (RFC 9110, 9.3.6; RFC 1928, RFC 1929).

What authenticates to a proxy, passwords above all, goes to the proxy alone: neither through a tunnel nor
into what is archived.
"""

from __future__ import annotations

import re
import socket
from base64 import b64encode
from enum import Enum
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from amicrawl.errors import UsageError
from amicrawl.fetch.failures import NO_TUNNEL, ProxyError
from amicrawl.message import status_of

if TYPE_CHECKING:
    from amicrawl.fetch.connection import Connection, Conversation

HOST_PORT = r"(?:\[[^][/?#@\\]+\]|[^][/?#@\\:]+)(?::[0-9]{0,5})?"
_PROXY = re.compile(
    rf"(?:(https?|socks4a?|socks5h?)://)?(?:([^/?#@]*)@)?({HOST_PORT})/?", re.IGNORECASE | re.ASCII
)
_ENDS_IN_PORT = re.compile(r":[0-9]+$")
_PORTS = {"http": 80, "https": 443}
_SOCKS_PORT = 1080
HIGHEST_PORT = 65_535
_LONGEST_RESPONSE = 64 * 1024
_LONGEST_LOGIN = 255
"""Bytes of a user name, and of a password (RFC 1929, section 2)."""
_SOCKS4_GRANTED = 90
_SOCKS5_REPLIES = {
    1: "general failure", 2: "connection not allowed", 3: "network unreachable",
    4: "host unreachable", 5: "connection refused", 6: "TTL expired", 7: "command not supported",
    8: "address type not supported",
}  # fmt: skip


class ProxyKind(Enum):
    """What a proxy is to connect to."""

    HTTP = "a request, or a tunnel to a name"
    SOCKS_BY_NAME = "a connection to a name"
    SOCKS_BY_ADDRESS = "a connection to an address, which is looked up here"


class Proxy(NamedTuple):
    """A proxy, read from its URL."""

    kind: ProxyKind
    scheme: str
    host_and_port: tuple[str, int]
    user: str | None = None
    password: str = ""

    def takes_plain(self, scheme: str) -> bool:
        """Return whether it takes a request for *scheme* itself, in absolute form (RFC 9112, 3.2.2)."""
        return self.kind is ProxyKind.HTTP and scheme == "http"

    @property
    def authorization(self) -> bytes:
        """The value of `Proxy-Authorization` (RFC 7617); empty without a user name."""
        if self.user is None:
            return b""
        return b"Basic " + b64encode(f"{self.user}:{self.password}".encode())


def proxy_of(url: str) -> Proxy:
    """Read the proxy that *url* names; `host:port` without a scheme is an HTTP one.

    Raises UsageError where it cannot be followed.
    """
    parts = _PROXY.fullmatch(url)
    # A word alone is rather a slip than a host.
    if parts is None or not (parts[1] or _ENDS_IN_PORT.search(parts[3])):
        raise UsageError(
            "The proxy is not an http, https, socks4, socks4a, socks5 or socks5h URL, nor host:port."
        )
    scheme = (parts[1] or "http").lower()
    kind = ProxyKind.SOCKS_BY_NAME if scheme in {"socks4a", "socks5h"} else ProxyKind.SOCKS_BY_ADDRESS
    if scheme.startswith("http"):
        kind = ProxyKind.HTTP
    user, password = None, ""
    if parts[2] is not None:
        user, _, password = (unquote(part) for part in parts[2].partition(":"))
        _check_login(scheme, user, password)
    target = host_and_port(parts[3], default=_PORTS.get(scheme, _SOCKS_PORT))
    if target[1] > HIGHEST_PORT:
        raise UsageError(f"The port of the proxy is {target[1]}. Ports end at {HIGHEST_PORT}.")
    return Proxy(kind, scheme, target, user, password)


def _check_login(scheme: str, user: str, password: str) -> None:
    """Raise UsageError for a login that the protocol of the proxy has no room for."""
    if scheme.startswith("socks5") and max(len(user.encode()), len(password.encode())) > _LONGEST_LOGIN:
        raise UsageError(
            f"The proxy cannot be sent its login: SOCKS 5 has room for {_LONGEST_LOGIN} bytes of user "
            "name and as many of password."
        )
    if scheme.startswith("socks4") and "\0" in user:
        raise UsageError("The proxy cannot be sent its login: SOCKS 4 ends a user name at its NUL.")


def host_and_port(authority: str, *, default: int) -> tuple[str, int]:
    """Return the host in *authority* without brackets, and its port or *default*."""
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        return authority.strip("[]"), default
    return host.strip("[]"), int(port) if port else default


async def open_tunnel(connection: Connection, authority: str, authorization: bytes) -> None:
    """Have the HTTP proxy at the other end connect to *authority*. Raises ProxyError."""
    lines = [f"CONNECT {authority} HTTP/1.1".encode(), b"Host: " + authority.encode()]
    if authorization:
        lines.append(b"Proxy-Authorization: " + authorization)
    talk = connection.converse()
    connection.write(b"\r\n".join(lines) + b"\r\n\r\n")
    try:
        head = await talk.head(_LONGEST_RESPONSE)
    except (ConnectionResetError, ValueError) as error:
        raise ProxyError(f"{NO_TUNNEL}: {error}") from None
    status = status_of(head)
    if status is None or not 200 <= status < 300:
        line = head.lstrip().partition(b"\r")[0].decode("latin-1")
        raise ProxyError(f"{NO_TUNNEL}: {line}.")
    if talk.take():
        raise ProxyError("The proxy sent bytes behind its response that the server did not send.")


async def open_socks(connection: Connection, proxy: Proxy, host: str, port: int) -> None:
    """Have the SOCKS proxy at the other end connect to *host* and *port*. Raises ProxyError.

    *host* is an address where the kind of *proxy* wants one.
    """
    connect = _socks4 if proxy.scheme.startswith("socks4") else _socks5
    try:
        await connect(connection, connection.converse(), proxy, host, port)
    except ConnectionResetError as error:
        raise ProxyError(f"The proxy made no connection: {error}") from None


async def _socks4(
    connection: Connection, talk: Conversation, proxy: Proxy, host: str, port: int
) -> None:
    by_name = proxy.kind is ProxyKind.SOCKS_BY_NAME
    try:
        # 0.0.0.1 announces that a name follows (SOCKS 4A).
        address = b"\0\0\0\1" if by_name else socket.inet_aton(host)
    except OSError:
        raise ProxyError(f"SOCKS 4 cannot connect to {host}: it knows IPv4 only.") from None
    user = (proxy.user or "").encode() + b"\0"
    name = host.encode() + b"\0" if by_name else b""
    connection.write(b"\4\1" + port.to_bytes(2, "big") + address + user + name)
    reply = await talk.exactly(8)
    if reply[1] != _SOCKS4_GRANTED:
        raise ProxyError(f"The proxy made no connection: SOCKS 4 code {reply[1]}.")


async def _socks5(
    connection: Connection, talk: Conversation, proxy: Proxy, host: str, port: int
) -> None:
    connection.write(b"\5\1\0" if proxy.user is None else b"\5\2\0\2")
    version, method = await talk.exactly(2)
    if version != 5 or method not in (0, 2) or (method == 2 and proxy.user is None):
        raise ProxyError("The proxy made no connection: it wants another kind of login.")
    if method == 2:
        user, password = (proxy.user or "").encode(), proxy.password.encode()
        connection.write(b"\1" + bytes([len(user)]) + user + bytes([len(password)]) + password)
        if (await talk.exactly(2))[1] != 0:
            raise ProxyError("The proxy made no connection: it did not accept user name and password.")
    connection.write(b"\5\1\0" + _socks5_address(proxy.kind, host) + port.to_bytes(2, "big"))
    _, reply, _, kind = await talk.exactly(4)
    if reply != 0:
        reason = _SOCKS5_REPLIES.get(reply, f"SOCKS 5 code {reply}")
        raise ProxyError(f"The proxy made no connection: {reason}.")
    length = {1: 4, 4: 16}.get(kind) or (await talk.exactly(1))[0]
    await talk.exactly(length + 2)


def _socks5_address(kind: ProxyKind, host: str) -> bytes:
    if kind is ProxyKind.SOCKS_BY_NAME:
        name = host.encode()
        if len(name) > 255:
            raise ProxyError("SOCKS 5 cannot connect to a name of more than 255 bytes.")
        return b"\3" + bytes([len(name)]) + name
    address = ip_address(host)
    return (b"\1" if address.version == 4 else b"\4") + address.packed
