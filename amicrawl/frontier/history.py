"""The history of a page: when it was visited, and how often it was found changed.

A failed visit leaves no trace here: it says nothing about the page. What becomes of the row then, and
when it is tried again, is decided elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

from amicrawl.frontier.freshness import (
    DEFAULTS,
    FreshnessParams,
    estimate_rate,
    next_due,
    target_interval,
)

_MOST_VISITS = 0xFFFF_FFFF
_LONGEST_STREAK = 0xFFFF


class Visit(NamedTuple):
    """What a visit that was answered showed of a page."""

    fetched_at: int
    """Hours since 1970."""
    not_modified: bool = False
    """The server, or the payload's digest, said so. Every 304 says so."""
    content_fp: int = 0
    """0 where there was no payload to tell by."""


class History(NamedTuple):
    """What is remembered of a page; times in hours since 1970, 0 for never."""

    first_seen: int = 0
    last_crawled: int = 0
    last_changed: int = 0
    crawl_count: int = 0
    change_count: int = 0
    no_change_streak: int = 0
    content_fp: int = 0


class Recrawl(NamedTuple):
    """When a page is visited again."""

    rate: float
    """Changes an hour, as estimated."""
    due: int
    """Hours since 1970; 0 for never."""


def observe(history: History, visit: Visit) -> History:
    """Return *history* with *visit* added to it."""
    changes, streak = history.change_count, history.no_change_streak
    last_changed, content_fp = history.last_changed, history.content_fp
    if visit.not_modified:
        streak += 1
    elif visit.content_fp:
        if content_fp:
            if is_changed(history, visit):
                changes, streak, last_changed = changes + 1, 0, visit.fetched_at
            else:
                streak += 1
        content_fp = visit.content_fp
    return History(
        first_seen=history.first_seen or visit.fetched_at,
        last_crawled=visit.fetched_at,
        last_changed=last_changed,
        crawl_count=min(history.crawl_count + 1, _MOST_VISITS),
        change_count=min(changes, _MOST_VISITS),
        no_change_streak=min(streak, _LONGEST_STREAK),
        content_fp=content_fp,
    )


def is_changed(history: History, visit: Visit) -> bool:
    """Tell whether *visit* found the page changed since *history*.

    Where one of them has no payload, nothing was found.
    """
    if visit.not_modified or not visit.content_fp or not history.content_fp:
        return False
    return visit.content_fp != history.content_fp


def recrawl(
    history: History,
    *,
    priority: float,
    path_key: int,
    now: int,
    level: float,
    share: float,
    params: FreshnessParams = DEFAULTS,
) -> Recrawl:
    """Return when the page of *history* is to be visited again, as seen at the hour *now*.

    *level* is the water level, *share* what the host allows a page.
    """
    rate = estimate_rate(
        history.crawl_count,
        history.change_count,
        no_change_streak=history.no_change_streak,
        first_seen=history.first_seen,
        last_crawled=history.last_crawled,
        params=params,
    )
    interval = target_interval(rate, priority, level=level, share=share, params=params)
    return Recrawl(
        rate, next_due(history.last_crawled, interval, now=now, path_key=path_key, params=params)
    )
