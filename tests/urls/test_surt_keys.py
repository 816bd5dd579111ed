"""SURTs: a golden table, and the library that made the keys of existing indexes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.url_strategies import ANY_TEXT, URLS

from amicrawl.urls import surt
from amicrawl.urls.surt import by_all_rules, site

HEX = "0123456789abcdef0123456789ABCDEF"
LETTERS = "abcdefghijklmnopqrstuvwx"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/", "com,example)/"),
        ("https://example.com:443/", "com,example)/"),
        ("example.com", "com,example)/"),
        ("http://www22.example.com/", "com,example)/"),
        ("http://wwwx.example.com/", "com,example,wwwx)/"),
        ("http://www.com/", "com)/"),
        ("https://www3288.com/", "com)/"),
        ("http://example.com:443/", "com,example:443)/"),
        ("https://example.com:80/x", "com,example:80)/x"),
        ("http://example.com:8080/path", "com,example:8080)/path"),
        ("http://user:pass@Example.COM/Path/To/", "com,example)/path/to"),
        ("http://example.com/path//to///x", "com,example)/path/to/x"),
        ("http://example.com/a/./b/../c", "com,example)/a/c"),
        ("http://example.com/../../a", "com,example)/a"),
        ("http://example.com/path?", "com,example)/path"),
        ("http://example.com/path/?", "com,example)/path"),
        ("http://example.com/?B=2&a=1&b=1", "com,example)/?a=1&b=1&b=2"),
        ("http://example.com/?a=1&a", "com,example)/?a&a=1"),
        ("http://example.com/?a&a=", "com,example)/?a&a="),
        ("http://example.com/?a=1&&b=2", "com,example)/?&a=1&b=2"),
        ("http://example.com/?&", "com,example)/?&"),
        (f"http://example.com/x?sid={HEX}&q=1", "com,example)/x?q=1"),
        (f"http://example.com/x?q=1&PHPSESSID={HEX}", "com,example)/x?&q=1"),
        (f"http://example.com/x?xsid={HEX}&b", "com,example)/x?xb"),
        (f"http://example.com/x;jsessionid={HEX}", f"com,example)/x;jsessionid={HEX.lower()}"),
        (f"http://example.com/?ASPSESSIONIDABCDEFGH={LETTERS}&a", "com,example)/?a"),
        ("http://example.com/?cfid=1&cftoken=2&x", "com,example)/?x"),
        (f"http://example.com/(S({LETTERS}))/page.aspx?x=1", "com,example)/page.aspx?x=1"),
        (f"http://example.com/({LETTERS})/page.aspx", "com,example)/page.aspx"),
        (f"http://example.com/({LETTERS})/page.html", f"com,example)/({LETTERS})/page.html"),
        ("http://example.com/%7Euser/%41%20b", "com,example)/~user/a%20b"),
        ("http://example.com/a b", "com,example)/a%20b"),
        ("http://example.com/%2541", "com,example)/a"),
        ("http://example.com/caf%C3%A9", "com,example)/caf%c3%a9"),
        ("http://example.com/café", "com,example)/caf%c3%a9"),
        ("http://example.com/?q=a%26b=c", "com,example)/?b=c&q=a"),
        ("http://example.com/%zz", "com,example)/%25zz"),
        ("http://example.com/a%23b", "com,example)/a%23b"),
        ("http://example.com/path%2Fslash", "com,example)/path/slash"),
        ("http://example.com/x%3Fy=1", "com,example)/x?y=1"),
        ("http://bücher.example/", "example,xn--bcher-kva)/"),
        ("http://192.168.0.1/x", "1,0,168,192)/x"),
        ("http://3232235521/x", "1,0,168,192)/x"),
        ("http://0300.0250.0.1/x", "1,0,168,192)/x"),
        ("http://192.168.1/x", "1,0,168,192)/x"),
        ("http://256.1.1.1/x", "1,1,1,256)/x"),
        ("http://08.1.1.1/x", "1,1,1,08)/x"),
        ("http://1.2.3.4.5/x", "5,4,3,2,1)/x"),
        ("http://0xC0.0.0.1/", "1,0,0,0xc0)/"),
        ("http://[2001:db8::1]:8080/x", "2001:db8::1:8080)/x"),
        ("http://example.com./x", "com,example)/x"),
        ("http://example..com/x", "com,example)/x"),
        ("http:////example.com/x", "com,example)/x"),
        ("https://http://example.com/x", "com,example)/x"),
        ("dns:www.example.com", "dns:www.example.com"),
        ("whois:example.com", "whois:example.com"),
        ("whois://whois.iana.org/example.com", "org,iana,whois)/example.com"),
        ("ftp://ftp.example.com:21/pub", "com,example,ftp:21)/pub"),
        ("urn:x:Y", "urn:x:y"),
        ("urn:pageinfo:https://Example.com/A", "urn:pageinfo:https://example.com/a"),
        ("screenshot:http://example.com/", "screenshot:http://example.com"),
        ("http://www.esp.alcf.anl.gov/blog/", "gov,anl,alcf,esp)/blog"),
        ("filedesc:a B", "filedesc:a B"),
        (" \thttp://exa\nmple.com/\r\n", "com,example)/"),
        ("", "-"),
    ],
)
def test_a_url_has_its_key(url: str, key: str) -> None:
    assert surt(url) == key


def test_a_url_whose_port_is_none_is_its_own_key() -> None:
    assert surt("http://Example.com:99999/A b") == "http://Example.com:99999/A%20b"
    assert surt("http://h:x/") == "http://h:x/"


def test_octets_that_are_not_utf_8_are_escaped() -> None:
    assert surt(b"http://h/\xff?\xff") == surt("http://h/\udcff?\udcff") == "h)/%ff?%ff"


def test_nested_escapes_are_decoded_however_deep() -> None:
    assert surt("http://h/%" + "25" * 50_000 + "41") == "h)/a"
    assert surt("http://h/%2%35%34%31") == "h)/a"


@pytest.mark.parametrize(("others", "is_removed"), [(0, True), (15, True), (16, False), (40, False)])
def test_of_the_segments_that_look_like_sessions_the_last_sixteen_are_looked_at(
    others: int, is_removed: bool
) -> None:
    """Each costs a search for the file name behind it: without a limit, the square of the length."""
    session = "(" + "s" * 24 + ")/"
    key = surt(f"http://h/{session}x.aspx%3f/" + ("(" + "o" * 24 + ")/") * others)
    assert (session not in key) == is_removed
    assert key.count("(" + "o" * 24 + ")") == others


@pytest.mark.slow
@given(url=st.one_of(URLS, ANY_TEXT))
def test_a_key_fits_into_a_line_of_an_index(url: str) -> None:
    key = surt(url)
    assert key
    if not url.startswith("filedesc"):
        assert key.isascii()
        assert not set(key) & set(" \t\r\n\x00\x7f")


HOSTS = [
    *(
        "example.com",
        "WWW.example.com",
        "www2.a.b",
        "www.com",
        "a..b",
        ".a.",
        "é.com",
        "u:p@h.com",
        "u@x@h",
    ),
    *(
        "[::1]",
        "a%41b",
        "%77ww.x",
        "xn--a",
        "x_y",
        "",
        "a b",
        "ß.de",
        "a%2eb",
        "www",
        "é..x",
        "a,b)c",
        "%",
    ),
]
PIECES = [
    *(
        "/",
        "/",
        "a",
        "B",
        ".",
        "..",
        "%2e",
        "%2F",
        "%25",
        "%",
        "41",
        "%41",
        "é",
        "\xff",
        "//",
        "~",
        "p.aspx",
    ),
    *(
        f"(S({LETTERS}))",
        f"({LETTERS})",
        ".ASPX",
        "%3f",
        "%23",
        " ",
        ";",
        "\\",
        "[",
        ")",
        "\x00",
        "\t",
        "=",
        "&",
    ),
]
ARGUMENTS = [
    *(
        "a",
        "B",
        "=",
        "&",
        "&",
        f"sid={HEX}",
        f"PHPSESSID={HEX}",
        f"jsessionid={HEX}",
        "cfid=1",
        "cftoken=2",
    ),
    *(
        f"ASPSESSIONIDABCDEFGH={LETTERS}",
        "cfid=",
        "%26",
        "%3D",
        "%",
        "25",
        "?",
        "é",
        " ",
        "+",
        "/",
        "%2541",
    ),
]


def _joined(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=6).map("".join)


@pytest.mark.slow
@given(
    scheme=st.sampled_from(
        [
            "http://",
            "https://",
            "HTTP://",
            "http:",
            "http:////",
            "",
            "ftp://",
            "x:/",
            "https://http://",
            "//",
        ]
    ),
    host=st.sampled_from(HOSTS),
    port=st.sampled_from(["", ":80", ":443", ":8080", ":080", ":", ":0"]),
    path=_joined(PIECES).map("/".__add__),
    query=st.one_of(st.just(""), _joined(ARGUMENTS).map("?".__add__)),
)
def test_keys_equal_those_of_the_library_that_indexes_were_made_with(
    scheme: str, host: str, port: str, path: str, query: str
) -> None:
    """It looks numeric hosts up, so none is among these."""
    library = pytest.importorskip("surt")
    url = scheme + host + port + path + query
    assert surt(url) == library.surt(url)


@pytest.mark.slow
@given(
    scheme=st.sampled_from(["http://", "https://", "HTTP://", "ftp://"]),
    host=st.sampled_from(
        [*HOSTS, "1.2.3.4", "017.1", "3232235521", "[::1]", "u:p@WWW.X.org", "@", ":", "a_b"]
    ),
    port=st.sampled_from(["", ":80", ":443", ":8080", ":080", ":", ":0", ":99999", ":x", ":1:2"]),
    path=st.one_of(
        st.just(""), _joined([*PIECES, "(", ")", ".aspx", f"(S({LETTERS}))/"]).map("/".__add__)
    ),
    query=st.one_of(st.just(""), _joined([*ARGUMENTS, "A=b", "&&", "c/d", "Sid=x"]).map("?".__add__)),
)
def test_the_short_way_to_a_key_leads_where_all_rules_lead(
    scheme: str, host: str, port: str, path: str, query: str
) -> None:
    url = scheme + host + port + path + query
    assert surt(url) == by_all_rules(url)


@pytest.mark.slow
@given(
    url=st.one_of(
        URLS,
        ANY_TEXT,
        st.text(st.characters(min_codepoint=33, max_codepoint=126)).map("http://".__add__),
    )
)
def test_whatever_a_url_holds_there_is_one_key(url: str) -> None:
    assert surt(url) == by_all_rules(url)


def test_plain_urls_take_the_short_way() -> None:
    """Should a change of the expression send them all the long way, indexing takes a fourth longer."""
    plain = "https://www.Example.org:8080/A/b.html?b=2&A=1"
    before = site.cache_info()
    assert surt(plain) == surt(plain) == "org,example:8080)/a/b.html?a=1&b=2"
    after = site.cache_info()
    assert after.hits + after.misses == before.hits + before.misses + 2
