"""What a row of the frontier keeps of a request, and what it makes of it again."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import FormRequest, Request, Spider
from scrapy.http import Headers, HtmlResponse, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from amicrawl.crawl.carried import META_JSON
from amicrawl.crawl.holding import request_of, shared_state_of, words_of
from amicrawl.crawl.ticket import TICKET
from amicrawl.crawl.visit import Ticket
from amicrawl.frontier import Dispatch, Offer, Source
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

URL = "https://example.org/a?b"


class Shop(Spider):
    """A spider with callbacks of its own."""

    name = "shop"

    def parse(self, response: Any) -> None: ...

    def parse_item(self, response: Any, section: str = "") -> None: ...

    def missed(self, failure: Any) -> None: ...


class Rules(CrawlSpider):
    """A spider that Scrapy makes out of rules."""

    name = "rules"
    rules = (Rule(LinkExtractor(allow="/c"), callback="parse_item"),)

    def parse_item(self, response: Any) -> None: ...


SHOP = Shop()


def made_again(request: Request, spider: Spider = SHOP) -> Request:
    """Return *request* as a row brings it back after its words were on disk."""
    words = words_of(request, SHOP)
    assert words is not None
    extra = json.loads(json.dumps(words))
    offer = Offer(Seed(request.url), UrlKey(1, 2), Source.LINK, request.priority, extra=extra)
    return request_of(Dispatch(offer), Ticket(1), spider=spider)


json_texts = st.text(max_size=20)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | json_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_texts, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    cb_kwargs=st.dictionaries(json_texts, plain, max_size=3),
    meta=st.dictionaries(json_texts.filter(lambda name: not name.startswith("amicrawl_")), plain),
    priority=st.integers(-100, 100),
)
def test_a_request_comes_back_as_it_was(
    cb_kwargs: dict[str, Any], meta: dict[str, Any], priority: int
) -> None:
    asked = Request(URL, SHOP.parse_item, errback=SHOP.missed, meta=meta, priority=priority)
    asked.cb_kwargs.update(cb_kwargs)
    again = made_again(asked)
    assert (again.url, again.priority, again.cb_kwargs) == (URL, priority, cb_kwargs)
    assert (again.callback, again.errback) == (SHOP.parse_item, SHOP.missed)
    ours = {"verbatim_url", TICKET}
    kept = {name: value for name, value in again.meta.items() if name not in ours - meta.keys()}
    assert kept == {**meta, **{name: again.meta[name] for name in ours & meta.keys()}}


def test_what_parse_reads_needs_no_words_and_a_referer_few() -> None:
    for callback in (None, SHOP.parse):
        assert words_of(Request(URL, callback), SHOP) == {}
    linked = Request(URL, headers={"Referer": "http://a/ü".encode("latin-1")})
    assert made_again(linked).headers["Referer"] == "http://a/ü".encode("latin-1")
    fields = {"Accept": "application/json", "User-Agent": "Ünit", "x-requested-with": "XMLHttpRequest"}
    encoded = {name: value.encode("latin-1") for name, value in fields.items()}
    assert made_again(Request(URL, headers=encoded)).headers == Headers(encoded)
    # The column of the producer goes its own way.
    assert words_of(Request(URL, meta={META_JSON: "{}"}), SHOP) == {}


def test_the_rules_of_a_crawl_spider_are_kept() -> None:
    spider = Rules()
    (asked,) = spider._requests_to_follow(HtmlResponse(URL, body=b'<a href="/c">see</a>'))
    assert asked is not None
    words = words_of(asked, spider)
    assert words is not None
    offer = Offer(Seed(asked.url), UrlKey(1, 2), Source.LINK, extra=json.loads(json.dumps(words)))
    again = request_of(Dispatch(offer), Ticket(1), spider=spider)
    assert (again.callback, again.errback) == (asked.callback, asked.errback)
    assert {name: again.meta[name] for name in asked.meta} == asked.meta


def test_what_a_selector_finds_is_a_text() -> None:
    found = HtmlResponse(URL, body=b"<title>Tide</title>").css("title::text").get()
    again = made_again(Request(URL, SHOP.parse_item, cb_kwargs={"section": found}))
    assert again.cb_kwargs == {"section": "Tide"}
    assert type(again.cb_kwargs["section"]) is str


class Labelled(str):
    """A text with more to say than JSON brings back."""

    __slots__ = ("label",)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"method": "HEAD"}, id="another method"),
        pytest.param({"body": b"x"}, id="a body"),
        pytest.param({"headers": {"Authorization": "Bearer secret"}}, id="a secret field"),
        pytest.param({"headers": {"Accept": ["a/b", "c/d"]}}, id="a field twice"),
        pytest.param({"headers": {"User-Agent": "a\tb"}}, id="a field with a tab"),
        pytest.param({"cookies": {"session": "secret"}}, id="cookies"),
        pytest.param({"meta": {"proxy": "http://user:secret@10.0.0.1"}}, id="a proxy's password"),
        pytest.param({"meta": {"http_pass": "secret"}}, id="a password"),
        pytest.param({"flags": ["seen"]}, id="flags"),
        pytest.param({"callback": print}, id="a function"),
        pytest.param({"callback": partial(SHOP.parse_item, section="a")}, id="a partial method"),
        pytest.param({"callback": Shop().parse_item}, id="another spider's method"),
        pytest.param({"callback": NO_CALLBACK}, id="no callback"),
        pytest.param({"errback": print}, id="a function as errback"),
        pytest.param({"meta": {"item": object()}}, id="an object"),
        pytest.param({"meta": {"pair": (1, 2)}}, id="a tuple"),
        pytest.param({"meta": {"octets": b"x"}}, id="octets"),
        pytest.param({"meta": {"number": float("nan")}}, id="no number"),
        pytest.param({"meta": {"number": 2**63}}, id="a number beyond JSON's"),
        pytest.param({"meta": {"label": Labelled("x")}}, id="a derived text"),
        pytest.param({"meta": {"deep": {1: "x"}}}, id="a name that is no text"),
        pytest.param({"meta": {"amicrawl_callback": "parse_item"}}, id="a word of ours"),
        pytest.param({"meta": {"page": "x" * 20_000}}, id="a long text"),
        pytest.param({"cb_kwargs": {"items": ["x" * 100] * 200}}, id="many texts"),
    ],
)
def test_a_request_that_a_row_would_change_is_none_for_it(given: dict[str, Any]) -> None:
    assert words_of(Request(URL), SHOP) == {}
    assert words_of(Request(URL, **given), SHOP) is None


def test_a_request_of_a_class_of_its_own_is_none_for_a_row() -> None:
    assert words_of(FormRequest(URL, method="GET"), SHOP) is None


def test_lists_without_an_end_are_none_for_a_row() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert words_of(Request(URL, meta={"endless": endless}), SHOP) is None


def test_what_callbacks_share_is_the_same_object_while_the_process_lives() -> None:
    item: dict[str, Any] = {"images": []}
    asked = Request(URL, SHOP.parse_item, cb_kwargs={"item": item}, meta={"all": [item], "depth": 1})
    shared_state = shared_state_of(asked)
    assert shared_state is not None
    offer = Offer(Seed(URL), UrlKey(1, 2), Source.LINK, extra=words_of(asked, SHOP))
    again = request_of(Dispatch(offer), Ticket(1), spider=SHOP, shared_state=shared_state)
    assert again.cb_kwargs["item"] is item
    assert again.meta["all"] is asked.meta["all"]
    assert again.meta["depth"] == 1


def test_nothing_is_put_aside_for_numbers_and_texts_or_a_chain_of_redirects() -> None:
    meta = {"depth": 1, "redirect_urls": ["http://a/"], "redirect_reasons": [301]}
    assert shared_state_of(Request(URL, meta=meta, cb_kwargs={"section": "a"})) is None


@pytest.mark.parametrize("name", ["gone", "name", "__init_subclass__", "", 7, ["parse"]])
def test_a_name_that_is_no_method_of_the_spider_calls_nothing(
    name: object, caplog: pytest.LogCaptureFixture
) -> None:
    extra = {
        "amicrawl_callback": name,
        "amicrawl_cb_kwargs": ["no", "names"],
        "amicrawl_referer": 5,
        "amicrawl_headers": {"Accept": "a\r\nCookie: b", "Cookie": "c", "User-Agent": ["d"]},
    }
    offer = Offer(Seed(URL), UrlKey(1, 2), Source.LINK, extra=extra)
    again = request_of(Dispatch(offer), Ticket(1), spider=SHOP)
    assert (again.cb_kwargs, dict(again.headers)) == ({}, {})
    assert again.callback is not None
    with caplog.at_level(logging.WARNING):
        assert again.callback(TextResponse(URL), section="a") is None
    assert f"the spider has no method {name!r} any more" in caplog.text
