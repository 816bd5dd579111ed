"""The first visit of a page: the short way comes to what its history would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier import Found, Outcome
from amicrawl.frontier.revisits import Observation, Revisits, fingerprint_of
from amicrawl.meguri import Status
from amicrawl.meguri.rows import UrlRow

ROWS = st.builds(
    UrlRow,
    host=st.just(1),
    path=st.just(2),
    status=st.just(int(Status.CRAWLED)),
    next_due=st.integers(0, 2**32 - 1),
    last_changed=st.integers(0, 100),
    change_count=st.integers(0, 3),
    no_change_streak=st.integers(0, 2),
    content_fp=st.sampled_from([0, 7]),
    simhash=st.sampled_from([0, 9]),
)
DIGESTS = st.sampled_from(["", "no digest", "ab" * 20, "0" * 40])


@given(row=ROWS, digest=DIGESTS, status=st.sampled_from([200, 304, 301]), unchanged=st.booleans())
def test_a_first_visit_leaves_what_any_visit_would(
    row: UrlRow, digest: str, status: int, unchanged: bool
) -> None:
    revisits, hour = Revisits(), 500_000
    outcome = Outcome(status=status, found=Found(digest=digest, unchanged=unchanged))
    visit = Observation(hour, status == 304 or unchanged, fingerprint_of(digest))
    first = revisits.scheduled(row, outcome, None, hour)
    assert row._asdict() | first == row._asdict() | revisits._scheduled(row, visit, None, hour)
