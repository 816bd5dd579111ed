"""The canonical form of everything that can be fetched: the rules, and their extension.

`canonicalize` refuses some URLs that servers answer: IPv6 literals, host names with underscores or with
hyphens in unusual places, control characters, stray percent signs. Without a form they could be no row
of a frontier. The extension takes them as they would be fetched (`fetchable.py`) and changes no more
than the rules do elsewhere:

* an IPv6 literal is written in its shortest form, in lower-case hexadecimal, in brackets;
* a name that the rules refuse is lower-cased and loses one trailing dot;
* the port is written as a number, the default port not at all; fragment and userinfo go;
* the path loses its dot segments and its escapes are normalised; a percent sign that begins no escape
  stays, so `/%zz` and `/%25zz` are two;
* the query follows the rules.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from amicrawl.urls import path as paths
from amicrawl.urls import query as queries
from amicrawl.urls.canonical import Canonical, canonicalize
from amicrawl.urls.fetchable import Fetchable, fetchable
from amicrawl.urls.host import canonical_host
from amicrawl.urls.octets import text_of
from amicrawl.urls.policy import DEFAULT_POLICY, Policy
from amicrawl.urls.redirect import resolve
from amicrawl.urls.refusal import Refused

_ZEROS = re.compile(r"(?<![0-9a-f])0(?::0)+(?![0-9a-f])")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def canonical_form(
    url: str | bytes, *, base: str | bytes | None = None, policy: Policy = DEFAULT_POLICY
) -> Canonical | Refused:
    """Return the canonical form of *url* by the rules or, where they refuse, by the extension.

    The refusal of what cannot be fetched is that of the rules.
    """
    strict = canonicalize(url, base=base, policy=policy)
    if isinstance(strict, Canonical):
        return strict
    found = fetchable(url if base is None else resolve(text_of(base), url))
    return strict if isinstance(found, Refused) else _extended(found, policy)


def _extended(found: Fetchable, policy: Policy) -> Canonical:
    host = _shortest(found.host) if found.host.startswith("[") else _name(found.host)
    port = "" if found.port in (None, _DEFAULT_PORTS[found.scheme]) else str(found.port)
    path, _, query = found.request_target.partition("?")
    url = f"{found.scheme}://{host}:{port}" if port else f"{found.scheme}://{host}"
    url += paths.normalised(paths.remove_dot_segments(path), policy)
    if kept := queries.normalised(query, policy):
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
