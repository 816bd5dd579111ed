"""Requests as bytes: what is asked for, checked, and the message that asks for it.

All bytes of a request are made here, so their order and case are the caller's and a capture can hold
them exactly. Pure: no I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.config import TlsPolicy

_VISIBLE = re.compile(r"[!-~]+")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_URL = re.compile(r"(https?)://([^/?#\\]+)((?:[/?][^#]*)?)(?:#.*)?", re.IGNORECASE)
_HOST_PORT = r"(?:\[[^][/?#@\\]+\]|[^][/?#@\\:]+)(?::[0-9]{0,5})?"
_AUTHORITY = re.compile(_HOST_PORT)
_PROXY = re.compile(rf"(https?|socks4a?|socks5h?)://(?:([^/?#@]*)@)?({_HOST_PORT})/?", re.IGNORECASE)
_WITH_CONTENT = frozenset({"POST", "PUT", "PATCH"})

# RFC 9110, section 9.2.2: asking twice has the effect of asking once.
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """One request as the caller wants it on the wire."""

    url: str
    """The URL that the capture is kept under."""
    wire_url: str = ""
    """The URL as it is asked for: visible ASCII, http or https; empty where it is `url` itself. A
    fragment and a user name in it are not sent."""
    method: str = "GET"
    fields: Sequence[tuple[bytes, bytes]] = ()
    """Header fields, sent in this order and case. `Host` is put in front and `Content-Length` at the end
    where they are missing; nothing else is added."""
    body: bytes = b""
    timeout: float | None = None
    """Seconds for the whole exchange, in place of the limit."""
    proxy: str = ""
    """URL of a proxy: http, https (CONNECT for https targets), socks4, socks4a, socks5 or socks5h."""
    tls: TlsPolicy | None = None
    """What becomes of an untrusted certificate, in place of the wire's own policy."""
    hidden: frozenset[bytes] = frozenset()
    """Names of fields, in lower case, whose values are sent and not shown in the capture."""


class Route(NamedTuple):
    """What must be the same for two requests to share a connection."""

    scheme: str
    authority: str
    proxy: str
    policy: TlsPolicy

    def host_and_port(self) -> tuple[str, int]:
        """Return the host without brackets, and the port."""
        return _host_and_port(self.authority, default=443 if self.scheme == "https" else 80)


class Message(NamedTuple):
    """A request ready to be sent."""

    route: Route
    data: bytes
    method: str
    repeatable: bool
    """Whether it may be sent again on a fresh connection where a kept one turns out to be dead."""
    keep: bool
    """Whether the request leaves it to the server to keep the connection."""


class Unfetchable(NamedTuple):
    """A URL that cannot be asked for, and why."""

    reason: str


def compose(request: WireRequest, *, policy: TlsPolicy) -> Message | Unfetchable:
    """Return the message that *request* asks for.

    Raises UsageError for a field, method or proxy that cannot be sent as it is: a line break in one
    would forge the rest of the message.
    """
    url = request.wire_url or request.url
    if not _VISIBLE.fullmatch(url):
        return Unfetchable("The URL has a character that must be percent-encoded.")
    parts = _URL.fullmatch(url)
    if parts is None:
        return Unfetchable("The URL is not an http or https URL with a host.")
    scheme, authority, target = parts[1].lower(), parts[2].rpartition("@")[2], parts[3]
    if not _AUTHORITY.fullmatch(authority):
        return Unfetchable("The URL has no host, or its port is no number.")
    if target[:1] != "/":
        target = "/" + target
    if not _TOKEN.fullmatch(request.method):
        raise UsageError(f"{request.method!r} is not an HTTP method. Use a token such as GET.")
    if request.proxy and proxy_of(request.proxy).takes_plain(scheme):
        target = f"{scheme}://{authority}{target}"
    lines, keep = _field_lines(request, authority)
    head = f"{request.method} {target} HTTP/1.1\r\n".encode() + lines + b"\r\n\r\n"
    return Message(
        route=Route(scheme, authority.lower(), request.proxy, request.tls or policy),
        data=head + request.body,
        method=request.method,
        repeatable=request.method in _IDEMPOTENT,
        keep=keep,
    )


def without_values(sent: bytes, hidden: frozenset[bytes]) -> bytes:
    """Return what was *sent* of a request, with the values of its *hidden* fields replaced."""
    if not hidden:
        return sent
    head, blank, body = sent.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    for number, line in enumerate(lines[1:], start=1):
        name, colon, _ = line.partition(b":")
        if colon and name.lower() in hidden:
            lines[number] = name + b": redacted"
    return b"\r\n".join(lines) + blank + body


class ProxyKind(Enum):
    """What a proxy is asked for."""

    HTTP = "a request, or a tunnel to a name"
    SOCKS_BY_NAME = "a connection to a name"
    SOCKS_BY_ADDRESS = "a connection to an address, which is looked up here"


class Proxy(NamedTuple):
    """A proxy, read from its URL."""

    kind: ProxyKind
    host_and_port: tuple[str, int]
    has_password: bool

    def takes_plain(self, scheme: str) -> bool:
        """Tell whether it takes a request for *scheme* itself, in absolute form (RFC 9112, 3.2.2).

        Otherwise it opens a tunnel. A proxy that wants a password always does: the password then goes
        into the CONNECT request and never into what is archived.
        """
        return self.kind is ProxyKind.HTTP and scheme == "http" and not self.has_password


def proxy_of(url: str) -> Proxy:
    """Read the proxy that *url* names. Raises UsageError where it cannot be followed."""
    parts = _PROXY.fullmatch(url)
    if parts is None:
        raise UsageError("The proxy is not an http, https, socks4, socks4a, socks5 or socks5h URL.")
    scheme = parts[1].lower()
    kind = ProxyKind.SOCKS_BY_NAME if scheme in {"socks4a", "socks5h"} else ProxyKind.SOCKS_BY_ADDRESS
    if scheme.startswith("http"):
        kind = ProxyKind.HTTP
    # The ports are libcurl's, for want of a standard.
    host_and_port = _host_and_port(parts[3], default=443 if scheme == "https" else 1080)
    return Proxy(kind, host_and_port, parts[2] is not None)


def _host_and_port(authority: str, *, default: int) -> tuple[str, int]:
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        return authority.strip("[]"), default
    return host.strip("[]"), int(port) if port else default


def _field_lines(request: WireRequest, authority: str) -> tuple[bytes, bool]:
    """Return the header section without its last line end, and whether the connection may be kept."""
    lines = [name + b": " + value for name, value in request.fields]
    names = {name.lower() for name, _ in request.fields}
    if b"" in names:
        raise UsageError("A header field has no name. Name it, or leave it out.")
    if b"host" not in names:
        lines.insert(0, b"Host: " + authority.encode())
    if (
        (request.body or request.method in _WITH_CONTENT)
        and b"content-length" not in names
        and b"transfer-encoding" not in names
    ):
        lines.append(b"Content-Length: %d" % len(request.body))
    section = b"\r\n".join(lines)
    ends = len(lines) - 1
    if section.count(b"\r") != ends or section.count(b"\n") != ends or b"\0" in section:
        raise UsageError("A header field has a line break or NUL in it. Take it out; it cannot be sent.")
    keep = b"connection" not in names or not any(
        name.lower() == b"connection" and b"close" in value.lower() for name, value in request.fields
    )
    return section, keep
