"""What an exchange for robots.txt means, and what is known of many origins."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness.robots import RobotsRules, parse_robots
from amicrawl.politeness.robots_policy import (
    LONGEST_KEPT,
    MOST_ROW_TEXT,
    Access,
    RobotsCache,
    RobotsVerdict,
    honoured_delay,
    is_bound,
    judge_absence,
    judge_robots,
    max_age_of,
    robots_url,
)
from amicrawl.urls import Reason, Refused

NOW = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0
CLOSED = b"User-agent: *\nDisallow: /\nCrawl-delay: 2.5\nSitemap: /s\n"
A, B, C = "http://a.example/robots.txt", "http://b.example/robots.txt", "http://c.example/robots.txt"


def judged(status: int | None, body: bytes = b"", *, now: float = NOW, **known: Any) -> RobotsVerdict:
    return judge_robots(status, body, now=now, agent="amicrawl", **known)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://a.example/x?y", "http://a.example/robots.txt"),
        ("HTTP://A.Example:80/", "http://a.example/robots.txt"),
        ("https://a.example:443", "https://a.example/robots.txt"),
        ("https://a.example:80/", "https://a.example:80/robots.txt"),
        ("http://user:pw@a.example:8080/x", "http://a.example:8080/robots.txt"),
        ("http://[::1]:8080/x", "http://[::1]:8080/robots.txt"),
        ("https://sub.a.example/", "https://sub.a.example/robots.txt"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert robots_url(url) == origin


def test_what_cannot_be_fetched_has_no_origin() -> None:
    assert robots_url("mailto:a@a.example") == Refused(Reason.OTHER_SCHEME)


@pytest.mark.parametrize("status", [200, 203, 206])
def test_a_success_brings_rules(status: int) -> None:
    verdict = judged(status, CLOSED)
    assert verdict.access is Access.RULES
    assert verdict.allows("http://a.example/x") is False
    assert judged(status, b"").allows("http://a.example/x") is True
    assert verdict.expires == NOW + DAY
    assert verdict.reason == "robots.txt disallows it"


@pytest.mark.parametrize("status", [300, 301, 304, 307, 400, 401, 403, 404, 410, 429, 499])
def test_no_file_and_too_many_redirects_allow_all(status: int) -> None:
    verdict = judged(status, CLOSED)
    assert verdict.access is Access.ALLOW_ALL
    assert verdict.allows("http://a.example/x") is True
    assert verdict.expires == NOW + DAY
    assert verdict.reason == ""


@pytest.mark.parametrize("status", [500, 503, 599, 600, 999, 100, 0, -1, None])
def test_a_failing_server_and_no_response_make_urls_wait(status: int | None) -> None:
    verdict = judged(status, CLOSED)
    assert verdict.access is Access.WAIT
    assert verdict.allows("http://a.example/x") is None
    assert verdict.expires == NOW + 60


def test_it_is_requested_again_ever_later_and_given_up_at_last() -> None:
    verdict, waits = judged(None), []
    while verdict.access is Access.WAIT:
        waits.append(verdict.expires - NOW)
        verdict = judged(503, previous=verdict)
    assert waits == [60, 120, 240, 480]
    assert verdict.access is Access.UNREACHABLE
    assert verdict.allows("http://a.example/x") is False
    assert verdict.reason == "robots.txt is unreachable, given up"
    assert verdict.expires == NOW + DAY
    # A crawl that lasts longer requests it once a day.
    assert judged(503, now=NOW + DAY, previous=verdict).access is Access.UNREACHABLE
    assert judged(404, previous=verdict).access is Access.ALLOW_ALL
    assert judged(404, previous=verdict).failures == 0


def test_a_wait_is_never_longer_than_an_hour() -> None:
    verdict = RobotsVerdict(Access.WAIT, NOW, failures=10**30)
    assert judged(None, previous=verdict, most_failures=10**40).expires == NOW + HOUR


def test_rules_known_before_hold_while_their_origin_is_unreachable_for_30_days() -> None:
    known = judged(200, CLOSED)
    later = judged(503, now=NOW + DAY, previous=known)
    assert (later.access, later.rules, later.expires) == (Access.RULES, known.rules, NOW + DAY + 60)
    for failures in range(2, 9):
        later = judged(None, now=NOW + 2 * DAY, previous=later)
        assert (later.access, later.failures) == (Access.RULES, failures)
    assert judged(None, now=NOW + 31 * DAY, previous=later).access is Access.UNREACHABLE


def test_that_there_was_no_file_does_not_last_beyond_its_day() -> None:
    assert judged(503, now=NOW + DAY, previous=judged(404)).access is Access.WAIT


def test_rules_known_before_hold_while_nobody_is_there() -> None:
    known = judged(200, CLOSED)
    absent = judge_absence(now=NOW + DAY, previous=known)
    assert (absent.access, absent.rules, absent.is_pass) == (Access.RULES, known.rules, False)
    assert judge_absence(now=NOW + 31 * DAY, previous=known).is_pass


def test_where_nobody_is_there_and_nothing_is_known_pages_are_tried_until_somebody_responds() -> None:
    passed = judge_absence(now=NOW, previous=judged(503))
    assert (passed.is_pass, passed.allows("http://a.example/x")) == (True, True)
    cache = RobotsCache()
    for origin, verdict in ((A, passed), (B, judged(404)), (C, judged(200, CLOSED))):
        cache.keep(origin, verdict)
        cache.heard_from(origin)
    cache.heard_from("http://unknown.example/robots.txt")
    assert [cache.find(origin, now=NOW) is None for origin in (A, B, C)] == [True, False, False]


def test_the_robots_txt_of_an_origin_that_serves_all_else_is_not_requested_for_ever() -> None:
    cache, requested = RobotsCache(), 0
    for _ in range(50):
        if cache.find(A, now=NOW) is None:
            requested += 1
            cache.keep(A, judge_absence(now=NOW, previous=cache.previous(A)))
        cache.heard_from(A)
    assert requested == 5


def test_that_nobody_was_there_is_forgotten_by_the_next_crawl() -> None:
    cache = RobotsCache()
    cache.keep(A, judge_absence(now=NOW))
    assert list(cache.to_rows()) == []
    row = {"origin": A, "access": "allow-all", "expires": NOW + 60, "failures": 0, "answered": 0.0}
    rows = [row | {"robots": None}, row | {"origin": B, "answered": NOW, "robots": None}]
    again = RobotsCache.from_rows(rows, agent="a", written_for="a", now=NOW)
    assert [again.previous(origin) is not None for origin in (A, B)] == [False, True]


def test_a_response_that_confirms_the_last_one_renews_it() -> None:
    known = judged(200, CLOSED)
    renewed = judged(304, now=NOW + DAY, previous=known)
    assert (renewed.rules, renewed.expires) == (known.rules, NOW + 2 * DAY)


@pytest.mark.parametrize(
    ("max_age", "kept"), [(None, DAY), (0.0, HOUR), (7200.0, 7200.0), (1e9, DAY), (-5.0, HOUR)]
)
def test_a_response_is_kept_for_an_hour_to_a_day(max_age: float | None, kept: float) -> None:
    assert judged(200, max_age=max_age).expires == NOW + kept
    assert judged(404, max_age=max_age).expires == NOW + kept


@pytest.mark.parametrize(
    ("field", "seconds"),
    [
        ("", None),
        ("public", None),
        ("max-age=60", 60.0),
        ("public, Max-Age = 60", 60.0),
        ('max-age="60"', 60.0),
        ("s-maxage=5", None),
        ("x-max-age=5", None),
        ("no-cache", 0.0),
        ("public,no-store, max-age=60", 0.0),
        ("max-age=-1", None),
        ("max-age=" + "9" * 18, 999_999_999_999_999_999.0),
    ],
)
def test_cache_control_says_how_long_to_keep_a_response(field: str, seconds: float | None) -> None:
    assert max_age_of(field) == seconds


def test_a_crawl_delay_is_honoured_up_to_a_cap() -> None:
    rules = parse_robots(CLOSED, agent="amicrawl")
    assert honoured_delay(rules, cap=30.0) == (2.5, False)
    assert honoured_delay(rules, cap=1.0) == (1.0, True)
    assert honoured_delay(RobotsRules(), cap=1.0) == (0.0, False)
    assert honoured_delay(None, cap=1.0) == (0.0, False)


@pytest.mark.parametrize(
    ("policy", "pages", "requisites"),
    [
        ("obey", True, True),
        ("ignore", False, False),
        ("obey-but-fetch-requisites", True, False),
        ("a word of tomorrow", True, True),
    ],
)
def test_a_policy_says_which_urls_robots_txt_decides_about(
    policy: str, pages: bool, requisites: bool
) -> None:
    assert is_bound(policy, is_requisite=False) is pages
    assert is_bound(policy, is_requisite=True) is requisites


def test_robots_txt_is_requested_first_and_after_its_response_expired() -> None:
    cache = RobotsCache()
    assert cache.find(A, now=NOW) is None
    verdict = judged(200, CLOSED)
    cache.keep(A, verdict)
    assert cache.find(A, now=NOW) is verdict
    assert cache.find(A, now=NOW + DAY - 1) is verdict
    assert cache.find(A, now=NOW + DAY) is None
    assert cache.previous(A) is verdict


def test_a_clock_set_back_makes_responses_expire() -> None:
    cache = RobotsCache()
    cache.keep(A, judged(200, CLOSED))
    assert cache.find(A, now=NOW - 1) is None


def test_the_origins_used_last_are_kept() -> None:
    cache = RobotsCache(most_origins=2)
    cache.keep(A, judged(404))
    cache.keep(B, judged(404))
    assert cache.find(A, now=NOW) is not None
    cache.keep(C, judged(404))
    assert [cache.find(origin, now=NOW) is not None for origin in (A, B, C)] == [True, False, True]
    assert len(cache) == 2


def test_the_text_of_all_rules_is_bounded() -> None:
    cache = RobotsCache(most_text=250)
    body = b"User-agent: *\nDisallow: /" + b"a" * 60 + b"\n"
    for origin in (A, B, C):
        cache.keep(origin, judged(200, body))
    assert [cache.previous(origin) is not None for origin in (A, B, C)] == [False, True, True]
    cache.keep(A, judged(200, b"User-agent: *\nDisallow: /" + b"a" * 300 + b"\n"))
    assert len(cache) == 0


class Folding(RobotsRules):
    """Rules that count how often they were folded."""

    folded = 0

    def fold(self) -> None:
        self.folded += 1
        super().fold()


def test_rules_made_ready_are_folded_when_they_take_too_much_memory() -> None:
    rules = {origin: Folding(((False, b"/"),)) for origin in (A, B, C)}
    cache = RobotsCache(most_unfolded=2 * rules[A].weight)
    for origin, said in rules.items():
        cache.keep(origin, RobotsVerdict(Access.RULES, NOW + DAY, said, responded_at=NOW))
    for origin in (A, B, A, C, C):
        verdict = cache.find(origin, now=NOW)
        assert verdict is not None
        assert verdict.allows("http://h/x") is False
    assert [rules[origin].folded for origin in (A, B, C)] == [0, 1, 0]


def test_what_is_known_survives_a_restart() -> None:
    cache = RobotsCache()
    cache.keep(A, judged(200, CLOSED))
    cache.keep(B, judged(404))
    cache.keep(C, judged(503))
    rows = json.loads(json.dumps(list(cache.to_rows())))
    again = RobotsCache.from_rows(rows, agent="amicrawl", written_for="AmiCrawl/1.0", now=NOW + 10)
    assert len(again) == 3
    for origin in (A, B, C):
        assert again.previous(origin) == cache.previous(origin)
        assert again.find(origin, now=NOW + 10) is not None


def test_rows_for_another_agent_say_nothing() -> None:
    cache = RobotsCache()
    cache.keep(A, judged(404))
    rows = list(cache.to_rows())
    assert len(RobotsCache.from_rows(rows, agent="amicrawl", written_for="other", now=NOW)) == 0


def test_a_row_with_fewer_failures_than_none_says_nothing() -> None:
    cache = RobotsCache()
    cache.keep(A, judged(200, CLOSED))
    rows = [row | {"failures": -9} if "failures" in row else row for row in cache.to_rows()]
    assert len(RobotsCache.from_rows(rows, agent="a", written_for="a", now=NOW)) == 0


def test_of_what_expired_only_rules_are_of_use_and_not_for_ever() -> None:
    cache = RobotsCache()
    cache.keep(A, judged(200, CLOSED))
    cache.keep(B, judged(404))
    cache.keep(C, judged(503))
    rows = list(cache.to_rows())
    again = RobotsCache.from_rows(rows, agent="a", written_for="a", now=NOW + 2 * DAY)
    assert [again.previous(origin) is not None for origin in (A, B, C)] == [True, False, False]
    assert again.find(A, now=NOW + 2 * DAY) is None
    assert len(RobotsCache.from_rows(rows, agent="a", written_for="a", now=NOW + 31 * DAY)) == 0


def test_a_large_file_is_requested_again_after_a_restart() -> None:
    cache = RobotsCache()
    lines = b"".join(b"Disallow: /%d\n" % n for n in range(MOST_ROW_TEXT // 10))
    cache.keep(A, judged(200, b"User-agent: *\n" + lines))
    assert cache.previous(A) is not None
    assert list(cache.to_rows()) == []


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
ROWS = st.fixed_dictionaries(
    {
        "origin": st.just(A) | JSON,
        "access": st.sampled_from([*map(str, Access), "other"]) | JSON,
        "expires": st.floats() | st.integers() | st.floats(NOW - DAY, NOW + 2 * DAY) | JSON,
        "failures": st.integers() | JSON,
        "answered": st.floats() | st.integers() | st.floats(NOW - DAY, NOW + DAY) | JSON,
        "robots": st.none() | st.just(CLOSED.decode()) | JSON,
    }
)


@pytest.mark.slow
@given(st.lists(JSON | ROWS, max_size=3))
def test_no_row_raises_or_outlives_a_day(rows: list[object]) -> None:
    cache = RobotsCache.from_rows(rows, agent="a", written_for="a", now=NOW)
    verdict = cache.previous(A)
    if verdict is not None:
        assert verdict.expires <= NOW + LONGEST_KEPT
        assert verdict.allows(A.replace("robots.txt", "x")) in (True, False, None)
        assert judged(None, previous=verdict).expires > NOW
    again = RobotsCache.from_rows(list(cache.to_rows()), agent="a", written_for="a", now=NOW)
    assert list(again.to_rows()) == list(cache.to_rows())
