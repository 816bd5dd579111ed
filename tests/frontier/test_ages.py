"""Ages by pattern: which one a URL has, found in a time that no URL can stretch."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier import AgeLimits

if TYPE_CHECKING:
    from types import FrameType


@given(name=st.text("ab*/", min_size=1, max_size=8), rest=st.text("ab/\n", max_size=10))
def test_a_star_stands_for_any_characters(name: str, rest: str) -> None:
    pattern = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    subject = f"/{rest}" if name.startswith("/") else f"http://a/{rest}"
    wanted = 24 if pattern.fullmatch(subject) else None
    assert AgeLimits({name: "1d"}).of(f"http://a/{rest}") == wanted


def test_no_url_takes_a_pattern_of_several_stars_long() -> None:
    """A star that took every length in turn would need hours here, for each URL of a frontier."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("the URL is compared for half a minute and more")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    try:
        for name in ("/*/*/*/*/", "*/*/*/*/*.html", "/a*/*/*/*/*x"):
            assert AgeLimits({name: "1d"}).of("http://a.example/a" + 7000 * "/" + "b") is None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
