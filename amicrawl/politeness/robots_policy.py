"""What an exchange for robots.txt means for the URLs of its origin, and what is known of many origins.

By RFC 9309, section 2.3.1:

    response                   meaning                                  requested again
    2xx                        the rules in it                          after its max-age, 1 to 24 h
    3xx, 4xx                   there is no such file: all is allowed    likewise
    5xx, none, anything else   rules known before hold, or URLs wait    after 1, 2, 4 min ... 1 h
       for the fifth time      or all URLs are refused: a crawl ends    after 24 h

Redirects are followed by the caller, and what the last one gave is the response: after too many, 3xx
(RFC 9309, 2.3.1.2). An origin is scheme, host and port, and is named here by the URL of its robots.txt
(`robots_url`).

Nothing here reads a clock. `now` is Unix time in seconds, since what is known outlives the process; a
clock that was set back makes it expire.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.politeness.robots import RobotsRules, parse_robots, product_token
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST_KEPT = 24 * 3600.0
"""Seconds after which a response is requested again whatever it said (RFC 9309, 2.4)."""
MOST_ROW_TEXT = 64 << 10
"""Characters of rules and sitemaps in a row."""

_SHORTEST_KEPT = 3600.0
_FIRST_WAIT = 60.0
LONGEST_UNREACHED = 3600.0
"""Seconds after which a robots.txt that could not be had is requested again."""
_PASS = 3600.0
_MOST_PASSES = 5
_MOST_FAILURES = 5
_LONGEST_STALE = 30 * 24 * 3600.0  # RFC 9309, 2.3.1.4 calls this "a reasonably long period"

_DEFAULT_PORT = {"http": 80, "https": 443}
_MAX_AGE = re.compile(r'(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,18})', re.IGNORECASE)
_UNKEPT = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?![^,\s=])", re.IGNORECASE)


class Access(StrEnum):
    """What is known of an origin."""

    RULES = "rules"
    """Its rules decide."""
    ALLOW_ALL = "allow-all"
    """It has none."""
    WAIT = "wait"
    """Whether it has any could not be learnt yet."""
    UNREACHABLE = "unreachable"
    """It could not be learnt, and is given up for a day."""


_ACCESSES = frozenset(Access)


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """What the last exchange for a robots.txt means."""

    access: Access
    expires: float
    """Unix time in seconds at which to request it again."""
    rules: RobotsRules | None = None
    """Those that decide; not None with `RULES` only."""
    failures: int = 0
    """Exchanges in a row that brought no response."""
    responded_at: float = 0.0
    """Unix time in seconds of the response that it rests on; 0 where there was none."""

    def allows(self, url: str | bytes) -> bool | None:
        """Return whether *url*, of this origin, may be requested; None: not known yet, it waits."""
        if self.rules is not None:
            return self.rules.allows(url)
        return None if self.access is Access.WAIT else self.access is Access.ALLOW_ALL

    @property
    def is_pass(self) -> bool:
        """Whether all is allowed because no server could be reached; it ends with the first response."""
        return self.access is Access.ALLOW_ALL and not self.responded_at

    @property
    def reason(self) -> str:
        """Why a URL is refused, or waits, in words for a log or a row; empty where all is allowed."""
        return _REASON[self.access]


_REASON = {
    Access.RULES: "robots.txt disallows it",
    Access.ALLOW_ALL: "",
    Access.WAIT: "robots.txt is unreachable, to be requested again",
    Access.UNREACHABLE: "robots.txt is unreachable, given up",
}


def robots_url(url: str | bytes) -> str | Refused:
    """Return the URL of the robots.txt that *url* falls under: the name of its origin."""
    form = fetchable(url)
    if isinstance(form, Refused):
        return form
    standard = form.port is None or form.port == _DEFAULT_PORT[form.scheme]
    port = "" if standard else f":{form.port}"
    return f"{form.scheme}://{form.host.lower()}{port}/robots.txt"


def judge_robots(
    status: int | None,
    body: bytes,
    *,
    now: float,
    agent: str | bytes,
    max_age: float | None = None,
    previous: RobotsVerdict | None = None,
    most_failures: int = _MOST_FAILURES,
) -> RobotsVerdict:
    """Return what an exchange for robots.txt means.

    *status* is None where no response came, *body* without content codings, *max_age* the seconds that
    its Cache-Control allows (`max_age_of`). *previous* is what was known of the origin before
    (`RobotsCache.previous`); a 304 confirms it. The failure number *most_failures* in a row is the last.
    """
    kept = LONGEST_KEPT if max_age is None else min(max(max_age, _SHORTEST_KEPT), LONGEST_KEPT)
    if status is not None and 200 <= status < 300:
        rules = parse_robots(body, agent=agent)
        return RobotsVerdict(Access.RULES, now + kept, rules, responded_at=now)
    copy = previous.rules if previous is not None else None
    if status == 304 and copy is not None:
        return RobotsVerdict(Access.RULES, now + kept, copy, responded_at=now)
    if status is not None and 300 <= status < 500:
        return RobotsVerdict(Access.ALLOW_ALL, now + kept, responded_at=now)
    return _without_response(now, previous, most_failures=most_failures)


def judge_absence(*, now: float, previous: RobotsVerdict | None = None) -> RobotsVerdict:
    """Return the verdict for a host that cannot be reached: no such name, or no connection.

    Known rules stay in force. Without any, the page itself may be tried, which fails for the
    same reason and says so; see `RobotsVerdict.is_pass`.
    """
    verdict = _without_response(now, previous, most_failures=_MOST_FAILURES)
    if verdict.rules is not None:
        return verdict
    return RobotsVerdict(Access.ALLOW_ALL, now + _PASS, failures=verdict.failures)


def _without_response(
    now: float, previous: RobotsVerdict | None, *, most_failures: int
) -> RobotsVerdict:
    """Return what it means that no response came, or that the server could not give one."""
    failures = 1 if previous is None else previous.failures + 1
    given_up = failures >= most_failures
    # The exponent is bounded: a number of failures can come from a file.
    wait = (
        LONGEST_KEPT if given_up else min(_FIRST_WAIT * 2.0 ** min(failures - 1, 10), LONGEST_UNREACHED)
    )
    # That there was no file says nothing of one that a failing server may have now: only rules last.
    if (
        previous is not None
        and previous.rules is not None
        and now - previous.responded_at <= _LONGEST_STALE
    ):
        return RobotsVerdict(Access.RULES, now + wait, previous.rules, failures, previous.responded_at)
    return RobotsVerdict(Access.UNREACHABLE if given_up else Access.WAIT, now + wait, failures=failures)


def max_age_of(cache_control: str) -> float | None:
    """Return the seconds that a Cache-Control field allows to keep a response; None: it does not say."""
    if _UNKEPT.search(cache_control):
        return 0.0
    match = _MAX_AGE.search(cache_control)
    return float(match[1]) if match else None


class HonouredDelay(NamedTuple):
    """The delay that a robots.txt brings about."""

    seconds: float
    """The least time from the start of a request to the start of the next; 0 where none is wished."""
    is_capped: bool
    """Whether the site wishes for more, which is worth a line in the log."""


def honoured_delay(rules: RobotsRules | None, *, cap: float) -> HonouredDelay:
    """Return the delay that *rules* wish for, *cap* seconds at the most."""
    wished = 0.0 if rules is None or rules.crawl_delay is None else rules.crawl_delay
    return HonouredDelay(min(wished, cap), wished > cap)


def is_bound(policy: str, *, is_requisite: bool) -> bool:
    """Return whether robots.txt decides about a URL under a crawl's *policy*.

    `obey`: about all. `ignore`: about none. `obey-but-fetch-requisites`: about all but the requisites of
    pages, without which what was allowed could not be replayed. Any other policy obeys.
    """
    if policy == "ignore":
        return False
    return policy != "obey-but-fetch-requisites" or not is_requisite


class RobotsCache:
    """What is known of many origins, those that were looked up last; kept across restarts as rows.

    Bounded in number and in memory. The robots.txt of an origin that is dropped is requested again when
    its next URL is due.
    """

    def __init__(
        self, *, most_origins: int = 100_000, most_text: int = 64 << 20, most_unfolded: int = 64 << 20
    ) -> None:
        """Know *most_origins* at the most, with *most_text* characters of rules and sitemaps.

        *most_unfolded* octets go to rules made ready for comparison, those used last.
        """
        self._most_origins = most_origins
        self._most_text = most_text
        self._most_unfolded = most_unfolded
        self._verdicts: OrderedDict[str, tuple[RobotsVerdict, int]] = OrderedDict()
        self._text = 0
        self._unfolded: OrderedDict[str, int] = OrderedDict()
        self._unfolded_weight = 0

    def __len__(self) -> int:
        """Count the origins."""
        return len(self._verdicts)

    def find(self, origin: str, *, now: float) -> RobotsVerdict | None:
        """Return what holds for *origin* now; None where its robots.txt must be requested.

        To be called for every URL: what others hold on to is not counted as memory.
        """
        entry = self._verdicts.get(origin)
        # What expires later than it can was written by a clock that went wrong.
        if entry is None or not now < entry[0].expires <= now + LONGEST_KEPT:
            return None
        self._verdicts.move_to_end(origin)
        rules = entry[0].rules
        if rules is not None:
            # Rules never change, and so does what they weigh.
            if origin in self._unfolded:
                self._unfolded.move_to_end(origin)
            else:
                self._note_unfolded(origin, rules.weight)
        return entry[0]

    def previous(self, origin: str) -> RobotsVerdict | None:
        """Return what was known of *origin* last, though it may have expired: for `judge_robots`."""
        entry = self._verdicts.get(origin)
        return None if entry is None else entry[0]

    def keep(self, origin: str, verdict: RobotsVerdict) -> None:
        """Note what was learnt of *origin*."""
        self._drop(origin)
        size = 0 if verdict.rules is None else len(verdict.rules.text)
        self._verdicts[origin] = verdict, size
        self._text += size
        while len(self._verdicts) > self._most_origins or self._text > self._most_text:
            self._drop(next(iter(self._verdicts)))

    def heard_from(self, origin: str) -> None:
        """Note a response of *origin*: where it was only passed, its robots.txt is requested now.

        Not for ever, though, where all but its robots.txt can be had.
        """
        known = self.previous(origin)
        if known is not None and known.is_pass and known.failures < _MOST_PASSES:
            self.keep(origin, replace(known, expires=0.0))

    def to_rows(self) -> Iterator[dict[str, Any]]:
        """Yield what is known, the origins used last at the end, as objects for JSON.

        Rules are written as the file that says the same. An origin whose file has more than
        `MOST_ROW_TEXT` characters is left out, as is one that was passed: both are requested again.
        """
        for origin, (verdict, size) in list(self._verdicts.items()):
            row = row_of_verdict(origin, verdict) if size <= MOST_ROW_TEXT else None
            if row is not None:
                yield row

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[object],
        *,
        agent: str | bytes,
        written_for: str | bytes,
        now: float,
        **limits: int,
    ) -> RobotsCache:
        """Return a cache with what *rows* say; *limits* as for a new one.

        They hold for the agent that they were *written_for*; for another *agent* all are passed over, as
        are rows that are no such objects and those whose response is older than 30 days.
        """
        cache = cls(**limits)
        if product_token(agent) == product_token(written_for):
            for row in rows:
                read = _read_row(row, now)
                if read is not None:
                    cache.keep(*read)
        return cache

    def _note_unfolded(self, origin: str, weight: int) -> None:
        self._unfolded_weight += weight - self._unfolded.pop(origin, 0)
        self._unfolded[origin] = weight
        while self._unfolded_weight > self._most_unfolded and len(self._unfolded) > 1:
            coldest, weight = self._unfolded.popitem(last=False)
            self._unfolded_weight -= weight
            rules = self._verdicts[coldest][0].rules
            if rules is not None:
                rules.fold()

    def _drop(self, origin: str) -> None:
        entry = self._verdicts.pop(origin, None)
        if entry is not None:
            self._text -= entry[1]
            self._unfolded_weight -= self._unfolded.pop(origin, 0)


def row_of_verdict(origin: str, verdict: RobotsVerdict) -> dict[str, Any] | None:
    """Return what is known of *origin* as an object for JSON; None where a new request is due anyway."""
    text = None if verdict.rules is None else verdict.rules.text
    if verdict.is_pass or len(text or "") > MOST_ROW_TEXT:
        return None
    return {
        "origin": origin,
        "access": str(verdict.access),
        "expires": verdict.expires,
        "failures": verdict.failures,
        "answered": verdict.responded_at,
        "robots": text,
    }


def _read_row(row: object, now: float) -> tuple[str, RobotsVerdict] | None:
    """Return the origin and the verdict of a row; None where it says nothing that can be of use."""
    match row:
        case {
            "origin": str(origin),
            "access": str(word),
            "expires": float() | int() as expires,
            "failures": int(failures),
            "answered": float() | int() as responded_at,
            "robots": str() | None as robots,
        } if word in _ACCESSES:
            access = Access(word)
        case _:
            return None
    latest = now + LONGEST_KEPT
    is_current = now < expires <= latest
    # Rules serve while their origin is unreachable; all else is learnt again once it has expired.
    is_of_use = access is Access.RULES and now - _LONGEST_STALE <= responded_at <= latest >= expires
    if not (is_current or is_of_use) or (access is Access.RULES) != (robots is not None) or failures < 0:
        return None
    if robots is not None and len(robots) > MOST_ROW_TEXT:
        return None
    rules = None if robots is None else parse_robots(robots.encode("utf-8", "replace"), agent="*")
    verdict = RobotsVerdict(access, float(expires), rules, failures, float(responded_at))
    return None if verdict.is_pass else (origin, verdict)
