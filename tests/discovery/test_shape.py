"""Shapes of URLs that only a machine going in circles makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from urls.url_strategies import URLS

from amicrawl.discovery import Shape, ShapeLimits, verdict

HERE = "http://a.example"


@pytest.mark.parametrize(
    ("rest", "shape"),
    [
        ("", None),
        ("/", None),
        ("/" + "x" * 2000, None),
        ("/" + "x" * 2048, Shape.TOO_LONG),
        ("/" + "/".join(map(str, range(20))), None),
        ("/" + "/".join(map(str, range(21))), Shape.TOO_DEEP),
        ("/a/a/a", None),
        ("/a/a/a/a", Shape.REPEATED_RUN),
        ("//a//a//a//a", Shape.REPEATED_RUN),
        ("/x/a/b/a/b/a/b", None),
        ("/x/a/b/a/b/a/b/a/b/y", Shape.REPEATED_RUN),
        ("/a/b/c/a/b/c/a/b/c/a/b/c", Shape.REPEATED_RUN),
        ("/a/b/c/d/a/b/c/d/a/b/c/d/a/b/c/d", Shape.REPEATED_RUN),
        ("/1/1/1/1/1", None),
        ("/" + "/".join("1" * 13), Shape.REPEATED_RUN),
        ("/a/1/a/2/a", None),
        ("/a/1/a/2/a/3/a", Shape.REPEATED_SEGMENT),
        ("/2024/01/01/01/01/post", None),
        ("/?" + "&".join(f"k{n}=1" for n in range(24)), None),
        ("/?" + "&".join(f"k{n}=1" for n in range(25)), Shape.TOO_MANY_ARGUMENTS),
        ("/?" + "&".join(["k=1"] * 5), None),
        ("/?" + "&".join(["k=1"] * 6), Shape.REPEATED_ARGUMENT),
        ("/" + "%20%C3%A4" * 20, None),
        ("/%2e%41%7E%2d%5f%39", None),
        ("/%2e%41%7E%2d%5f%39%2E", Shape.NEEDLESS_ESCAPES),
        ("/?q=" + "%2e" * 20, None),
        ("/%2541/%2541/%252541/%2520/%2520", None),
        ("/%2541/%2541/%252541/%252520/%2520", Shape.NESTED_ESCAPES),
        ("/?u=" + "%252F" * 20, None),
        ("/?u=%25252525", Shape.NESTED_ESCAPES),
        ("/?u=%252525", None),
        ("/100%25", None),
        ("/web/2020/http://b.example/", None),
        ("/?u=http://b/?u=http://c/?u=http://d/", None),
        ("/?u=http://b/?u=http%3A%2F%2Fc/?u=https%253A%252F%252Fd/?u=http://e/", Shape.NESTED_URLS),
        ("/#" + "/a" * 50, None),
    ],
)
def test_a_shape_is_told_from_the_url(rest: str, shape: Shape | None) -> None:
    assert verdict(HERE + rest) is shape


def test_a_limit_of_zero_is_none() -> None:
    off = ShapeLimits(0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0)
    url = HERE + "/a" * 3000 + "?" + "&".join(["k=%25252525http://x/http://x/http://x/"] * 50)
    assert verdict(url, limits=off) is None


@pytest.mark.slow
@given(url=URLS)
def test_any_url_has_a_verdict(url: str) -> None:
    assert verdict(url) is None or isinstance(verdict(url), Shape)
