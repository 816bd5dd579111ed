"""A megabyte of URL is read in passing: no rule may cost more than its length."""

from __future__ import annotations

import pytest

from amicrawl.config import Identity
from amicrawl.urls import (
    Canonical,
    Refused,
    canonical_form,
    canonicalize,
    fetchable,
    host,
    path_key,
    resolve,
    surt,
    url_key,
)
from amicrawl.urls.fetchable import Fetchable

MILLION = 1_000_000
SEGMENT = "(abcdefghijklmnopqrstuvwx)/"
SHAPES = {
    "dot segments": "http://h/" + "a/" * (MILLION // 4) + "../" * (MILLION // 6),
    "slashes": "http://h" + "/" * MILLION,
    "nested escapes": "http://h/" + "%2" * (MILLION // 4) + "5" * (MILLION // 2),
    "stray percent signs": "http://h/" + "%" * MILLION,
    "labels": "http://" + "a." * (MILLION // 2) + "com!/",
    "dots": "http://" + "." * MILLION + "!/",
    "ace labels": "http://" + "xn--mnchen-3ya." * (MILLION // 15) + "/",
    "umlauts": "http://" + "é" * MILLION + "/",
    "digits": "http://" + "9" * MILLION + "/",
    "port": "http://h:" + "0" * MILLION + "/",
    "at signs": "http://" + "u@" * (MILLION // 2) + "h/",
    "brackets": "http://" + "[" * MILLION + "/",
    "ampersands": "http://h/?" + "&" * MILLION,
    "session arguments": "http://h/?" + "cfid=" * (MILLION // 5) + "&cftoken=",
    "session segments": "http://h/" + SEGMENT * (MILLION // len(SEGMENT)) + "%3f.aspx",
    "schemes": "http://" * (MILLION // 7),
    "spaces": " " * MILLION + "http://h/" + " " * MILLION,
    "lone surrogates": "http://\udc80" + "\ud800" * MILLION + "/",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_megabyte_of_url_is_read_in_passing(shape: str) -> None:
    """What took the square of the length would outlast the time limit of a test."""
    url = SHAPES[shape]
    form = canonical_form(url)
    assert isinstance(form, Canonical) == isinstance(fetchable(url), Fetchable)
    assert isinstance(canonicalize(url[8:], base="http://h/a"), Canonical | Refused)
    assert url_key(url, Identity.EXACT).path == path_key(url)
    assert surt(url).isascii()
    assert resolve("http://h/a/b", url[8:])


def test_long_names_are_not_remembered() -> None:
    """Sixteen thousand megabytes would be too much to remember."""
    before = host._remembered.cache_info().currsize
    assert host.canonical_host("a" * 100_000 + ".example") == "a" * 100_000 + ".example"
    assert host._remembered.cache_info().currsize == before
