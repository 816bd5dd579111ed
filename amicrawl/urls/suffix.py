"""Registrable domains: the public suffix of a host and one label more, by which hosts are grouped.

The list is the one that the installed `publicsuffixlist` package carries, both its sections (the
suffixes of registries, and those of companies that let others have names below their own). Nothing here
goes to the network. A newer list can move a host to another group, and with it the host half of its key.
"""

from __future__ import annotations

from functools import cache, lru_cache
from ipaddress import ip_address
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

from amicrawl.urls.host import lower


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
