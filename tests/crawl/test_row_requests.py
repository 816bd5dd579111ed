"""What a row of the frontier keeps of a request, and what it makes of it again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.settings import Settings

from amicrawl.crawl.decision import Ticket
from amicrawl.crawl.links import META_JSON
from amicrawl.crawl.requests import TICKET, default_fields, request_of, row_meta
from amicrawl.frontier import Dispatch, Offer, Source
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

URL = "https://example.org/a?b"


class Shop(Spider):
    """A spider with callbacks of its own."""

    name = "shop"

    def parse(self, response: Any) -> None: ...

    def parse_item(self, response: Any) -> None: ...


SHOP = Shop()


def made_again(extra: dict[str, Any], *, priority: int = 0) -> Request:
    """Return the request for a row whose words were on disk."""
    offer = Offer(Seed(URL), UrlKey(1, 2), Source.LINK, priority, extra=json.loads(json.dumps(extra)))
    return request_of(Dispatch(offer), Ticket(1))


def test_a_request_that_is_its_url_comes_back_as_it_was() -> None:
    meta = {"depth": 2, "redirect_times": 1, "redirect_urls": ["http://a/"], "redirect_reasons": [301]}
    words = row_meta(Request(URL, SHOP.parse, meta=meta, priority=7), SHOP)
    assert words == meta
    again = made_again(words, priority=7)
    assert (again.url, again.priority, again.callback, again.headers) == (URL, 7, None, {})
    assert again.meta == {**meta, "verbatim_url": True, TICKET: again.meta[TICKET]}


def test_the_column_of_the_producer_goes_its_own_way() -> None:
    assert row_meta(Request(URL, meta={META_JSON: "{}"}), SHOP) == {}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"method": "HEAD"}, id="another method"),
        pytest.param({"body": b"x"}, id="a body"),
        pytest.param({"headers": {"Authorization": "Bearer secret"}}, id="a field"),
        pytest.param({"cookies": {"session": "secret"}}, id="cookies"),
        pytest.param({"flags": ["seen"]}, id="flags"),
        pytest.param({"callback": SHOP.parse_item}, id="another callback"),
        pytest.param({"callback": Shop().parse}, id="another spider's method"),
        pytest.param({"errback": SHOP.parse_item}, id="an errback"),
        pytest.param({"cb_kwargs": {"item": 1}}, id="arguments"),
        pytest.param({"meta": {"http_pass": "secret"}}, id="a word of others"),
        pytest.param({"meta": {"depth": object()}}, id="an object"),
        pytest.param({"meta": {"redirect_urls": ("http://a/",)}}, id="a tuple"),
        pytest.param({"meta": {"redirect_ttl": float("nan")}}, id="no number"),
        pytest.param({"meta": {"redirect_urls": ["x" * 20_000]}}, id="a long text"),
    ],
)
def test_a_request_that_a_row_would_change_is_none_for_it(given: dict[str, Any]) -> None:
    assert row_meta(Request(URL), SHOP) == {}
    assert row_meta(Request(URL, **given), SHOP) is None


def test_a_request_of_a_class_of_its_own_is_none_for_a_row() -> None:
    assert row_meta(FormRequest(URL, method="GET"), SHOP) is None


def test_lists_without_an_end_are_none_for_a_row() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert row_meta(Request(URL, meta={"redirect_urls": endless}), SHOP) is None


def test_of_a_row_from_a_file_nothing_else_becomes_part_of_a_request() -> None:
    again = made_again({"proxy": "http://10.0.0.1", "amicrawl_callback": "parse_item", "depth": 1})
    assert again.meta.keys() == {"depth", "verbatim_url", TICKET}
    assert (again.callback, again.errback, again.cb_kwargs) == (None, None, {})


def test_a_default_field_takes_the_place_of_the_usual_one_in_any_case() -> None:
    named = {"user-agent": "own", "ACCEPT-ENCODING": "identity", "X-Own": 1, "Accept": None}
    settings = Settings({"USER_AGENT": "usual", "DEFAULT_REQUEST_HEADERS": named})
    sent = [(b"user-agent", b"own"), (b"X-Own", b"1"), (b"ACCEPT-ENCODING", b"identity")]
    assert default_fields(settings) == sent
