"""The first visit of a page: the short way comes to what its history would."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier import Found, Outcome
from amicrawl.frontier.outcomes import Settling, event_of, fingerprint_of, settled
from amicrawl.frontier.revisits import Observation, Revisits
from amicrawl.frontier.wheel import DueWheel
from amicrawl.meguri import Status
from amicrawl.meguri.rows import UrlRow
from amicrawl.seed import Seed

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
_OF_STRINGS = {"etag_ref", "last_modified", "redirect_ref"}
DIGESTS = st.sampled_from(["", "no digest", "ab" * 20, "0" * 40])


class Kept:
    """Stands for a partition and its hosts: keeps the fields that are put."""

    def __init__(self) -> None:
        self.fields: dict[str, float] = {}

    def row(self, host: int) -> None:
        """Return what is known of *host*."""

    def intern(self, entries: bytes) -> int:
        return len(entries)

    def put(self, number: int, row: UrlRow, *fields: dict[str, float], was: int) -> UrlRow:
        for each in fields:
            self.fields |= each
        return row._replace(**self.fields)  # type: ignore[arg-type]


@given(row=ROWS, digest=DIGESTS, status=st.sampled_from([200, 304, 301]), unchanged=st.booleans())
def test_a_first_visit_leaves_what_any_visit_would(
    row: UrlRow, digest: str, status: int, unchanged: bool
) -> None:
    kept: Any = Kept()
    settling = Settling(kept, kept, Revisits(), wheel=DueWheel(), recrawls=False, soft404=None)
    outcome, hour = Outcome(status=status, found=Found(digest=digest, unchanged=unchanged)), 500_000
    settling.settle(0, row, Seed(""), outcome, was=Status.IN_FLIGHT, hour=hour)
    visit = Observation(hour, status == 304 or unchanged, fingerprint_of(digest))
    wanted = settled(row, event_of(outcome, in_a_row=0), outcome, hour)
    wanted |= Revisits().scheduled(row, visit, None)
    left = row._asdict() | kept.fields
    assert {name: left[name] for name in row._fields if name not in _OF_STRINGS} == {
        name: value for name, value in (row._asdict() | wanted).items() if name not in _OF_STRINGS
    }
