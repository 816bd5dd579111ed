"""Requests: those of Scrapy, those that a row of the frontier stands for, and those that are sent.

A row keeps a GET that is no more than its URL: what reads the response is the spider's `parse`, if
anything does, and what `meta` says is of redirects and depth. A request that brings more (another
callback, fields, cookies, objects in `meta`) is none for the frontier.

Scrapy does not report the end of a request to a scheduler. Every request that leaves ours therefore has
a ticket in its `meta`; the visit notes the outcome of the fetch on it, and the downloader hands it in
when the request has left.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scrapy import Request

from amicrawl.crawl.decision import Ticket
from amicrawl.crawl.links import CARRIED_NUMBERS, MAX_BODY, META_JSON, PRIMARY, PROVENANCE
from amicrawl.fetch import WireRequest
from amicrawl.record import OF_SEED, Provenance
from amicrawl.urls import Refused, fetchable, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.credentials import Credentials
    from amicrawl.frontier import Dispatch
    from amicrawl.seed import Seed

TICKET = "amicrawl_ticket"
"""The `Request.meta` key that holds the ticket."""

NOTHING_MORE = Request("about:blank")
"""In the place of a response that no callback reads; the scheduler takes it and does nothing."""


def ticket_of(request: Request) -> Ticket | None:
    """Return the ticket that *request* carries, if it was given one."""
    ticket = request.meta.get(TICKET)
    return ticket if isinstance(ticket, Ticket) else None


class ResponsesInUse:
    """Rows whose responses callbacks are reading; *settle* is called once that is over.

    A response opens the gate of its host at once, but its row stays in flight until what the callback
    requested is in the frontier: a crawl that dies in between has the page read again, as the links that
    the callback had not yielded yet would be lost with a settled row.
    """

    def __init__(self, settle: Callable[[Ticket], object]) -> None:
        self._settle = settle
        self._unread: dict[Request, Ticket] = {}

    def begin(self, request: Request, ticket: Ticket) -> None:
        """Note that the response to *request* is being read."""
        self._unread[request] = ticket

    def end(self, unfinished: Container[Request] = ()) -> None:
        """Settle the rows of all that were read: those whose requests are not *unfinished*."""
        if not self._unread:
            return
        for request in [each for each in self._unread if each not in unfinished]:
            self._settle(self._unread.pop(request))


def provenance_of_request(request: Request) -> Provenance:
    """Return how the URL of *request*, for which there is no row, was found, as far as it says so."""
    meta = request.meta
    known = meta.get(PROVENANCE)
    if isinstance(known, Provenance):
        return known
    referrer = request.headers.get(b"Referer") or b""
    via, hops = referrer.decode("latin-1"), _count(meta.get("depth"))
    if redirects := _count(meta.get("redirect_times")):
        before = meta.get("redirect_urls")
        via = str(before[-1]) if isinstance(before, list) and before else via
        return Provenance(without_userinfo(via), "redirect", hops + redirects)
    return Provenance(without_userinfo(via), "link", hops) if via or hops else OF_SEED


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


_WORDS = CARRIED_NUMBERS | {
    PRIMARY, "depth", "is_start_request", "redirect_reasons", "redirect_ttl", "redirect_urls",
    "verbatim_url",
}  # fmt: skip
"""Names in `meta` whose values a row keeps."""
_MOST = 16_384
"""Characters that the words of one row may have as JSON: the frontier is not for pages."""


def row_meta(request: Request, spider: Spider | None) -> dict[str, object] | None:
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


Fields = list[tuple[bytes, bytes]]

_CODINGS = "gzip, deflate, br"
"""The content codings that replay tools can undo."""


def default_fields(settings: BaseSettings) -> Fields:
    """Return what Scrapy's middlewares would put on each request anew; last what codings are welcome."""
    named = settings.getdict("DEFAULT_REQUEST_HEADERS")
    # Names are the same in any case, as they are to Scrapy; a server would get both.
    usual = {"user-agent": ("User-Agent", settings["USER_AGENT"])}
    headers = {**usual, **{name.lower(): (name, value) for name, value in named.items()}}
    codings = headers.pop("accept-encoding", ("Accept-Encoding", _CODINGS))
    return [
        (name.encode("ascii"), str(value).encode("utf-8"))
        for name, value in [*headers.values(), codings]
        if value is not None
    ]


def wire_request(
    request: Request,
    *,
    seed: Seed | None,
    defaults: Sequence[tuple[bytes, bytes]],
    timeout: float,
    credentials: Credentials | None = None,
) -> WireRequest | Refused:
    """Return what is sent for *request*, or why nothing can be.

    *defaults* stand before the request's own fields; the conditions that *seed* knows of, behind them,
    and then the *credentials* for its URL that it has none of itself. *timeout* (seconds) is the
    crawl's; `download_timeout` in `meta` can only shorten it.
    """
    target = fetchable(request.url)
    if isinstance(target, Refused):
        return target
    fields = [*defaults]
    if request.headers:
        fields += [(name, value) for name, values in request.headers.items() for value in values or ()]
    if seed is not None:
        fields += conditions_of(seed)
    hidden: frozenset[bytes] = frozenset()
    if credentials is not None:
        fields, hidden = credentials.added_to(fields, target)
    if request.body:
        fields.append((b"Content-Length", b"%d" % len(request.body)))
    own = request.meta.get("download_timeout")
    return WireRequest(
        url=target.url,
        wire_url=target.wire_url,
        method=request.method,
        fields=fields,
        body=request.body,
        timeout=min(float(own), timeout) if own else timeout,
        proxy=request.meta.get("proxy") or (credentials.proxy if credentials is not None else ""),
        max_body=request.meta.get(MAX_BODY),
        hidden=hidden,
    )


def conditions_of(seed: Seed) -> Fields:
    """Return the fields that request the page only if it differs from the earlier capture."""
    fields = []
    for name, value in ((b"If-None-Match", seed.etag), (b"If-Modified-Since", seed.last_modified)):
        # What a seed list says goes into a request: only what a field value may hold (RFC 9110, 5.5).
        if value and value.isascii() and value.isprintable():
            fields.append((name, value.encode("ascii")))
    return fields
