"""When a captured page is requested again, with which validators, and the history of its visits.

A page that was captured once comes back after a week; from its second capture on, by the rate at which
it was found to change (`freshness`), or, where ages are given, as soon as it is that old. Moments are
hours since 1970. Pure.
"""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.frontier.freshness import (
    DEFAULTS,
    FreshnessParams,
    estimate_rate,
    host_share,
    next_due,
    target_interval,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.row import Found
    from amicrawl.meguri import HostRow, UrlRow
    from amicrawl.seed import Seed

_MOST_VISITS = 0xFFFF_FFFF
_LONGEST_STREAK = 0xFFFF


class Observation(NamedTuple):
    """What a visit with a response showed of a page."""

    fetched_at: int
    """Hours since 1970."""
    not_modified: bool = False
    """The server, or the payload's digest, said so. Every 304 says so."""
    content_fp: int = 0
    """0 where there was no payload."""


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


def observe(history: History, visit: Observation) -> History:
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


def is_changed(history: History, visit: Observation) -> bool:
    """Return whether *visit* found the page changed since *history*.

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


_HOURS = {"m": 1 / 60, "h": 1, "d": 24, "w": 168}


class AgeLimits:
    """The ages from which captured URLs are due again, by pattern; the longest that matches counts.

    In a pattern `*` stands for any characters. One that begins with a slash is compared with path and
    query of a URL, any other with the whole URL. A URL that matches none is never due. Ages are hours,
    rounded down: the moment of a capture is known to the hour.
    """

    def __init__(self, spans: Mapping[str, str]) -> None:
        """*spans* are spans of time (`30m`, `12h`, `7d`, `4w`) by pattern."""
        longest_first = sorted(spans, key=len, reverse=True)
        self._hours = [int(int(spans[name][:-1]) * _HOURS[spans[name][-1]]) for name in longest_first]
        self._patterns = [_compiled(name) for name in longest_first]
        self._of_paths = [name.startswith("/") for name in longest_first]
        self.least = min(self._hours)
        """The least of the ages."""
        self.is_one = list(spans) == ["*"]
        """Whether one age is that of all URLs."""

    def of(self, url: str) -> int | None:
        """Return the age in hours from which *url* is due again; None for never."""
        _, _, rest = url.partition("://")
        at = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
        path = rest[at:] if rest[at : at + 1] == "/" else "/" + rest[at:]
        for pattern, hours, of_path in zip(self._patterns, self._hours, self._of_paths, strict=True):
            if pattern.fullmatch(path if of_path else url):
                return hours
        return None


def _compiled(name: str) -> re.Pattern[str]:
    """Return what matches what the pattern *name* does, in a time that grows with the URL alone."""
    first, *others = map(re.escape, name.split("*"))
    if not others:
        return re.compile(first)
    *middle, last = others
    # What is between two stars is taken where it comes first and never looked for again: with `.*` for
    # each star, a path of two thousand slashes would take a pattern of four stars seconds.
    return re.compile(f"{first}{''.join(f'(?>.*?{part})' for part in middle)}.*{last}", re.DOTALL)


LEVEL = 1.0
"""The water level where there is no budget to move it: pages that change between once an hour and once
in ten days or so are requested several times per change, rarer and busier ones every two weeks."""


class Revisits:
    """The rules of one crawl."""

    def __init__(
        self, *, conditional: bool = True, level: float = LEVEL, params: FreshnessParams = DEFAULTS
    ) -> None:
        """*conditional*: whether a server may respond that nothing has changed, instead of the page."""
        self._conditional = conditional
        self._level = level
        self._params = params

    def seed_with(self, seed: Seed, last: Found) -> Seed:
        """Return *seed* with what is known of the last capture in place of what its producer knew."""
        return seed._replace(
            digest=last.digest,
            etag=last.etag if self._conditional else "",
            last_modified=last.last_modified if self._conditional else "",
            captured_at=last.captured_at,
            original_url=last.original_url,
            payload_digest=last.payload_digest,
        )

    def scheduled(self, row: UrlRow, visit: Observation, host: HostRow | None) -> dict[str, float]:
        """Return the fields of *row* that *visit* changes; `next_due` from the second one on."""
        hour = visit.fetched_at
        # A clock may have been ahead then.
        before = History(
            first_seen=min(row.first_seen, hour),
            last_crawled=min(row.last_crawled, hour),
            last_changed=min(row.last_changed, hour),
            crawl_count=row.crawl_count,
            change_count=row.change_count,
            no_change_streak=row.no_change_streak,
            content_fp=row.content_fp,
        )
        after = observe(before, visit)
        fields: dict[str, float] = {
            "last_crawled": after.last_crawled,
            "last_changed": after.last_changed,
            "crawl_count": after.crawl_count,
            "change_count": after.change_count,
            "no_change_streak": after.no_change_streak,
            "content_fp": after.content_fp,
            "simhash": row.simhash if after.content_fp == row.content_fp else 0,
        }
        if after.crawl_count > 1:
            fields["rate"], fields["next_due"] = self._again(row, after, host, hour)
        return fields

    def _again(self, row: UrlRow, history: History, host: HostRow | None, hour: int) -> Recrawl:
        share = host_share(host.crawl_delay, host.url_count) if host is not None else inf
        return recrawl(
            history,
            priority=row.priority,
            path_key=row.path,
            now=hour,
            level=self._level,
            share=share,
            params=self._params,
        )
