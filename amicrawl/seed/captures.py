"""An earlier crawl's `captures.parquet` as a seed list: ask again for what may have changed. Pure.

The index is known by the thirteen columns that every crawl writes; its own columns never become
`meta_json`, which is carried over unchanged. Every row is a seed, also one that failed: the next
crawl is to try again. What a row says of the earlier capture is used only where it is whole:

* `digest` of any response without `error` that is not `truncated`: the same payload need not be stored
  again, an error page's as little as a page's.
* `etag` and `last_modified` where, besides, the status was 200 or 304. A 206, a redirect or an error
  page says nothing about the next 200; a cut payload must be fetched again, not confirmed by
  a 304.
* `captured_at`, which is `fetched_at` less `duration_ms`, where besides the row was not `unchanged`: an
  unchanged one is archived as a revisit record, and the next such record has to refer to the original.

A URL may have several rows (retries, several runs in one table). All are yielded, in the order of the
table; of two, the one with the later `captured_at` knows more, and one without a digest never replaces
one that has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amicrawl.seed.fields import Conditionals, conditionals, url_of
from amicrawl.seed.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amicrawl.seed.fields import Flaw

INDEX_COLUMNS = (
    *("url", "host", "status", "fetched_at", "content_type", "body_length", "digest", "unchanged"),
    *("warc_file", "warc_offset", "warc_length", "error", "meta_json"),
)
"""The columns that every capture index has."""

_NEEDED = (
    *("url", "status", "fetched_at", "digest", "unchanged", "error", "meta_json"),
    *("etag", "last_modified", "duration_ms", "truncated"),
)
_ROBOTS = re.compile(r"https?://[^/?#]+/robots\.txt", re.IGNORECASE)
_CONDITIONAL = frozenset((200, 304))
"""Statuses whose validators may be sent back."""
_LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999 in Unix milliseconds; no date can be written for a later one."""


def captures_columns(names: Sequence[str]) -> list[str]:
    """Return which columns to read of a table that has *names*; none if it is not a capture index."""
    if not set(INDEX_COLUMNS).issubset(names):
        return []
    return [name for name in _NEEDED if name in names]


def seed_of_capture(row: Mapping[str, object], flaw: Flaw) -> Seed | None:
    """Return the seed that asks for *row* again; raise NotASeedError where its URL cannot be asked.

    None for a robots.txt that the earlier crawl asked for by itself: the next one does so, too.
    """
    meta = row["meta_json"] if isinstance(row["meta_json"], str) else ""
    url = url_of(row, flaw, meta)
    if not meta and _ROBOTS.fullmatch(url):
        return None
    known = conditionals(row, flaw) if _is_whole(row) else Conditionals()
    if not known.digest:
        known = Conditionals()
    elif row["status"] not in _CONDITIONAL:
        known = Conditionals(known.digest)
    return Seed(
        url,
        *known,
        captured_at=_begun(row) if known.digest and not row["unchanged"] else 0,
        meta_json=meta,
    )


def _is_whole(row: Mapping[str, object]) -> bool:
    return bool(row["status"]) and not row["error"] and not row.get("truncated")


def _begun(row: Mapping[str, object]) -> int:
    """Return when the capture in *row* began, Unix milliseconds; 0 where the row does not say."""
    fetched_at, duration = row["fetched_at"], row.get("duration_ms") or 0
    if not isinstance(fetched_at, int) or not isinstance(duration, int):
        return 0
    begun = fetched_at - duration
    return begun if 0 < begun <= _LAST_MOMENT else 0
