"""The extension: a canonical form for whatever can be fetched."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.url_strategies import LINKS, POLICIES, URLS

from amicrawl.urls import (
    Canonical,
    Policy,
    Reason,
    Refused,
    canonical_form,
    canonicalize,
    fetchable,
    resolve,
)
from amicrawl.urls.fetchable import Fetchable


def extended(url: str) -> str:
    assert isinstance(canonicalize(url), Refused)
    form = canonical_form(url)
    assert isinstance(form, Canonical)
    assert form.extended
    return form.url


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://My_Host.Example.com.:80/A/../b?z&a=1#f", "http://my_host.example.com/b?a=1&z"),
        ("https://user:pw@r3---sn-abc.example/", "https://r3---sn-abc.example/"),
        ("http://-a.example:0081", "http://-a.example:81/"),
        ("http://[2001:DB8:0:0:1:0:0:1]:8080/", "http://[2001:db8::1:0:0:1]:8080/"),
        ("http://[::FFFF:1.2.3.4]/", "http://[::ffff:102:304]/"),
        ("http://example.com/%zz/%41%7e", "http://example.com/%zz/A~"),
        ("http://example.com/a\tb", "http://example.com/a%09b"),
        ("http://example.com/#100%", "http://example.com/"),
        ("http://u%zz@example.com/", "http://example.com/"),
        ("http://Bü_cher.de/", "http://xn--b_cher-3ya.de/"),
        ("http://%65xample.com/", "http://example.com/"),
        ("http://xn--abc-.com/%zz", "http://abc.com/%zz"),
        ("http://אa.com/", "http://xn--a-zhc.com/"),
    ],
)
def test_what_the_rules_refuse_has_a_form_if_it_can_be_fetched(url: str, form: str) -> None:
    assert extended(url) == form


def test_a_stray_percent_sign_is_not_taken_for_an_escaped_one() -> None:
    escaped = canonical_form("http://h/%25zz")
    assert isinstance(escaped, Canonical)
    assert extended("http://h/%zz") != escaped.url


def test_what_cannot_be_fetched_is_refused_for_the_reason_of_the_rules() -> None:
    assert canonical_form("ftp://h/") == Refused(Reason.OTHER_SCHEME)
    assert canonical_form("http://a b/") == Refused(Reason.MALFORMED_HOST)


def test_a_link_is_resolved_before_it_is_extended() -> None:
    form = canonical_form("../%zz?b&a", base="http://a_b.example/x/y/z")
    assert isinstance(form, Canonical)
    assert form.url == "http://a_b.example/x/%zz?a&b"


def test_a_policy_holds_for_the_extension_too() -> None:
    policy = Policy(fold_trailing_slash=True, query_deny=frozenset("b"))
    form = canonical_form("http://a_b/x/?a&b&utm_source=1", policy=policy)
    assert isinstance(form, Canonical)
    assert form.url == "http://a_b/x?a"


@given(number=st.integers(0, 2**128 - 1))
def test_an_ipv6_literal_is_written_as_rfc_5952_says(number: int) -> None:
    address = ipaddress.IPv6Address(number)
    form = canonical_form(f"http://[{address.exploded.upper()}]/")
    assert isinstance(form, Canonical)
    assert ipaddress.IPv6Address(form.host[1:-1]) == address
    if address.ipv4_mapped is None:
        assert form.host == f"[{address.compressed}]"


@given(url=URLS, policy=POLICIES)
def test_every_url_that_can_be_fetched_has_a_form(url: str, policy: Policy) -> None:
    strict, form = canonicalize(url, policy=policy), canonical_form(url, policy=policy)
    if isinstance(strict, Canonical):
        assert form == strict
    elif isinstance(fetchable(url), Fetchable):
        assert isinstance(form, Canonical)
        assert form.extended
        assert re.fullmatch(r"https?://(\[[0-9a-f:]+\]|[a-z0-9._~-]+)(:[0-9]+)?/[!-~]*", form.url)
        assert isinstance(fetchable(form.url), Fetchable)
    else:
        assert form == strict


@given(url=URLS)
def test_an_extended_form_settles_unless_a_rule_uncovers_more(url: str) -> None:
    form = canonical_form(url)
    if isinstance(form, Canonical) and form.extended:
        again = canonical_form(form.url)
        assert isinstance(again, Canonical)
        path, _, query = form.url.partition("?")
        uncovered = re.search(r"/\.{1,2}(/|$)", path) or form.host.endswith(".") or query.startswith("&")
        assert again.url == form.url or uncovered


@given(link=LINKS)
def test_a_link_has_a_form_exactly_if_it_can_be_fetched_from_its_page(link: str) -> None:
    base = "https://www.example.org/a/b?c#d"
    # The rules take "//" for nothing at all, RFC 3986 for a URL without a host.
    if not link.strip().startswith("//"):
        form = canonical_form(link, base=base)
        assert isinstance(form, Canonical) == isinstance(fetchable(resolve(base, link)), Fetchable)
