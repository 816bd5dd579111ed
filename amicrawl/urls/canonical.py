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

`canonicalize` refuses what the rules do not cover. Some of that can be fetched all the same;
`identity.py` has the extension that gives it a form. Pure: no I/O, and nothing here raises on a URL.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from amicrawl.urls import path as paths
from amicrawl.urls import query as queries
from amicrawl.urls.grammar import Authority, Reference, parse, parse_base, resolve
from amicrawl.urls.host import canonical_host
from amicrawl.urls.octets import WHITE_SPACE, text_of
from amicrawl.urls.policy import DEFAULT_POLICY, Policy
from amicrawl.urls.refusal import Reason, Refused

# What nearly all URLs look like: nothing to trim or escape, no userinfo, no escapes in the fragment.
_PLAIN = re.compile(
    r"([hH][tT][tT][pP][sS]?)://([A-Za-z0-9.-]+)(?::([0-9]*))?"
    r"((?:/[A-Za-z0-9\-._~$&+,/:;=@!'()*\[\]%]*)?)(?:\?([!-\"$-~]*))?(?:#[!-$&-~]*)?"
)
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class Canonical(NamedTuple):
    """A canonical form, with the parts that others ask for."""

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
    text = text_of(url)
    # A link that needs its base never looks like a whole URL, so those take the short way with any base.
    reference = split_plain(text) or split(text, base=base)
    if isinstance(reference, Refused):
        return reference
    return assemble(reference, policy)


def split_plain(text: str) -> Reference | None:
    """Take *text* apart if it looks like most URLs do; the result equals that of `split`."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    scheme, host, port, path, query = match.groups()
    if "%" in path and _MALFORMED_ESCAPE.search(path):
        return None
    authority = Authority(True, host, port or "")  # noqa: FBT003 - by position: this runs for every URL
    return Reference(scheme.lower(), authority, paths.remove_dot_segments(path), query)


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
    return reference._replace(path=paths.remove_dot_segments(reference.path))


def assemble(reference: Reference, policy: Policy) -> Canonical | Refused:
    """Put the canonical form together from the parts of a URL whose dot segments are gone."""
    scheme, authority, path, query = reference
    default_port = _DEFAULT_PORTS.get(scheme)
    if default_port is None:
        return Refused(Reason.OTHER_SCHEME)
    if authority.ipv6:
        return Refused(Reason.IPV6_LITERAL)
    host = canonical_host(authority.host)
    if isinstance(host, Refused):
        return host
    port = "" if authority.port == default_port else authority.port
    url = f"{scheme}://{host}:{port}" if port else f"{scheme}://{host}"
    url += paths.normalised(path, policy)
    if query and (kept := queries.normalised(query, policy)):
        url += "?" + kept
    return Canonical(url, scheme, host, port)
