"""What fuzzing found stays found, and a little of it is done with every run of the tests."""

from __future__ import annotations

import pytest
from fuzz.forked import forked
from fuzz.mutated import mutated
from fuzz.targets import CORPUS, TARGETS, corpus
from hypothesis import HealthCheck, given, settings


@pytest.mark.parametrize("name", TARGETS)
def test_what_once_broke_a_reader_does_no_more(name: str) -> None:
    for octets in corpus(name):
        TARGETS[name].run(octets)


def _keeps_its_promises(name: str, examples: int) -> None:
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(mutated(corpus(name)))
    def run(octets: bytes) -> None:
        TARGETS[name].run(octets)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_keeps_its_promises_whatever_it_is_given(name: str) -> None:
    _keeps_its_promises(name, 6 if TARGETS[name].in_child else 60)


def test_what_ends_a_child_is_reported_and_ends_nothing_else() -> None:
    for reader, said in (
        ("abort", "ended with -6"),
        ("traceback", "RuntimeError: x"),
        ("memory", "MiB"),
    ):
        with pytest.raises(AssertionError, match=said):
            forked().run(reader, b"")
    forked().run("robots", b"")


def test_everything_that_was_found_belongs_to_a_target() -> None:
    if CORPUS.is_dir():
        assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()
