"""Who gets in, and who is parked."""

from __future__ import annotations

import pytest

from amicrawl.frontier import Offer, Source
from amicrawl.frontier.admission import (
    BY_NAME,
    TRAP_SUSPECT,
    Admission,
    OfferVerdict,
    Refusal,
    TrapDetector,
)
from amicrawl.meguri.rows import HostRow
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

HOUR = 494_520
"""June 2026."""
PLAIN = HostRow(7)
IN = OfferVerdict(None, False)


def link(
    path: int, url: str = "http://a.test/x", *, hops: int = 1, source: Source = Source.LINK
) -> Offer:
    return Offer(Seed(url), UrlKey(7, path), source, hops=hops)


def calendar(number: int) -> Offer:
    return link(number, f"http://a.test/{2040 + number // 12}/{number % 12 + 1:02}/")


def test_without_caps_budgets_and_suspicion_everything_gets_in() -> None:
    assert Admission().weigh(link(1, hops=65_535), PLAIN, urls=10**9, hour=HOUR) == IN


@pytest.mark.parametrize(
    ("of_the_crawl", "of_the_host", "cap"), [(3, 0, 3), (0, 3, 3), (3, 5, 3), (5, 3, 3)]
)
def test_the_lesser_cap_counts(of_the_crawl: int, of_the_host: int, cap: int) -> None:
    admission = Admission(depth_cap=of_the_crawl)
    host = PLAIN._replace(depth_cap=of_the_host)
    assert admission.weigh(link(1, hops=cap), host, urls=0, hour=HOUR) == IN
    refusal = admission.weigh(link(2, hops=cap + 1), host, urls=0, hour=HOUR).refusal
    assert refusal is Refusal.TOO_DEEP


def test_what_is_parked_takes_no_room() -> None:
    """In the reference it does: what a spam farm had too many of kept out what came later."""
    admission, host = Admission(depth_cap=1), PLAIN._replace(url_budget=3)
    refusals = [
        admission.weigh(link(number, hops=hops), host, urls=number, hour=HOUR).refusal
        for number, hops in enumerate([1, 2, 2, 1, 1, 1])
    ]
    deep, full = Refusal.TOO_DEEP, Refusal.OVER_BUDGET
    assert refusals == [None, deep, deep, None, None, full]


def test_what_was_parked_before_a_restart_is_handed_in() -> None:
    admission, host = Admission(), PLAIN._replace(url_budget=3)
    assert admission.weigh(link(9), host, urls=5, hour=HOUR).refusal is Refusal.OVER_BUDGET
    admission = Admission()
    admission.recall({7: 3})
    assert admission.weigh(link(9), host, urls=5, hour=HOUR) == IN


def test_what_is_taken_out_counts_again() -> None:
    admission, host = Admission(), PLAIN._replace(url_budget=3)
    admission.recall({7: 3})
    admission.released(7)
    assert admission.weigh(link(9), host, urls=6, hour=HOUR).refusal is Refusal.OVER_BUDGET


@pytest.mark.parametrize("source", Source)
def test_only_what_was_requested_by_name_is_never_parked(source: Source) -> None:
    host = PLAIN._replace(url_budget=1, depth_cap=1, flags=TRAP_SUSPECT)
    offer = link(1, "http://a.test/2099/01/", hops=9, source=source)
    refusal = Admission().weigh(offer, host, urls=10, hour=HOUR).refusal
    assert (refusal is None) == (source in BY_NAME)


def test_sixteen_months_far_ahead_make_a_host_suspect_and_park_what_follows() -> None:
    admission = Admission()
    for number in range(15):
        assert admission.weigh(calendar(number), PLAIN, urls=number, hour=HOUR) == IN
    newly = admission.weigh(calendar(15), PLAIN, urls=15, hour=HOUR)
    assert newly == OfferVerdict(Refusal.TRAP, True)
    suspect = PLAIN._replace(flags=TRAP_SUSPECT)
    assert admission.weigh(link(99), suspect, urls=16, hour=HOUR) == OfferVerdict(None, True)
    session = link(98, "http://a.test/x?sid=abc123def456ghi")
    assert admission.weigh(session, suspect, urls=16, hour=HOUR).refusal is None


def test_when_it_is_forgotten_why_a_host_is_suspect_every_pattern_is_refused_there() -> None:
    suspect = PLAIN._replace(flags=TRAP_SUSPECT)
    session = link(98, "http://a.test/x?sid=abc123def456ghi")
    assert Admission().weigh(session, suspect, urls=0, hour=HOUR).refusal is Refusal.TRAP
    assert Admission().weigh(link(99), suspect, urls=0, hour=HOUR).refusal is None


def test_patterns_are_looked_for_in_the_canonical_form() -> None:
    detector = TrapDetector()
    admission = Admission(detector=detector)
    for number in range(16):
        url = f"HTTP://A.test:80/x/../{2040 + number}/%30{number % 9 + 1}/#top"
        admission.weigh(link(number, url), PLAIN, urls=0, hour=HOUR)
    assert detector.flags(7)


def test_a_url_without_a_canonical_form_is_weighed_as_it_is() -> None:
    assert Admission().weigh(link(1, "mailto:a"), PLAIN, urls=0, hour=HOUR) == IN
