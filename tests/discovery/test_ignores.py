"""Ignores as ArchiveBot's users know them, and what is better here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from urls.url_strategies import URLS

from amicrawl.discovery import Ignored, IgnoreSet, set_names
from amicrawl.discovery.expression import RE2, Expression, searchable
from amicrawl.discovery.named import ignore_set
from amicrawl.errors import UsageError

ENGINES = [pytest.param(None, id="re")]
if RE2 is not None:
    ENGINES.append(pytest.param(RE2, id="re2"))


@pytest.fixture(params=ENGINES)
def ignores(request: pytest.FixtureRequest) -> IgnoreSet:
    return IgnoreSet(re2=request.param)


def test_an_expression_is_searched_anywhere_and_case_counts(ignores: IgnoreSet) -> None:
    ignores.add(r"/Special:[A-Z]", source="!ig")
    assert ignores.match("http://a.example/wiki/Special:Log") == Ignored(r"/Special:[A-Z]", "!ig")
    assert ignores.match("http://a.example/wiki/special:Log") is None


def test_hits_are_counted_and_shown_in_the_order_of_adding(ignores: IgnoreSet) -> None:
    for expression in ("/b/", r"/\d+$", "/never/"):
        ignores.add(expression)
    for url in ("http://x/b/", "http://x/b/7", "http://x/7", "http://x/"):
        ignores.match(url)
    assert list(ignores.hits.items()) == [("/b/", 2), (r"/\d+$", 1), ("/never/", 0)]


def test_a_literal_is_reported_before_others_and_then_the_first_added(ignores: IgnoreSet) -> None:
    for expression in (r"/[a]/", "/c/", "/b/", r"/[b]/"):
        ignores.add(expression)
    found = [ignores.match(url) for url in ("http://x/b/c/a/", "http://x/b/a/", "http://x/a/")]
    assert [match and match.expression for match in found] == ["/c/", "/b/", r"/[a]/"]


def test_a_removed_expression_is_gone_with_its_hits(ignores: IgnoreSet) -> None:
    for expression in ("/a/", "/[b]/", "{primary_netloc}/c/"):
        ignores.add(expression)
        assert ignores.remove(expression)
        assert not ignores.remove(expression)
    assert len(ignores) == 0
    assert not ignores.hits
    assert ignores.match("http://x/a/b/c/", primary="http://x/") is None


def test_adding_twice_keeps_count_and_source(ignores: IgnoreSet) -> None:
    ignores.add("/a/", source="first")
    ignores.match("http://x/a/")
    ignores.add("/a/", source="second")
    assert ignores.match("http://x/a/") == Ignored("/a/", "first")
    assert ignores.hits["/a/"] == 2


@pytest.mark.parametrize(
    ("expression", "url", "primary", "taken"),
    [
        (r"^{primary_url}print", "http://a.example/print", "http://a.example/", True),
        (r"^{primary_url}print", "http://b.example/print", "http://a.example/", False),
        (r"^https?://(?!{primary_netloc}/)", "http://b.example/", "http://a.example/x", True),
        (r"^https?://(?!{primary_netloc}/)", "http://a.example/", "http://a.example/x", False),
        (r"//{primary_netloc}/", "http://a.example:81/", "http://a.example:81/x", True),
        (r"//{primary_netloc}/", "http://axexample/", "http://a.example/x", False),
        (r"{primary_url}", "http://a.example/?x=(1+1)", "http://a.example/?x=(1+1)", True),
        (r"{primary_url}", "http://a.example/", "", False),
        (r"/\d{4}/{primary_netloc}", "http://x/2020/a.example", "http://a.example/", True),
        (r"{primary}", "http://x/{primary}", "http://a.example/", True),
    ],
)
def test_placeholders_stand_for_the_start_url_taken_literally(
    ignores: IgnoreSet, expression: str, url: str, primary: str, taken: bool
) -> None:
    ignores.add(expression)
    assert (ignores.match(url, primary=primary) is not None) is taken


def test_placeholders_stay_right_with_more_start_urls_than_are_remembered(ignores: IgnoreSet) -> None:
    ignores.add("^{primary_url}x")
    for _ in range(2):
        for number in range(300):
            start = f"http://a{number}.example/"
            assert ignores.match(f"{start}x", primary=start) is not None
            assert ignores.match("http://other.example/x", primary=start) is None


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "is no regular expression"),
        ("", "1 to 4096 characters"),
        ("a" * 4097, "1 to 4096 characters"),
        (r"(a+)+(?=b)", "in several ways"),
        (r"{primary_netloc}(", "is no regular expression"),
        (r".*(.*)\1.*.*x", "repetitions multiply"),
        ("(" * 2000 + ")" * 2000, "is no regular expression"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_and_stops_nothing(
    ignores: IgnoreSet, expression: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        ignores.add(expression)
    ignores.add("/a/")
    assert ignores.match("http://x/a/") is not None
    assert list(ignores) == ["/a/"]


def test_a_start_url_that_is_too_long_switches_its_placeholders_off(ignores: IgnoreSet) -> None:
    ignores.add("^{primary_url}")
    start = "http://a.example/" + "x" * 5000
    assert ignores.match(start, primary=start) is None


def test_a_long_url_is_searched_where_that_is_safe() -> None:
    url = "http://x/" + "a" * 300 + "/b"
    assert Expression("/b$", re2=None).found_in(url)
    assert not Expression("a.*a.*b", re2=None).found_in(url + "b" * 200)


def test_urls_are_searched_as_they_are_asked_for(ignores: IgnoreSet) -> None:
    ignores.add("%C3%A9")
    assert ignores.match("http://x/é") is not None
    assert searchable("http://x/\udce9?{a}") == "http://x/%E9?{a}"


@pytest.mark.parametrize("engine", ENGINES)
def test_any_url_can_be_asked_about(engine: Any) -> None:
    ignores = IgnoreSet.of_sets(*set_names(), re2=engine)
    ignores.add("^{primary_url}x")

    @given(url=URLS, primary=URLS)
    def ask(url: str, primary: str) -> None:
        before = sum(ignores.hits.values())
        match = ignores.match(url, primary=primary)
        assert sum(ignores.hits.values()) - before == (match is not None)

    ask()


@pytest.mark.skipif(RE2 is None, reason="google-re2 is not installed")
def test_both_engines_agree_on_the_examples_of_the_shipped_sets() -> None:
    ours = IgnoreSet.of_sets(*set_names(), re2=None)
    theirs = IgnoreSet.of_sets(*set_names(), re2=RE2)
    for entry in (entry for name in set_names() for entry in ignore_set(name)):
        for url in (*entry.ignored, *entry.kept):
            assert (ours.match(url) is None) == (theirs.match(url) is None), url
