"""URL keys: 128 bits that stand for a URL, its host group in the upper half.

    host half = XXH64(group)                  partition, politeness and neighbourhood in one
    path half = XXH64(15 7c 4a 7f b9 79 37 9e, then the text that makes the URL what it is)

The group is the registrable domain of the canonical host, or that host itself. What the path half
hashes depends on the identity that a crawl chose: the whole canonical form, or the whole URL as
written. Files of other software also hold keys of a third kind, made by `seed_key` from a URL that was
merely cut in two. Keys sort by host half, then path half, as unsigned numbers.

The registrable domain of a host is its public suffix and one label more. The list is the one that the
installed `publicsuffixlist` package carries, both its sections (the suffixes of registries, and those of
companies that let others have names below their own). Nothing here goes to the network. A newer list can
move a host to another group, and with it the host half of its key.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache, lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from publicsuffixlist import PSLFILE, PublicSuffixList
from xxhash import xxh64_intdigest

from amicrawl.urls.canonical import DEFAULT_POLICY, Canonical, Policy, canonical_form
from amicrawl.urls.grammar import octets, text_of
from amicrawl.urls.host import lower

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
    return xxh64_intdigest(_PATH_PREFIX + (text.encode() if text.isascii() else octets(text)))


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
            host = form.host
            host_half = _group_key(host, grouping) if len(host) < 256 else host_key(grouping.group(host))
            return UrlKey(host_half, path_key(form.url))
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
def _group_key(host: str, grouping: Grouping) -> int:
    return host_key(grouping.group(host))


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


def registrable_domain(host: str) -> str:
    """Return the registrable domain of *host*, lower case and without its trailing dot.

    Where there is none, *host* is its own: a public suffix, an IP address, a name with an empty label.
    The last label of a name that no rule covers is its public suffix.
    """
    # What is longer than DNS allows is hostile, and would fill the memory.
    return _remembered(host) if len(host) < 256 else _registrable_domain(host)


@lru_cache(maxsize=16_384)
def _remembered(host: str) -> str:
    return _registrable_domain(host)


def _registrable_domain(host: str) -> str:
    host = lower(host).removesuffix(".")
    if not host or host[0] == "." or host[-1] == "." or ".." in host or _is_address(host):
        return host
    return _installed_list().privatesuffix(covered_by_rules(host)) or host


def covered_by_rules(host: str) -> str:
    """Return the name by which the package finds the rule of *host*.

    The package takes `compute.example` for a public suffix where only `*.compute.example` is in the
    list. No rule says so: such a name belongs to its parent.
    """
    return host.partition(".")[2] if host in _parents_of_wildcards() else host


@cache
def exceptions() -> frozenset[str]:
    """Return the names of the list's exceptions (`!name`), in ACE form."""
    return frozenset(_ace(rule[1:]) for rule in _rules() if rule.startswith("!"))


@cache
def _parents_of_wildcards() -> frozenset[str]:
    rules = _rules()
    parents = [rule.removeprefix("*.") for rule in rules if rule.startswith("*.")]
    return frozenset(_ace(name) for name in parents if not {name, f"*.{name.partition('.')[2]}"} & rules)


def _rules() -> frozenset[str]:
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        return frozenset(line.split()[0] for line in lines if line.strip())


def _ace(name: str) -> str:
    return name.lower().encode("idna").decode()


@cache
def _installed_list() -> PublicSuffixList:
    return PublicSuffixList()


def _is_address(host: str) -> bool:
    if not (host[-1].isdigit() or ":" in host):
        return False
    try:
        return "%" not in str(ip_address(host))
    except ValueError:
        return False


_MULTIPLIER = 2862933555777941757
_MASK = 0xFFFF_FFFF_FFFF_FFFF


def shard_of(host: int, shards: int, salt: int = 0) -> int:
    """Return the shard, from 0, of the host key *host* among *shards*; 0 for fewer than two.

    Hosts are dealt out, not URLs, so that a host is contacted by one process only. The rule is jump
    consistent hashing (Lamping and Veach, 2014), which a partition map uses too: of n + 1 shards, the
    new one takes its part from all the others and nothing moves between those, so that a crawl continued
    on one more machine contacts few hosts twice. Changing it would tear running crawls apart: its values
    are pinned.

    Where the hosts are few, or some have most of the URLs, chance divides the work badly: of six hosts
    one of two shards may have five. With a *salt* it is another rule of the same kind, and of some
    dozens one divides known hosts evenly.
    """
    shard, following = 0, 0
    host ^= salt
    while following < shards:
        shard = following
        host = (host * _MULTIPLIER + 1) & _MASK
        following = int((shard + 1) * (2**31 / ((host >> 33) + 1)))
    return shard
