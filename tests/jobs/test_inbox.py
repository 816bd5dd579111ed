"""What waits to be told: bounded, in order, and no two alike."""

from __future__ import annotations

import json

from amicrawl.fleet.logs.job_log import Inbox


def told(inbox: Inbox, most: int = 1000, *, size: int = 1 << 20) -> list[dict[str, object]]:
    return [json.loads(text) for text in inbox.peek(most, size=size)]


def test_entries_stay_in_order_until_they_have_arrived() -> None:
    inbox = Inbox(clock=lambda: 5.0)
    inbox.download("http://a.example/", 200, "OK")
    inbox.tell("a line")
    inbox.ignore("http://a.example/x", "x$")
    assert [entry["type"] for entry in told(inbox)] == ["download", "stdout", "ignore"]
    assert len(told(inbox, 2)) == 2
    inbox.taken()
    assert [entry["type"] for entry in told(inbox)] == ["ignore"]
    inbox.taken()
    assert not len(inbox)


def test_equal_entries_of_one_moment_are_told_apart() -> None:
    inbox = Inbox(clock=lambda: 1700000000.25)
    for _ in range(3):
        inbox.tell("the same")
    assert [entry["ts"] for entry in told(inbox)] == [
        1700000000.25,
        1700000000.250001,
        1700000000.250002,
    ]


def test_what_is_least_telling_is_dropped_first_and_that_is_said() -> None:
    inbox = Inbox(clock=lambda: 0.0, room=5)
    inbox.tell("first")
    for number in range(3):
        inbox.ignore(f"http://a.example/i{number}", "i")
    for number in range(6):
        inbox.download(f"http://a.example/d{number}", 200, "OK")
    assert inbox.dropped == 5
    entries = told(inbox)
    assert [entry.get("url", "")[-2:] for entry in entries if entry["type"] == "download"] == [  # type: ignore[index]
        "d2",
        "d3",
        "d4",
        "d5",
    ]
    assert [entry["message"] for entry in entries if entry["type"] == "stdout"] == [
        "first\n",
        "5 log entries found no room and were dropped.\n",
    ]


def test_a_batch_is_bounded_by_its_size_but_never_empty() -> None:
    inbox = Inbox(clock=lambda: 0.0)
    for _ in range(10):
        inbox.tell("x" * 1000)
    assert len(inbox.peek(100, size=3500)) == 3
    assert len(inbox.peek(100, size=1)) == 1
