"""Scrapy's requests and rows of the frontier: which requests a row can hold, and the request of a row.

A row keeps a GET that is no more than its URL: what reads the answer is the spider's `parse`, if
anything does, and what `meta` says is of redirects and depth. A request that brings more (another
callback, fields, cookies, objects in `meta`) is none for the frontier.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scrapy import Request

from amicrawl.crawl.carried import CARRIED_NUMBERS, META_JSON, PRIMARY
from amicrawl.crawl.ticket import TICKET

if TYPE_CHECKING:
    from scrapy import Spider

    from amicrawl.crawl.decision import Ticket
    from amicrawl.frontier import Dispatch

_WORDS = CARRIED_NUMBERS | {
    PRIMARY, "depth", "is_start_request", "redirect_reasons", "redirect_ttl", "redirect_urls",
    "verbatim_url",
}  # fmt: skip
"""Names in `meta` whose values a row keeps."""
_MOST = 16_384
"""Characters that the words of one row may have as JSON: the frontier is not for pages."""


def words_of(request: Request, spider: Spider | None) -> dict[str, object] | None:
    """Return what *request* says in `meta`, or None where a row cannot keep it whole."""
    if (
        type(request) is not Request
        or request.method != "GET"
        or request.body
        or request.headers
        or request.cookies
        or request.flags
        or request.cb_kwargs
        or request.errback is not None
        or (request.callback is not None and request.callback != getattr(spider, "parse", None))
    ):
        return None
    words = {name: value for name, value in request.meta.items() if name != META_JSON}
    return words if not words or (words.keys() <= _WORDS and _is_json(words)) else None


def request_of(dispatch: Dispatch, ticket: Ticket) -> Request:
    """Return the request for a row, with its *ticket*."""
    offer = dispatch.offer
    # Rows are read back from a file, which is believed no more than these words.
    words = {name: value for name, value in (offer.extra or {}).items() if name in _WORDS}
    meta = {**words, "verbatim_url": True, TICKET: ticket}
    return Request(offer.seed.url, meta=meta, priority=int(offer.priority))


def _is_json(words: dict[str, object]) -> bool:
    """Tell whether JSON brings *words* back as they are."""
    try:
        written = json.dumps(words)
    except (TypeError, ValueError, RecursionError):
        return False
    return len(written) <= _MOST and json.loads(written) == words
