"""Lines and records of one key and second: what nothing tells apart belongs together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amicrawl.archive.index.merging.join import Join, MergeCounts
from amicrawl.archive.index.merging.sides import JoinKeys, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

WHEN = "org,a)/ 20121026215942"
TIES = st.builds(
    JoinKeys,
    when=st.just(WHEN),
    record_id=st.sampled_from(["", "1", "2"]),
    filename=st.sampled_from(["", "f", "g"]),
    offset=st.sampled_from(["", "1", "2"]),
    digest=st.sampled_from(["", "A", "B"]),
)
ADDITIONS = st.sampled_from([b'"puid":"x"', b'"puid":"y"'])


def differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other


def told_apart(line: JoinKeys, record: JoinKeys) -> bool:
    return (
        differ(line.record_id, record.record_id)
        or differ(line.filename, record.filename)
        # An offset says nothing without its file.
        or (bool(line.filename and record.filename) and differ(line.offset, record.offset))
        or differ(line.digest, record.digest)
    )


def found_plainly(sides: Sequence[Side], lines: Sequence[JoinKeys]) -> list[bytes]:
    """Say what each line gets, by comparing it with every record."""
    gets: dict[int, bytes] = {}
    taken: set[int] = set()

    def give(number: int, records: list[int]) -> None:
        if number not in gets and records:
            taken.add(records[-1])
            gets[number] = sides[records[-1]].addition

    def records(line: JoinKeys) -> list[int]:
        return [n for n, side in enumerate(sides) if n not in taken and not told_apart(line, side.ties)]

    for number, line in enumerate(lines):
        its = [n for n, (record, _) in enumerate(sides) if record.record_id == line.record_id != ""]
        give(number, its)
        place = (line.filename, line.offset)
        its = [n for n, (record, _) in enumerate(sides) if all(place) and record[2:4] == place]
        if its and not differ(line.record_id, sides[its[-1]].ties.record_id):
            give(number, its)
    for number, line in enumerate(lines):
        give(number, [n for n in records(line) if sides[n].ties.digest == line.digest != ""])
    for number, line in enumerate(lines):
        additions = {sides[n].addition for n in records(line)}
        if number not in gets and len(additions) == 1:
            gets[number] = additions.pop()
    return [gets.get(number, b"") for number in range(len(lines))]


X, Y = (
    Side(JoinKeys(WHEN, "", name, "", "A"), addition) for name, addition in (("", b"x"), ("f", b"y"))
)
"""Records that the same line may get, of which different things are known."""


@pytest.mark.slow
@example([X, Side(JoinKeys(WHEN, "", "", "2", ""), b"y")], [JoinKeys(WHEN, "", "f", "1", "")])
@example([X, Y, X], [JoinKeys(WHEN, "", "", "", "A")])
@example([Y, X, Y], [JoinKeys(WHEN, "", "", "", "A")] * 3)
@given(st.lists(st.builds(Side, ties=TIES, addition=ADDITIONS), max_size=12), st.lists(TIES, max_size=8))
def test_a_line_gets_what_comparing_it_with_every_record_would_find(
    sides: list[Side], lines: list[JoinKeys]
) -> None:
    texts = []
    for line in lines:
        said = {"recordid": line.record_id, "filename": line.filename, "digest": line.digest}
        offset = {"offset": line.offset} if line.offset else {}
        texts.append(f"{WHEN} {json.dumps({**said, **offset})}".encode())
    merged = Join(sides, MergeCounts()).decided(lambda: texts)
    got = [each.removeprefix(text[:-1]) for each, text in zip(merged, texts, strict=True)]
    assert [each.strip(b", }") for each in got] == found_plainly(sides, lines)
