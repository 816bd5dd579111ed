"""Registrable domains: the public suffix of a host and one label more, by which hosts are grouped.

The list is the one that the installed `publicsuffixlist` package carries, both its sections (the
suffixes of registries, and those of companies that let others have names below their own). It is read
from that package's file once, when first asked; nothing here goes to the network. A newer list can move
a host to another group, and with it the host half of its key.
"""

from __future__ import annotations

from functools import cache, lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from publicsuffixlist import PSLFILE

from amicrawl.urls.host import lower

if TYPE_CHECKING:
    from collections.abc import Iterable


class Rules(NamedTuple):
    """A public suffix list, by kind of rule; labels beyond ASCII in their ACE form."""

    exact: frozenset[str]
    wildcards: frozenset[str]
    """What stands behind the `*.` of a rule."""
    exceptions: frozenset[str]
    """What stands behind the `!` of a rule."""
    depth: int
    """Labels of the longest rule."""

    @classmethod
    def read(cls, lines: Iterable[str]) -> Rules:
        """Read *lines* in the list's own format; a rule ends at the first white space."""
        exact, wildcards, exceptions, depth = set(), set(), set(), 1
        for line in lines:
            words = line.split(None, 1)
            if not words or words[0].startswith("//"):
                continue
            rule = ".".join(map(_ace, words[0].lower().split(".")))
            depth = max(depth, rule.count(".") + 1)
            if rule.startswith("!"):
                exceptions.add(rule[1:])
            elif rule.startswith("*."):
                wildcards.add(rule[2:])
            else:
                exact.add(rule)
        return cls(frozenset(exact), frozenset(wildcards), frozenset(exceptions), depth)

    def registrable_domain(self, host: str) -> str | None:
        """Return the registrable domain of *host*, or None where it is a public suffix itself."""
        # The rest of a host with a million labels has no say.
        labels = host.rsplit(".", self.depth + 1)
        listed, suffix = 1, ""
        for count, label in enumerate(reversed(labels), 1):
            parent, suffix = suffix, f"{label}.{suffix}" if suffix else label
            if suffix in self.exceptions:
                listed = count - 1
                break
            if suffix in self.exact or (parent and parent in self.wildcards):
                listed = count
        return ".".join(labels[-listed - 1 :]) if len(labels) > listed else None


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
    return installed_rules().registrable_domain(host) or host


@cache
def installed_rules() -> Rules:
    """Return the list of the installed package."""
    with Path(PSLFILE).open(encoding="utf-8") as lines:
        return Rules.read(lines)


def _is_address(host: str) -> bool:
    if not (host[-1].isdigit() or ":" in host):
        return False
    try:
        return "%" not in str(ip_address(host))
    except ValueError:
        return False


def _ace(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
