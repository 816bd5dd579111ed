"""Links of pages, of every format that has some."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from amicrawl.discovery import Kind, Link, LinkLimits, extract
from amicrawl.discovery.coding import charset_of
from amicrawl.discovery.markup import MOST_ATTRIBUTES
from amicrawl.urls import fetchable, resolve

DATA = Path(__file__).parent / "data"
HERE = "https://a.example/start/page.html"


def urls(payload: bytes, content_type: str = "text/html", *, url: str = HERE) -> list[str]:
    return [link.url for link in extract(payload, url=url, content_type=content_type)]


def test_a_page_with_everything_gives_what_a_reader_and_a_browser_would_request() -> None:
    links = extract((DATA / "page.html").read_bytes(), url=HERE, content_type="text/html")
    expected = (DATA / "page.expected.txt").read_text(encoding="utf-8").splitlines()
    assert [f"{link.where}\t{link.kind}\t{link.url}" for link in links] == expected


def test_a_link_is_a_tuple_of_url_kind_and_place() -> None:
    assert extract(b"<a href=/x>", url=HERE, content_type="text/html") == [
        Link("https://a.example/x", Kind.LINK, "a href")
    ]


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("///host/p", "https://host/p"),
        ("////host/p?///q", "https://host/p?///q"),
        ("http:///host/p", "http://host/p"),
        ("HTTPS:////host///p", "HTTPS://host///p"),
        (r"\\\host\p", "https://host/p"),
        ("///", None),
        ("http:///", None),
    ],
)
def test_two_slashes_or_more_begin_a_host(reference: str, url: str | None) -> None:
    payload = f'<a href="{reference}">'.encode()
    links = extract(payload, url="https://page.org/a/", content_type="text/html")
    assert [link.url for link in links] == ([url] if url else [])


@pytest.mark.parametrize(
    ("reference", "query"),
    [
        ("&amp;copy=1", "&copy=1"),
        ("&copy=1", "&copy=1"),
        ("&copy;=1", "©=1"),
        ("&#38;b", "&b"),
        ("&#x26b", "ɫ"),
        ("&#0000000038;b", "&b"),
        ("&#x0000000026;b", "&b"),
    ],
)
def test_references_to_characters_are_resolved_as_browsers_do(reference: str, query: str) -> None:
    assert urls(f"<a href='/x?a{reference}'>".encode()) == [f"https://a.example/x?a{query}"]


def test_a_url_is_given_once_a_kind() -> None:
    payload = b"<a href=x.png><img src=x.png><a href=/start/x.png><img src='x.png#a'>"
    assert [tuple(link)[:2] for link in extract(payload, url=HERE, content_type="text/html")] == [
        ("https://a.example/start/x.png", Kind.LINK),
        ("https://a.example/start/x.png", Kind.REQUISITE),
    ]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"<base href=//b.example/x/y><a href=z>", "https://b.example/x/z"),
        (b"<a href=z><base href=/late/>", "https://a.example/late/z"),
        (b"<base href='javascript:x'><a href=z>", "https://a.example/start/z"),
        (b"<base target=_top><base href=/b/><a href=z>", "https://a.example/b/z"),
        (b"<base href=''><a href=z>", "https://a.example/start/z"),
        (b"<base href='/%s/'><a href=z>" % (b"x" * 5000), "https://a.example/start/z"),
    ],
)
def test_the_first_base_address_counts_for_the_whole_page(payload: bytes, expected: str) -> None:
    assert urls(payload) == [expected]


@pytest.mark.parametrize(
    "payload",
    [
        b"<a href=/x",
        b"<a href='/x",
        b"<a b='><a href=/x>",
        b"<!-- <a href=/x>",
        b"<!doctype <a href=/x>",
        b"<?php <a href=/x>",
        b"<script><a href=/x></script",
        b"<style><a href=/x>",
        b"<plaintext><a href=/x>",
        b"< a href=/x>",
        b"<ab href=/x>",
        b"</a href=/x>",
        b"<a href>",
        b"<a href=>",
        b"<link href=/x rel=pingback>",
        b"<meta http-equiv=refresh content=5>",
        b"<a href='http:'>",
        b"<a href='  #x'>",
        b"<img srcset=', ,'>",
        b"<a href=ftp://a.example/>",
    ],
)
def test_what_is_no_link_gives_none(payload: bytes) -> None:
    assert urls(payload) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("5; url=x", "x"),
        ("5;url = 'x y'z", "x y"),
        ("0,x", "x"),
        ("5 url=x", "x"),
        ('5.5; URL="x', "x"),
        ("; url=x", None),
        ("url=x", None),
        ("5", None),
        ("5;", None),
    ],
)
def test_a_refresh_is_read_from_the_field_and_from_the_page(content: str, expected: str | None) -> None:
    wanted = [f"https://a.example/start/{expected}"] if expected else []
    fields = [(b"Refresh", content.encode())]
    assert [link.url for link in extract(b"", url=HERE, fields=fields)] == wanted
    quoted = content.replace('"', "&quot;")
    assert urls(f'<meta http-equiv=refresh content="{quoted}">'.encode()) == wanted


def test_link_fields_are_read_whatever_the_type() -> None:
    fields = [
        (
            b"Link",
            b'<a.css>; rel="preload stylesheet"; title="a, <b>; rel=next", </n>;rel=next,<c>; as=x',
        ),
        (b"LINK", b'<//far.example>; rel=preconnect, <\xff>; rel="canonical'),
        (b"Content-Type", b"<no>"),
    ]
    found = extract(b"\x89PNG <a href=/x>", url=HERE, content_type="image/png", fields=fields)
    assert found == [
        Link("https://a.example/start/a.css", Kind.REQUISITE, "Link field rel=stylesheet"),
        Link("https://a.example/n", Kind.LINK, "Link field rel=next"),
        Link("https://a.example/start/c", Kind.LINK, "Link field"),
        Link("https://a.example/start/%FF", Kind.LINK, "Link field rel=canonical"),
    ]


@pytest.mark.parametrize(
    ("content_type", "payload", "expected"),
    [
        ("text/css; charset=utf-8", b"a{b:url(x.png)}", ["x.png"]),
        ("application/rss+xml", b"<rss><channel><item><link>x</link></item></channel></rss>", ["x"]),
        ("application/atom+xml", b"<feed><entry><link href='x'/></entry></feed>", ["x"]),
        ("text/xml", b"<urlset><url><loc>https://a.example/start/x</loc></url></urlset>", ["x"]),
        ("application/xml", b"<urlset><url><loc>https://a.example/start/x</loc></url><ur", ["x"]),
        ("text/xml", b"<?xml version='1.0'?><html xmlns='x'><a href='x'/></html>", ["x"]),
        ("application/xhtml+xml", b"<html><a href='x'/></html>", ["x"]),
        ("image/svg+xml", b"<svg><image href='x'/></svg>", ["x"]),
        ("", b"\xef\xbb\xbf \n<!DOCTYPE html><a href=x>", ["x"]),
        ("", b"<?xml version='1.0'?><rss><channel><item><link>x</link></item></channel></rss>", ["x"]),
        ("", b"plain <a href=x>", []),
        ("text/plain", b"<html><a href=x>", []),
        ("application/javascript", b"<html><a href=x>", []),
        ("application/json", b'{"a": "<a href=x>"}', []),
        ("text/xml", b"<!DOCTYPE rss SYSTEM 'x'><rss/>", []),
        ("TEXT/HTML ;charset=x", b"<a href=x>", ["x"]),
    ],
)
def test_a_format_is_told_by_its_type_and_else_by_its_start(
    content_type: str, payload: bytes, expected: list[str]
) -> None:
    assert urls(payload, content_type) == [f"https://a.example/start/{name}" for name in expected]


def test_a_sitemap_index_says_what_its_entries_are() -> None:
    payload = b"<sitemapindex><sitemap><loc>https://a.example/s.xml</loc></sitemap></sitemapindex>"
    assert extract(payload, url=HERE, content_type="text/xml") == [
        Link("https://a.example/s.xml", Kind.LINK, "sitemap")
    ]


def test_a_sitemap_names_pictures_videos_and_translations_of_its_pages_behind_the_pages() -> None:
    payload = (
        b"<urlset xmlns:image='i' xmlns:video='v' xmlns:xhtml='x'><url><loc>https://a.example/p</loc>"
        b"<xhtml:link rel='alternate' hreflang='de' href='https://a.example/de?a&amp;b'/><image:image>"
        b"<image:loc> https://a.example/1.png </image:loc><image:title>no</image:title></image:image>"
        b"<image:image><image:loc><![CDATA[https://a.example/2.png?a&b]]></image:loc></image:image>"
        b"<video:video><video:content_loc>https://a.example/v.mp4</video:content_loc></video:video></url>"
        b"<url><loc>https://a.example/q</loc></url></urlset>"
    )
    found = extract(payload, url=HERE, content_type="text/xml")
    names = ["p", "q", "de?a&b", "1.png", "2.png?a&b", "v.mp4"]
    assert [link.url for link in found] == [f"https://a.example/{name}" for name in names]
    # A sitemap is not shown, so none is a requisite, and each must be in scope.
    assert {(link.kind, link.where) for link in found} == {(Kind.LINK, "feed or sitemap")}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_whatever_ends_the_lines_of_a_text_each_is_read(mark: bytes, end: bytes) -> None:
    lines = [b"https://a.example/1", b"  https://a.example/2", b"", b"https://a.example/3"]
    found = ["https://a.example/1", "https://a.example/2", "https://a.example/3"]
    assert urls(mark + end.join(lines), "text/plain", url="https://a.example/sitemap.txt") == found
    robots = mark + b"".join(b"Sitemap: " + line + end for line in lines if line)
    assert urls(robots, "text/plain", url="https://a.example/robots.txt") == found


def test_robots_txt_names_sitemaps() -> None:
    payload = (
        b"User-agent: *\r\nSitemap: https://a.example/s.xml # x\r\n sitemap:/t.xml\nNo-sitemap: /u.xml"
    )
    assert urls(payload, "text/plain", url="https://a.example/robots.txt") == [
        "https://a.example/s.xml",
        "https://a.example/t.xml",
    ]


@pytest.mark.parametrize(
    ("payload", "content_type", "charset"),
    [
        (b"", "", "utf-8"),
        (b"", "text/html; charset=ISO-8859-1", "cp1252"),
        (b"", 'text/html; charset="Shift_JIS"', "cp932"),
        (b"<meta charset=koi8-r>", "", "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html; charset=utf-8", "utf-8"),
        (b"<meta http-equiv=content-type content='text/html; charset=big5'>", "", "big5hkscs"),
        (b"<?xml version='1.0' encoding='euc-kr'?>", "", "cp949"),
        (b'@charset "gb2312";', "", "gb18030"),
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=koi8-r", "utf-8"),
        (b"\xff\xfe<\0", "", "utf-16-le"),
        (b"<meta charset=utf-16>", "", "utf-8"),
        (b"<meta charset=unicode_escape>", "text/html; charset=idna", "utf-8"),
        (b" " * 4000 + b"<meta charset=koi8-r>", "", "utf-8"),
        (b"<meta charset=rot13>", "text/html; charset=\x00", "utf-8"),
    ],
)
def test_the_character_set_is_told_as_browsers_do(
    payload: bytes, content_type: str, charset: str
) -> None:
    assert charset_of(payload, content_type) == charset


@pytest.mark.parametrize(
    ("payload", "content_type", "expected"),
    [
        ("<a href='é?é'>".encode(), "text/html", "é?é"),
        (b"<a href='\xe9?\xe9'>", "text/html; charset=latin-1", "é?%E9"),
        (b"<a href='\xe9?\xe9'>", "text/html", "%E9?%E9"),
        ("<a href='я?я&#x4e2d;'>".encode("koi8-r"), "text/html; charset=koi8-r", "я?%D1%26%2320013%3B"),
        ("<a href='日?日'>".encode("cp932"), "text/html; charset=shift_jis", "日?%93%FA"),
        ("<a href='日?日'>".encode("iso2022_jp"), "text/html; charset=iso-2022-jp", "日?日"),
        ("\ufeff<a href='日?日'>".encode("utf-16-le"), "text/html", "日?日"),
        (b"<a href='\x93?\x93\xff'>", "text/html; charset=shift_jis", "%93?%93%FF"),
    ],
)
def test_queries_go_in_the_character_set_of_the_page_and_stray_octets_survive(
    payload: bytes, content_type: str, expected: str
) -> None:
    assert urls(payload, content_type) == [f"https://a.example/start/{expected}"]


def test_what_is_taken_of_a_page_is_bounded() -> None:
    page = b"".join(b"<a href=/%d>" % number for number in range(100))
    cases = [
        (LinkLimits(payload=len(page) // 2), 51),
        (LinkLimits(links=30), 30),
        (LinkLimits(characters=100), 5),
    ]
    for limits, most in cases:
        found = extract(page, url=HERE, content_type="text/html", limits=limits)
        assert 0 < len(found) <= most
        assert found[0].url == "https://a.example/0"
    assert urls(b"<a href=/%s>" % (b"x" * 5000)) == []
    assert urls(b"<base href=/%s/><a href=%s>" % (b"x" * 3000, b"y" * 3000)) == []


HOSTILE = [
    (b"<b>", b"<a href=/x>"),
    (b"<div><table><td>", b"<a href=/x>"),
    (b"<a ", None),
    (b"<a b='", None),
    (b'<a b="c" ', None),
    (b"<!--", None),
    (b"<!-- -->", b"<a href=/x>"),
    (b"<", b"<a href=/x>"),
    (b"<x <", None),
    (b"<x style", None),
    (b"<x y='<' ", None),
    (b"&amp", b"<a href=/x>"),
    (b"</script>", b"<a href=/x>"),
    (b"<script>", None),
    (b"<svg><style>", None),
    (b"\0", b"<a href=/x>"),
    (b"\xff", b"<a href=/x>"),
    (b"=", b"<a href=/x>"),
    (b"<a href=/x>", None),
    (b"<x style=a>", None),
]


@pytest.mark.parametrize(("unit", "end"), HOSTILE)
def test_a_page_that_is_one_thing_a_million_times_is_read_to_its_end(
    unit: bytes, end: bytes | None
) -> None:
    """Parsers that build a tree give up at some depth; nothing is lost here, and nothing gets slow."""
    found = urls(unit * (1_000_000 // len(unit)) + (end or b""))
    assert found == (["https://a.example/x"] if end else found)


def test_attributes_without_end_are_cut_off() -> None:
    before = b" ".join(b"a%d=1" % number for number in range(MOST_ATTRIBUTES - 1))
    assert urls(b"<a " + before + b" href=/x>") == ["https://a.example/x"]
    assert urls(b"<a " + before + b" b=1 href=/x>") == []


@pytest.mark.parametrize(
    "unit",
    [
        *(b"/*", b"url(", b"url('", b"@import ", b'"\\', b"'", b"@namespace", b"\\", b"url(\\", b"/**"),
        *(b"image-set(", b"image-set('", b"image-set('',", b"image-set(a(", b"image-set(a,"),
    ],
)
def test_a_style_sheet_that_is_one_thing_a_million_times_is_read(unit: bytes) -> None:
    assert len(urls(unit * (1_000_000 // len(unit)), "text/css")) <= 1
    assert len(urls(b"<img srcset='" + unit * 100_000 + b"'>")) <= 1


@pytest.mark.parametrize("unit", [b"<", b"<a>", b"<a>;rel=next,", b";", b'"', b"<a>;", b'<a>;rel="'])
def test_a_field_that_is_one_thing_a_million_times_is_read(unit: bytes) -> None:
    assert len(extract(b"", url=HERE, fields=[(b"Link", unit * 1_000_000)])) <= 1


_PIECES = [
    *(
        b"<a href=",
        b"<img src=",
        b"<base href=",
        b"<style>",
        b"</style>",
        b"<script>",
        b"</script>",
        b"<!--",
    ),
    *(
        b"-->",
        b">",
        b"'",
        b'"',
        b" ",
        b"/",
        b"x",
        b"//h/",
        b"http://",
        b"#",
        b"?",
        b"&amp;",
        b"&#",
        b"&lt",
    ),
    *(
        b"style='",
        b"url(",
        b")",
        b"srcset=",
        b"<link rel=",
        b"<meta charset=",
        b"utf-16",
        b"\xff\xfe",
        b"\xe9",
    ),
    *(
        b"\\",
        b"\0",
        b"\r\n",
        b"<svg",
        b"<?",
        b"<!",
        b"</",
        b"=",
        b"@import ",
        b",",
        b" 2x",
        b"[",
        b"]",
        b":",
    ),
]
PAYLOADS = st.binary(max_size=200) | st.lists(st.sampled_from(_PIECES), max_size=40).map(b"".join)
TYPES = st.sampled_from(
    [
        *("text/html", "text/css", "text/xml", "", "application/rss+xml", "image/svg+xml", "x"),
        *("text/html; charset=utf-16", "text/html; charset=iso-2022-jp", "text/css; charset=big5"),
    ]
)


@given(payload=PAYLOADS, content_type=TYPES, field=PAYLOADS)
def test_nothing_raises_and_every_link_is_a_url_that_can_be_written_down(
    payload: bytes, content_type: str, field: bytes
) -> None:
    fields = [(b"Link", field), (b"Refresh", b"0;" + field)]
    for link in extract(payload, url=HERE, content_type=content_type, fields=fields):
        link.url.encode()
        assert link.url.lower().startswith(("http:", "https:"))
        assert "#" not in link.url
        fetchable(link.url)


_WORD = st.text("abc/?&=;.-_~%é\"'<> ", min_size=1, max_size=12)


_TAG = st.sampled_from(["a", "img", "p", "iframe"])


@given(st.lists(st.tuples(_TAG, _WORD, _WORD), max_size=12))
def test_a_parser_that_builds_a_tree_finds_the_same(tags: list[tuple[str, str, str]]) -> None:
    page = "".join(
        f'<{tag} title="{_quoted(title)}" {_address(tag)}="/p{_quoted(path)}">x</{tag}>'
        for tag, title, path in tags
    ).encode()
    tree = etree.HTML(b"<html><body>" + page, etree.HTMLParser(encoding="utf-8"))
    theirs = [
        (resolve(HERE, str(value)), "link" if element.tag == "a" else "requisite")
        for element in tree.iter("a", "img", "iframe")
        for name, value in element.items()
        if name in ("href", "src")
    ]
    ours = extract(page, url=HERE, content_type="text/html; charset=utf-8")
    assert [(link.url, link.kind) for link in ours] == list(dict.fromkeys(theirs))


def _address(tag: str) -> str:
    return "href" if tag == "a" else "src"


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ('class="x" href="/a" id="y"', ["/a"]),
        ('class="x" href="/a" href="/b"', ["/a"]),
        ('HREF="/a" href="/b"', ["/a"]),
        ('data-href="/n" hreflang="en" href="/a"', ["/a"]),
        ('href="/a?b&amp;c"', ["/a?b&c"]),
        ('href="/a" xlink:href="/b"', ["/a", "/b"]),
        ('style="background:url(/s)" href="/a"', ["/a", "/s"]),
        ('href="/a" background="/s"', ["/a", "/s"]),
        ('title="<a href=\'/n\'>" href="/a"', ["/a"]),
    ],
)
def test_an_anchor_gives_its_addresses_however_its_attributes_are_written(
    attributes: str, found: list[str]
) -> None:
    assert urls(f"<a {attributes}>".encode()) == [resolve(HERE, address) for address in found]


@given(st.text("/.ab?%", max_size=12))
def test_a_path_that_needs_only_the_origin_is_resolved_as_any_other(path: str) -> None:
    rooted = "/" + path.lstrip("/")
    # White space around a reference does not count, but makes it one that is not as most are.
    assert resolve(HERE, rooted) == resolve(HERE, f" {rooted} ")


def test_a_tag_of_nothing_but_equals_signs_costs_no_memory_and_hides_nothing() -> None:
    page = b"<a " + b"=" * (8 << 20) + b"><a href=/behind>"
    tracemalloc.start()
    try:
        links = extract(page, url="http://a.example/", content_type="text/html")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [link.url for link in links] == ["http://a.example/behind"]
    assert peak < 64 << 20


@pytest.mark.parametrize(
    ("payload", "content_type", "names"),
    [
        (b"<svg><title/><path/></svg><a href=1></a><img src=2>", "text/html", "12"),
        (b"<svg><style type='text/css' /><image href=1 /></svg><a href=2>", "text/html", "12"),
        (b"<svg></svg><title/><a href=1></title><a href=2>", "text/html", "2"),
        (b"<svg/></svg><script src=1/><a href=3></script><a href=2>", "text/html", "1/ 2"),
        (b"<svg><script href=1/><a href=3></script></svg><a href=2>", "text/html", "1/ 2"),
        (b"<svg xmlns='x'><style/><title/><image href='1'/></svg>", "image/svg+xml", "1"),
        (b"<html><script src='1'/><img src='2'/></html>", "application/xhtml+xml", "12"),
        (b"<html><script src='1'/><img src='2'/></html>", "text/html", "1"),
    ],
)
def test_an_element_that_ends_with_its_first_tag_hides_nothing_behind_it(
    payload: bytes, content_type: str, names: str
) -> None:
    expected = names.split() if " " in names else list(names)
    assert urls(payload, content_type) == [f"https://a.example/start/{name}" for name in expected]


@pytest.mark.parametrize(
    "attributes",
    [
        """class="[&>p]:mt-4" style="background-image:url(1)\"""",
        """id=x x-on:click='go(a => "b")' title="'" style='background-image:url(1)'""",
        """data-a="1" data-b="a > b > c" background="1\"""",
    ],
)
def test_a_greater_than_sign_in_a_value_does_not_end_the_tag(attributes: str) -> None:
    assert urls(f"<div {attributes}>".encode()) == ["https://a.example/start/1"]
