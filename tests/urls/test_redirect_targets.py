"""Redirect targets: RFC 3986 resolution that keeps the spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from urls.url_strategies import ANY_TEXT, LINKS, URLS

from amicrawl.urls import resolve

BASE = "http://a/b/c/d;p?q"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("http:g", "http:g"),
    ],
)
def test_the_examples_of_rfc_3986_hold(location: str, target: str) -> None:
    """Section 5.4, without the fragments, which no request carries."""
    assert resolve(BASE, location) == target


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("HTTP://Example.COM:80/a/../b?#f", "HTTP://Example.COM:80/a/../b?"),
        ("/a//b///c", "http://a/a//b///c"),
        ("/..//g", "http://a//g"),
        ("?", "http://a/b/c/d;p?"),
        (" /x y\t", "http://a/x y"),
        (b"/caf\xc3\xa9", "http://a/café"),
        (b"/caf\xe9", "http://a/caf%E9"),
        ("/\\x", "http://a/\\x"),
    ],
)
def test_odd_spellings_are_kept(location: str | bytes, target: str) -> None:
    assert resolve(BASE, location) == target


def test_a_base_without_path_lends_a_slash() -> None:
    assert resolve("http://a", "g") == "http://a/g"
    assert resolve("http://a?q", "g?h") == "http://a/g?h"
    assert resolve("http://a", "?y") == "http://a?y"


def test_a_base_that_is_no_url_lends_nothing() -> None:
    assert resolve("no url", "/x") == "/x"


@given(base=URLS, location=ANY_TEXT)
def test_a_target_can_always_be_written_down(base: str, location: str) -> None:
    target = resolve(base, location)
    assert target.encode("utf-8").decode("utf-8") == target
    assert "#" not in target


@given(location=LINKS)
def test_a_target_resolves_to_itself(location: str) -> None:
    target = resolve(BASE, location)
    assert resolve("https://elsewhere.example/x", target) == target.strip()
