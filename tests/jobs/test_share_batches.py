"""Batches between partitions: what is in one is hostile until parsed."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

import pytest

from amicrawl.config import Identity
from amicrawl.crawl.links import PRIMARY, REQUISITE
from amicrawl.crawl.partition_member import offer_of
from amicrawl.errors import InputError
from amicrawl.frontier import Offer, Source
from amicrawl.partition.batch import PartitionLink, encoded_batch, encoded_link, links_in
from amicrawl.seed import Seed
from amicrawl.urls import Refused, UrlKey, fetchable, url_key

LINKS = [
    PartitionLink(Seed("http://example.org/"), Source.SEED),
    PartitionLink(
        Seed("http://example.org/a\udc80\ud800b\n", meta_json='{"a": "\N{SNOWMAN}"}'), Source.MANUAL
    ),
    PartitionLink(
        Seed(
            "http://example.org/x",
            "d" * 40,
            'W/"e"',
            "Sat, 21 Nov 2026 00:00:00 GMT",
            12345,
            "",
            "http://o/",
            "sha1:" + "A" * 32,
        ),
        Source.REDIRECT,
        priority=0.5,
        hops=65535,
        extra={REQUISITE: 2, PRIMARY: "http://example.org/"},
        via="http://example.org/a.css",
        route="LEE",
    ),
]


def packed(text: str) -> str:
    return zlib.compress(text.encode()).decode("utf-8", "surrogateescape")


def key_of(url: str) -> UrlKey | Refused:
    found = fetchable(url)
    return found if isinstance(found, Refused) else url_key(url, Identity.CANONICAL)


def test_a_batch_reads_back_as_written() -> None:
    links, faults = links_in(encoded_batch(map(encoded_link, LINKS)))
    assert links == LINKS
    assert faults == []


def test_every_cut_of_a_batch_is_refused() -> None:
    batch = encoded_batch(map(encoded_link, LINKS))
    for cut in range(len(batch)):
        with pytest.raises(InputError):
            links_in(batch[:cut])


def test_noise_is_refused_with_a_sentence() -> None:
    dice = random.Random(6)
    for _ in range(300):
        noise = dice.randbytes(dice.randrange(200)).decode("utf-8", "surrogateescape")
        with pytest.raises(InputError):
            links_in(noise)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "7", "null", '"text"', "[" * 100_000, "[1" + "0" * 10_000 + "]]", " " * (9 << 20) + "[]"],
    ids=["empty", "object", "number", "null", "text", "deep", "broken", "large"],
)
def test_what_is_no_list_of_links_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        links_in(packed(text))


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"u": 7, "s": 1},
        {"u": "", "s": 1},
        {"u": "http://a/" + "x" * 70_000, "s": 1},
        {"u": "http://a/", "s": 9},
        {"u": "http://a/", "s": True},
        {"u": "http://a/", "s": "1"},
        {"u": "http://a/", "s": 1, "h": -1},
        {"u": "http://a/", "s": 1, "h": 70_000},
        {"u": "http://a/", "s": 1, "h": 1.5},
        {"u": "http://a/", "s": 1, "p": "high"},
        {"u": "http://a/", "s": 1, "p": 1e300},
        {"u": "http://a/", "s": 1, "p": float("nan")},
        {"u": "http://a/", "s": 1, "x": [1]},
        {"u": "http://a/", "s": 1, "d": {"__class__": "os.system"}},
        {"u": "http://a/", "s": 1, "t": 10**30},
    ],
)
def test_one_bad_link_does_not_cost_the_others_of_its_batch(said: Any) -> None:
    links, faults = links_in(packed(json.dumps([said, {"u": "http://good/", "s": 1}])))
    assert [link.seed.url for link in links] == ["http://good/"]
    assert len(faults) == 1


def test_a_link_becomes_an_offer_with_a_key_of_our_own_making() -> None:
    offer = offer_of(LINKS[2], key_of=key_of, ours=lambda _: True)
    assert isinstance(offer, Offer)
    assert offer.key == key_of("http://example.org/x")
    assert offer.extra == LINKS[2].extra


@pytest.mark.parametrize(
    "extra",
    [
        {"proxy": "http://evil.example/"},
        {"download_timeout": 0.001},
        {"dont_redirect": True},
        {"amicrawl_ticket": 1},
        {REQUISITE: "2"},
        {REQUISITE: 10**9},
        {REQUISITE: -1},
        {PRIMARY: "javascript:alert(1)"},
        {PRIMARY: 7},
    ],
)
def test_what_no_page_could_have_said_is_not_followed(extra: dict[str, object]) -> None:
    link = PartitionLink(Seed("http://example.org/"), Source.LINK, extra=extra)
    assert isinstance(offer_of(link, key_of=key_of, ours=lambda _: True), str)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "http://", "no url"])
def test_what_cannot_be_fetched_is_no_offer(url: str) -> None:
    link = PartitionLink(Seed(url), Source.LINK)
    assert "cannot be fetched" in str(offer_of(link, key_of=key_of, ours=lambda _: True))


def test_a_host_of_another_partition_is_no_offer() -> None:
    link = PartitionLink(Seed("http://example.org/"), Source.LINK)
    assert "another partition" in str(offer_of(link, key_of=key_of, ours=lambda _: False))
