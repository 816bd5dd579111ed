"""A URL of 400 kB is read in passing: no rule may cost more than its length."""

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

LENGTH = 400_000
SEGMENT = "(abcdefghijklmnopqrstuvwx)/"
SHAPES = {
    "dot segments": "http://h/" + "a/" * (LENGTH // 4) + "../" * (LENGTH // 6),
    "slashes": "http://h" + "/" * LENGTH,
    "nested escapes": "http://h/" + "%2" * (LENGTH // 4) + "5" * (LENGTH // 2),
    "stray percent signs": "http://h/" + "%" * LENGTH,
    "labels": "http://" + "a." * (LENGTH // 2) + "com!/",
    "dots": "http://" + "." * LENGTH + "!/",
    "ace labels": "http://" + "xn--mnchen-3ya." * (LENGTH // 15) + "/",
    "umlauts": "http://" + "é" * (LENGTH // 8) + "/",
    "digits": "http://" + "9" * LENGTH + "/",
    "port": "http://h:" + "0" * LENGTH + "/",
    "at signs": "http://" + "u@" * (LENGTH // 2) + "h/",
    "brackets": "http://" + "[" * LENGTH + "/",
    "ampersands": "http://h/?" + "&" * LENGTH,
    "session arguments": "http://h/?" + "cfid=" * (LENGTH // 5) + "&cftoken=",
    "session segments": "http://h/" + SEGMENT * (LENGTH // len(SEGMENT)) + "%3f.aspx",
    "schemes": "http://" * (LENGTH // 7),
    "spaces": " " * LENGTH + "http://h/" + " " * LENGTH,
    "lone surrogates": "http://\udc80" + "\ud800" * (LENGTH // 8) + "/",
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_url_of_400_kb_is_read_in_passing(shape: str) -> None:
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
    before = host.known_host.cache_info().currsize
    assert host.canonical_host("a" * 100_000 + ".example") == "a" * 100_000 + ".example"
    assert host.known_host.cache_info().currsize == before
