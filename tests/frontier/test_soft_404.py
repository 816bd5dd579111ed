"""Error pages with status 200: found by repetition, and remembered within bounds."""

from __future__ import annotations

from frontier.signal_vectors import VECTOR_FILES, lines
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.outcomes import Soft404Detector
from amicrawl.frontier.tally import DistinctTally

KEYS = st.integers(0, 2**64 - 1)


def test_golden_templates_are_found_at_the_same_page() -> None:
    for line in lines(VECTOR_FILES, "content.jsonl", kind="soft404"):
        detector = Soft404Detector(threshold=line["threshold"])
        for host, content_fp, path, verdict in line["observations"]:
            assert detector.observe(host, content_fp, path=path) is verdict


def test_a_payload_under_eight_urls_is_a_template_from_then_on() -> None:
    detector = Soft404Detector()
    assert [detector.observe(1, 5, path=path) for path in range(9)] == [False] * 7 + [True] * 2
    assert detector.observe(1, 5, path=0)
    assert not detector.observe(2, 5, path=0)


def test_a_url_counts_once_however_often_it_is_visited() -> None:
    detector = Soft404Detector()
    assert not any(detector.observe(1, 5, path=7) for _ in range(100))


def test_no_payload_is_no_template() -> None:
    detector = Soft404Detector()
    assert not any(detector.observe(1, 0, path=path) for path in range(100))


def test_what_was_met_longest_ago_is_forgotten_first() -> None:
    detector = Soft404Detector(threshold=2, limit=2)
    for fingerprint in (1, 2):
        detector.observe(1, fingerprint, path=0)
        assert detector.observe(1, fingerprint, path=1)
    assert detector.observe(1, 1, path=2)
    detector.observe(1, 3, path=0)
    assert detector.observe(1, 3, path=1)
    assert detector.observe(1, 1, path=3)
    assert not detector.observe(1, 2, path=3)


@given(st.integers(1, 9), st.lists(KEYS, unique=True, min_size=9, max_size=20))
def test_a_tally_is_full_with_as_many_different_keys(threshold: int, keys: list[int]) -> None:
    tally = DistinctTally(threshold, limit=3)
    full = [tally.add(b"subject", key) for key in keys[:threshold]]
    assert full == [False] * (threshold - 1) + [True]


@given(st.lists(st.tuples(st.binary(max_size=2), KEYS), max_size=200))
def test_a_tally_never_has_more_subjects_than_its_limit(additions: list[tuple[bytes, int]]) -> None:
    tally = DistinctTally(3, limit=5)
    for subject, key in additions:
        tally.add(subject, key)
        assert len(tally) <= 5


def test_keys_that_overlap_in_memory_are_not_taken_for_another() -> None:
    tally = DistinctTally(4, limit=1)
    for key in (0xFFFF_FFFF_0000_0000, 0x0000_0000_FFFF_FFFF):
        assert not tally.add(b"", key)
    # Its octets stand across the border of the two before.
    assert not tally.add(b"", 0xFFFF_FFFF_FFFF_FFFF)
    assert tally.add(b"", 1)
