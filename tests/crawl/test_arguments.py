"""Spider arguments: strings in, checked values out, a sentence for what cannot be followed."""

from __future__ import annotations

import pytest

from amicrawl.crawl.arguments import SeedArguments
from amicrawl.errors import ExitCode, UsageError


def test_arguments_are_read_as_given() -> None:
    given = {
        "file": "s.txt",
        "format": "lines",
        "out": "o",
        "run_id": "r",
        "shard": "1",
        "shards": "4",
        "strict": "1",
    }
    assert SeedArguments.parse(given) == SeedArguments(
        file="s.txt", format="lines", out="o", run_id="r", shard=1, shards=4, strict=True
    )


def test_arguments_that_scrapyd_adds_are_accepted() -> None:
    assert SeedArguments.parse({"file": "s.txt", "_job": "abc"}).file == "s.txt"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"file": "s", "fromat": "lines"}, ["fromat", "Did you mean format?"]),
        ({"file": "s", "zzz": "1"}, ["zzz", "Known are file, strict, format"]),
        ({}, ["needs a seed list", "-a file="]),
        ({"file": "s", "shard": "x"}, ["shard", "'x'", "whole number"]),
        ({"file": "s", "shard": "4", "shards": "4"}, ["shard=4", "shards=4", "the last of 4 is 3"]),
        ({"file": "s", "strict": "maybe"}, ["strict", "'maybe'", "give 1 or 0"]),
    ],
)
def test_what_cannot_be_followed_is_said_in_a_sentence(given: dict[str, str], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        SeedArguments.parse(given)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE
