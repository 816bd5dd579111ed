"""What fuzzing found stays found, and a little of it is done with every run of the tests."""

from __future__ import annotations

import pytest
from fuzz.mutated import mutated
from fuzz.targets import CORPUS, TARGETS, corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("name", TARGETS)
def test_what_once_broke_a_reader_does_no_more(name: str) -> None:
    for octets in corpus(name):
        TARGETS[name].run(octets)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_reader_keeps_its_promises_whatever_it_is_given(name: str, data: st.DataObject) -> None:
    TARGETS[name].run(data.draw(mutated(corpus(name))))


def test_everything_that_was_found_belongs_to_a_target() -> None:
    if CORPUS.is_dir():
        assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()
