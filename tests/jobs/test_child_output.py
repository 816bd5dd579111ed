"""The log of a job has what its crawl says to people, in whichever format the crawl writes it."""

from __future__ import annotations

import json

import pytest

from amicrawl.fleet.jobs.child import messages


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plain words", ["plain words"]),
        ('{"level": "WARNING", "logger": "x", "message": "no room"}', ["WARNING: no room"]),
        ('{"level": "ERROR", "message": "one\\ntwo"}', ["ERROR: one", "two"]),
        ('{"event": "failed", "exit_code": 3, "message": "s.txt is missing"}', ["s.txt is missing"]),
        ('{"event": "progress", "rows": 7}', []),
        ('{"event": "finished", "rows": 7, "notes": ["a", "b"]}', ["a", "b"]),
        ('{"cut off', ['{"cut off']),
        ('{"other": 1}', ['{"other": 1}']),
        ("17", ["17"]),
        ("", []),
        ("[" * 8192, ["[" * 8192]),
    ],
)
def test_a_line_is_told_by_its_message(line: str, expected: list[str]) -> None:
    assert messages(line) == expected


def test_a_message_of_any_type_is_text() -> None:
    assert messages(json.dumps({"message": 5})) == ["5"]
    assert messages(json.dumps({"event": "finished", "notes": 5})) == []
