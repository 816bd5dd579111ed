"""The canonical form: one spelling for all the URLs that are taken for the same.

It is identity only. A URL is fetched as it was found (`fetchable.py`); what its canonical form decides
is which other URLs count as the same row. The rules: scheme and host in lower case, host names in ASCII
(UTS #46), default ports, userinfo and fragment gone, dot segments resolved, escapes in one spelling,
query freed of tracking keys and sorted. `www.`, path case, trailing slashes, index files and the scheme
are kept apart, unless the `Policy` says otherwise.

The form is idempotent, except where a rule uncovers what an earlier one would have taken: `%2e`
segments (escapes are normalised after dot segments went), a second trailing dot of the host, a host of
which mapping leaves nothing, an empty query key with an empty value, and the foldings of a policy, each
of which is done once.

A decoded key or value of a query is held as text with one character for an octet (Latin-1), because what
it holds need not be UTF-8; comparing such texts compares the octets.

`canonicalize` refuses some URLs that servers respond to: IPv6 literals, host names with underscores or
with hyphens in unusual places, control characters, stray percent signs. Without a form they could be no
row of a frontier. `canonical_form` takes them as they would be fetched and changes no more than the
rules do elsewhere:

* an IPv6 literal is written in its shortest form, in lower-case hexadecimal, in brackets;
* a name that the rules refuse is lower-cased and loses one trailing dot;
* the port is written as a number, the default port not at all; fragment and userinfo go;
* the path loses its dot segments and its escapes are normalised; a percent sign that begins no escape
  stays, so `/%zz` and `/%25zz` are two;
* the query follows the rules.

Pure: no I/O, and nothing here raises on a URL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import IPv6Address
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_to_bytes

from amicrawl.urls.fetchable import Fetchable, fetchable
from amicrawl.urls.fetchable import resolve as resolved_location
from amicrawl.urls.grammar import (
    WHITE_SPACE,
    Authority,
    Reason,
    Reference,
    Refused,
    normalised_path,
    octets,
    parse,
    parse_base,
    remove_dot_segments,
    resolve,
    text_of,
)
from amicrawl.urls.host import canonical_host, known_host

TRACKING = frozenset(
    (
        *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"),
        *("gclid", "fbclid", "msclkid", "mc_eid", "igshid", "yclid", "_ga"),
        *("ref", "ref_src", "ref_url"),
    )
)
"""Query keys that say where a visitor came from, and nothing about the page."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How the URLs of one site are spelled. Keys are matched decoded, and case matters."""

    query_allow: frozenset[str] = frozenset()
    """If not empty, only these query keys stay, and nothing else is dropped."""
    query_deny: frozenset[str] = frozenset()
    """Query keys that are dropped, besides those of `TRACKING`."""
    fold_trailing_slash: bool = False
    fold_index_file: bool = False
    """Drop `index.html` and its like from the end of a path."""
    fold_case: bool = False
    """Lower-case path and query."""
    collapse_slashes: bool = False

    @cached_property
    def allowed(self) -> frozenset[str]:
        """`query_allow` as the query's own octets, one character each."""
        return frozenset(map(_octet_text, self.query_allow))

    @cached_property
    def denied(self) -> frozenset[str]:
        """`TRACKING` and `query_deny` as the query's own octets, one character each."""
        return TRACKING.union(map(_octet_text, self.query_deny))


DEFAULT_POLICY = Policy()


def _octet_text(key: str) -> str:
    return octets(key).decode("latin-1")


# What nearly all URLs look like: nothing to trim or escape, no userinfo, no escapes in the fragment.
_PLAIN_URL = re.compile(
    r"([hH][tT][tT][pP][sS]?)://([A-Za-z0-9.-]+)(?::([0-9]*))?"
    r"((?:/[A-Za-z0-9\-._~$&+,/:;=@!'()*\[\]%]*)?)(?:\?([!-\"$-~]*))?(?:#[!-$&-~]*)?"
)
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LONGEST_REMEMBERED = 2048
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class Canonical(NamedTuple):
    """A canonical form, with the parts that callers need."""

    url: str
    """ASCII: `scheme://host[:port]/path[?query]`."""
    scheme: str
    host: str
    """The host without port; an IPv6 literal, which only the extension knows, keeps its brackets."""
    port: str
    """Digits as written; empty for the default port."""
    extended: bool = False
    """Whether it took the extension to give the URL a form."""


def canonicalize(
    url: str | bytes, *, base: str | bytes | None = None, policy: Policy = DEFAULT_POLICY
) -> Canonical | Refused:
    """Return the canonical form of *url*, a URL or, with *base*, a link on that page.

    A base that is not a URL counts as none.
    """
    text = url if isinstance(url, str) and url.isascii() else text_of(url)
    # A link that needs its base never looks like a whole URL, so those take the short way with any base.
    reference = split_plain(text) or split(text, base=base)
    if isinstance(reference, Refused):
        return reference
    return assemble(reference, policy)


def split_plain(text: str) -> Reference | None:
    """Take *text* apart if it looks like most URLs do; the result equals that of `split`."""
    match = _PLAIN_URL.fullmatch(text)
    if match is None:
        return None
    scheme, host, port, path, query = match.groups()
    if "%" in path and _MALFORMED_ESCAPE.search(path):
        return None
    authority = Authority(True, host, port or "")  # noqa: FBT003 - by position: this runs for every URL
    path = remove_dot_segments(path) if "/." in path else path
    return Reference(scheme.lower(), authority, path, query)


def split(text: str, *, base: str | bytes | None = None) -> Reference | Refused:
    """Take any *text* apart, resolve it against *base* and remove its dot segments."""
    reference = parse(text.strip(WHITE_SPACE))
    if isinstance(reference, Refused):
        return reference
    page = None if base is None else parse_base(text_of(base))
    if isinstance(page, Reference):
        reference = resolve(page, reference)
    if not reference.scheme:
        return Refused(Reason.NO_SCHEME)
    return reference._replace(path=remove_dot_segments(reference.path))


def assemble(reference: Reference, policy: Policy) -> Canonical | Refused:
    """Put the canonical form together from the parts of a URL whose dot segments are gone."""
    scheme, authority, path, query = reference
    default_port = _DEFAULT_PORTS.get(scheme)
    if default_port is None:
        return Refused(Reason.OTHER_SCHEME)
    if authority.ipv6:
        return Refused(Reason.IPV6_LITERAL)
    name = authority.host
    host = known_host(name) if len(name) < 256 else canonical_host(name)
    if isinstance(host, Refused):
        return host
    port = "" if authority.port == default_port else authority.port
    url = f"{scheme}://{host}:{port}" if port else f"{scheme}://{host}"
    url += normalised_path(path, policy)
    if query and (kept := _normalised_query(query, policy)):
        url += "?" + kept
    return Canonical(url, scheme, host, port)


MOST_PIECES = 10_000
"""A query of more pieces than this is dropped whole: sorting it would be an attacker's pleasure."""

# Text that is its own decoded form and its own escaped form, as nearly all of the web's keys are.
_PLAIN_PIECE = re.compile(r"[A-Za-z0-9\-._~]*")


def _normalised_query(query: str, policy: Policy) -> str:
    """Return *query* in its one spelling, without the question mark; empty where nothing is left."""
    if not query or query.count("&") >= MOST_PIECES:
        return ""
    pairs = []
    allowed, denied = policy.allowed, policy.denied
    for piece in query.split("&"):
        # A semicolon once separated pairs; whether this one does is unknown.
        if not piece or ";" in piece:
            continue
        pair = _pair(piece)
        if pair is not None and (pair[0] in allowed if allowed else pair[0] not in denied):
            pairs.append(pair)
    if len(pairs) > 1:
        pairs.sort()
    spelled = "&".join(
        [f"{_escaped(key)}={_escaped(value)}" if value else _escaped(key) for key, value in pairs]
    )
    return spelled.lower() if policy.fold_case else spelled


def _pair(piece: str) -> tuple[str, str] | None:
    """Decode one piece; None where an escape in it is malformed."""
    key, _, value = piece.partition("=")
    if _PLAIN_PIECE.fullmatch(key) and _PLAIN_PIECE.fullmatch(value):
        return key, value
    if _MALFORMED_ESCAPE.search(piece):
        return None
    return _decoded(key), _decoded(value)


def _decoded(text: str) -> str:
    return unquote_to_bytes(octets(text.replace("+", " "))).decode("latin-1")


def _escaped(text: str) -> str:
    return text if _PLAIN_PIECE.fullmatch(text) else quote_plus(text, encoding="latin-1")


_ZEROS = re.compile(r"(?<![0-9a-f])0(?::0)+(?![0-9a-f])")


def canonical_form(
    url: str | bytes, *, base: str | bytes | None = None, policy: Policy = DEFAULT_POLICY
) -> Canonical | Refused:
    """Return the canonical form of *url* by the rules or, where they refuse, by the extension.

    The refusal of what cannot be fetched is that of the rules.
    """
    # What is longer is seldom honest, and would fill the memory.
    if base is None and policy is DEFAULT_POLICY and len(url) <= _LONGEST_REMEMBERED:
        return _remembered(url)
    return _canonical_form(url, base, policy)


def _canonical_form(
    url: str | bytes, base: str | bytes | None = None, policy: Policy = DEFAULT_POLICY
) -> Canonical | Refused:
    strict = canonicalize(url, base=base, policy=policy)
    if isinstance(strict, Canonical):
        return strict
    found = fetchable(url if base is None else resolved_location(text_of(base), url))
    return strict if isinstance(found, Refused) else _extended(found, policy)


# A link is read for its key, and again when the frontier weighs it: with those of its page at most.
_remembered = lru_cache(maxsize=1024)(_canonical_form)


def _extended(found: Fetchable, policy: Policy) -> Canonical:
    host = _shortest(found.host) if found.host.startswith("[") else _name(found.host)
    port = "" if found.port is None else str(found.port)
    if port == _DEFAULT_PORTS[found.scheme]:
        port = ""
    path, _, query = found.request_target.partition("?")
    url = f"{found.scheme}://{host}:{port}" if port else f"{found.scheme}://{host}"
    url += normalised_path(remove_dot_segments(path), policy)
    if kept := _normalised_query(query, policy):
        url += "?" + kept
    return Canonical(url, found.scheme, host, port, extended=True)


def _name(host: str) -> str:
    canonical = canonical_host(host)
    return host.lower().removesuffix(".") if isinstance(canonical, Refused) else canonical


def _shortest(literal: str) -> str:
    """Return the IPv6 *literal* in brackets by RFC 5952, section 4, all of it in hexadecimal."""
    # Not str(IPv6Address): Python 3.13 began to write mapped IPv4 addresses in another way.
    number = int(IPv6Address(literal[1:-1]))
    groups = ":".join([f"{number >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)])
    longest = max(_ZEROS.finditer(groups), key=lambda zeros: len(zeros[0]), default=None)
    if longest is not None:
        groups = f"{groups[: longest.start()].rstrip(':')}::{groups[longest.end() :].lstrip(':')}"
    return f"[{groups}]"
