"""SURT prefixes: many at once, and none that is said by another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.discovery.scope import SurtPrefixes

LABELS = st.lists(st.sampled_from(["org", "a", "ab", "b", "x1"]), min_size=1, max_size=3)
ENDS = st.sampled_from(["", ",", ")/", ")/a", ")/ab", ")/a/", ":80)/"])
WRITTEN = st.builds(lambda labels, end: ",".join(labels) + end, LABELS, ENDS)


def begins(surt: str, written: str) -> bool:
    """What the documentation says, one prefix at a time."""
    if ")" in written or written.endswith(","):
        return surt.startswith(written)
    return any(surt.startswith(written + end) for end in ",):")


@given(st.lists(WRITTEN, max_size=12), WRITTEN)
def test_one_look_finds_what_a_look_at_each_would(prefixes: list[str], surt: str) -> None:
    found = SurtPrefixes(prefixes).find(surt)
    assert (found is not None) == any(begins(surt, written) for written in prefixes)
    assert found is None or surt.startswith(found)


@given(st.lists(WRITTEN, max_size=12))
def test_no_prefix_is_kept_that_begins_with_another(prefixes: list[str]) -> None:
    kept = list(SurtPrefixes(prefixes))
    assert kept == sorted(kept)
    assert not [(one, other) for one in kept for other in kept if one != other and one.startswith(other)]
