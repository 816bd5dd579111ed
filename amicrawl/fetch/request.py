"""Requests as bytes: what is requested, checked, and the message that requests it.

All bytes of a request are made here, so their order and case are the caller's and a capture can hold
them exactly. Pure: no I/O.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.capture import Failure
from amicrawl.errors import UsageError
from amicrawl.fetch.failures import NotConnectedError
from amicrawl.fetch.proxy import HIGHEST_PORT, HOST_PORT, host_and_port, proxy_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.config import TlsPolicy

_VISIBLE = re.compile(r"[!-~]+")
_NOT_IN_A_FIELD = re.compile(rb"[\r\n\0]")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_URL = re.compile(r"https?://[^/?#\\]+(?:[/?][^#]*)?(?:#.*)?", re.IGNORECASE | re.ASCII)
# All that is checked of a URL, in one; where it does not match, the others find out why. Without ASCII,
# "s" and "k" would match U+017F and U+212A as well.
_FETCHABLE = re.compile(
    rf"(https?)://(?:[!\"$-.0->@-\[\]-~]*@)?({HOST_PORT})((?:[/?][!-\"$-~]*)?)(?:#[!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_PROXY_AUTHORIZATION = b"proxy-authorization"
_LINE_BREAK = "A header field has a line break or NUL in it. Take it out; it cannot be sent."
_USUAL_METHODS = frozenset({"GET", "HEAD", "POST"})
_WITH_CONTENT = frozenset({"POST", "PUT", "PATCH"})

# RFC 9110, section 9.2.2: idempotent methods.
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class WireRequest(NamedTuple):
    """One request as the caller wants it on the wire."""

    url: str
    """The URL that the capture is kept under."""
    wire_url: str = ""
    """The URL as it is requested: visible ASCII, http or https; empty where it is `url` itself. A
    fragment and a user name in it are not sent."""
    method: str = "GET"
    fields: Sequence[tuple[bytes, bytes]] = ()
    """Header fields, sent in this order and case. `Host` is put in front and `Content-Length` at the end
    where they are missing; nothing else is added."""
    body: bytes = b""
    timeout: float | None = None
    """Seconds for the whole exchange, in place of the limit."""
    proxy: str = ""
    """URL of a proxy: http, https (CONNECT for https targets), socks4, socks4a, socks5 or socks5h;
    without a scheme, http. The value of a field `Proxy-Authorization` takes the place of a password in
    the URL. Either goes to the proxy alone, and is not shown in the capture."""
    keeps_407: bool = False
    """Whether a proxy that wants another password has responded, as in Scrapy, and not failed."""
    bind: str = ""
    """Local address that the connection is made from; empty: the system's choice."""
    max_body: int | None = None
    """Bytes behind the head that are kept, in place of the limit; 0: any number."""
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
    proxy_authorization: bytes = b""
    bind: str = ""

    def host_and_port(self) -> tuple[str, int]:
        """Return the host without brackets, and the port."""
        return host_and_port(self.authority, default=443 if self.scheme == "https" else 80)


class Message(NamedTuple):
    """A request ready to be sent."""

    route: Route
    data: bytes
    """What is sent."""
    method: str
    repeatable: bool
    """Whether it may be sent again on a fresh connection where a kept one turns out to be dead."""
    keep: bool
    """Whether the request leaves it to the server to keep the connection."""
    for_proxy: bytes = b""
    """The line of `data` that only the proxy is to see."""
    tells_secrets: bool = False
    """Whether the name of a field says that its value is secret."""

    def recorded(self, sent: int, hidden: frozenset[bytes]) -> bytes:
        """Return the first *sent* bytes as they are kept, without *hidden* values and the proxy's."""
        data = self.data if sent >= len(self.data) else self.data[:sent]
        if self.for_proxy:
            # Where not all of the line was sent, what was sent of it is left out, too.
            at = self.data.index(self.for_proxy)
            data = data[:at] + data[at + len(self.for_proxy) :]
        return without_values(data, hidden) if hidden or self.tells_secrets else data


def compose(request: WireRequest, *, policy: TlsPolicy) -> Message:
    """Return the message for *request*.

    Raises NotConnectedError for a URL that cannot be fetched, and UsageError for a field, method or
    proxy that cannot be sent as it is: a line break in one would forge the rest of the message.
    """
    url, method, body = request.wire_url or request.url, request.method, request.body
    parts = _FETCHABLE.fullmatch(url)
    if parts is None:
        raise NotConnectedError(_why_unfetchable(url), Failure.UNFETCHABLE_URL)
    scheme, authority, target = parts.groups()
    way = request.proxy, request.tls or policy, request.bind
    common = _common(scheme, authority, method, tuple(request.fields), way)
    slash = b"" if target[:1] == "/" else b"/"
    length = b""
    if (body or method in _WITH_CONTENT) and not common.tells_length:
        length = b"\r\nContent-Length: %d" % len(body)
    return Message(
        common.route,
        b"".join((common.opening, slash, target.encode(), common.fields, length, b"\r\n\r\n", body)),
        method,
        method in _IDEMPOTENT,
        common.keep,
        common.for_proxy,
        common.tells_secrets,
    )


class _Common(NamedTuple):
    """What all messages with the same fields to one server have in common."""

    route: Route
    opening: bytes
    """What stands before the path: the method, and for a proxy the origin."""
    fields: bytes
    """What follows the path, without the last line end."""
    keep: bool
    for_proxy: bytes
    tells_secrets: bool
    tells_length: bool
    """Whether a field says how long the body is, or that it is chunked."""


# As many as hosts are known by name elsewhere: with more hosts in turn than it holds, it holds none.
@lru_cache(maxsize=16_384)
def _common(
    scheme: str, authority: str, method: str, fields: tuple[tuple[bytes, bytes], ...],
    way: tuple[str, TlsPolicy, str],
) -> _Common:  # fmt: skip
    """Return what every such message has; *way* is proxy, policy and local address.

    Raises as `compose` does.
    """
    proxy_url, policy, bind = way
    if not _VISIBLE.fullmatch(authority):
        raise NotConnectedError(_why_unfetchable(authority), Failure.UNFETCHABLE_URL)
    scheme = scheme.lower()
    if method not in _USUAL_METHODS and not _TOKEN.fullmatch(method):
        raise UsageError(f"{method!r} is not an HTTP method. Use a token such as GET.")
    section = _section(fields)
    authorization = section.authorization
    lines, for_proxy, origin = section.lines, b"", ""
    if b"host" not in section.names:
        lines = b"\r\n".join(filter(None, (b"Host: " + authority.encode(), lines)))
    if proxy_url:
        proxy = proxy_of(proxy_url)
        authorization = authorization or proxy.authorization
        if proxy.takes_plain(scheme):
            origin = f"{scheme}://{authority}"
            if authorization:
                for_proxy = b"Proxy-Authorization: " + authorization + b"\r\n"
    else:
        authorization = b""
    route = Route(scheme, authority.lower(), proxy_url, policy, authorization, bind)
    if route.host_and_port()[1] > HIGHEST_PORT:
        # An event loop may connect to another port, the remainder.
        raise NotConnectedError(f"Its port is greater than {HIGHEST_PORT}.", Failure.UNFETCHABLE_URL)
    return _Common(
        route,
        f"{method} {origin}".encode(),
        b"".join((b" HTTP/1.1\r\n", for_proxy, lines)),
        section.keep,
        for_proxy,
        section.tells_secrets,
        not section.names.isdisjoint((b"content-length", b"transfer-encoding")),
    )


_SECRET = re.compile(
    rb"\n(?:[!-9;-~]*-)?(?:auth|authorization|cookies?|credentials?|jwt|(?:api)?keys?|passwords?|secrets?|"
    rb"session|signature|tokens?)(?:-[!-9;-~]*)?:",
    re.IGNORECASE,
)


def _why_unfetchable(url: str) -> str:
    if not _VISIBLE.fullmatch(url):
        return "The URL has a character that must be percent-encoded."
    if not _URL.fullmatch(url):
        return "The URL is not an http or https URL with a host."
    return "The URL has no host, or its port is not a number."


def without_values(sent: bytes, hidden: frozenset[bytes]) -> bytes:
    """Return what was *sent* of a request, with the values of secret fields replaced.

    Those are its *hidden* fields, and all whose names say so (`Authorization`, `Cookie`, `X-Api-Key`):
    names in which auth, authorization, cookie, credential, jwt, key, password, secret, session,
    signature or token is a word, or with which `apikey` ends.
    """
    head, blank, body = sent.partition(b"\r\n\r\n")
    if not hidden and not _SECRET.search(head):
        return sent
    lines = head.split(b"\r\n")
    for number, line in enumerate(lines[1:], start=1):
        name, colon, _ = line.partition(b":")
        if colon and (name.lower() in hidden or _SECRET.match(b"\n" + line)):
            lines[number] = name + b": redacted"
    return b"\r\n".join(lines) + blank + body


class _Section(NamedTuple):
    """Header fields as they are sent."""

    lines: bytes
    """Without the last line end."""
    names: frozenset[bytes]
    """In lower case."""
    keep: bool
    """Whether the connection may be kept."""
    authorization: bytes
    """The value of a field for the proxy, which is not in the section."""
    tells_secrets: bool
    """Whether a name says that its value is secret."""


@lru_cache(maxsize=256)
def _section(fields: tuple[tuple[bytes, bytes], ...]) -> _Section:
    """Return *fields* as they are sent. Raises UsageError for one that cannot be."""
    lines = [b"%b: %b" % field for field in fields]
    names = [field[0].lower() for field in fields]
    if b"" in names:
        raise UsageError("A header field has no name. Name it, or leave it out.")
    if _NOT_IN_A_FIELD.search(b"".join(lines)):
        raise UsageError(_LINE_BREAK)
    authorization = b""
    while _PROXY_AUTHORIZATION in names:
        at = names.index(_PROXY_AUTHORIZATION)
        authorization = lines[at].partition(b": ")[2]
        del names[at], lines[at]
    keep = b"connection" not in names or not any(
        name.lower() == b"connection" and b"close" in value.lower() for name, value in fields
    )
    joined = b"\r\n".join(lines)
    tells_secrets = _SECRET.search(b"\n" + joined) is not None
    return _Section(joined, frozenset(names), keep, authorization, tells_secrets)
