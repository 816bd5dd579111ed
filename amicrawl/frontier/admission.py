"""Admission: whether a discovered URL is scheduled, or parked (TRAPPED) as one of too many.

    depth     more links from a seed than the crawl, or the record of the host, allows
    budget    the host has as many URLs as its record allows: `url_budget`, which other software of
              the format notes; 0 is none
    traps     the URL looks like those that made its host suspect

A seed, or a URL added by the operator, is never parked; it counts like any other, so that a host of many
seeds has less room for discovered URLs. Parked URLs do not count against a budget. They stay parked when
a budget grows, and are released one by one only (`DurableFrontier.due_again`).

Traps are URLs that a site makes up without end:

    calendar   a date in the path or query that lies far ahead
    session    an identifier of a session in the query
    faceted    several filters of a listing in the query

One such URL is nothing; sixteen under one host, or for sessions under one path, flag the host, and from
then on URLs of that kind are refused there. `classify` looks at a URL alone, `TrapDetector` gathers,
`admit` decides.

In memory are the patterns of traps, bounded by `TrapDetector`, and one number for each host that has
parked rows. The patterns are forgotten with the process; that a host is suspect is kept in its row,
and then every pattern is refused there. The numbers are found again in the rows.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, IntFlag
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, unquote_plus

from xxhash import xxh64_intdigest

from amicrawl.frontier.row import Source
from amicrawl.frontier.tally import DistinctTally
from amicrawl.urls import MOST_PIECES, Refused, canonical_form, octets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.row import Offer
    from amicrawl.meguri import HostRow

_SESSION_KEYS = frozenset(
    [
        "sid",
        "sessionid",
        "session_id",
        "sessid",
        "sess",
        "jsessionid",
        "phpsessid",
        "aspsessionid",
        "aspxauth",
        "cfid",
        "cftoken",
        "sessiontoken",
        "session_token",
        "sessionkey",
        "bsessionid",
        "zenid",
        "oscsid",
        "ssid",
    ]
)
_FACET_KEYS = frozenset(
    [
        "filter",
        "facet",
        "refine",
        "narrow",
        "color",
        "colour",
        "size",
        "brand",
        "price",
        "price_min",
        "price_max",
        "minprice",
        "maxprice",
        "pricerange",
        "sort",
        "sortby",
        "order",
        "orderby",
        "view",
        "mode",
        "layout",
        "category",
        "cat",
        "tag",
        "tags",
        "style",
        "material",
        "rating",
        "availability",
        "instock",
        "attr",
        "option",
    ]
)
_DATE_KEYS = frozenset({"date", "day", "from", "to", "start", "end", "when"})
_YEAR = r"\+?0*(199[0-9]|20[0-9]{2})"
_MONTH = r"\+?0*(1[0-2]|[1-9])"
_PATH_DATE = re.compile(rf"/{_YEAR}/{_MONTH}(?=/|\Z)")
_VALUE_DATE = re.compile(rf"{_YEAR}(?:-{_MONTH}(?:-.*)?|/{_MONTH}(?:/[^-]*)?)", re.DOTALL)
_WHOLE_YEAR = re.compile(_YEAR)
_WHOLE_MONTH = re.compile(_MONTH)
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TOKEN = re.compile(r"[A-Za-z0-9\-_.%]*")
_LETTER = re.compile(r"[A-Za-z]")
_MARK = re.compile(r"[\-_.%]")
_DIGIT = re.compile(r"[0-9]")
_subject = Struct("<QBQ").pack


class Trap(IntFlag):
    """Kinds of trap; a URL is of one kind or none, a host may be flagged for several."""

    NONE = 0
    CALENDAR = 1
    FACETED = 2
    SESSION = 4


class Refusal(Enum):
    """Why a URL that was discovered is parked instead of scheduled."""

    TOO_DEEP = "too deep"
    OVER_BUDGET = "over the budget of its host"
    TRAP = "of a kind that its host is suspected for"


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """Where the web ends and a trap begins."""

    horizon_months: int = 12
    """Months ahead that a calendar may reach."""
    facets: int = 3
    """Different filters in one query that make it faceted."""
    flag_threshold: int = 16
    """Different URLs of one kind that flag a host."""
    session_length: int = 12
    """Characters from which a value can be an identifier of a session."""


DEFAULTS = TrapLimits()


def classify(url: str, now: int, *, limits: TrapLimits = DEFAULTS) -> Trap:
    """Return the kind of trap that *url*, in canonical form, looks like at *now*, hours since 1970."""
    start = url.find("/", url.find("://") + 3)
    path, mark, query = (url[start:] if start >= 0 else "").partition("?")
    pairs = _pairs(query) if mark else []
    if "%" in path:
        if _MALFORMED_ESCAPE.search(path):
            return Trap.NONE
        path = unquote(path)
    date = _date_in(path, pairs)
    if date is not None and date > months_at(now) + limits.horizon_months:
        return Trap.CALENDAR
    if not pairs:
        return Trap.NONE
    keys = [(key.lower(), value) for key, value in pairs]
    if any(key in _SESSION_KEYS and _is_session(value, limits.session_length) for key, value in keys):
        return Trap.SESSION
    if len(_FACET_KEYS.intersection(key for key, _ in keys)) >= limits.facets:
        return Trap.FACETED
    return Trap.NONE


def months_at(hour: int) -> int:
    """Return year * 12 + month - 1 of *hour*, hours since 1970, in UTC; any year, unlike `datetime`."""
    # Days of years that begin in March, so that the leap day is their last (the Gregorian cycle is
    # 146,097 days).
    cycle, day = divmod(hour // 24 + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153  # 0 is March
    return (cycle * 400 + year) * 12 + month + 2


def admit(
    depth: int, *, depth_cap: int, url_count: int, url_budget: int, suspect: bool, passes: bool
) -> Refusal | None:
    """Return why a discovered URL is not scheduled, or None if it is; a cap or budget of 0 is none.

    *suspect* is what the record of the host says, *passes* what `TrapDetector.passes` says of the URL.
    """
    if 0 < depth_cap < depth:
        return Refusal.TOO_DEEP
    if 0 < url_budget <= url_count:
        return Refusal.OVER_BUDGET
    if suspect and not passes:
        return Refusal.TRAP
    return None


class TrapDetector:
    """What has been seen of each host's traps.

    *limit* bounds the hosts that are flagged, and the counters of those that are not yet. With the
    default and everything full it takes about 30 MB. A flag that is pushed out leaves the host suspect
    by its record, and then URLs of every kind are refused there.
    """

    LIMIT = 65_536

    __slots__ = ("_flags", "_limit", "_tally")

    def __init__(self, limits: TrapLimits = DEFAULTS, *, limit: int = LIMIT) -> None:
        self._tally = DistinctTally(limits.flag_threshold, limit=limit)
        self._flags: OrderedDict[int, Trap] = OrderedDict()
        self._limit = limit

    def observe(self, host: int, url: str, *, path: int, trap: Trap) -> bool:
        """Count *url*, with the key (*host*, *path*), as the *trap* that it is.

        Returns True once, when that makes a host suspect which was not.
        """
        flags = self._flags.get(host, Trap.NONE)
        if not trap or trap & flags:
            return False
        # Sessions are counted under each path by itself: one page under many names is the trap.
        base = xxh64_intdigest(octets(url.partition("?")[0])) if trap is Trap.SESSION else 0
        if not self._tally.add(_subject(host, trap, base), path):
            return False
        self._flags[host] = flags | trap
        self._flags.move_to_end(host)
        if len(self._flags) > self._limit:
            self._flags.popitem(last=False)
        return not flags

    def flags(self, host: int) -> Trap:
        """Return the kinds that *host* is flagged for."""
        return self._flags.get(host, Trap.NONE)

    def passes(self, host: int, trap: Trap, *, suspect: bool = False) -> bool:
        """Return whether a URL of *host* that looks like *trap* may be scheduled.

        *suspect* is what the record of the host says: where the detector does not know why, every kind
        is refused.
        """
        flags = self._flags.get(host, Trap.NONE)
        if not flags and suspect:
            return not trap
        return not trap & flags


def _pairs(query: str) -> list[tuple[str, str]]:
    """Return the decoded keys and values of *query*, without the pieces that are malformed."""
    if query.count("&") >= MOST_PIECES:
        return []
    return [
        (unquote_plus(key), unquote_plus(value))
        for key, _, value in (piece.partition("=") for piece in query.split("&") if _is_sound(piece))
    ]


def _is_sound(piece: str) -> bool:
    return bool(piece) and ";" not in piece and not ("%" in piece and _MALFORMED_ESCAPE.search(piece))


def _date_in(path: str, pairs: Iterable[tuple[str, str]]) -> int | None:
    """Return year * 12 + month - 1 of the date that a URL is about, if it is about one."""
    found = _PATH_DATE.search(path)
    if found is not None:
        return _months(found[1], found[2])
    first: dict[str, str] = {}
    for key, value in pairs:
        first.setdefault(key, value)
    year = _WHOLE_YEAR.fullmatch(first.get("year", ""))
    if year is not None:
        month = _WHOLE_MONTH.fullmatch(first.get("month", ""))
        return _months(year[1], month[1] if month else "1")
    for key, value in first.items():
        if key.lower() in _DATE_KEYS:
            found = _VALUE_DATE.fullmatch(value.strip())
            if found is not None:
                return _months(found[1], found[2] or found[3])
    return None


def _months(year: str, month: str) -> int:
    return int(year) * 12 + int(month) - 1


def _is_session(value: str, length: int) -> bool:
    """Return whether *value* looks drawn at random: letters and digits, and few other characters."""
    if len(value) < length or not _TOKEN.fullmatch(value):
        return False
    marks = len(_MARK.findall(value))
    return len(_LETTER.findall(value)) >= 2 and bool(_DIGIT.search(value)) and marks <= len(value) // 4


BY_NAME = frozenset({Source.SEED, Source.MANUAL})
"""Sources of URLs that were requested by name."""
TRAP_SUSPECT = 1
"""The flag of a host row that says that the host is suspected of traps."""


class OfferVerdict(NamedTuple):
    """What became of an offer."""

    refusal: Refusal | None
    """Why it is parked; None where it is admitted."""
    is_suspect: bool
    """Whether its host is suspected of traps, by its record or since this offer."""


class Admission:
    """Which URLs one frontier admits. *depth_cap*: links from a seed at most; 0 for any."""

    __slots__ = ("_depth_cap", "_detector", "_limits", "_parked")

    def __init__(
        self,
        *,
        depth_cap: int = 0,
        limits: TrapLimits = DEFAULTS,
        detector: TrapDetector | None = None,
    ) -> None:
        self._depth_cap = depth_cap
        self._limits = limits
        self._detector = detector or TrapDetector(limits)
        self._parked: dict[int, int] = {}

    def recall(self, parked: Mapping[int, int]) -> None:
        """Take over how many rows of each host are *parked*."""
        self._parked.update(parked)

    def admits(self, offer: Offer, hosts: HostTally, *, hour: int) -> bool:
        """Return whether *offer*, new and counted among those of its host in *hosts*, is let in.

        That its host is suspect is noted there. *hour* is now, in hours since 1970.
        """
        host = hosts.noted(offer.key.host)
        assert host is not None
        urls = host.url_count + hosts.offered.get(host.host, 0) - 1
        verdict = self.weigh(offer, host, urls=urls, hour=hour)
        if verdict.is_suspect and not is_suspect(host):
            hosts.put(host._replace(flags=host.flags | TRAP_SUSPECT))
        return verdict.refusal is None

    def weigh(self, offer: Offer, host: HostRow, *, urls: int, hour: int) -> OfferVerdict:
        """Return the decision on *offer*, of *host*, which has so many *urls*, parked ones included.

        *hour* is now, in hours since 1970. An offer that is parked is counted as such.
        """
        if offer.source in BY_NAME:
            return OfferVerdict(None, is_suspect(host))
        form = canonical_form(offer.seed.url)
        url = offer.seed.url if isinstance(form, Refused) else form.url
        trap = classify(url, hour, limits=self._limits)
        key, detector, suspect = offer.key, self._detector, is_suspect(host)
        # Nearly every URL looks like no trap, of which there is nothing to note.
        if trap and detector.observe(key.host, url, path=key.path, trap=trap):
            suspect = True
        refusal = admit(
            offer.hops,
            depth_cap=_least(self._depth_cap, host.depth_cap),
            url_count=urls - self._parked.get(key.host, 0),
            url_budget=host.url_budget,
            suspect=suspect,
            passes=not trap or detector.passes(key.host, trap, suspect=suspect),
        )
        if refusal is not None:
            self._parked[key.host] = self._parked.get(key.host, 0) + 1
        return OfferVerdict(refusal, suspect)

    def released(self, host: int) -> None:
        """Note that a parked row of *host* was taken out."""
        self._parked[host] = max(self._parked.get(host, 0) - 1, 0)


def is_suspect(host: HostRow) -> bool:
    """Return whether *host* is flagged as suspected of traps."""
    return bool(host.flags & TRAP_SUSPECT)


def _least(one: int, other: int) -> int:
    """Return the lesser of two caps, of which 0 is none."""
    return min(one, other) if one and other else one or other
