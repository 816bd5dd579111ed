"""Annexes: what a row has no column for, as JSON behind its strings in the arena.

Behind the URL stands what its producer said, once and for all; behind the ETag, what the last capture
that had a new payload was. An annex is an entry of the arena like any other, marked by its first two
octets; other software never looks there, since no reference leads to it.

    behind the URL   {"x": extra, "j": meta_json, "d": digest, "e": etag, "m": last_modified,
                      "t": captured_at, "u": original_url}
    behind the ETag  {"d": digest, "m": last_modified, "t": captured_at, "u": original_url}

Only what there is is said; a URL of which nothing more is known has no annex.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from amicrawl.errors import AmicrawlError
from amicrawl.frontier.arena import entry_of
from amicrawl.frontier.format.strings import ANNEX_MARK
from amicrawl.frontier.row import Found
from amicrawl.seed import Seed
from amicrawl.urls import octets, text_of

_quoted = encode_basestring_ascii
"""A string of JSON: escaped to ASCII, so that half a surrogate pair is kept."""

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.row import Offer


def offered_entries(offer: Offer) -> bytes:
    """Return the arena entries of *offer*: its URL, and the annex if there is more to say."""
    seed = offer.seed
    url = entry_of(octets(seed.url))
    if not (
        offer.extra
        or seed.meta_json
        or seed.digest
        or seed.etag
        or seed.last_modified
        or seed.captured_at
    ):
        return url
    return url + _annex(
        x=dict(offer.extra) if offer.extra else None,
        j=seed.meta_json,
        d=seed.digest,
        e=seed.etag,
        m=seed.last_modified,
        t=seed.captured_at,
        u=seed.original_url,
    )


def found_entries(found: Found) -> bytes:
    """Return the arena entries of what a response brought: its ETag, and the annex."""
    digest, etag, last_modified, captured_at, original_url, _ = found
    # One string for what nearly all captures have; `_annex` would take four times as long.
    said = f',"d":{_quoted(digest)}' if digest else ""
    if last_modified:
        said += f',"m":{_quoted(last_modified)}'
    if captured_at:
        said += f',"t":{captured_at}'
    if original_url:
        said += f',"u":{_quoted(original_url)}'
    entry = entry_of(octets(etag))
    return entry + entry_of(ANNEX_MARK + b"{%b}" % said[1:].encode()) if said else entry


def offered(url: bytes, annex: bytes) -> tuple[Seed, Mapping[str, object] | None]:
    """Return the seed and the `extra` that `offered_entries` was given; *annex* may be no annex."""
    said = _said(annex)
    if not said:
        return Seed(text_of(url)), None
    seed = Seed(
        text_of(url),
        digest=_text(said, "d"),
        etag=_text(said, "e"),
        last_modified=_text(said, "m"),
        captured_at=_number(said, "t"),
        original_url=_text(said, "u"),
        meta_json=_text(said, "j"),
    )
    extra = said.get("x")
    return seed, extra if isinstance(extra, dict) else None


def found(etag: bytes, annex: bytes) -> Found:
    """Return what `found_entries` was given; of files of other software, the ETag alone."""
    said = _said(annex)
    return Found(
        digest=_text(said, "d"),
        etag=text_of(etag),
        last_modified=_text(said, "m"),
        captured_at=_number(said, "t"),
        original_url=_text(said, "u"),
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
