"""What is fetched: as found, and nothing that could forge a message."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.url_strategies import ANY_TEXT, URLS

from amicrawl.urls import Reason, Refused, fetchable
from amicrawl.urls.fetchable import LONGEST_URL, Fetchable
from amicrawl.urls.grammar import text_of

PRINTABLE = re.compile(r"[!-~]+")
UNFIT = set('"<>\\^`{|}')


def fetched(url: str | bytes) -> Fetchable:
    found = fetchable(url)
    assert isinstance(found, Fetchable), found
    return found


@pytest.mark.parametrize(
    "url",
    [
        "HTTP://Example.COM/B/../a//b/?z=1&a=2&utm_source=x#Frag",
        "http://example.com:80/%7euser/%zz/100%?a[]=1&b=[2]",
        "https://user:pw@my_host.example:08443/a;b=c,d",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://2130706433/",
        "http://[2001:DB8::1]:8080/x",
        "http://h#a#b?c",
        "http://h:/",
    ],
)
def test_a_url_that_can_be_sent_is_left_as_it_is(url: str) -> None:
    assert fetched(url).url == url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("  http://h/a\n", "http://h/a"),
        ("\u3000http://h/\xa0", "http://h/"),
        ("http://h/a b?c d#e f", "http://h/a%20b?c%20d#e%20f"),
        ("http://h/é?é#é", "http://h/%C3%A9?%C3%A9#%C3%A9"),
        ('http://h/"<>\\^`{|}', "http://h/%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("http://h/\x00\t\r\n\x7f", "http://h/%00%09%0D%0A%7F"),
        ("http://Bücher.Example./", "http://xn--bcher-kva.example./"),
        ("http://%C3%A9.x/", "http://xn--9ca.x/"),
        ("http://u é@h/", "http://u%20%C3%A9@h/"),
        (b"http://h/\xff\xc3\xa9", "http://h/%FF%C3%A9"),
        ("http://h/\udcff\ud800", "http://h/%FF%EF%BF%BD"),
    ],
)
def test_what_cannot_be_sent_is_encoded(url: str | bytes, name: str) -> None:
    assert fetched(url).url == name


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "wire_url"),
    [
        ("http://h", "h", None, "/", "http://h/"),
        ("http://h?q#f", "h", None, "/?q", "http://h/?q"),
        ("http://h#f?g", "h", None, "/", "http://h/"),
        ("HTTPS://H.x.:0443/a/../b?#", "H.x.", 443, "/a/../b?", "https://H.x.:443/a/../b?"),
        ("http://h:/é", "h", None, "/%C3%A9", "http://h/%C3%A9"),
        ("http://h:0/", "h", 0, "/", "http://h:0/"),
        ("http://[::1]:65535?", "[::1]", 65535, "/?", "http://[::1]:65535/?"),
        ("http://a@b@c\\@d/x", "d", None, "/x", "http://a%40b%40c%5C@d/x"),
        ("http://a[::1]:b@d/", "d", None, "/", "http://a%5B::1%5D:b@d/"),
    ],
)
def test_the_parts_that_go_over_the_wire(
    url: str, host: str, port: int | None, target: str, wire_url: str
) -> None:
    found = fetched(url)
    assert (found.host, found.port, found.request_target, found.wire_url) == (
        host,
        port,
        target,
        wire_url,
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", Reason.NO_SCHEME),
        ("//h/x", Reason.NO_SCHEME),
        ("ftp://h/", Reason.OTHER_SCHEME),
        ("javascript:alert(1)", Reason.OTHER_SCHEME),
        ("http:h", Reason.NO_HOST),
        ("http:///h", Reason.NO_HOST),
        ("http://:80/", Reason.NO_HOST),
        ("http://u@/", Reason.NO_HOST),
        ("http://../", Reason.NO_HOST),
        ("http://\xad/", Reason.NO_HOST),
        ("http://h:65536/", Reason.PORT_OUT_OF_RANGE),
        ("http://h:" + "9" * 5000 + "/", Reason.PORT_OUT_OF_RANGE),
        ("http://h:8o/", Reason.MALFORMED_PORT),
        ("http://h:-1/", Reason.MALFORMED_PORT),
        ("http://h:８０/", Reason.MALFORMED_PORT),
        ("http://[::1]:x/", Reason.MALFORMED_PORT),
        ("http://[::1", Reason.MALFORMED_HOST),
        ("http://[::1]x/", Reason.MALFORMED_HOST),
        ("http://[1.2.3.4]/", Reason.MALFORMED_HOST),
        ("http://[fe80::1%25eth0]/", Reason.MALFORMED_HOST),
        ("http://[fe80::1%eth0]/", Reason.MALFORMED_HOST),
        ("http://a%zz/", Reason.MALFORMED_HOST),
        ("http://exa mple.com/", Reason.HOST_CHARACTER),
        ("http://a\r\nHost: b/", Reason.HOST_CHARACTER),
        ("http://a:80\r\nX: b/", Reason.MALFORMED_PORT),
        ("http://a\tb/", Reason.HOST_CHARACTER),
        ("http://a%0d%0ab/", Reason.HOST_CHARACTER),
        ("http://a%2fb/", Reason.HOST_CHARACTER),
        ("http://a\\b/", Reason.HOST_CHARACTER),
        ("http://\ud800/", Reason.HOST_CHARACTER),
        ("http://h/" + "a" * LONGEST_URL, Reason.TOO_LONG),
    ],
)
def test_what_cannot_be_fetched_is_refused_with_the_reason(url: str, reason: Reason) -> None:
    assert fetchable(url) == Refused(reason)


def test_leading_zeros_of_a_port_do_not_count_however_many() -> None:
    assert fetched("http://h:" + "0" * 9000 + "80/").port == 80


@pytest.mark.slow
@given(url=st.one_of(URLS, ANY_TEXT.map("http://h/".__add__), ANY_TEXT.map("http://".__add__)))
def test_whatever_is_fetched_is_printable_ascii_without_spaces(url: str) -> None:
    found = fetchable(url)
    if isinstance(found, Fetchable):
        for text in (found.url, found.wire_url, found.request_target, found.host):
            assert PRINTABLE.fullmatch(text)
            assert not UNFIT & set(text)
        assert found.scheme in ("http", "https")
        assert found.request_target.startswith("/")
        assert "#" not in found.wire_url
        assert found.wire_url.endswith(found.request_target)


@pytest.mark.slow
@given(url=URLS)
def test_another_reader_finds_the_same_host_and_port_in_the_wire_url(url: str) -> None:
    """If readers could differ, a guard could be shown one host and the wire another."""
    found = fetchable(url)
    if isinstance(found, Fetchable):
        other = urlsplit(found.wire_url)
        assert other.hostname == found.host.lower().strip("[]")
        assert other.port == found.port
        assert (
            other.path + (f"?{other.query}" if "?" in found.wire_url else "")
        ) == found.request_target


@pytest.mark.slow
@given(url=URLS)
def test_the_name_is_fetched_as_the_url_was(url: str) -> None:
    found = fetchable(url)
    if isinstance(found, Fetchable):
        assert fetchable(found.url) == found
        assert fetchable(text_of(url).encode("utf-8", "surrogateescape")) == found


@given(head=st.sampled_from(["http://h/", "http://h/?", "http://h/#", "http://u:p@h/"]), tail=ANY_TEXT)
def test_only_what_must_be_is_encoded(head: str, tail: str) -> None:
    fit = "".join(character for character in tail if "!" <= character <= "~" and character not in UNFIT)
    assert fetched(head + fit).url == head + fit
