"""Which expressions are safe to search a stranger's URL for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.discovery.backtracking import LONGEST_URL, longest_url, required_literal


@pytest.mark.parametrize(
    "expression",
    [
        "calendar",
        r"/calendar/\d{4}-\d{2}",
        r"^https?://[^/]+/(?:[^/]+/)*x$",
        r"^.*$",
        r"(a|b)*c",
        r"(?:foo|bar)+/x",
        r"(?:/[^/]+){12,}",
        r"(a|ab)*c",
        r"/([^/]+)/\1/\1/",
        r"[?&](?:[^&]*&)*sid=",
        r"(?>a+)+b",
        r"a*+a*+a*+a*+b",
        r"\.(?:jpe?g|png|gif)(?:\?|$)",
        r"(?i)/wiki/special:",
        r"",
    ],
)
def test_an_expression_with_one_way_to_match_is_safe(expression: str) -> None:
    assert longest_url(expression) == LONGEST_URL


@pytest.mark.parametrize(
    "expression",
    [
        r"(a+)+b",
        r"(a*)*b",
        r"(a|a)*b",
        r"(a|aa)*c",
        r"(?:.*)*x",
        r"(?:.+,)+x",
        r"(\d+)*x",
        r"(\w+\s?)+$",
        r"(?:a{1,50}){1,50}b",
        r"(a?){30}a{30}",
        r"a?" * 30 + "a" * 30,
        r".*.*.*.*x",
        r".*a.*b.*c",
        r"(?=(a+)+b)x",
        r"x(?:y(?:z+)+)q",
        r"(?>(a+)+b)",
        r"((a+)+b)*+",
        r"[^a]+[ab]+.*^",
        r"[^a]+.*.*$[ab]",
    ],
)
def test_an_expression_whose_ways_multiply_is_refused(expression: str) -> None:
    assert isinstance(longest_url(expression), str)


@pytest.mark.parametrize("expression", [r".*a.*b", r"(?!.*foo).*bar"])
def test_an_expression_in_between_is_searched_for_in_short_urls_only(expression: str) -> None:
    longest = longest_url(expression)
    assert isinstance(longest, int)
    assert 256 <= longest < LONGEST_URL


@pytest.mark.parametrize(
    ("expression", "literal"),
    [
        (r"/wp-json/", "/wp-json/"),
        (r"\.php\?sid=[0-9a-f]{32}", ".php?sid="),
        (r"ab?c", "a"),
        (r"(?:foo|bar)", ""),
        (r"(?i)foo", ""),
        (r"(?i:foo)x", "x"),
        (r"foo|bar", ""),
        (r"a(?!b)c", "a"),
        (r"^abc$", "abc"),
    ],
)
def test_the_literal_is_in_every_match(expression: str, literal: str) -> None:
    assert required_literal(expression) == literal


_PIECES = [
    *(
        "a",
        "b",
        "/",
        ".",
        "[^/]",
        "[ab]",
        r"\d",
        "(?:",
        "(",
        ")",
        "|",
        "*",
        "+",
        "?",
        "*?",
        "{2}",
        "{2,}",
    ),
    *("^", "$", "(?=", "(?!", r"\1", r"\b", "(?i)", "*+", "(?>", "ab"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), st.text("ab/1", max_size=24))
def test_any_expression_is_measured_and_its_literal_holds(expression: str, url: str) -> None:
    try:
        compiled = re.compile(expression, re.ASCII)
    except re.error:
        with pytest.raises(re.error):
            longest_url(expression)
        return
    longest = longest_url(expression)
    assert isinstance(longest, str) or 256 <= longest <= LONGEST_URL
    if not isinstance(longest, str) and compiled.search(url):
        assert required_literal(expression) in url
