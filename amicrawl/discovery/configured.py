"""The selection that a configuration asks for, and whether it says by itself what is on site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.discovery.ignores import IgnoreSet
from amicrawl.discovery.scope import Scope
from amicrawl.discovery.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.config import CrawlConfig


def has_scope(config: CrawlConfig) -> bool:
    """Tell whether *config* itself says what is on site; if not, the start URLs do."""
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
    """Return the rules of a crawl from *starts*, of ArchiveBot's two depths `inf` and `shallow`.

    Raises UsageError for a rule, a pattern or a start URL that can mean nothing.
    """
    scope = Scope(
        surts=config.surts,
        hosts=frozenset(config.hosts),
        domains=frozenset(config.domains),
        include=config.include,
        exclude=config.exclude,
        max_hops=0 if depth == "shallow" else config.max_hops,
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
    return Selection(scope=scope, ignores=ignores, requisites=config.requisites)
