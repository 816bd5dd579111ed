"""Idents are ArchiveBot's to the letter: its bot computes them again from the URL that is stored."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amicrawl.errors import UsageError
from amicrawl.fleet.database.ident import base_name, ident_of, is_ident, normalised, slug_of

VECTORS = [
    ("http://www.example.com", "http://www.example.com/", "eed6rdmqqi18ps2eqfatkjyld"),
    ("HTTP://WWW.Example.COM:80/A/../b/./c", "http://www.example.com/b/c", "7e8thwosuwh62a4k4vc1uqykf"),
    ("https://example.com:443", "https://example.com/", "cadvi1z4ehgqty2lfqeg80iom"),
    ("http://example.com./x", "http://example.com/x", "67g4fefxj2gmpft5bqj6v0ay"),
    ("http://example.com/../../x", "http://example.com/x", "67g4fefxj2gmpft5bqj6v0ay"),
    (
        "http://example.com/%7euser/%2f%3d%41?b=2&a=1;c=3&d=%26%2B+%20#Frag",
        "http://example.com/~user/%2F=A?b=2&a=1%3Bc=3&d=%26%2B+%20#Frag",
        "dhnsbniqh65cjsrzrsddevthp",
    ),
    ("http://example.com/a//b///c", "http://example.com/a//b///c", "b1mhoxjosqhngxvp9yyikr9qt"),
    ("http://example.com?", "http://example.com/?", "hjw6qw6zzxm360tzmiedzw5n"),
    ("http://example.com/#", "http://example.com/#", "14kjgo7qfrdc8ccdm1l2jyftt"),
    (
        "http://b\u00fccher.example/stra\u00dfe?q=\u00fc",
        "http://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC",
        "4d68euo9o9wp1df7rehj52swv",
    ),
    ("http://example.com/\ufb01", "http://example.com/fi", "9q0p2bxrhssi51nhfp36hrpej"),
    ("http://example.com/a b", "http://example.com/a%20b", "jo6454jnld881jhi0ucby84h"),
    ("http://example.com/[x]{y}", "http://example.com/%5Bx%5D%7By%7D", "cxpem6n92szglz0p736b262go"),
    (
        "http://example.com/?x=[1]&y={2}",
        "http://example.com/?x=%5B1%5D&y=%7B2%7D",
        "8is365l4pvde5ll1i370c1vbz",
    ),
    ("http://example.com/%ff", "http://example.com/%FF", "cd46gk2cf21sd0nmbco20br9v"),
    (
        "http://user:pa%40ss@example.com/",
        "http://user:pa%40ss@example.com/",
        "c0uiu17d3kggsk91e5ng397sr",
    ),
    ("ftp://ftp.example.org", "ftp://ftp.example.org/", "8an558h7t9q0hxxxogaqwkqa8"),
]


@pytest.mark.parametrize(("url", "normal", "ident"), VECTORS)
def test_a_url_has_the_ident_that_archivebot_gives_it(url: str, normal: str, ident: str) -> None:
    assert (normalised(url), ident_of(normal)) == (normal, ident)


@pytest.mark.parametrize(
    ("url", "ident"),
    [
        ("http://artscene.textfiles.com/litpacks/", "43z7a11vo6of3a7i173441dtc"),
        ("http://store.steampowered.com/livingroom", "1q2qydhkeh3gfnrcxuf6py70b"),
        ("https://www.example.com/some-file.txt", "byu50bzfdbnlyl6mrgn6dd24h"),
        ("http://www.example.com", "f4pg9usx4j96ki3zczwlczu51"),
    ],
)
def test_the_ident_is_that_of_the_text_as_it_stands(url: str, ident: str) -> None:
    assert ident_of(url) == ident


parts = st.text(alphabet=st.sampled_from("ab%2fFB;&+?#/.[]{}@: é\ufb01\u00df~=\\|'\""), max_size=14)


@given(path=parts, query=parts, user=st.text(alphabet="ab:%4", max_size=4))
@example(path="%ff%2f..%3fx", query="%ff%26b;c", user="")
@example(path="%252B", query="%252B%25252b", user=":")
def test_normalising_twice_changes_nothing(path: str, query: str, user: str) -> None:
    url = f"http://{user}{'@' if user else ''}Example.com:80/{path}?{query}"
    try:
        once = normalised(url)
    except UsageError:
        return
    assert normalised(once) == once


@given(st.text(max_size=40))
def test_any_text_has_an_ident_or_is_refused(text: str) -> None:
    for url in (text, f"http://{text}"):
        try:
            ident = ident_of(normalised(url))
        except UsageError:
            continue
        assert is_ident(ident)


@pytest.mark.parametrize(
    "url",
    [
        "example.org",
        "mailto:a@b.example",
        "http://",
        "http:///x",
        "http://a b/",
        "http://a.example:99999/",
        "http://a.example:8x/",
        "http://a.example/\n",
        "http://a.example/\x00",
        "http://a.example/\udc80",
        "http://a%2fb.example/",
        "http://a.example/" + "x" * 9000,
    ],
)
def test_what_is_no_url_has_no_ident(url: str) -> None:
    with pytest.raises(UsageError):
        normalised(url + "x" if url.endswith("\n") else url)


@pytest.mark.parametrize(
    "text", ["working", "pending", "updates", "x" * 26, "a" * 24 + "\n", "A" * 25, ""]
)
def test_no_key_of_archivebots_and_nothing_odd_is_taken_for_an_ident(text: str) -> None:
    assert not is_ident(text)


def test_the_shortest_number_that_a_uuid_can_be_is_an_ident() -> None:
    least = 5 << 76  # version 5, all else zero
    digits = ""
    while least:
        least, digit = divmod(least, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    assert is_ident(digits)


@pytest.mark.parametrize(
    ("url", "is_list", "slug"),
    [
        ("http://twitter.com/", False, "twitter.com-inf"),
        ("http://user:pw@a.example:8080/", False, "a.example-inf"),
        ("http://[::1]/", False, "-1--inf"),
        ("http://a.example/lists/urls.txt", True, "urls-a.example-urls.txt-inf"),
        ("http://a.example/", True, "urls-a.example--inf"),
    ],
)
def test_files_are_called_after_host_and_depth(url: str, is_list: bool, slug: str) -> None:
    assert slug_of(url, depth="inf", is_list=is_list) == slug


def test_a_base_name_holds_the_time_and_five_characters_of_the_ident() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert base_name("a.example-inf", when, "abcdefgh") == "a.example-inf-20260102-030405-abcde"
