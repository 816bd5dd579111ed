"""Holding: what a row of the frontier keeps of a request, and the request that is made of it again.

A row keeps a GET: its URL and priority, and as words who is to read the answer (methods of the spider,
by name), with which arguments, and what its `meta` says. Words are kept as JSON, exactly or not at all:
what JSON would change (objects, tuples, octets) stays out, and so do cookies and fields that may be
secrets, since words lie on disk. A request of which anything cannot be kept is none for the frontier.

Rows are read back from a file. A name in them that is no method of the spider calls nothing.
"""

from __future__ import annotations

import logging
from functools import partial
from inspect import ismethod
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request

from amicrawl.crawl.carried import CALLBACK, CB_KWARGS, ERRBACK, HEADERS, META_JSON, REFERER
from amicrawl.crawl.ticket import TICKET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Spider

    from amicrawl.crawl.visit import Ticket
    from amicrawl.frontier import Dispatch

logger = logging.getLogger(__name__)

_OURS = "amicrawl_"
_REFERER = b"Referer"
"""Scrapy gives it to every link that a callback yields."""
_FIELDS = frozenset({"Accept", "Accept-Language", "User-Agent", "X-Requested-With"})
"""Names of fields that say nothing of who asks; of any other that cannot be known."""
_SECRET = frozenset({"http_user", "http_pass", "_auth_proxy", "ftp_user", "ftp_password"})
"""Names that Scrapy gives to passwords in `meta`; one may stand in the address of a proxy, too."""
_OF_REDIRECTS = frozenset({"redirect_urls", "redirect_reasons"})
_MOST = 16_384
"""Characters that the words of one row may have: the frontier is no place for pages."""
_DEEPEST = 20
_GREATEST = 2**63
_PLAIN = frozenset({str, int, float, bool, type(None), list, dict})
"""Of exactly these types is what JSON brings back; what is derived from them has more to say."""


class SharedState(NamedTuple):
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
    ):
        return None
    words: dict[str, object] = {k: v for k, v in request.meta.items() if k != META_JSON}
    if words and not _may_lie_on_disk(words):
        return None
    if not _take_methods(request, words, spider):
        return None
    if request.headers and not _take_fields(request, words):
        return None
    if request.cb_kwargs:
        words[CB_KWARGS] = request.cb_kwargs
    return words if not words or _weight(words) <= _MOST else None


def shared_state_of(request: Request) -> SharedState | None:
    """Return what of *request*, whose words are kept, is more than its words; None for nothing.

    Callbacks may meet in a list or a dictionary that each of their requests carries. A row that is read
    back brings a copy; while the process lives it must be the same one.
    """
    meta = {
        name: value
        for name, value in request.meta.items()
        if isinstance(value, list | dict) and name not in _OF_REDIRECTS
    }
    if meta or any(isinstance(value, list | dict) for value in request.cb_kwargs.values()):
        return SharedState(request.cb_kwargs, meta)
    return None


def request_of(
    dispatch: Dispatch, ticket: Ticket, *, spider: Spider | None, shared_state: SharedState | None = None
) -> Request:
    """Return the request for a row, with its *ticket*, and what was put aside of it if anything was."""
    offer = dispatch.offer
    words = dict(offer.extra) if offer.extra else {}
    given = _given(words, spider) if words else {}
    if shared_state is not None:
        given["cb_kwargs"] = shared_state.cb_kwargs
        words.update(shared_state.meta)
    meta = {**words, "verbatim_url": True, TICKET: ticket}
    return Request(offer.seed.url, meta=meta, priority=int(offer.priority), **given)


def fields_of(words: Mapping[str, object]) -> dict[str, bytes]:
    """Return the fields, by name, that the request of *words* was given by its spider; no `Referer`."""
    kept = words.get(HEADERS)
    pairs = kept.items() if isinstance(kept, dict) else ()
    octets = {name: _octets_of(value) for name, value in pairs if name in _FIELDS}
    return {name: value for name, value in octets.items() if value is not None}


def _given(words: dict[str, object], spider: Spider | None) -> dict[str, Any]:
    """Take out of *words* what is no `meta`, and return it as arguments of a request."""
    fields = fields_of(words)
    words.pop(HEADERS, None)
    if (referer := _octets_of(words.pop(REFERER, None))) is not None:
        fields["Referer"] = referer
    given: dict[str, Any] = {"headers": fields}
    for word, argument in ((CALLBACK, "callback"), (ERRBACK, "errback")):
        if word in words:
            given[argument] = _method_of(spider, words.pop(word))
    if isinstance(cb_kwargs := words.pop(CB_KWARGS, None), dict):
        given["cb_kwargs"] = cb_kwargs
    return given


def _may_lie_on_disk(meta: Mapping[Any, object]) -> bool:
    """Tell whether nothing in *meta* is a secret, or has a name that a word of ours has."""
    if any(name in _SECRET or str(name).startswith(_OURS) for name in meta):
        return False
    return "@" not in str(meta.get("proxy", ""))


def _take_methods(request: Request, words: dict[str, object], spider: Spider | None) -> bool:
    """Put the methods that *request* names into *words*; False where one is not the spider's."""
    for word, method in ((CALLBACK, request.callback), (ERRBACK, request.errback)):
        if method is None or (word is CALLBACK and method == getattr(spider, "parse", None)):
            continue
        words[word] = _name_of(method, spider)
        if not words[word]:
            return False
    return True


def _take_fields(request: Request, words: dict[str, object]) -> bool:
    """Put the fields of *request* into *words*; False where one has to stay out."""
    kept: dict[str, str] = {}
    for octets, values in request.headers.items():
        name, texts = octets.decode("latin-1"), [value.decode("latin-1") for value in values or ()]
        if len(texts) != 1 or _octets_of(texts[0]) is None:
            return False
        if octets == _REFERER:
            words[REFERER] = texts[0]
        elif name in _FIELDS:
            kept[name] = texts[0]
        else:
            return False
    if kept:
        words[HEADERS] = kept
    return True


def _octets_of(value: object) -> bytes | None:
    # A line end in a file of somebody else's must not become one on the wire.
    is_value = isinstance(value, str) and (value.isprintable() or not value)
    return str(value).encode("latin-1", "ignore") if is_value else None


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
