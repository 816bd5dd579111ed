"""The strings of a row in the arena: what was offered, and what the last capture returned.

A row refers to its URL and to its ETag. What it has no column for is JSON in the next entry of the
arena, the annex, which begins with two octets of its own. No reference leads to an annex, so that other
software ignores it.

    behind the URL   {"v": [n, rest of via], "h": route, "x": extra, "j": meta_json, "d": digest,
                      "e": etag, "m": last_modified, "t": captured_at, "u": original_url,
                      "w": payload_digest}
    behind the ETag  {"d": digest, "m": last_modified, "t": captured_at, "u": original_url,
                      "w": payload_digest}

Empty values are left out; without any value there is no annex. `Last-Modified` is also a column, in
hours since 1970. The first n characters of `via`, the URL that named this one, are those of the URL
itself: most links lead to a neighbour, so that few are left, and an annex needs no other row.
"""

from __future__ import annotations

import json
import re
from email.utils import formatdate
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.row import ROUTE, Found, Offer, Source, is_route
from amicrawl.meguri import ANNEX_MARK, entry_of
from amicrawl.message import http_date
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey, octets, text_of, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.revisits import Revisits
    from amicrawl.frontier.row import Outcome
    from amicrawl.meguri import LivePartition, UrlRow

_ANNEX_BEGIN = ANNEX_MARK + b"{"
_quoted = encode_basestring_ascii
"""A string of JSON: escaped to ASCII, so that half a surrogate pair is kept."""


def offered_entries(offer: Offer) -> bytes:
    """Return the arena entries of *offer*: its URL, and the annex if there is more to say."""
    seed, _, _, _, _, extra, via, route = offer
    url = seed.url
    if "@" in url or "@" in via:
        url, via = without_userinfo(url), without_userinfo(via)
    entry = entry_of(octets(url))
    if not (
        seed.meta_json or seed.digest or seed.etag or seed.last_modified or seed.captured_at or extra
    ):
        if not via:
            return entry
        # One string for what nearly all links have, as in `found_entries`.
        shared = _shared(url, via)
        said = f'{{"v":[{shared},{_quoted(via[shared:])}],"h":"{route}"}}'
        return entry + entry_of(ANNEX_MARK + said.encode("ascii"))
    shared = _shared(url, via)
    return entry + _annex(
        v=[shared, via[shared:]] if via else None,
        h=route,
        x=dict(extra) if extra else None,
        j=seed.meta_json,
        d=seed.digest,
        e=seed.etag,
        m=seed.last_modified,
        t=seed.captured_at,
        u=seed.original_url,
        w=seed.payload_digest,
    )


def _shared(url: str, via: str) -> int:
    """Return how many characters *url* and *via* have in common: the directory or the host of *via*."""
    for start in _starts(via):
        if url.startswith(start):
            return len(start)
    return 0


@lru_cache(maxsize=256)
def _starts(via: str) -> tuple[str, str]:
    """Return directory and host of the URL *via*, up to their slashes; the links of a page share it."""
    path = via.partition("?")[0]
    return via[: path.rfind("/") + 1], via[: path.find("/", path.find("//") + 2) + 1]


def found_entries(found: Found) -> bytes:
    """Return the arena entries of what a response brought: its ETag, and the annex."""
    digest, etag, last_modified, captured_at, original_url, payload_digest, _ = found
    # One string for what nearly all captures have; `_annex` would take four times as long.
    said = (
        (f',"d":{_quoted(digest)}' if digest else "")
        + (f',"m":{_quoted(last_modified)}' if last_modified else "")
        + (f',"t":{captured_at}' if captured_at else "")
        + (f',"u":{_quoted(original_url)}' if original_url else "")
        + (f',"w":{_quoted(payload_digest)}' if payload_digest else "")
    )
    entry = entry_of(octets(etag)) if etag else b"\0"
    return entry + entry_of(_ANNEX_BEGIN + said[1:].encode() + b"}") if said else entry


_LINK_ANNEX = re.compile(
    re.escape(ANNEX_MARK)
    + rb"\{\"v\":\[([0-9]{1,5}),\"([^\"\\\x00-\x1f\x7f-\xff]*)\"\],\"h\":\"(%b)\"\}" % ROUTE.encode()
).fullmatch


class Offered(NamedTuple):
    """What the strings of a row say of its offer."""

    seed: Seed
    extra: Mapping[str, object] | None = None
    via: str = ""
    route: str = ""


_UNKNOWN = Seed("")[1:]
_NO_WAY = Offered(Seed(""))[1:]


def offered(url: bytes, annex: bytes) -> Offered:
    """Return what `offered_entries` was given; *annex* may be another entry."""
    text = url.decode("utf-8", "surrogateescape")
    if not annex.startswith(ANNEX_MARK):
        # As most seeds are: both built at once, without a call of Python for each.
        return tuple.__new__(Offered, (tuple.__new__(Seed, (text, *_UNKNOWN)), *_NO_WAY))
    if usual := _LINK_ANNEX(annex):
        # All that is known of nearly every link: parsing it as JSON takes twice as long.
        shared, rest, route = usual.groups()
        return Offered(Seed(text), None, _via(text, [int(shared), rest.decode("ascii")]), route.decode())
    if not (said := _said(annex)):
        return Offered(Seed(text))
    via, route = _via(text, said.get("v")), said.get("h", "")
    if not is_route(route):
        route = ""
    if len(said) == ("v" in said) + ("h" in said):
        return Offered(Seed(text), None, via, route)
    seed = Seed(
        text,
        digest=_text(said, "d"),
        etag=_text(said, "e"),
        last_modified=_text(said, "m"),
        captured_at=_number(said, "t"),
        original_url=_text(said, "u"),
        payload_digest=_text(said, "w"),
        meta_json=_text(said, "j"),
    )
    extra = said.get("x")
    return Offered(seed, extra if isinstance(extra, dict) else None, via, route)


def _via(url: str, said: object) -> str:
    """Return the URL that an annex of the row of *url* names as *said*; empty where it names none."""
    match said:
        case [int(shared), str(rest)] if 0 <= shared <= len(url):
            return url[:shared] + rest
    return ""


def found(etag: bytes, annex: bytes) -> Found:
    """Return what `found_entries` was given; of files of other software, the ETag alone."""
    said = _said(annex)
    return Found(
        digest=_text(said, "d"),
        etag=text_of(etag),
        last_modified=_text(said, "m"),
        captured_at=_number(said, "t"),
        original_url=_text(said, "u"),
        payload_digest=_text(said, "w"),
    )


def _annex(**said: object) -> bytes:
    pairs = [f'"{name}":{_json(value)}' for name, value in said.items() if value]
    if not pairs:
        return b""
    return entry_of(ANNEX_MARK + b"{%b}" % ",".join(pairs).encode("ascii"))


def _json(value: object) -> str:
    if isinstance(value, str):
        # `dumps` takes four times as long, and nearly all values are these.
        return _quoted(value)
    if type(value) is int:
        return str(value)
    try:
        return json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise AmicrawlError(
            f"What a request carries cannot be kept in the frontier: {error}."
        ) from error


def _said(annex: bytes) -> dict[str, Any]:
    if not annex.startswith(ANNEX_MARK):
        return {}
    try:
        said = json.loads(annex[len(ANNEX_MARK) :])
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name, "")
    return value if isinstance(value, str) else ""


def _number(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


@lru_cache(maxsize=4096)
def hours_of_http_date(text: str) -> int:
    """Return the hours since 1970 of *text*, the value of Last-Modified; 0 where it is not a date.

    Dates before 1970 are 0 as well.
    """
    seconds = http_date(text)
    return 0 if seconds is None else max(int(seconds // _HOUR), 0)


_HOUR = 3600
_LAST_HOUR = 70_389_527
"""The last of the year 9999: later ones, which a file may name, cannot be written as a date."""
_SOURCES = {int(source): source for source in Source}


def offer_of(partition: LivePartition, row: UrlRow, revisits: Revisits) -> Offer:
    """Return what was offered as *row*; by *revisits*, its seed knows of the last capture."""
    seed, extra, via, route = offered(*partition.state.arena.texts_at(row.url_ref))
    if row.etag_ref:
        last = found(*partition.texts_at(row.etag_ref))
        seed = revisits.seed_with(seed, last if last.last_modified else _dated(row, last))
    elif row.last_modified and row.last_crawled and not seed.last_modified:
        seed = revisits.seed_with(seed, _dated(row, Found()))
    priority: float = row[3]
    if priority.is_integer():
        priority = int(priority)
    key = tuple.__new__(UrlKey, row[:2])
    # Other software may have sources of its own.
    source = _SOURCES.get(row[5], Source.LINK)
    return tuple.__new__(Offer, (seed, key, source, priority, row[4], extra, via, route))


def _dated(row: UrlRow, last: Found) -> Found:
    """Return *last* with the hour that other software noted in *row* as the date of its `Last-Modified`.

    Rounded up, unless the page may have been changed again within that hour and after its capture.
    """
    if not 0 < row.last_modified <= _LAST_HOUR - 1:
        return last
    hour = row.last_modified + (row.last_modified < row.last_crawled)
    return last._replace(last_modified=formatdate(hour * _HOUR, usegmt=True))


def keep_found(partition: LivePartition, row: UrlRow, known: Seed, outcome: Outcome) -> dict[str, float]:
    """Keep the validators and the redirect of *outcome*, if they are new; return the fields they change.

    *known* is the seed that *row* was handed out with.
    """
    changed: dict[str, float] = {}
    what = outcome.found
    if what is not None and (
        not row.etag_ref
        or (what.digest, what.etag, what.last_modified)
        != (known.digest, known.etag, known.last_modified)
    ):
        changed["etag_ref"] = partition.intern(found_entries(what))
        changed["last_modified"] = hours_of_http_date(what.last_modified)
    if outcome.redirect:
        target = octets(outcome.redirect)
        if not row.redirect_ref or partition.texts_at(row.redirect_ref)[0] != target:
            changed["redirect_ref"] = partition.intern(entry_of(target))
    elif row.redirect_ref:
        changed["redirect_ref"] = 0
    return changed
