r"""What is fetched for a URL as it was found: the URL itself, with no more encoded than HTTP requires.

Case, order, dots, tracking keys and odd spellings stay, and `Fetchable.url` is the name that the
archive gives the capture. Percent-encoded (as UTF-8) is only what cannot stand in a request by the
grammar of RFC 3986 and RFC 9112: controls, space, DEL, what is not ASCII, and ``" < > \ ^ ` { | }``. So
no URL can forge a header line or a record. A bare percent sign and square brackets are against that
grammar too, but servers are asked for them daily, and encoding would ask for something else.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from amicrawl.urls.host import lookup_name
from amicrawl.urls.octets import WHITE_SPACE, octets, text_of
from amicrawl.urls.refusal import Reason, Refused

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
    """A URL that can be asked for; every text in it is printable ASCII without spaces."""

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


def fetchable(url: str | bytes) -> Fetchable | Refused:
    """Return what is fetched for *url*. White space around it does not count."""
    text = text_of(url)
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


def without_userinfo(url: str) -> str:
    """Return *url* without the user name and password before its host."""
    return _USERINFO.sub(r"\1", url, count=1)


_USERINFO = re.compile(r"^([a-z][a-z0-9+.\-]*:[/\\]+)[^/?#\\]*@", re.IGNORECASE)


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
