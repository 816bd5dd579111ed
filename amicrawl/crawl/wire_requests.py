"""What goes over the wire for a Scrapy request, and for a row that is visited without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.crawl.carried import MAX_BODY
from amicrawl.fetch import WireRequest
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy import Request
    from scrapy.settings import BaseSettings

    from amicrawl.crawl.credentials import Credentials
    from amicrawl.frontier import Dispatch
    from amicrawl.seed import Seed
    from amicrawl.urls import Fetchable

Fields = list[tuple[bytes, bytes]]

_CODINGS = "gzip, deflate, br"
"""The content codings that replay tools can undo."""


def default_fields(settings: BaseSettings) -> Fields:
    """Return what Scrapy's middlewares would put on each request anew; last what codings are welcome."""
    headers = {"User-Agent": settings["USER_AGENT"], **settings.getdict("DEFAULT_REQUEST_HEADERS")}
    codings = headers.pop("Accept-Encoding", _CODINGS)
    return [
        (name.encode("ascii"), str(value).encode("utf-8"))
        for name, value in [*headers.items(), ("Accept-Encoding", codings)]
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
        fields += _conditions(seed)
    hidden: frozenset[bytes] = frozenset()
    if credentials is not None:
        fields, hidden = _with_secrets(fields, credentials, target)
    if request.body:
        fields.append((b"Content-Length", b"%d" % len(request.body)))
    asked = request.meta.get("download_timeout")
    return WireRequest(
        url=target.url,
        wire_url=target.wire_url,
        method=request.method,
        fields=fields,
        body=request.body,
        timeout=min(float(asked), timeout) if asked else timeout,
        proxy=request.meta.get("proxy") or (credentials.proxy if credentials is not None else ""),
        max_body=request.meta.get(MAX_BODY),
        hidden=hidden,
    )


class RowRequests:
    """What goes over the wire for rows that are visited without Scrapy."""

    def __init__(self, defaults: Sequence[tuple[bytes, bytes]], credentials: Credentials) -> None:
        """*defaults* and *credentials* are those of `wire_request`."""
        self._defaults = tuple(defaults)
        self._credentials = credentials
        self._usual = WireRequest("", fields=self._defaults, proxy=credentials.proxy)[2:]
        self._is_secretive = bool(credentials.auth or credentials.cookies)

    def __call__(self, dispatch: Dispatch) -> WireRequest | Refused:
        """Return what is sent for the row *dispatch*, or why nothing can be."""
        seed = dispatch.offer.seed
        target = fetchable(seed.url)
        if isinstance(target, Refused):
            return target
        # Nearly all rows ask for the same but for the URL.
        asked = WireRequest(target.url, target.wire_url, *self._usual)
        if seed.etag or seed.last_modified:
            asked = asked._replace(fields=[*self._defaults, *_conditions(seed)])
        if self._is_secretive:
            fields, hidden = _with_secrets([*asked.fields], self._credentials, target)
            asked = asked._replace(fields=fields, hidden=hidden)
        return asked


def _with_secrets(
    fields: Fields, credentials: Credentials, target: Fetchable
) -> tuple[Fields, frozenset[bytes]]:
    """Return *fields* and what *credentials* add for *target*, and the names of the latter."""
    own = {name.lower() for name, _ in fields}
    secret = [field for field in credentials.fields_for(target) if field[0].lower() not in own]
    return [*fields, *secret], frozenset(name.lower() for name, _ in secret)


def _conditions(seed: Seed) -> Fields:
    """Return the fields that ask for the page only if it differs from the earlier capture."""
    fields = []
    for name, value in ((b"If-None-Match", seed.etag), (b"If-Modified-Since", seed.last_modified)):
        # What a seed list says goes into a request: only what a field value may hold (RFC 9110, 5.5).
        if value and value.isascii() and value.isprintable():
            fields.append((name, value.encode("ascii")))
    return fields
