"""Holding: what a row of the frontier keeps of a request, and the request that is made of it again.

A row keeps a GET: its URL and priority, and as words who is to read the answer (methods of the spider,
by name), with which arguments, and what its `meta` says. Words are kept as JSON, exactly or not at all:
what JSON would change (objects, tuples, octets) stays out, and so do headers and cookies, which may be
secrets and would lie on disk. A request of which anything cannot be kept is none for the frontier.

Rows are read back from a file. A name in them that is no method of the spider calls nothing.
"""

from __future__ import annotations

import logging
from functools import partial
from inspect import ismethod
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request

from amicrawl.crawl.carried import CALLBACK, CB_KWARGS, ERRBACK, REFERER
from amicrawl.crawl.redirects import CHAIN, META_JSON
from amicrawl.crawl.ticket import TICKET

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Spider

    from amicrawl.crawl.ticket import Ticket
    from amicrawl.frontier import Dispatch

logger = logging.getLogger(__name__)

_OURS = "amicrawl_"
_HEADERS = frozenset({b"Referer"})
"""Scrapy gives it to every link that a callback yields."""
_MOST = 16_384
"""Characters that the words of one row may have: the frontier is no place for pages."""
_DEEPEST = 20
_GREATEST = 2**63
_PLAIN = frozenset({str, int, float, bool, type(None), list, dict})
"""Of exactly these types is what JSON brings back; what is derived from them has more to say."""


class Keepsake(NamedTuple):
    """What a callback may share with others while the process lives: the very objects, no copies."""

    cb_kwargs: dict[str, Any]
    meta: dict[str, Any]


def words_of(request: Request, spider: Spider | None) -> dict[str, object] | None:
    """Return the words of *request*, or None where a row cannot keep it whole."""
    if (
        # What a class of somebody else's means would be gone.
        type(request) is not Request
        or request.method != "GET"
        or request.body
        or request.cookies
        or request.flags
        or not request.headers.keys() <= _HEADERS
    ):
        return None
    words: dict[str, object] = {k: v for k, v in request.meta.items() if k != META_JSON}
    if any(str(name).startswith(_OURS) for name in words):
        return None
    for word, method in ((CALLBACK, request.callback), (ERRBACK, request.errback)):
        if method is None or (word is CALLBACK and method == getattr(spider, "parse", None)):
            continue
        name = _name_of(method, spider)
        if not name:
            return None
        words[word] = name
    if request.cb_kwargs:
        words[CB_KWARGS] = request.cb_kwargs
    if referer := request.headers.get("Referer"):
        words[REFERER] = referer.decode("latin-1")
    return words if not words or _weight(words) <= _MOST else None


def keepsake_of(request: Request) -> Keepsake | None:
    """Return what of *request*, whose words are kept, is more than its words; None for nothing.

    Callbacks may meet in a list or a dictionary that each of their requests carries. A row that is read
    back brings a copy; while the process lives it must be the same one.
    """
    meta = {
        name: value
        for name, value in request.meta.items()
        if isinstance(value, list | dict) and name not in CHAIN
    }
    if meta or any(isinstance(value, list | dict) for value in request.cb_kwargs.values()):
        return Keepsake(request.cb_kwargs, meta)
    return None


def request_of(
    dispatch: Dispatch, ticket: Ticket, *, spider: Spider | None, keepsake: Keepsake | None = None
) -> Request:
    """Return the request for a row, with its *ticket*, and what was put aside of it if anything was."""
    offer = dispatch.offer
    words = dict(offer.extra or {})
    referer = words.pop(REFERER, None)
    callback, errback = words.pop(CALLBACK, None), words.pop(ERRBACK, None)
    cb_kwargs = words.pop(CB_KWARGS, None)
    if keepsake is not None:
        cb_kwargs = keepsake.cb_kwargs
        words.update(keepsake.meta)
    return Request(
        offer.seed.url,
        callback=None if callback is None else _method_of(spider, callback),
        errback=None if errback is None else _method_of(spider, errback),
        cb_kwargs=cb_kwargs if isinstance(cb_kwargs, dict) else None,
        headers=_fields_of(referer),
        meta={**words, "verbatim_url": True, TICKET: ticket},
        priority=int(offer.priority),
    )


def _fields_of(referer: object) -> dict[str, bytes] | None:
    if isinstance(referer, str) and referer.isprintable():
        return {"Referer": referer.encode("latin-1", "ignore")}
    return None


def _name_of(method: Callable[..., Any], spider: Spider | None) -> str:
    """Return the name by which *method* is found in *spider*; empty where it is not its method."""
    name = getattr(method, "__name__", "")
    is_its = spider is not None and getattr(method, "__self__", None) is spider
    return name if is_its and getattr(spider, name, None) == method else ""


def _method_of(spider: Spider | None, name: object) -> Callable[..., Any]:
    found = getattr(spider, name, None) if isinstance(name, str) else None
    if ismethod(found) and found.__self__ is spider:
        return found
    return partial(_nobody_reads, name)


def _nobody_reads(name: object, *_: object, **__: object) -> None:
    """Take the place of a method that the spider had when it asked."""
    logger.warning(
        "A page was fetched and kept, and not read: the spider has no method %r any more.", name
    )


def _weight(value: Any, depth: int = _DEEPEST) -> float:
    """Return about how many characters *value* has as JSON; infinity where JSON would change it."""
    # What selectors find in a page is lxml's: texts that know their element. Nobody asks them for it.
    if type(value) not in _PLAIN and type(value).__module__ != "lxml.etree":
        return inf
    if isinstance(value, list | dict):
        return _weight_of_many(value, depth - 1) if depth else inf
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, float):
        return 24 if isfinite(value) else inf
    if value is None:
        return 4
    # Longer ones are none that every reader of JSON takes.
    return 20 if isinstance(value, int) and -_GREATEST <= value < _GREATEST else inf


def _weight_of_many(values: list[Any] | dict[Any, Any], depth: int) -> float:
    if isinstance(values, list):
        return 2 + sum(_weight(each, depth) + 1 for each in values)
    if any(type(name) is not str for name in values):
        return inf
    return 2 + sum(len(name) + 4 + _weight(each, depth) for name, each in values.items())
