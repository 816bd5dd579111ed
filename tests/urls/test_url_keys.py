"""URL keys: golden vectors, and what a key depends on."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urls.url_strategies import URLS
from urls.vectors import VECTOR_FILES, lines, text_in
from xxhash import xxh64_intdigest

from amicrawl.config import Identity
from amicrawl.urls import (
    Canonical,
    Grouping,
    UrlKey,
    canonical_form,
    fetchable,
    host_key,
    path_key,
    seed_key,
    url_key,
)
from amicrawl.urls.fetchable import Fetchable
from amicrawl.urls.grammar import text_of
from amicrawl.urls.key import raw_split

NUMBERS = st.integers(0, 2**64 - 1)


def test_golden_hashes_agree() -> None:
    for line in lines(VECTOR_FILES, "keys.jsonl", kind="hash"):
        text = text_of(text_in(line, "text"))
        assert f"0x{host_key(text):016x}" == line["host_key"], line
        assert f"0x{path_key(text):016x}" == line["path_key"], line


def test_golden_keys_have_their_image_and_order() -> None:
    golden = sorted(lines(VECTOR_FILES, "keys.jsonl", kind="key"), key=lambda line: int(line["index"]))
    keys = [UrlKey(int(line["host_key"], 0), int(line["path_key"], 0)) for line in golden]
    for key, line in zip(keys, golden, strict=True):
        assert struct.pack("<QQ", *key).hex() == line["bytes"]
        compared = [(key > other) - (key < other) for other in keys]
        assert compared == line["compare_with_each"], line["index"]


def test_golden_direct_seeds_agree() -> None:
    for line in lines(VECTOR_FILES, "canon.jsonl", entry="seed"):
        assert (line["id"], *raw_split(line["url"])) == (line["id"], line["host"], line["remainder"])
        key = seed_key(line["url"])
        assert (f"0x{key.host:016x}", f"0x{key.path:016x}") == (line["hostkey"], line["pathkey"])


@given(keys=st.lists(st.builds(UrlKey, NUMBERS, NUMBERS)))
def test_keys_sort_by_host_first(keys: list[UrlKey]) -> None:
    for lower, upper in pairwise(sorted(keys)):
        assert (lower.host << 64 | lower.path) <= (upper.host << 64 | upper.path)


def test_variants_are_one_under_the_canonical_identity_and_two_under_the_exact() -> None:
    plain, variant = "http://example.com/a", "HTTP://Example.com:80/./a?utm_source=x#top"
    assert url_key(plain, Identity.CANONICAL) == url_key(variant, Identity.CANONICAL)
    exact = url_key(plain, Identity.EXACT), url_key(variant, Identity.EXACT)
    assert exact[0].host == exact[1].host
    assert exact[0].path != exact[1].path


def test_the_exact_path_half_hashes_the_url_as_written() -> None:
    url = "http://Example.com/é?b&a#f"
    seed = bytes.fromhex("157c4a7fb979379e")
    assert url_key(url, Identity.EXACT).path == xxh64_intdigest(seed + url.encode())
    assert url_key(b"http://h/\xff", Identity.EXACT).path == xxh64_intdigest(seed + b"http://h/\xff")


def test_hosts_of_one_domain_share_the_host_half_unless_grouped_by_host() -> None:
    urls = ("http://a.example.co.uk/", "https://user@b.Example.co.uk.:8080/x")
    for identity in Identity:
        domain = {url_key(url, identity).host for url in urls}
        assert domain == {host_key("example.co.uk")}
        full = [url_key(url, identity, grouping=Grouping.FULL_HOST).host for url in urls]
        assert full == [host_key("a.example.co.uk"), host_key("b.example.co.uk")]


def test_a_url_that_cannot_be_fetched_is_keyed_as_written() -> None:
    for url in ("ftp://example.com/x", "http://exa mple.com/", "no url", "http://" + "a b" * 500):
        key = url_key(url, Identity.CANONICAL)
        assert key == url_key(url, Identity.EXACT)
        assert key == UrlKey(host_key(raw_split(url)[0]), path_key(url))


@pytest.mark.slow
@given(url=URLS, grouping=st.sampled_from(Grouping))
def test_both_identities_put_a_url_under_the_same_host(url: str, grouping: Grouping) -> None:
    """A partition's hosts must not depend on the identity that a crawl chose."""
    if not isinstance(fetchable(url), Fetchable):
        return
    form = canonical_form(url)
    assert isinstance(form, Canonical)
    exact = url_key(url, Identity.EXACT, grouping=grouping)
    assert exact.host == host_key(grouping.group(form.host))
    assert exact.host == url_key(url, Identity.CANONICAL, grouping=grouping).host
