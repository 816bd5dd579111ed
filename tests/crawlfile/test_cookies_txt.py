"""Cookies are read as they are exported, and go where RFC 6265 lets them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.crawlfile.secrets import cookie_field, read_cookies
from amicrawl.errors import InputError

NOW = 1_800_000_000
JAR = read_cookies(
    "# Netscape HTTP Cookie File\r\n"
    "\n"
    ".a.example\tTRUE\t/\tFALSE\t0\tall\t1\n"
    "a.example\tFALSE\t/\tFALSE\t0\tonly\t2\n"
    "#HttpOnly_.a.example\tTRUE\t/p\tTRUE\t1900000000.5\tsafe\t3=x\n"
    "a.example\tFALSE\t/\tFALSE\t1700000000\told\t4\n"
    "10.0.0.1\tTRUE\t/\tFALSE\t0\tip\t5\n"
    "b.example\tFALSE\t/\tFALSE\t0\tempty\n"
    "d.example\tFALSE\t/\tFALSE\t\tsession\t6\n",
    name="jar",
)


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("http://a.example/", "all=1; only=2"),
        ("http://A.EXAMPLE:8080/p", "all=1; only=2"),
        ("https://a.example/p", "safe=3=x; all=1; only=2"),
        ("https://a.example/p/q?r", "safe=3=x; all=1; only=2"),
        ("https://a.example/pq", "all=1; only=2"),
        ("https://www.a.example/p/", "safe=3=x; all=1"),
        ("http://www.a.example", "all=1"),
        ("http://a.example./", "all=1; only=2"),
        ("http://ba.example/", ""),
        ("http://example/", ""),
        ("http://a.example.evil.example/", ""),
        ("http://10.0.0.1/", "ip=5"),
        ("http://1.10.0.0.1/", ""),
        ("http://b.example/", "empty="),
        ("http://d.example/", "session=6"),
        ("http://user@b.example@c.example/", ""),
    ],
)
def test_a_request_carries_what_is_meant_for_it(url: str, field: str) -> None:
    assert cookie_field(JAR, url, now=NOW) == field


def test_a_cookie_ends_when_it_says() -> None:
    assert "old=4" in cookie_field(JAR, "http://a.example/", now=1_699_999_999)


@pytest.mark.parametrize(
    "line",
    [
        "geheim",
        "a\tTRUE\t/\tFALSE\t0",
        "a\tyes\t/\tFALSE\t0\tgeheim\tv",
        "a\tTRUE\t/\tFALSE\t" + "9" * 5000 + "\tgeheim\tv",
        "a\tTRUE\tp\tFALSE\t0\tgeheim\tv",
        "a\tTRUE\t/\tFALSE\tsoon\tgeheim\tv",
        "\tTRUE\t/\tFALSE\t0\tgeheim\tv",
        "a\tTRUE\t/\tFALSE\t0\tn\tgeheim; b=c",
        "a\tTRUE\t/\tFALSE\t0\tn=m\tgeheim",
        "a\tTRUE\t/\tFALSE\t0\tn\tgeheim\x00",
        "a\tTRUE\t/\tFALSE\t0\tn\tgehéim",
    ],
)
def test_a_line_that_is_no_cookie_is_told_by_its_number_alone(line: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cookies(f"# one\n{line}\n", name="file:jar")
    assert str(caught.value) == (
        "file:jar, line 2: no cookie. A cookies.txt has seven fields a line, with tabs between them; "
        "export it again."
    )


def test_a_cookie_does_not_show_its_value() -> None:
    assert "3=x" not in repr(JAR)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        cookies = read_cookies(text, name="jar")
    except InputError:
        return
    assert all(cookie.value.isascii() and cookie.value.isprintable() for cookie in cookies)
