"""The canonical form: golden vectors, and what holds for every URL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from urls.url_strategies import LINKS, ORDINARY, POLICIES, URLS
from urls.vectors import VECTOR_FILES, lines, policy_in, text_in

from amicrawl.urls import (
    Canonical,
    Grouping,
    Policy,
    Reason,
    Refused,
    canonicalize,
    host_key,
    path_key,
    registrable_domain,
)
from amicrawl.urls.canonical import split, split_plain
from amicrawl.urls.grammar import text_of

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = re.compile(r"https?://[a-z0-9.-]*(:[0-9]+)?/[!-~]*")


def canonical(url: str | bytes, **options: Any) -> str:
    form = canonicalize(url, **options)
    assert isinstance(form, Canonical), form
    return form.url


def refusal(url: str | bytes, **options: Any) -> Reason:
    form = canonicalize(url, **options)
    assert isinstance(form, Refused), form
    return form.reason


def disagreements(directory: Path) -> list[str]:
    found = []
    for line in lines(directory, "canon.jsonl", entry="link"):
        policy = policy_in(line)
        form = canonicalize(text_in(line, "url"), base=line.get("base"), policy=policy)
        ours: dict[str, Any] = {"ok": isinstance(form, Canonical)}
        if isinstance(form, Canonical):
            grouping = Grouping[line["grouping_mode"].upper()].group(form.host)
            ours |= {"canonical": form.url, "host": form.host, "grouping": grouping}
            ours |= {
                "hostkey": f"0x{host_key(grouping):016x}",
                "pathkey": f"0x{path_key(form.url):016x}",
            }
            again = canonicalize(form.url, policy=policy)
            spelled = "(rejected)" if isinstance(again, Refused) else again.url
            if spelled != form.url:
                ours["canonical_of_canonical"] = spelled
        # Such a line holds for one version of the list of public suffixes.
        skipped = {"grouping", "hostkey"} if line.get("depends_on") == "public_suffix_list" else set()
        names = ("ok", "canonical", "host", "grouping", "hostkey", "pathkey", "canonical_of_canonical")
        found += [
            f"{line['id']} {line['rule']}: {name} of {text_in(line, 'url')!r} is {ours.get(name)!r}, "
            f"not {line.get(name)!r}"
            for name in names
            if name not in skipped and ours.get(name) != line.get(name)
        ]
    return found


def test_all_golden_links_agree() -> None:
    assert not disagreements(VECTOR_FILES)


def test_all_golden_host_groups_agree() -> None:
    for line in lines(VECTOR_FILES, "canon.jsonl", entry="grouping"):
        if line.get("depends_on") != "public_suffix_list":
            group = registrable_domain(line["host"])
            assert (line["id"], group) == (line["id"], line["grouping"])
            assert f"0x{host_key(group):016x}" == line["hostkey"], line["id"]
            assert f"0x{host_key(line['host']):016x}" == line["full_host_hostkey"], line["id"]


@pytest.mark.parametrize(
    ("url", "form"),
    [
        (b"http://example.com/\xff", "http://example.com/%FF"),
        (b"http://example.com/?q=\xff&q=\xc3\xa9", "http://example.com/?q=%C3%A9&q=%FF"),
        (b"\xe3\x80\x80http://example.com/\xe3\x80\x80", "http://example.com/"),
        ("http://example.com/\udc80\ud800", "http://example.com/%80%EF%BF%BD"),
        ("http://example.com/\udcc3\udca9", "http://example.com/%C3%A9"),
    ],
)
def test_octets_that_are_not_utf_8_are_kept(url: str | bytes, form: str) -> None:
    assert canonical(url) == form


def test_a_host_that_is_not_utf_8_is_refused() -> None:
    assert refusal(b"http://\xff.com/") is Reason.HOST_CHARACTER
    assert refusal(b"http://%ff.com/") is Reason.HOST_CHARACTER


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.com/a\nb", Reason.CONTROL_CHARACTER),
        ("http://example.com/a%", Reason.MALFORMED_ESCAPE),
        ("http://example.com/#100%", Reason.MALFORMED_ESCAPE),
        ("/only/a/path", Reason.NO_SCHEME),
        ("", Reason.NO_SCHEME),
        ("a:b", Reason.OTHER_SCHEME),
        ("1a:b", Reason.COLON_IN_FIRST_SEGMENT),
        (":x", Reason.COLON_IN_FIRST_SEGMENT),
        ("ftp://example.com/", Reason.OTHER_SCHEME),
        ("http:/example.com", Reason.NO_HOST),
        ("http://.", Reason.NO_HOST),
        ("http://u%zz@h/", Reason.MALFORMED_USERINFO),
        ("http://h:8a/", Reason.MALFORMED_PORT),
        ("http://h:80:80/", Reason.MALFORMED_PORT),
        ("http://h:８０/", Reason.MALFORMED_PORT),
        ("http://[::1]:x/", Reason.MALFORMED_PORT),
        ("http://[::g]/", Reason.MALFORMED_HOST),
        ("http://[::1/", Reason.MALFORMED_HOST),
        ("http://a^b/", Reason.MALFORMED_HOST),
        ("http://[::1]/", Reason.IPV6_LITERAL),
        ("http://a_b.com/", Reason.HOST_CHARACTER),
    ],
)
def test_a_refusal_says_why(url: str, reason: Reason) -> None:
    assert refusal(url) is reason


def test_a_query_is_dropped_whole_when_it_has_more_than_ten_thousand_pieces() -> None:
    assert canonical("http://h/?" + "&".join(["a"] * 10_000)).count("a") == 10_000
    assert canonical("http://h/?" + "&".join(["a"] * 10_001)) == "http://h/"


def test_a_query_is_sorted_by_decoded_octets() -> None:
    assert canonical("http://h/?%62=1&a=2&%C3%A9&%7A&a=10") == "http://h/?a=10&a=2&b=1&z&%C3%A9"


def test_a_host_that_vanishes_in_mapping_passes_once() -> None:
    """As in the files of other software. Nothing of the kind is ever fetched."""
    assert canonical("http://\xad/") == canonical("http://xn--/") == "http:///"
    assert refusal("http:///") is Reason.NO_HOST


def test_an_empty_key_is_written_as_nothing() -> None:
    assert canonical("http://h/?=b&=") == "http://h/?&=b"


def test_allowed_query_keys_keep_even_what_is_denied_or_tracks() -> None:
    policy = Policy(query_allow=frozenset(("é", "utm_source")), query_deny=frozenset(("é",)))
    url = "http://h/?x=1&utm_source=2&%C3%A9=3"
    assert canonical(url, policy=policy) == "http://h/?utm_source=2&%C3%A9=3"
    denying = Policy(query_deny=frozenset(("é",)))
    assert canonical(url, policy=denying) == "http://h/?x=1"


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/a/..//b", "//b"),
        ("/..//b", "/b"),
        ("/.//a", "//a"),
        ("//a/./..", "//"),
        ("/a/b/../../../c", "/c"),
        ("/a/.b/..c/...", "/a/.b/..c/..."),
    ],
)
def test_dot_segments_are_resolved_and_empty_segments_kept(path: str, resolved: str) -> None:
    assert canonical(f"http://h{path}") == f"http://h{resolved}"


def test_a_base_that_parses_lends_its_scheme_even_if_its_host_would_be_refused() -> None:
    assert canonical("//h/x", base="https://[::1]/") == "https://h/x"
    assert refusal("//h/x", base="https://[::g]/") is Reason.NO_SCHEME
    assert canonical("//h/x", base="http:opaque") == "http://h/x"


@given(url=URLS, policy=POLICIES)
def test_any_text_has_a_form_or_a_reason(url: str, policy: Policy) -> None:
    form = canonicalize(url, policy=policy)
    if isinstance(form, Canonical):
        assert SHAPE.fullmatch(form.url)
        assert form.url.startswith(f"{form.scheme}://{form.host}")
        assert not form.extended
    else:
        assert isinstance(form.reason, Reason)


@pytest.mark.slow
@given(url=URLS)
def test_bytes_and_text_give_the_same(url: str) -> None:
    image = text_of(url).encode("utf-8", "surrogateescape")
    assert canonicalize(image) == canonicalize(url)


@given(url=URLS)
def test_a_form_is_its_own_form_but_for_the_documented_exceptions(url: str) -> None:
    form = canonicalize(url)
    if isinstance(form, Canonical) and canonicalize(form.url) != form:
        path, _, query = form.url.partition("?")
        uncovered_dots = re.search(r"/\.{1,2}(/|$)", path)
        empty_key = query.startswith("&")
        assert uncovered_dots or not form.host or form.host.endswith(".") or empty_key


@pytest.mark.slow
@given(url=ORDINARY)
def test_the_short_way_and_the_long_way_agree(url: str) -> None:
    short = split_plain(url)
    if short is not None:
        assert short == split(url) == split(url, base="http://elsewhere.example/x/y?z")


@given(link=LINKS)
def test_a_link_means_the_same_as_its_absolute_url(link: str) -> None:
    if link.startswith("/") and not link.startswith("//"):
        assert canonicalize(link, base="https://h/a/b?c#d") == canonicalize("https://h" + link.rstrip())
