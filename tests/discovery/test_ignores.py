"""Ignores as ArchiveBot's users know them, and what is better here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from urls.url_strategies import URLS

from amicrawl.discovery import Ignored, IgnoreSet, set_names
from amicrawl.discovery.expression import TIMEOUTS_BORNE, Expression, searchable
from amicrawl.discovery.ignores import ignore_set
from amicrawl.errors import UsageError


@pytest.fixture
def ignores() -> IgnoreSet:
    return IgnoreSet()


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


def test_what_kept_urls_out_is_named_the_busiest_first_and_sets_by_their_names(
    ignores: IgnoreSet,
) -> None:
    for expression in ("/once/", "/twice/", "/never/"):
        ignores.add(expression)
    ignores.add_set("blogs")
    share = "https://www.blogger.com/share-post.g?blogID=1"
    for url in ("http://x/once/", "http://x/twice/", "http://x/twice/", share, share, share):
        ignores.match(url)
    assert list(ignores.kept_out.values()) == [3, 2, 1]
    assert list(ignores.kept_out)[1:] == ["/twice/", "/once/"]
    assert ignores.kept_out_by_sets == {"blogs": 3}


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
        ("(", "is not a regular expression"),
        ("", "1 to 4096 characters"),
        ("a" * 4097, "1 to 4096 characters"),
        (r"{primary_netloc}(", "is not a regular expression"),
        ("(" * 2000 + ")" * 2000, "is not a regular expression"),
        ("a\udcff", "is not a regular expression"),  # a byte of a command line that is not UTF-8
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


@pytest.mark.parametrize("text", ["x{99999999}", r"(?:(?:\d{1000}){1000}){1000}", "(?=[(]{400}){400}"])
def test_an_expression_that_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="repeats more than 100,000 characters"):
        Expression(text)


def test_what_is_repeated_often_enough_is_searched() -> None:
    assert Expression("(?=x)[0-9a-fx{]{8}(?:-[(]{4}){3}").found_in("xxxxxxxx-((((-((((-((((")
    assert Expression("x{2000}").found_in("x" * 2000)


def test_a_start_url_that_is_too_long_switches_its_placeholders_off(ignores: IgnoreSet) -> None:
    ignores.add("^{primary_url}")
    start = "http://a.example/" + "x" * 5000
    assert ignores.match(start, primary=start) is None


@pytest.mark.parametrize(
    ("expression", "engine", "found", "missed"),
    [
        (r"/([^/]+)/\1/\1/", "regex", "http://x/a/a/a/", "http://x/a/b/a/"),
        (r"/(.+?/)\1{2}", "regex", "http://x/a/b/a/b/a/b/", "http://x/a/b/c/"),
        (r"(?:%25){3,}", "re2", "http://x/%25%25%25", "http://x/%25%25"),
        (r"^https?://[^/]+/(?!wiki/).*[?&]action=", "regex", "http://x/w?action=e", "http://x/wiki/?action=e"),
        (r"(?<!/api)/search\?", "regex", "http://x/search?q", "http://x/api/search?q"),
        (r"^https?://(?:www\.)?x\.example/.+(?<!\.jpg)$", "regex", "http://x.example/a", "http://x.example/.jpg"),
        (r"/(?=[^/]*\d)[a-z0-9]{32}/", "regex", f"http://x/{'a1' * 16}/", f"http://x/{'a' * 32}/"),
        (r"(?i)/(?:login|sign-?in)(?:[/?]|$)", "re2", "http://x/Login", "http://x/logins"),
        (r"'\s*\+\s*[\w.]+\s*\+\s*'", "re2", "http://x/'+a.b+'", "http://x/a+b"),
        (r"^https?://(?:10|127)(?:\.\d{1,3}){3}(?::\d+)?/", "re2", "http://10.0.0.1/", "http://11.0.0.1/"),
        (r"/(?:[^/]+/)*(\d{4})/(?:[^/]+/)*\1/(?:[^/]+/)*\1/", "regex", "http://x/2020/a/2020/2020/", "http://x/2020/"),
        (r"(.*\w+)*=(.*\w+)*&{4}", "re2", "http://x/?a=b&&&&", "http://x/?a=b&"),
        (r"[?&](?:[^&]*&)*sid=[0-9a-f]{32}\Z", "regex", "http://x/?sid=" + "0" * 32, "http://x/?sid=0"),
        (r"(?P<d>/[a-z]+)(?P=d)(?P=d)", "regex", "http://x/ab/ab/ab", "http://x/ab/ab"),
        (r"(?:/[^/]+){12,}", "re2", "http://x" + "/a" * 12, "http://x/a"),
    ],
)  # fmt: skip
def test_expressions_of_every_kind_that_archivebot_ships_can_be_used(
    ignores: IgnoreSet, expression: str, engine: str, found: str, missed: str
) -> None:
    """Nested repetitions, look-around and back-references among them."""
    ignores.add(expression)
    assert Expression(expression).engine == engine
    assert ignores.match(found) is not None
    assert ignores.match(missed) is None


EXPLODING = r"(?!x)(a+)+\1[b-z]$"


@pytest.mark.slow
def test_a_search_that_would_run_away_ends_and_other_expressions_are_searched(
    ignores: IgnoreSet, caplog: pytest.LogCaptureFixture
) -> None:
    url = "http://x/" + "a" * 2000
    ignores.add(EXPLODING)
    ignores.add(r"/b(?=/)")
    for _ in range(TIMEOUTS_BORNE):
        assert ignores.match(url) is None
        assert ignores.match("http://x/b/") is not None
    assert "is not searched for any more" in caplog.text
    caplog.clear()
    assert ignores.match(url) is None
    assert not caplog.text


def test_what_re2_searches_takes_no_longer_for_an_expression_that_is_nested(ignores: IgnoreSet) -> None:
    for expression in (r"(a+)+b", r"(a|aa)*c", r"(?:.*,)+x", r".*a.*a.*a.*a.*y", r"(a?){30}a{30}z"):
        ignores.add(expression)
        assert Expression(expression).engine == "re2"
    assert ignores.match("http://x/" + "a" * 50_000) is None


def test_urls_are_searched_as_they_are_requested(ignores: IgnoreSet) -> None:
    ignores.add("%C3%A9")
    assert ignores.match("http://x/é") is not None
    assert searchable("http://x/\udce9?{a}") == "http://x/%E9?{a}"


@pytest.mark.slow
def test_any_url_can_be_checked() -> None:
    ignores = IgnoreSet.of_sets(*set_names())
    ignores.add("^{primary_url}x")

    @given(url=URLS, primary=URLS)
    def check(url: str, primary: str) -> None:
        before = sum(ignores.hits.values())
        match = ignores.match(url, primary=primary)
        assert sum(ignores.hits.values()) - before == (match is not None)

    check()


def test_both_engines_agree_with_re_on_the_examples_of_the_shipped_sets() -> None:
    for entry in (entry for name in set_names() for entry in ignore_set(name)):
        ours, plain = Expression(entry.expression), re.compile(entry.expression, re.ASCII)
        for url in map(searchable, (*entry.ignored, *entry.kept)):
            assert ours.found_in(url) == (plain.search(url) is not None), url


@pytest.mark.parametrize(
    "expression", [r"/page/\d{,3}/$", r"/a{,2}/", r"[/{,3}]page", r"x\{,3}", r"/a{,}/"]
)
def test_repetitions_without_a_lower_bound_mean_what_they_mean_in_python(expression: str) -> None:
    ours, plain = Expression(expression), re.compile(expression, re.ASCII)
    for url in ("http://a.example/page/12/", "http://a.example/aa/", "http://a.example/x{,3}/"):
        assert ours.found_in(url) == bool(plain.search(url)), url


@pytest.mark.parametrize("expression", ["/[[:alpha:]]+$", "/[[:alpha:]]+(?=$)"])
def test_a_posix_class_is_one_and_gives_no_warning_of_python(expression: str) -> None:
    """Python takes it for a set and a bracket, with a warning, and the tests end with any."""
    compiled = Expression(expression)
    assert compiled.found_in("http://example.org/page")
    assert not compiled.found_in("http://example.org/:]")
    assert not compiled.found_in("http://example.org/1")
