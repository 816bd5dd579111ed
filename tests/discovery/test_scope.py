"""Scope: which URLs a crawl takes, and which rule says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from urls.url_strategies import URLS

from amicrawl.config import CrawlConfig
from amicrawl.discovery import Kind, Scope, ScopeDecision
from amicrawl.discovery.selection import make_selection
from amicrawl.errors import UsageError

SITE = Scope(
    surts=("org,example)/docs", "org,other,"),
    hosts=frozenset({"host.example"}),
    domains=frozenset({"domain.example"}),
    include=(r"^https://cdn\.example/own/",),
    exclude=(r"\.iso$",),
    max_hops=3,
)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://example.org/docs/a.html", "surt org,example)/docs"),
        ("https://www.example.org/DOCS/", "surt org,example)/docs"),
        ("https://www.example.org/docsy", "surt org,example)/docs"),
        ("https://a.other.org/", "surt org,other,"),
        ("https://other.org/", None),
        ("https://another.org/", None),
        ("https://example.org/", None),
        ("https://host.example/x", "host host.example"),
        ("http://HOST.example.:8080/x", "host host.example"),
        ("http://sub.host.example/x", None),
        ("http://domain.example/", "domain domain.example"),
        ("http://a.b.Domain.example/", "domain domain.example"),
        ("http://mydomain.example/", None),
        ("https://cdn.example/own/x.js", r"include ^https://cdn\.example/own/"),
        ("https://cdn.example/theirs/x.js", None),
        ("http://host.example@evil.example/", None),
        ("http://evil.example/host.example/", None),
        ("http://evil.example/?u=https://cdn.example/own/", None),
    ],
)
def test_the_rule_that_puts_a_url_on_site_is_named(url: str, rule: str | None) -> None:
    decision = SITE.decide(url, kind=Kind.LINK, hops=1, parent_in_scope=True)
    assert decision == (
        ScopeDecision(in_scope=True, rule=rule, on_site=True)
        if rule
        else ScopeDecision(in_scope=False, rule="off site", on_site=False)
    )


@pytest.mark.parametrize(
    ("url", "kind", "hops", "parent", "expected"),
    [
        ("https://far.example/", Kind.LINK, 0, False, (True, "seed")),
        ("https://far.example/x.iso", Kind.LINK, 0, False, (False, r"exclude \.iso$")),
        ("https://host.example/x.iso", Kind.LINK, 1, True, (False, r"exclude \.iso$")),
        ("https://host.example/", Kind.LINK, 3, True, (True, "host host.example")),
        ("https://host.example/", Kind.LINK, 4, True, (False, "hops 4, more than 3")),
        ("https://host.example/x.png", Kind.REQUISITE, 3, True, (True, "host host.example")),
        ("https://far.example/x.png", Kind.REQUISITE, 3, True, (True, "requisite of what is fetched")),
        ("https://far.example/x.png", Kind.REQUISITE, 0, True, (True, "requisite of what is fetched")),
        ("https://far.example/x.png", Kind.REQUISITE, 3, False, (True, "requisite of what is fetched")),
        ("https://far.example/x.png", Kind.REQUISITE, 4, True, (False, "hops 4, more than 3")),
        ("https://far.example/x.iso", Kind.REQUISITE, 1, True, (False, r"exclude \.iso$")),
        ("https://far.example/", Kind.LINK, 1, True, (False, "off site")),
        (
            "mailto:a@host.example",
            Kind.LINK,
            1,
            True,
            (False, "not fetchable: its scheme is neither http nor https"),
        ),
        (
            "",
            Kind.LINK,
            1,
            True,
            (False, "not fetchable: it has no scheme, and no usable base to take one from"),
        ),
    ],
)
def test_rules_are_checked_in_order(
    url: str, kind: Kind, hops: int, parent: bool, expected: tuple[bool, str]
) -> None:
    decision = SITE.decide(url, kind=kind, hops=hops, parent_in_scope=parent)
    assert (decision.in_scope, decision.rule) == expected


def test_the_links_of_a_requisite_off_site_stay_out_and_its_requisites_do_not() -> None:
    frame = SITE.decide("https://far.example/a", kind=Kind.REQUISITE, hops=1, parent_in_scope=True)
    assert frame.in_scope
    for kind, taken in ((Kind.REQUISITE, True), (Kind.LINK, False)):
        found = SITE.decide("https://far.example/b", kind=kind, hops=1, parent_in_scope=frame.on_site)
        assert found.in_scope is taken


def test_links_off_site_go_one_hop_and_no_further() -> None:
    scope = Scope(hosts=frozenset({"host.example"}), links_off_site=True)
    first = scope.decide("https://far.example/", kind=Kind.LINK, hops=2, parent_in_scope=True)
    assert first == ScopeDecision(in_scope=True, rule="linked from a page on site", on_site=False)
    second = scope.decide("https://far.example/2", kind=Kind.LINK, hops=3, parent_in_scope=first.on_site)
    assert not second.in_scope


def test_an_empty_scope_takes_seeds_and_their_requisites_only() -> None:
    decide = Scope().decide
    seed = decide("https://a.example/", kind=Kind.LINK, hops=0, parent_in_scope=False)
    assert seed == ScopeDecision(in_scope=True, rule="seed", on_site=True)
    assert not decide("https://a.example/2", kind=Kind.LINK, hops=1, parent_in_scope=True).in_scope
    assert decide("https://b.example/x.png", kind=Kind.REQUISITE, hops=0, parent_in_scope=True).in_scope


@pytest.mark.parametrize(
    ("seed", "url", "taken"),
    [
        ("https://example.org", "http://www.example.org/anything", True),
        ("https://example.org/", "https://sub.example.org/", False),
        ("https://example.org/", "https://example.org:8443/", False),
        ("https://example.org:8443/", "https://example.org:8443/x", True),
        ("https://example.org/~ann/index.html", "https://example.org/~ann/papers/1", True),
        ("https://example.org/~ann/", "https://example.org/~anna/", False),
        ("https://example.org/~ann/index.html?x=/y/", "https://example.org/~ann/z", True),
        ("https://example.org/~ann/", "https://example.org/", False),
    ],
)
def test_the_scope_of_a_seed_is_its_directory(seed: str, url: str, taken: bool) -> None:
    scope = Scope()
    scope.widen(seed)
    assert scope.decide(url, kind=Kind.LINK, hops=1, parent_in_scope=True).in_scope is taken


@pytest.mark.parametrize(
    "start",
    ["http://a.onion", "http://a.onion/", "http://a.onion?x=1", "HTTP://A.Onion/", "http://a.onion/#b"],
)
def test_a_shipped_pattern_that_would_keep_out_a_start_url_is_left_out_however_that_is_written(
    start: str,
) -> None:
    selection = make_selection(CrawlConfig(), [start], depth="inf")
    for url, hops in ((start, 0), ("http://a.onion/b", 1)):
        assert selection.judge(url, kind=Kind.LINK, hops=hops, parent_on_site=True).is_taken, url
    other = selection.judge("http://localhost/", kind=Kind.REQUISITE, hops=1, parent_on_site=True)
    assert not other.is_taken


def test_a_shallow_scope_takes_a_page_and_what_it_shows() -> None:
    scope = make_selection(
        CrawlConfig(links_off_site=True), ["https://example.org/a"], depth="shallow"
    ).scope
    assert scope.decide("https://example.org/a", kind=Kind.LINK, hops=0, parent_in_scope=False).in_scope
    link = scope.decide("https://example.org/b", kind=Kind.LINK, hops=1, parent_in_scope=True)
    assert (link.in_scope, link.rule) == (False, "hops 1, more than 0")
    assert scope.decide(
        "https://b.example/i.png", kind=Kind.REQUISITE, hops=0, parent_in_scope=True
    ).in_scope


@pytest.mark.parametrize(
    ("written", "url", "taken"),
    [
        ("http://(org,example,", "http://www2.a.example.org/", True),
        ("(org,example)", "http://example.org/x", True),
        ("org,example", "http://example.org/x", True),
        ("org,example", "http://a.example.org/x", True),
        ("org,example", "http://example.org:81/x", True),
        ("org,example", "http://example2.org/x", False),
    ],
)
def test_surt_prefixes_are_read_as_crawlers_write_them(written: str, url: str, taken: bool) -> None:
    scope = Scope(surts=(written,))
    assert scope.decide(url, kind=Kind.LINK, hops=1, parent_in_scope=False).in_scope is taken


@pytest.mark.parametrize(
    "rules",
    [
        {"surts": ("example.org",)},
        {"surts": ("",)},
        {"surts": ("http://",)},
        {"surts": (")/x",)},
        {"hosts": frozenset({"http://example.org/"})},
        {"hosts": frozenset({"example.org:80"})},
        {"hosts": frozenset({""})},
        {"domains": frozenset({"a b"})},
        {"include": ("(",)},
        {"exclude": ("(?=c",)},
    ],
)
def test_a_rule_that_can_mean_nothing_is_refused(rules: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Scope(**rules)  # type: ignore[arg-type]


def test_a_seed_that_cannot_be_fetched_puts_nothing_on_site() -> None:
    with pytest.raises(UsageError, match="cannot be fetched"):
        Scope().widen("ftp://a.example/")


@pytest.mark.slow
@given(url=URLS)
def test_any_url_gets_a_decision_with_a_rule(url: str) -> None:
    decision = SITE.decide(url, kind=Kind.LINK, hops=1, parent_in_scope=True)
    assert decision.rule
    assert decision.on_site or not decision.in_scope
