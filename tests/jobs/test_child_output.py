"""The log of a job has what its crawl says to people, in whichever format the crawl writes it."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import pytest
from loopback import slow_python

from amicrawl.crawl.start import START
from amicrawl.disk import Disk
from amicrawl.fleet.jobs.child import Child, messages

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.slow
def test_a_crawl_that_is_stopped_while_python_starts_ends_as_stopped(tmp_path: Path) -> None:
    environment, has_begun = slow_python(tmp_path)
    child = Child(
        [sys.executable, "-P", "-m", START, "job", "-a", "ident=x"],
        environment=environment,
        console=tmp_path / "console",
        tell=lambda _: None,
        disk=Disk(),
    )
    try:
        has_begun()
        child.interrupt()
        while (code := child.poll()) is None:
            time.sleep(0.05)
    finally:
        child.kill()
    assert code == 6
