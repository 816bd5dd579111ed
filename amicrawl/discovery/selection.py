"""Selection: which URLs a crawl takes of those that it finds, and the rule that decided. Pure.

    requisite?  ->  scope  ->  ignores  ->  shape

Every result names its rule, since the question that comes later is why a page is there, or is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.discovery.ignores import IgnoreSet
from amicrawl.discovery.kinds import Kind
from amicrawl.discovery.scope import Scope
from amicrawl.discovery.shape import ShapeLimits, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.config import CrawlConfig


class Selected(NamedTuple):
    """Whether a URL is taken, and why."""

    is_taken: bool
    by: str
    """Which of the rules it was: `requisites`, `scope`, `ignores` or `shape`."""
    rule: str
    """What it says: `host example.org`, `global: \\.exe$`, `its path repeats itself`."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The rules of one crawl; the ignore patterns may change while it runs."""

    scope: Scope
    ignores: IgnoreSet = field(default_factory=IgnoreSet)
    shape: ShapeLimits = field(default_factory=ShapeLimits)
    requisites: bool = True
    """Whether what a page needs to be shown is taken at all."""
    requisite_hops: int = 5
    """Steps from a page to one of its requisites, at most: sheet, import of the sheet, font of that."""

    def is_on_site(self, url: str, *, hops: int) -> bool:
        """Return whether *url*, so many links from a seed, is in the scope by itself."""
        return self.scope.decide(url, kind=Kind.LINK, hops=hops, parent_in_scope=False).on_site

    def wrong_shape(self, url: str) -> str | None:
        """Return what gives *url* away as a trap, by itself, or None."""
        return verdict(url, limits=self.shape)

    def rule_against_requisite(self, steps: int) -> str:
        """Return what keeps out a requisite so many *steps* from its page, or an empty text."""
        if not self.requisites:
            return "requisites are not fetched"
        if steps > self.requisite_hops:
            return f"{steps} steps from its page, more than {self.requisite_hops}"
        return ""

    def judge(
        self,
        url: str,
        *,
        kind: Kind,
        hops: int,
        parent_on_site: bool,
        primary: str = "",
        steps: int = 1,
    ) -> Selected:
        """Return whether *url* is taken.

        *hops* counts the links between a seed and it, *parent_on_site* says whether the page that named
        it is on site, *primary* is the start URL it comes from, for ignore patterns with placeholders.
        *steps* counts those from a page to a requisite of it.
        """
        if kind is Kind.REQUISITE and (against := self.rule_against_requisite(steps)):
            return Selected(is_taken=False, by="requisites", rule=against)
        within = self.scope.decide(url, kind=kind, hops=hops, parent_in_scope=parent_on_site)
        if not within.in_scope:
            return Selected(is_taken=False, by="scope", rule=within.rule)
        ignored = self.ignores.match(url, primary=primary)
        if ignored is not None:
            rule = f"{ignored.source}: {ignored.expression}" if ignored.source else ignored.expression
            return Selected(is_taken=False, by="ignores", rule=rule)
        wrong = self.wrong_shape(url)
        if wrong is not None:
            return Selected(is_taken=False, by="shape", rule=wrong)
        return Selected(is_taken=True, by="scope", rule=within.rule)


def has_scope(config: CrawlConfig) -> bool:
    """Return whether *config* itself says what is on site; if not, the start URLs do."""
    return bool(config.surts or config.hosts or config.domains or config.include)


def _spare(ignores: IgnoreSet, start: str) -> None:
    """Remove from *ignores* the expressions that match the whole directory of *start*.

    A set is made for sites in general, and does not know which one the operator names: `localhost`, a
    machine in `.local`, a hidden service.
    """
    beside, _, _ = start.partition("?")[0].partition("#")[0].rpartition("/")
    while (found := ignores.match(f"{beside}/")) is not None:
        ignores.remove(found.expression)


def make_selection(config: CrawlConfig, starts: Sequence[str], *, depth: str) -> Selection:
    """Return the rules of a crawl from *starts* to *depth*: `inf`, `shallow` or a number of links.

    `inf` and `shallow` are ArchiveBot's. Raises UsageError for a rule, a pattern or a start URL that can
    mean nothing.
    """
    scope = Scope(
        surts=config.surts,
        hosts=frozenset(config.hosts),
        domains=frozenset(config.domains),
        include=config.include,
        exclude=config.exclude,
        max_hops=config.hops_within(depth),
        requisites_off_site=config.requisites_off_site,
        links_off_site=config.links_off_site and depth != "shallow",
    )
    if not has_scope(config):
        for start in starts:
            scope.widen(start)
    ignores = IgnoreSet.of_sets(*config.ignore_sets)
    for start in starts:
        _spare(ignores, start)
    for pattern in config.ignores:
        ignores.add(pattern, source="AMICRAWL_IGNORES")
    return Selection(
        scope=scope,
        ignores=ignores,
        requisites=config.requisites,
        requisite_hops=config.max_requisite_hops,
    )
