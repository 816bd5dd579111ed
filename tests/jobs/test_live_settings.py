"""What Redis says of a job that runs, read with care."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.fleet.jobs.live_settings import FlushReply, live_settings

SOUND = {"delay_min": "250", "delay_max": "375", "concurrency": "3", "suppress_ignore_reports": "true"}


def test_sound_values_are_read() -> None:
    settings = live_settings("7", SOUND, ["b", "a", ""], ["paused", "1"])
    assert settings.values == {
        "delay_min": 250,
        "delay_max": 375,
        "concurrency": 3,
        "suppress_ignore_reports": False,
        "note": "",
    }
    assert settings.ignores == frozenset({"a", "b"})
    assert settings.paused
    assert not settings.faults


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delay_min", "12x"),
        ("delay_min", "-1"),
        ("delay_max", "99999999999999"),
        ("delay_max", "٣"),
        ("concurrency", "0"),
        ("concurrency", "1e3"),
    ],
)
def test_a_value_that_means_nothing_is_left_out_and_named(name: str, text: str) -> None:
    settings = live_settings("1", {**SOUND, name: text}, [], [])
    assert settings.values[name] is None
    assert settings.faults[0].startswith(f"{name}: ")
    assert settings.values["suppress_ignore_reports"] is False


def test_a_greatest_delay_below_the_least_is_raised_to_it_and_named() -> None:
    settings = live_settings("1", {"delay_min": "500", "delay_max": "100"}, [], [])
    assert settings.values["delay_max"] == 500
    assert settings.faults


def test_what_could_not_be_read_says_nothing() -> None:
    settings = live_settings("1", {}, None, None)
    assert settings.ignores is None
    assert settings.paused is None
    assert settings.values["delay_min"] is None


@given(
    st.dictionaries(st.sampled_from(list(SOUND)), st.text()), st.lists(st.text()), st.lists(st.text())
)
def test_nothing_in_redis_raises(raw: dict[str, str], ignores: list[str], wishes: list[str]) -> None:
    settings = live_settings("x", raw, ignores, wishes)
    delay = settings.values["delay_min"]
    assert delay is None or int(delay) >= 0
    assert FlushReply.read(["LOST", 0, "epoch"]).what == "LOST"
