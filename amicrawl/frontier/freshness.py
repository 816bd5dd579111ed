"""Freshness: how often a page changes, what one more visit is worth, and how long until it. Pure.

    counts of a page's visits  ->  change rate  ->  target interval  ->  hour of the next visit

A page is taken to change as a Poisson process. Its rate is estimated from how many visits found a
change (Cho and Garcia-Molina, 2003), a recent run of unchanged visits counting more. What one more
visit is worth follows from the rate; a page is visited so often that one visit more would be worth
less than the water level.

Rates are events an hour, intervals and moments hours (moments since 1970). Rates and priorities may
come from a foreign file: anything but a positive number counts as the least rate, or as
priority 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log

from amicrawl.errors import UsageError

STEPS = 40
"""Halvings of the range of rates; the interval that comes out depends on their number."""
LAST_HOUR = 0xFFFF_FFFF
"""The last moment that a row can name."""


@dataclass(frozen=True, slots=True)
class FreshnessParams:
    """What a crawl assumes of its pages; raises UsageError where that makes no sense."""

    alpha: float = 0.5
    """Visits added to both sides, so that a short history claims neither never nor always."""
    min_rate: float = 1 / 8760
    """A page is visited once a year at least."""
    max_rate: float = 4.0
    recency_half_life: float = 8.0
    """Unchanged visits after which the long run counts for 1/e."""
    reference_rate: float = 1 / 24
    """The visits at which the worth of one more is compared between pages."""
    reprobe_rate: float = 1 / 336
    """Visits to a page that the budget does not reach."""
    min_reprobe_gap: int = 1
    """Hours between now and the next visit of a page that is overdue already."""
    host_spread_window: int = 24
    """Hours over which the pages of a host are spread that would fall due together; 0 for none."""

    def __post_init__(self) -> None:
        rates = (self.min_rate, self.reprobe_rate, self.reference_rate, self.max_rate)
        if not (0 < self.min_rate <= self.max_rate and all(0 < rate < inf for rate in rates)):
            raise UsageError("Freshness: rates are to be positive, and the least at most the greatest.")
        if not (0 < self.alpha < inf and 0 < self.recency_half_life < inf):
            raise UsageError("Freshness: alpha and the recency half-life are to be positive.")
        if self.min_reprobe_gap < 1 or self.host_spread_window < 0:
            raise UsageError("Freshness: the gap is to be an hour or more, the window not negative.")


DEFAULTS = FreshnessParams()


def estimate_rate(
    crawl_count: int,
    change_count: int,
    *,
    no_change_streak: int,
    first_seen: int,
    last_crawled: int,
    params: FreshnessParams = DEFAULTS,
) -> float:
    """Return the changes an hour that a history suggests, from the least to the greatest rate.

    The first of *crawl_count* visits has nothing to compare with, so it counts for nothing; with no
    other, or no time between them, the result is the least rate.
    """
    visits = crawl_count - 1
    if visits < 1 or last_crawled <= first_seen:
        return params.min_rate
    alpha = params.alpha
    interval = (last_crawled - first_seen) / visits
    quiet = max(0, visits - change_count)
    rate = -log((quiet + alpha) / (visits + 2 * alpha)) / interval
    if no_change_streak > 0:
        recent = -log((no_change_streak + alpha) / (no_change_streak + 2 * alpha)) / interval
        weight = exp(-no_change_streak / params.recency_half_life)
        # A page that fell quiet is believed; one that did not is never made faster by its streak.
        rate = min(rate, weight * rate + (1 - weight) * recent)
    return min(max(rate, params.min_rate), params.max_rate)


def g(x: float) -> float:
    """Return (1 - e^-x - x e^-x) / x^2, which falls from 1/2 at 0.

    Below 1e-5 the digits cancel; with the default rates, *x* is 2.8e-5 or more.
    """
    if x < 1e-9:
        return 0.5
    decay = exp(-x)
    return (1 - decay - x * decay) / (x * x)


def gain(rate: float, visits: float) -> float:
    """Return the freshness gained by a bit more than *visits* an hour for a page changing at *rate*.

    It is the derivative of the share of time that a copy is current, by the visits; 0 where either
    number is not positive.
    """
    if not (rate > 0 and visits > 0):
        return 0.0
    return g(rate / visits) * rate / (visits * visits)


def value_density(rate: float, priority: float, *, params: FreshnessParams = DEFAULTS) -> float:
    """Return what a visit to a page is worth, to be compared with the water level."""
    weight = priority if priority > 0 else 1.0
    return weight * gain(_within(rate, params), params.reference_rate)


def host_share(crawl_delay: int, url_count: int) -> float:
    """Return the visits an hour that a host leaves each of its *url_count* pages.

    *crawl_delay* is in tenths of a second; a host that names none is taken to allow one visit a second.
    """
    return (36_000 / crawl_delay if crawl_delay > 0 else 3600.0) / max(url_count, 1)


def target_interval(
    rate: float,
    priority: float,
    *,
    level: float,
    share: float = inf,
    params: FreshnessParams = DEFAULTS,
) -> float:
    """Return the hours between two visits to a page, given the water *level*.

    A page worth no more than the level is only probed; any other is visited so often that one visit
    more would be worth the level. *share* is what its host allows.
    """
    least, most = params.min_rate, params.max_rate
    if not value_density(rate, priority, params=params) > level:
        visits = params.reprobe_rate
    else:
        visits = _funded_visits(_within(rate, params), priority if priority > 0 else 1.0, level, params)
    return 1 / min(max(min(visits, share), least), most)


def _funded_visits(rate: float, weight: float, level: float, params: FreshnessParams) -> float:
    """Return the visits an hour at which one more is worth *level*."""
    low, high = params.min_rate, params.max_rate
    if weight * gain(rate, high) >= level:
        return high
    if weight * gain(rate, low) <= level:
        return low
    # `gain` is written out, as half of all the time would go into calling it. Its form is kept: near
    # the least rate digits cancel, and another form would turn off elsewhere.
    for _ in range(STEPS):
        visits = (low + high) / 2
        x = rate / visits
        if x < 1e-9:
            worth = 0.5
        else:
            decay = exp(-x)
            worth = (1 - decay - x * decay) / (x * x)
        if weight * (worth * rate / (visits * visits)) > level:
            low = visits
        else:
            high = visits
    return (low + high) / 2


def next_due(
    last_crawled: int,
    interval: float,
    *,
    now: int,
    path_key: int,
    params: FreshnessParams = DEFAULTS,
) -> int:
    """Return the hour of the next visit: later than *now*, unless the calendar of rows ends there.

    *interval* is rounded to hours, halves upwards, and is one at least. Pages of one host that were
    visited together do not fall due together: each is moved by its *path_key*.
    """
    # What cannot be counted in hours lies beyond the calendar anyway.
    hours = max(int(min(interval, LAST_HOUR) + 0.5), 1) if interval > 0 else 1
    window = min(params.host_spread_window, hours)
    due = last_crawled + hours + (path_key % window if window > 1 else 0)
    if due <= now:
        due = now + params.min_reprobe_gap
    return min(due, LAST_HOUR)


def _within(rate: float, params: FreshnessParams) -> float:
    # Written so that a rate of NaN becomes the least one.
    return min(rate, params.max_rate) if rate > params.min_rate else params.min_rate
