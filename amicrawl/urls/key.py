"""URL keys: 128 bits that stand for a URL, its host group in the upper half.

    host half = XXH64(group)                  partition, politeness and neighbourhood in one
    path half = XXH64(15 7c 4a 7f b9 79 37 9e, then the text that makes the URL what it is)

The group is the registrable domain of the canonical host, or that host itself. What the path half
hashes depends on the identity that a crawl chose: the whole canonical form, or the whole URL as
written. Files of other software also hold keys of a third kind, made by `seed_key` from a URL that was
merely cut in two. Keys sort by host half, then path half, as unsigned numbers.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh64_intdigest

from amicrawl.urls.canonical import DEFAULT_POLICY, Canonical, Policy, canonical_form
from amicrawl.urls.grammar import octets, text_of
from amicrawl.urls.suffix import registrable_domain

if TYPE_CHECKING:
    # The settings take longer to load than all of this package, and indexers of URLs have none.
    from amicrawl.config import Identity

# In front of the hashed text, not XXH64's own seed: the reciprocal of the golden ratio, little-endian.
_PATH_PREFIX = bytes.fromhex("157c4a7fb979379e")
_AUTHORITY = re.compile(r"[hH][tT][tT][pP][sS]?://([^/?#]*)")
_HOST_END = re.compile(r"[/?#]")


class Grouping(IntEnum):
    """Which hosts share a host key; the numbers are those of frontier files."""

    REGISTRABLE_DOMAIN = 0
    FULL_HOST = 1

    def group(self, host: str) -> str:
        """Return the text behind the host key of *host*, a canonical host."""
        return host if self is Grouping.FULL_HOST else registrable_domain(host)


class UrlKey(NamedTuple):
    """A URL's key: two unsigned 64-bit numbers."""

    host: int
    path: int


def host_key(group: str) -> int:
    """Return the host half for a host group."""
    return xxh64_intdigest(octets(group))


def path_key(text: str) -> int:
    """Return the path half for the *text* that makes a URL what it is."""
    return xxh64_intdigest(_PATH_PREFIX + octets(text))


def url_key(
    url: str | bytes,
    identity: Identity,
    *,
    grouping: Grouping = Grouping.REGISTRABLE_DOMAIN,
    policy: Policy = DEFAULT_POLICY,
) -> UrlKey:
    """Return the key of *url*, an absolute URL, under *identity*.

    A URL that has no canonical form, not even by the extension, cannot be fetched but may have to be
    kept account of: it is keyed as written, its group being what stands where a host should.
    """
    if identity == "canonical":
        form = canonical_form(url, policy=policy)
        if isinstance(form, Canonical):
            return UrlKey(host_key(grouping.group(form.host)), path_key(form.url))
    text = text_of(url)
    match = _AUTHORITY.match(text)
    # A group needs the authority only, and there are far fewer of those than of URLs. Where it ends the
    # text, white space may follow it; there too, the long way knows.
    if match is not None and match.end() < len(text) and len(match[1]) < 512:
        host_half = _authority_host_key(match[1], grouping)
    else:
        host_half = _host_key_of(text, grouping)
    return UrlKey(host_half, path_key(text))


@lru_cache(maxsize=32_768)
def _authority_host_key(authority: str, grouping: Grouping) -> int:
    return _host_key_of(f"http://{authority}/", grouping)


def _host_key_of(text: str, grouping: Grouping) -> int:
    return host_key(host_group(text, grouping=grouping))


def host_group(url: str, *, grouping: Grouping = Grouping.REGISTRABLE_DOMAIN) -> str:
    """Return the text behind the host half of the key of *url*."""
    form = canonical_form(url)
    return grouping.group(form.host) if isinstance(form, Canonical) else raw_split(url)[0]


def raw_split(url: str) -> tuple[str, str]:
    """Cut *url* into host and remainder without looking at either, as `seed_key` wants them.

    What stands behind the first `://` (or all of it) is cut before the first `/`, `?` or `#`; the
    remainder is `/` where nothing is left.
    """
    _, mark, rest = url.partition("://")
    rest = rest if mark else url
    end = _HOST_END.search(rest)
    return (rest, "/") if end is None else (rest[: end.start()], rest[end.start() :])


def seed_key(url: str) -> UrlKey:
    """Return the key that files of other software hold for *url* where it was seeded directly."""
    host, remainder = raw_split(url)
    return UrlKey(host_key(host), path_key(remainder))
