"""Scope: which URLs a crawl takes, by a rule that can be named. Pure.

A URL is on site where one of the positive rules (SURT prefixes, hosts, domains, expressions) holds for
it; what is on site and not too many hops away is in scope. Beside that stand the requisites of what is
fetched, which may lie anywhere, and the seeds themselves. An expression that excludes wins over all of
them. Without a positive rule nothing is on site: a scope that was left empty does not mean the web.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.discovery.expression import Expression
from amicrawl.discovery.kinds import Kind
from amicrawl.errors import UsageError
from amicrawl.urls import Refused, fetchable, host_name, surt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ScopeDecision(NamedTuple):
    """Whether a URL is taken, and why."""

    in_scope: bool
    rule: str
    """The rule that decided and what it says, as `explain` prints it: `host example.org`."""
    on_site: bool = False
    """Whether its address alone puts it inside; this is what its links have as *parent_in_scope*."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The bounds of a crawl. Raises UsageError for a rule that can mean nothing."""

    surts: tuple[str, ...] = ()
    """SURT prefixes: `org,example)/path` for what begins so, `org,example,` for every host of a domain
    without itself, `org,example` for both. The forms `http://(org,example,` and `(org,example)` are
    read as well. SURTs know neither scheme nor `www` nor case."""
    hosts: frozenset[str] = frozenset()
    """Host names, each for itself alone, whatever its scheme and port."""
    domains: frozenset[str] = frozenset()
    """Host names, each with all that lie under it."""
    include: tuple[str, ...] = ()
    """Regular expressions, of which one is found in a URL that is on site."""
    exclude: tuple[str, ...] = ()
    """Regular expressions, of which none is found in a URL that is in scope, seeds included."""
    max_hops: int | None = None
    """Links between a seed and a page, at most; None for any number, 0 takes no link at all."""
    requisites_off_site: bool = True
    """Whether what is fetched brings its requisites from anywhere."""
    links_off_site: bool = False
    """Whether a page that is on site brings the pages it links to from anywhere, and none of theirs."""
    _prefixes: SurtPrefixes = field(init=False, repr=False, compare=False)
    _included: tuple[Expression, ...] = field(init=False, repr=False, compare=False)
    _excluded: tuple[Expression, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prefixes", SurtPrefixes(self.surts))
        object.__setattr__(self, "hosts", frozenset(map(_host, self.hosts)))
        object.__setattr__(self, "domains", frozenset(map(_host, self.domains)))
        object.__setattr__(self, "_included", tuple(map(Expression, self.include)))
        object.__setattr__(self, "_excluded", tuple(map(Expression, self.exclude)))

    def widen(self, seed: str) -> None:
        """Put on site all below the directory of *seed*, with and without `www`, on http and https.

        Raises UsageError where *seed* cannot be fetched.
        """
        self._prefixes.add(_directory(seed))

    def decide(self, url: str, *, kind: Kind, hops: int, parent_in_scope: bool) -> ScopeDecision:
        """Return whether *url* is in scope.

        *hops* counts the links between the seed and it: 0 for a seed, and a requisite has as many as its
        page. *parent_in_scope* says whether the page that named it is on site; a seed has none, and for
        a requisite it is the same: whatever needs it is fetched.
        """
        found = fetchable(url)
        if isinstance(found, Refused):
            return ScopeDecision(in_scope=False, rule=f"not fetchable: {found.reason}")
        site = self._site_rule(found.url, found.host)
        if self._excluded or self.max_hops is not None:
            against = self._rule_against(found.url, hops)
            if against:
                return ScopeDecision(in_scope=False, rule=against, on_site=bool(site))
        if hops == 0 and kind is Kind.LINK:
            return ScopeDecision(in_scope=True, rule="seed", on_site=True)
        if site:
            return ScopeDecision(in_scope=True, rule=site, on_site=True)
        beyond = self._rule_beyond(kind, parent_in_scope=parent_in_scope)
        return ScopeDecision(in_scope=bool(beyond), rule=beyond or "off site")

    def _rule_against(self, url: str, hops: int) -> str:
        """Return the rule that keeps *url* out even where it is on site, or an empty text."""
        for rule in self._excluded:
            if rule.found_in(url):
                return f"exclude {rule.text}"
        if self.max_hops is not None and hops > self.max_hops:
            return f"hops {hops}, more than {self.max_hops}"
        return ""

    def _rule_beyond(self, kind: Kind, *, parent_in_scope: bool) -> str:
        """Return the rule that lets a page bring what is off site, or an empty text."""
        if kind is Kind.REQUISITE:
            return "requisite of what is fetched" if self.requisites_off_site else ""
        return "linked from a page on site" if self.links_off_site and parent_in_scope else ""

    def _site_rule(self, url: str, host: str) -> str:
        """Return the rule that puts *url* on site, or an empty text."""
        name = host.lower().removesuffix(".")
        if name in self.hosts:
            return f"host {name}"
        if self.domains:
            domain = name
            while domain:
                if domain in self.domains:
                    return f"domain {domain}"
                domain = domain.partition(".")[2]
        if self._prefixes.sorted:
            prefix = self._prefixes.find(surt(url))
            if prefix is not None:
                return f"surt {prefix}"
        for rule in self._included:
            if rule.found_in(url):
                return f"include {rule.text}"
        return ""


def _host(written: str) -> str:
    host = host_name(written.strip())
    if not host:
        raise UsageError(f"{written!r} is not a host name: write it without scheme, port and path")
    return host


def _directory(seed: str) -> str:
    found = fetchable(seed)
    if isinstance(found, Refused):
        raise UsageError(f"{seed!r} cannot be fetched: {found.reason}")
    path = found.request_target.partition("?")[0]
    directory = f"{path.rpartition('/')[0]}/"
    # A SURT ends without slash; the one put back keeps /~ann from taking /~anna with it.
    key = surt(f"{found.scheme}://{found.wire_url.partition('://')[2].partition('/')[0]}{directory}")
    return key if key.endswith(")/") else f"{key}/"


class SurtPrefixes:
    """A set of SURT prefixes. Looking takes the logarithm of their number."""

    def __init__(self, written: Iterable[str] = ()) -> None:
        """Take the prefixes *written*; raises UsageError as `add` does."""
        self.sorted: list[str] = []
        """The prefixes in order, none of which begins another."""
        for prefix in written:
            self.add(prefix)

    def __iter__(self) -> Iterator[str]:
        return iter(self.sorted)

    def add(self, written: str) -> None:
        """Add `org,example)/path`, `org,example,` (every host below) or `org,example` (with itself).

        The forms `http://(org,example,` and `(org,example)` are read as well. Raises UsageError for any
        other text.
        """
        prefix = _prefix(written)
        if ")" in prefix or prefix.endswith(","):
            self._add(prefix)
            return
        # Without an end to its last label it would take other names that begin with it.
        for end in ",):":
            self._add(prefix + end)

    def find(self, surt: str) -> str | None:
        """Return the prefix that *surt* begins with, or None."""
        place = bisect_right(self.sorted, surt)
        if place and surt.startswith(self.sorted[place - 1]):
            return self.sorted[place - 1]
        return None

    def _add(self, prefix: str) -> None:
        if self.find(prefix) is not None:
            return
        # Those that begin with the new one stand behind it, one after the other.
        first = last = bisect_left(self.sorted, prefix)
        while last < len(self.sorted) and self.sorted[last].startswith(prefix):
            last += 1
        del self.sorted[first:last]
        insort(self.sorted, prefix)


def _prefix(written: str) -> str:
    prefix = written.strip().lower()
    prefix = prefix.removeprefix("http://").removeprefix("https://").removeprefix("(")
    if not prefix or prefix[0] in ",)/" or "." in prefix.partition(")")[0]:
        raise UsageError(
            f"{written!r} is not a SURT prefix: labels go from the right and end in commas, as in "
            "org,example, or org,example)/path"
        )
    return prefix
