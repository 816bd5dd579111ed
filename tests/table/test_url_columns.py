"""The columns about a URL: the rows that tables of web archives agree on, each written out."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.archive.table.schema import HOST_COLUMNS
from amicrawl.archive.table.url_columns import (
    HostColumns,
    columns_of_urls,
    host_columns,
    list_version,
    suffixes_of,
    url_columns,
)


class Row(NamedTuple):
    """A URL and what is to stand in its columns; `...` where the row says nothing."""

    url: str
    host: object = ...
    labels: object = ...
    """TLD, second, third, fourth and fifth last part."""
    registry: object = ...
    """Suffix and domain."""
    private: object = ...
    reversed: object = ...
    port: object = None
    path: object = ...
    query: object = None


ADDRESS = {"labels": (None,) * 5, "registry": (None, None), "private": (None, None), "reversed": None}

GOLDEN = [
    Row(
        "https://WWW.Example.COM:8443/A/b?Q=1&x=%20#f",
        "www.example.com",
        ("com", "example", "www", None, None),
        ("com", "example.com"),
        ("com", "example.com"),
        "com.example.www",
        8443,
        "/A/b",
        "Q=1&x=%20",
    ),
    Row(
        "http://www.bbc.co.uk/x",
        "www.bbc.co.uk",
        ("uk", "co", "bbc", "www", None),
        ("co.uk", "bbc.co.uk"),
        ("co.uk", "bbc.co.uk"),
        "uk.co.bbc.www",
        path="/x",
    ),
    Row("http://co.uk/", "co.uk", ..., ("co.uk", None), ("co.uk", None), "uk.co", path="/"),
    Row(
        "http://myblog.blogspot.com/",
        "myblog.blogspot.com",
        ...,
        ("com", "blogspot.com"),
        ("blogspot.com", "myblog.blogspot.com"),
        "com.blogspot.myblog",
        path="/",
    ),
    Row(
        "http://blogspot.com/",
        "blogspot.com",
        ...,
        ("com", "blogspot.com"),
        ("blogspot.com", None),
        "com.blogspot",
        path="/",
    ),
    Row(
        "http://a.b.mybucket.s3.amazonaws.com/k",
        "a.b.mybucket.s3.amazonaws.com",
        ("com", "amazonaws", "s3", "mybucket", "b"),
        ("com", "amazonaws.com"),
        ("s3.amazonaws.com", "mybucket.s3.amazonaws.com"),
        "com.amazonaws.s3.mybucket.b.a",
        path="/k",
    ),
    Row("http://140.194.76.129:8080/p/?", "140.194.76.129", **ADDRESS, port=8080, path="/p/", query=""),
    Row("http://3232235521/x", "192.168.0.1", **ADDRESS, path="/x"),
    Row("http://192.168.1/x", "192.168.0.1", **ADDRESS, path="/x"),
    Row("http://[2001:db8::1]:8080/x", "[2001:db8::1]", **ADDRESS, port=8080, path="/x"),
    Row(
        "http://localhost/x",
        "localhost",
        ("localhost", None, None, None, None),
        (None, None),
        (None, None),
        "localhost",
        path="/x",
    ),
    Row(
        "http://foo.unknowntld/",
        "foo.unknowntld",
        ("unknowntld", "foo", None, None, None),
        (None, None),
        (None, None),
        "unknowntld.foo",
        path="/",
    ),
    Row("http://example.com", "example.com", ("com", "example", None, None, None), path=""),
    Row("http://example.com?x=1", "example.com", path="", query="x=1"),
    Row("http://u:p@example.com:80/x", "example.com", port=80, path="/x"),
    Row(
        "http://münchen.de/ä?ö",
        "xn--mnchen-3ya.de",
        ("de", "xn--mnchen-3ya", None, None, None),
        ("de", "xn--mnchen-3ya.de"),
        ("de", "xn--mnchen-3ya.de"),
        "de.xn--mnchen-3ya",
        path="/ä",
        query="ö",
    ),
    Row(
        "http://пример.рф/",
        "xn--e1afmkfd.xn--p1ai",
        ("xn--p1ai", "xn--e1afmkfd", None, None, None),
        ("xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        path="/",
    ),
    Row(
        "http://city.kawasaki.jp/",
        "city.kawasaki.jp",
        ("jp", "kawasaki", "city", None, None),
        ("city.kawasaki.jp", "city.kawasaki.jp"),
        ("city.kawasaki.jp", "city.kawasaki.jp"),
        path="/",
    ),
    Row(
        "http://foo.bar.kawasaki.jp/",
        "foo.bar.kawasaki.jp",
        ("jp", "kawasaki", "bar", "foo", None),
        ("bar.kawasaki.jp", "foo.bar.kawasaki.jp"),
        ("bar.kawasaki.jp", "foo.bar.kawasaki.jp"),
        path="/",
    ),
    Row(
        "http://foo.ck/",
        "foo.ck",
        ("ck", "foo", None, None, None),
        ("foo.ck", None),
        ("foo.ck", None),
        "ck.foo",
        path="/",
    ),
    Row(
        "dns:www.example.com",
        "www.example.com",
        ("com", "example", "www", None, None),
        ("com", "example.com"),
        ("com", "example.com"),
        "com.example.www",
        path=None,
    ),
    Row("urn:uuid:6f2b", None, **ADDRESS, path=None),
    Row(
        "mailto:a@b.c",
        "",
        ("", None, None, None, None),
        (None, None),
        (None, None),
        "",
        path="a@b.c",
    ),
]

OTHERS = [
    # A name that ends in an empty label has no suffix, and is of no domain: it was one of com.com.
    Row(
        "http://example.com../",
        "example.com.",
        ("", "com", "example", None, None),
        (None, None),
        (None, None),
        ".com.example",
        path="/",
    ),
    # A trailing dot makes a name of an address; what is no address is a name too.
    Row("http://1.2.3.4./", "1.2.3.4", ("4", "3", "2", "1", None), reversed="4.3.2.1", path="/"),
    Row("http://256.1.1.1/", "256.1.1.1", ("1", "1", "1", "256", None), path="/"),
    Row("http://example.com./x", "example.com", path="/x"),
    Row("https:////h.org/x", "h.org", path="/x"),
    Row("http:/h.org/x?y", "h.org", path="/x", query="y"),
    Row("http:///h.org/x", "h.org", path="/x"),
    Row("ftp://ftp.example.com:21/pub", "ftp.example.com", port=21, path="/pub"),
    Row("whois:example.com", "example.com", path=None),
    Row("whois://whois.iana.org/8.8.8.8", "8.8.8.8", **ADDRESS, path=None),
    Row("http://ex%61mple.com/", "example.com", path="/"),
    Row("http://☕.example/", "xn--53h.example", path="/"),
    Row("http://a:notaport/", "a", port=None, path="/"),
    Row("http://a:/", "a", port=None, path="/"),
    Row("http://a:99999999999/", "a", port=None, path="/"),
    Row("http://\u2028\u200e/", None, **ADDRESS, path="/"),
    Row("no scheme at all", None, **ADDRESS, path=None),
    Row("", None, **ADDRESS, path=None),
    Row("screenshot:http://example.com/", None, **ADDRESS, path=None),
    Row("http://" + "a" * 64 + ".com/", ..., registry=("com", None), path="/"),
]


@pytest.mark.parametrize("row", GOLDEN + OTHERS, ids=lambda row: row.url[:60])
def test_the_columns_of_a_url_are_those_of_the_golden_rows(row: Row) -> None:
    found = url_columns(row.url)
    host = found.authority.host
    actual = Row(
        row.url,
        host.name,
        host[1:6],
        (host.registry_suffix, host.registered_domain),
        (host.private_suffix, host.private_domain),
        host.name_reversed,
        found.authority.port,
        found.path,
        found.query,
    )
    for name, expected, value in zip(Row._fields, row, actual, strict=True):
        assert expected is ... or value == expected, name


def test_many_urls_at_once_give_what_each_gives_alone() -> None:
    urls = [row.url for row in GOLDEN + OTHERS]
    assert _at_once(urls) == [_alone(url) for url in urls]


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.text(alphabet=st.characters(exclude_categories=["Cs"])),
            st.from_regex(
                r"(?:[hH]ttps?|dns|ftp|whois|mailto|urn):/{0,4}[a-z0-9.:@%\[\]?#/äÖ-]{0,30}",
                fullmatch=True,
            ),
        ),
        max_size=8,
    )
)
def test_whatever_the_urls_are_both_ways_agree(urls: list[str]) -> None:
    assert _at_once(urls) == [_alone(url) for url in urls]


def test_a_long_name_beyond_ascii_is_no_host() -> None:
    assert host_columns("ä" * 5000) == HostColumns()


def test_a_name_with_a_million_labels_takes_no_time_to_look_up() -> None:
    assert suffixes_of(["a"] * 1_000_000 + ["com"]).registry.domain == "a.com"


def test_the_list_of_suffixes_says_its_version() -> None:
    assert list_version()[:2] == "20"


def _at_once(urls: list[str]) -> list[dict[str, object]]:
    columns = columns_of_urls(pa.array(urls, pa.string()))
    return [
        {name: column[place].as_py() for name, column in columns.items()} for place in range(len(urls))
    ]


def _alone(url: str) -> dict[str, object]:
    found = url_columns(url)
    row: dict[str, object] = dict(zip(HOST_COLUMNS, found.authority.host, strict=True))
    return row | {
        "url_port": found.authority.port,
        "url_protocol": found.protocol,
        "url_path": found.path,
        "url_query": found.query,
    }
