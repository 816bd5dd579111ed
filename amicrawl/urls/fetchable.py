r"""What is fetched for a URL as it was found: the URL itself, with no more encoded than HTTP requires.

Case, order, dots, tracking keys and odd spellings stay, and `Fetchable.url` is the name that the
archive gives the capture. Percent-encoded (as UTF-8) is only what cannot stand in a request by the
grammar of RFC 3986 and RFC 9112: controls, space, DEL, what is not ASCII, and ``" < > \ ^ ` { | }``. So
no URL can forge a header line or a record. A bare percent sign and square brackets are against that
grammar too, but servers get requests for them daily, and encoding would request something else.

`resolve` gives the URL that a redirect leads to. That is a URL as found, like a seed: what can be kept
of its spelling is kept. An absolute one is taken as it stands; a relative one is resolved by RFC 3986,
section 5.2, and keeps empty segments, empty queries and parameters. A user name and password are left
out, since what it gives is archived.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from amicrawl.urls.grammar import WHITE_SPACE, Reason, Refused, merge, octets, text_of
from amicrawl.urls.host import lookup_name

LONGEST_URL = 1 << 20
"""Characters of a URL that is still fetched. Servers give up at a hundredth of it."""

_PLAIN = re.compile(
    r"([hH][tT][tT][pP][sS]?)://(\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)(?::([0-9]{1,4}|[1-5][0-9]{4}))?"
    r"((?:/[!$-;=@A-Z\[\]_a-z~]*)?(?:\?[!$-;=?-Z\[\]_a-z~]*)?)(?:#[!#-;=?-Z\[\]_a-z~]*)?"
)
_START = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?([^/?#]*)")
_UNFIT = re.compile(r'[^!-~]+|["<>\\^`{|}]+')
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMBIGUOUS = str.maketrans({"@": "%40", "[": "%5B", "]": "%5D"})
_DIGITS = re.compile(r"[0-9]*")


class Fetchable(NamedTuple):
    """A URL that can be requested; every text in it is printable ASCII without spaces."""

    url: str
    """The name of what is fetched: the URL as found, with its fragment, what cannot be sent encoded."""
    scheme: str
    """`http` or `https`."""
    host: str
    """For the look-up and the Host field, as written; an IPv6 literal in its brackets."""
    port: int | None
    """None where none is written."""
    request_target: str
    """Path and query; begins with a slash."""
    wire_url: str
    """The same without fragment, for a library that takes URLs; none can read another host out of it."""


# A URL is read by its robots.txt, by its request and for its key, mostly within one turn of the loop.
@lru_cache(maxsize=16)
def fetchable(url: str | bytes) -> Fetchable | Refused:
    """Return what is fetched for *url*. White space around it does not count."""
    text = url if isinstance(url, str) and url.isascii() else text_of(url)
    match = _PLAIN.fullmatch(text) if len(text) <= LONGEST_URL else None
    if match is None:
        return _encoded(text.strip(WHITE_SPACE))
    scheme, host, port, target = match.groups()
    scheme = scheme.lower()
    number = int(port) if port else None
    if not target or target[0] == "?":
        target = "/" + target
    wire_url = f"{scheme}://{host}{target}" if number is None else f"{scheme}://{host}:{number}{target}"
    return Fetchable(text, scheme, host, number, target, wire_url)


def _encoded(text: str) -> Fetchable | Refused:
    """Return what is fetched for any *text*, white space around it removed."""
    if len(text) > LONGEST_URL:
        return Refused(Reason.TOO_LONG)
    start = _START.match(text)
    if start is None:
        return Refused(Reason.NO_SCHEME)
    written_scheme, slashes, authority = start.groups()
    scheme = written_scheme.lower()
    if scheme not in ("http", "https"):
        return Refused(Reason.OTHER_SCHEME)
    if not slashes:
        return Refused(Reason.NO_HOST)
    userinfo, at, named = authority.rpartition("@")
    split = _host_and_port(named)
    if isinstance(split, Refused):
        return split
    host, colon_port, port = split
    rest = _fit(text[start.end() :])
    target = rest.partition("#")[0]
    if not target.startswith("/"):
        target = "/" + target
    userinfo = _fit(userinfo) + at
    # Readers differ over which @ ends the userinfo, and over brackets in it.
    wire_userinfo = userinfo.removesuffix("@").translate(_AMBIGUOUS) + at
    wire_port = "" if port is None else f":{port}"
    return Fetchable(
        url=f"{written_scheme}://{userinfo}{host}{colon_port}{rest}",
        scheme=scheme,
        host=host,
        port=port,
        request_target=target,
        wire_url=f"{scheme}://{wire_userinfo}{host}{wire_port}{target}",
    )


def host_name(written: str) -> str:
    """Return the host name that *written* is, in its one spelling; empty where it is anything else."""
    found = fetchable(f"http://{written}/") if _HOST.fullmatch(written) else None
    if found is None or isinstance(found, Refused) or found.port is not None:
        return ""
    return found.host.lower().removesuffix(".")


_HOST = re.compile(r"\[[^\]]+\]|[^/?#@:\\\s]+")


def without_userinfo(url: str) -> str:
    """Return *url* without the user name and password before its host.

    Whatever becomes a row or a record is archived, so it goes through here: what a page names (`Base`),
    what a spider requests, what the frontier keeps, and what is fetched (`Capture`).
    """
    return _USERINFO.sub(r"\1", url, count=1) if "@" in url else url


def with_scheme(url: str) -> str:
    """Return *url* with a scheme, as a person leaves it away who types `example.org`."""
    return url if "://" in url else f"http://{url}"


_USERINFO = re.compile(
    r"^([\x00-\x20]*(?:[a-z][a-z0-9+.\-]*:[/\\]|[/\\]{2})[/\\]*)[^/?#\\]*@", re.IGNORECASE
)


def _host_and_port(named: str) -> tuple[str, str, int | None] | Refused:
    """Split *named* into the host to look up, the port as written with its colon, and its number."""
    if named.startswith("["):
        literal, bracket, colon_port = named[1:].partition("]")
        host = f"[{literal}]"
        # A zone names an interface of this machine, which no URL from elsewhere can know.
        if not bracket or "%" in literal or not _is_ipv6(literal) or colon_port[:1] not in ("", ":"):
            return Refused(Reason.MALFORMED_HOST)
    else:
        written, colon, port = named.partition(":")
        colon_port = colon + port
        looked_up = _name(written)
        if isinstance(looked_up, Refused):
            return looked_up
        host = looked_up
    if not _DIGITS.fullmatch(colon_port[1:]):
        return Refused(Reason.MALFORMED_PORT)
    if len(colon_port) < 2:
        return host, colon_port, None
    significant = colon_port[1:].lstrip("0") or "0"
    if len(significant) > 5 or int(significant) > 65_535:
        return Refused(Reason.PORT_OUT_OF_RANGE)
    return host, colon_port, int(significant)


def _name(written: str) -> str | Refused:
    if not written:
        return Refused(Reason.NO_HOST)
    if "%" in written:
        if _MALFORMED_ESCAPE.search(written):
            return Refused(Reason.MALFORMED_HOST)
        written = text_of(unquote_to_bytes(octets(written)))
    return lookup_name(written)


def _is_ipv6(literal: str) -> bool:
    try:
        IPv6Address(literal)
    except AddressValueError:
        return False
    return True


def _fit(text: str) -> str:
    """Percent-encode what cannot stand in a request."""
    return _UNFIT.sub(lambda match: quote_from_bytes(octets(match[0]), safe=""), text)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BASE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(//[^/?#]*)?([^?#]*)(\?[^#]*)?")
_ROOTED = re.compile(r"(?!//|[^?]*/\.)/[!\"$->@-~]*+(?:\?[!\"$-~]*+)?\Z")
"""An absolute path without dot segments, in printable ASCII, with or without a query."""
_STRAY_OCTET = re.compile("[\udc80-\udcff]")


def resolve(base: str, location: str | bytes) -> str:
    """Return the URL that *location* means in a response from *base*, without its fragment.

    An octet that is not UTF-8 comes back percent-encoded, so the result can always be written down.
    """
    return Base(base).resolve(location)


class Base:
    """A URL, parsed once, for all references that are resolved against it."""

    __slots__ = ("_authority", "_origin", "_path", "_query", "_scheme")

    def __init__(self, url: str) -> None:
        text = (url if url.isascii() else text_of(url)).strip(WHITE_SPACE)
        page = _BASE.match(without_userinfo(text) if "@" in text else text)
        self._scheme, self._authority, self._path, self._query = page.groups("") if page else [""] * 4
        origin = self._scheme + self._authority
        self._origin = origin if origin.isascii() else _written(origin)

    def resolve(self, location: str | bytes) -> str:
        """Return the URL that *location* means here, as `resolve` does."""
        if isinstance(location, str) and self._origin and _ROOTED.match(location):
            # Most references: a path that needs nothing but the origin before it.
            return self._origin + location
        text = text_of(location).strip(WHITE_SPACE).partition("#")[0]
        return _written(without_userinfo(self._resolved(text)))

    def _resolved(self, text: str) -> str:
        if not self._scheme or _SCHEME.match(text):
            return text
        if text.startswith("//"):
            return self._scheme + text
        origin = self._scheme + self._authority
        if not text:
            return f"{origin}{self._path}{self._query}"
        relative, mark, rest = text.partition("?")
        path = _without_dot_segments(merge(self._path, relative)) if relative else self._path
        return f"{origin}{path}{mark}{rest}"


def _written(url: str) -> str:
    """Return *url* with octets that are not UTF-8 percent-encoded."""
    if url.isascii():
        return url
    return _STRAY_OCTET.sub(lambda match: f"%{ord(match[0]) - 0xDC00:02X}", url)


def _without_dot_segments(path: str) -> str:
    # Not `path.remove_dot_segments`: that one drops an empty segment that RFC 3986 would keep, because
    # the keys of existing frontier files do.
    kept: list[str] = []
    segments = path.removeprefix("/").split("/")
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
