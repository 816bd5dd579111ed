"""Selection: which URLs a crawl takes of those that it finds, and the rule that decided. Pure.

    requisite?  ->  scope  ->  ignores  ->  shape

Every result names its rule, since the question that comes later is why a page is there, or is not.

The shape of a URL gives away by itself, as one of a host's calendars and shops does not, what only a
loop can have generated:

    http://example.org/a/b/a/b/a/b/a/b     a relative link that leads ever deeper
    http://example.org/login?back=%252525  an address that wraps itself
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.discovery.ignores import IgnoreSet
from amicrawl.discovery.kinds import Kind
from amicrawl.discovery.scope import Scope
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.config import CrawlConfig


class Shape(StrEnum):
    """What is wrong with a URL, worded to follow "trap: "."""

    TOO_LONG = "it is longer than a URL that a person made"
    TOO_DEEP = "its path has too many segments"
    REPEATED_RUN = "its path repeats itself"
    REPEATED_SEGMENT = "one segment occurs too often in its path"
    TOO_MANY_ARGUMENTS = "its query has too many arguments"
    REPEATED_ARGUMENT = "one argument occurs too often in its query"
    NESTED_ESCAPES = "its escapes are escaped again and again"
    NEEDLESS_ESCAPES = "its path escapes what needs no escape"
    NESTED_URLS = "it carries addresses inside addresses"


@dataclass(frozen=True, slots=True)
class ShapeLimits:
    """What a URL may have; 0 switches a limit off."""

    characters: int = 2048
    segments: int = 20
    run_repeats: int = 3
    """Times that a run of segments may stand in a row; a run of numerals may four times as often."""
    longest_run: int = 4
    """Segments of a run that is looked for."""
    segment_repeats: int = 3
    """Times that one segment may occur anywhere; of numerals, any number of times."""
    arguments: int = 24
    argument_repeats: int = 5
    """Times that one argument of a query may occur."""
    nested_escapes: int = 3
    """Times that a percent sign may have been escaped on top of itself."""
    nested_in_path: int = 6
    """Percent signs that may have been escaped in a path, each as often as it was."""
    needless_escapes: int = 6
    """Letters, digits, hyphens, periods, underlines and tildes (RFC 3986, 2.3) of a path that may be
    escaped."""
    nested_urls: int = 3
    """Addresses that may follow the first within the URL, archived pages having one or two."""


_SHAPE_LIMITS = ShapeLimits()

_NESTED_ESCAPE = re.compile(r"%((?:25)++)")
_NEEDLESS_ESCAPE = re.compile(r"(?i)%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)")
_ADDRESS = re.compile(r"(?i)https?(?::|%(?:25)*+3a)(?:/|%(?:25)*+2f)")


def verdict(url: str, *, limits: ShapeLimits = _SHAPE_LIMITS) -> str | None:
    """Return what is wrong with the shape of *url*, a member of `Shape`, or None if nothing is."""
    if limits.characters and len(url) > limits.characters:
        return Shape.TOO_LONG
    start = url.find("/", url.find("://") + 3)
    path, _, query = (url[start:] if start >= 0 else "").partition("#")[0].partition("?")
    wrong = None
    # Most paths have fewer segments than may even be alike.
    if path.count("/") > min(limits.segments, limits.run_repeats, limits.segment_repeats):
        wrong = _of_path(path, limits)
    if wrong is None and query:
        wrong = _of_query(query, limits)
    # Another address in it has a colon, or an escaped one.
    if wrong is None and ("%" in url or url.count(":") > 1):
        wrong = _of_nesting(url, path, limits)
    return wrong


def _of_path(path: str, limits: ShapeLimits) -> Shape | None:
    segments = list(filter(None, path.split("/")))
    if limits.segments and len(segments) > limits.segments:
        return Shape.TOO_DEEP
    if len(segments) <= min(limits.run_repeats, limits.segment_repeats):
        return None
    if limits.run_repeats and _has_run(segments, limits):
        return Shape.REPEATED_RUN
    worded = Counter(segment for segment in segments if not segment.isdigit())
    if limits.segment_repeats and worded and max(worded.values()) > limits.segment_repeats:
        return Shape.REPEATED_SEGMENT
    return None


def _has_run(segments: list[str], limits: ShapeLimits) -> bool:
    """Return whether a run of segments follows upon itself too often; linear in the segments."""
    for length in range(1, limits.longest_run + 1):
        equal = 0
        for place in range(length, len(segments)):
            # As many segments as equal the one *length* before them, so many are part of a repetition.
            equal = equal + 1 if segments[place] == segments[place - length] else 0
            allowed = limits.run_repeats
            if equal >= length * allowed:
                run = segments[place - length + 1 : place + 1]
                if not all(map(str.isdigit, run)) or equal >= length * allowed * 4:
                    return True
    return False


def _of_query(query: str, limits: ShapeLimits) -> Shape | None:
    arguments = query.split("&")
    if limits.arguments and len(arguments) > limits.arguments:
        return Shape.TOO_MANY_ARGUMENTS
    if limits.argument_repeats and len(arguments) > limits.argument_repeats:
        names = Counter(argument.partition("=")[0] for argument in arguments)
        if max(names.values()) > limits.argument_repeats:
            return Shape.REPEATED_ARGUMENT
    return None


def _of_nesting(url: str, path: str, limits: ShapeLimits) -> Shape | None:
    if limits.nested_escapes and "%25" in url:
        deepest = max(len(match[1]) // 2 for match in _NESTED_ESCAPE.finditer(url))
        if deepest > limits.nested_escapes:
            return Shape.NESTED_ESCAPES
    if "%" in path:
        # An address in a query may have been escaped twice in good faith, colons, slashes and all.
        nested = sum(len(match[1]) // 2 for match in _NESTED_ESCAPE.finditer(path))
        if 0 < limits.nested_in_path < nested:
            return Shape.NESTED_ESCAPES
        if 0 < limits.needless_escapes < len(_NEEDLESS_ESCAPE.findall(path)):
            return Shape.NEEDLESS_ESCAPES
    if limits.nested_urls and len(_ADDRESS.findall(url)) - 1 > limits.nested_urls:
        return Shape.NESTED_URLS
    return None


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
        wrong = verdict(url, limits=self.shape)
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
    target = fetchable(start)
    if isinstance(target, Refused):
        return
    # As it is requested: without a slash behind it a host has one, and links name it in lower case.
    scheme, _, rest = target.wire_url.partition("://")
    host, _, path = rest.partition("/")
    directory = path.partition("?")[0].rpartition("/")[0]
    for name in {host, host.lower()}:
        beside = f"{scheme}://{name}/{directory}/" if directory else f"{scheme}://{name}/"
        while (found := ignores.match(beside)) is not None:
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
