"""Taking a URL reference apart and resolving it, as RFC 3986 reads once its loose ends are tied.

`parse` decides what counts as a URL at all; `resolve` is RFC 3986, section 5.2.2, with the strict
treatment of a scheme. Neither looks at whether scheme and host make sense: `canonical.py` does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from amicrawl.urls.octets import octets, text_of
from amicrawl.urls.path import escaped_path, merge, remove_dot_segments
from amicrawl.urls.refusal import Reason, Refused

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USERINFO = re.compile(r"(?:[A-Za-z0-9\-._:~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})*")
# Escapes may hide only what is not ASCII, or a host could be spelled in many ways; %25 introduces the
# zone of an IPv6 literal (RFC 6874). What is let through here and no name may have goes at conversion.
_HOST = re.compile(r"(?:[^\x00-\x20#%/?@\\^`{|}\x7f\[]|%[89A-Fa-f][0-9A-Fa-f]|%25)*")
_PORT = re.compile(r":[0-9]*")


class Authority(NamedTuple):
    """The part of a URL that names a host."""

    given: bool
    """Whether there is one: a lone `//` is none, `//:80` and `//@` are."""
    host: str = ""
    """The name with its escapes decoded; of an IPv6 literal, what stands between the brackets."""
    port: str = ""
    """The digits after the colon, as written."""
    ipv6: bool = False


NO_AUTHORITY = Authority(given=False)


class Reference(NamedTuple):
    """A URL or relative reference, taken apart; userinfo and fragment were looked at and dropped."""

    scheme: str
    """Lower case; empty for a relative reference."""
    authority: Authority
    path: str
    """With everything escaped that must be."""
    query: str | None
    """As written; None where there is no question mark."""


def parse(text: str) -> Reference | Refused:
    """Take *text* apart, white space and all."""
    text, _, fragment = text.partition("#")
    if _CONTROL.search(text):
        return Refused(Reason.CONTROL_CHARACTER)
    if _MALFORMED_ESCAPE.search(fragment):
        return Refused(Reason.MALFORMED_ESCAPE)
    match = _SCHEME.match(text)
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else ("", text)
    rest, mark, query = rest.partition("?")
    return _hierarchy(scheme, rest, query if mark else None)


def _hierarchy(scheme: str, rest: str, query: str | None) -> Reference | Refused:
    """Take *rest*, what stands between scheme and query, apart."""
    authority = NO_AUTHORITY
    if not rest.startswith("/"):
        if scheme:
            # An opaque URL ("mailto:x", "http:x") names no host, and no path that could be merged with.
            return Reference(scheme, NO_AUTHORITY, "", query)
        if ":" in rest.partition("/")[0]:
            return Refused(Reason.COLON_IN_FIRST_SEGMENT)
    # Without a scheme, three slashes begin a path; with one, they are an empty authority.
    elif rest.startswith("//") and (scheme or not rest.startswith("///")):
        named, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        parsed = parse_authority(named)
        if isinstance(parsed, Refused):
            return parsed
        authority = parsed
    if _MALFORMED_ESCAPE.search(rest):
        return Refused(Reason.MALFORMED_ESCAPE)
    return Reference(scheme, authority, escaped_path(rest), query)


def parse_authority(text: str) -> Authority | Refused:
    """Take *text*, what stands between `//` and the next `/`, `?` or `#`, apart."""
    userinfo, at, named = text.rpartition("@")
    if at and not _USERINFO.fullmatch(userinfo):
        return Refused(Reason.MALFORMED_USERINFO)
    if named.startswith("["):
        return _ipv6_authority(named)
    host, colon, port = named.partition(":")
    if colon and not _PORT.fullmatch(colon + port):
        return Refused(Reason.MALFORMED_PORT)
    if not _HOST.fullmatch(host):
        return Refused(Reason.MALFORMED_HOST)
    if "%" in host:
        host = text_of(unquote_to_bytes(octets(host)))
    return Authority(bool(text), host, port)


def _ipv6_authority(named: str) -> Authority | Refused:
    literal, bracket, port = named[1:].rpartition("]")
    if not bracket:
        return Refused(Reason.MALFORMED_HOST)
    if port and not _PORT.fullmatch(port):
        return Refused(Reason.MALFORMED_PORT)
    try:
        # A zone stands behind %25; decoded, it is what ipaddress reads as a scope.
        IPv6Address(literal.replace("%25", "%", 1))
    except AddressValueError:
        return Refused(Reason.MALFORMED_HOST)
    return Authority(given=True, host=literal, port=port[1:], ipv6=True)


@lru_cache(maxsize=64)
def parse_base(text: str) -> Reference | Refused:
    """Take a base apart; a page's links all have the same, so the last few are remembered."""
    return parse(text)


def resolve(base: Reference, reference: Reference) -> Reference:
    """Return what *reference* means on the page *base*."""
    scheme, authority, path, query = reference
    if scheme or authority.given:
        return Reference(scheme or base.scheme, authority, remove_dot_segments(path), query)
    if not path and query is None:
        query = base.query
    return Reference(base.scheme, base.authority, remove_dot_segments(merge(base.path, path)), query)
