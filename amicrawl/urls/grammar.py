"""Taking a URL reference apart and resolving it, as RFC 3986 reads once its loose ends are tied.

`parse` decides what counts as a URL at all; `resolve` is RFC 3986, section 5.2.2, with the strict
treatment of a scheme. Neither looks at whether scheme and host make sense: `canonical.py` does. Why one
has no such reading is a `Refused`: a result like any other, so it is a value, and nothing in this room
raises on a URL.

URLs arrive as bytes that claim to be UTF-8. As text, an octet that is not part of valid UTF-8 is kept
as the lone surrogate that Python's `surrogateescape` makes of it (U+DC80 to U+DCFF), so nothing is
lost. Any other lone surrogate stands for no octet at all and counts as U+FFFD, as it does in browsers.

A path is escaped, then freed of dot segments, then its escapes are normalised; the order is part of the
rules. What an escape hid is not looked at again, so `/a/%2e%2e/b` ends as `/a/../b`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

if TYPE_CHECKING:
    from amicrawl.urls.canonical import Policy


WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""The characters with the Unicode property White_Space: what is trimmed from both ends of a URL."""

_STRAY_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def octets(text: str) -> bytes:
    """Return the octets that *text* stands for; never fails."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _STRAY_SURROGATE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def text_of(url: str | bytes) -> str:
    """Return *url* as text in which every lone surrogate stands for one octet that is not UTF-8."""
    if isinstance(url, str):
        if url.isascii():
            return url
        url = octets(url)
    return url.decode("utf-8", "surrogateescape")


class Reason(StrEnum):
    """What is wrong with a URL, worded to follow "refused: "."""

    CONTROL_CHARACTER = "it contains a control character"
    MALFORMED_ESCAPE = "a percent sign is not followed by two hexadecimal digits"
    NO_SCHEME = "it has no scheme, and no usable base to take one from"
    COLON_IN_FIRST_SEGMENT = "a relative reference may not have a colon in its first segment"
    OTHER_SCHEME = "its scheme is neither http nor https"
    NO_HOST = "it names no host"
    MALFORMED_USERINFO = "what stands before the @ is not well-formed"
    MALFORMED_HOST = "its host is not well-formed"
    MALFORMED_PORT = "its port is not a number"
    PORT_OUT_OF_RANGE = "its port is greater than 65535"
    IPV6_LITERAL = "its host is an IPv6 literal"
    HOST_CHARACTER = "its host has a character that host names may not have"
    HYPHEN = "a label of its host has hyphens where none may be"
    LEADING_MARK = "a label of its host begins with a combining mark"
    JOINER = "a zero-width joiner in its host stands where it joins nothing"
    BIDI = "its host breaks the rule for right-to-left names"
    PUNYCODE = "an xn-- label of its host does not decode to a valid name"
    LONG_NAME = "its host is too long to be converted to ASCII"
    TOO_LONG = "it is longer than a URL may be"


@dataclass(frozen=True, slots=True)
class Refused:
    """A URL was looked at and turned down."""

    reason: Reason


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


_TOLERATED = re.compile(r"[A-Za-z0-9\-._~$&+,/:;=@!'()*\[\]%]*")
_SAFE = "$&+,/:;=@"
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_SLASHES = re.compile(r"/{2,}")
_INDEX_FILES = ("index.html", "index.htm", "index.php", "default.asp", "default.aspx")

_NORMAL_ESCAPES = {
    f"%{octet:02X}": chr(octet) if re.match(r"[A-Za-z0-9\-._~]", chr(octet)) else f"%{octet:02X}"
    for octet in range(256)
}


def escaped_path(path: str) -> str:
    """Return *path*, whose escapes are well-formed, with everything escaped that must be.

    One character that must be escaped makes the whole path be decoded and escaped anew, so `!` stays in
    `/a!b` but not in `/a b!`.
    """
    if _TOLERATED.fullmatch(path):
        return path
    return quote_from_bytes(unquote_to_bytes(octets(path)), _SAFE)


def merge(base: str, path: str) -> str:
    """Return the path that *path* means on a page at *base* (RFC 3986, section 5.2.3)."""
    if not path:
        return base
    if path.startswith("/"):
        return path
    return base[: base.rfind("/") + 1] + path


def remove_dot_segments(path: str) -> str:
    """Return *path* without `.` and `..` segments (RFC 3986, section 5.2.4), beginning with a slash.

    Empty segments stay. An empty path stays empty.
    """
    if not path or (path.startswith("/") and "/." not in path):
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".":
            # A slash follows it, so that a segment kept after it is not the first.
            kept = kept or [""]
        elif segment == "..":
            if kept:
                kept.pop()
        else:
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    plain = "/".join(kept)
    return plain if plain.startswith("/") else "/" + plain


def normalised_path(path: str, policy: Policy) -> str:
    """Return the escaped *path* in its one spelling, folded as *policy* says."""
    path = path or "/"
    if "%" in path:
        path = _ESCAPE.sub(lambda match: _NORMAL_ESCAPES[match[0].upper()], path)
    if policy.collapse_slashes:
        path = _SLASHES.sub("/", path)
    if policy.fold_index_file:
        directory, slash, name = path.rpartition("/")
        if name in _INDEX_FILES:
            path = directory + slash
    if policy.fold_trailing_slash and len(path) > 1:
        path = path.removesuffix("/")
    return path.lower() if policy.fold_case else path
