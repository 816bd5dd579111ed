"""Fingerprints, simhashes, the verdict on a change, the index of neighbours, and Last-Modified."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import google_crc32c
import pytest
from frontier.signal_vectors import DIRECTORIES, lines, number
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.content import (
    NEAR,
    Change,
    change_between,
    content_fingerprint,
    hamming,
    is_near,
    normalised_body,
    simhash,
    simhash_of,
)
from amicrawl.frontier.validators import hours_of_http_date

if TYPE_CHECKING:
    from pathlib import Path

SIMHASHES = st.integers(0, 2**64 - 1)
VERDICTS = {"no_change": Change.NONE, "cosmetic": Change.COSMETIC, "real": Change.REAL}
golden = pytest.mark.parametrize("directory", DIRECTORIES)


def body_in(line: dict[str, Any]) -> bytes:
    return b64decode(line["body_base64"]) if "body_base64" in line else line.get("body", "").encode()


@golden
def test_golden_bodies_have_their_fingerprints(directory: Path) -> None:
    for line in lines(directory, "content.jsonl", kind="body"):
        body = body_in(line)
        normal = normalised_body(body)
        assert len(normal) == line["normalized_length"], line["id"]
        assert google_crc32c.value(normal) == number(line["normalized_crc32c"]), line["id"]
        assert content_fingerprint(body) == number(line["fp"]), line["id"]
        assert simhash(body) == number(line["simhash"]), line["id"]


@golden
def test_golden_pairs_are_judged_alike(directory: Path) -> None:
    bodies = {line["id"]: body_in(line) for line in lines(directory, "content.jsonl", kind="body")}
    marks = {name: (content_fingerprint(body), simhash(body)) for name, body in bodies.items()}
    for line in lines(directory, "content.jsonl", kind="pair"):
        (old, old_simhash), (new, new_simhash) = marks[line["a"]], marks[line["b"]]
        assert hamming(old_simhash, new_simhash) == line["hamming"], line
        assert is_near(old_simhash, new_simhash) is line["near"], line
        verdict = change_between(old, new, old_simhash=old_simhash, new_simhash=new_simhash)
        assert verdict is VERDICTS[line["change"]], line


@golden
def test_golden_numbers_are_judged_alike(directory: Path) -> None:
    for line in lines(directory, "content.jsonl", kind="change"):
        old, new = number(line["old_fp"]), number(line["new_fp"])
        simhashes = number(line["old_simhash"]), number(line["new_simhash"])
        verdict = change_between(old, new, old_simhash=simhashes[0], new_simhash=simhashes[1])
        assert verdict is VERDICTS[line["verdict"]], line
        assert hamming(*simhashes) == line["hamming"]


@golden
def test_golden_features_weigh_alike(directory: Path) -> None:
    for line in lines(directory, "content.jsonl", kind="simhash_features"):
        assert simhash_of(line["features"] or []) == number(line["simhash"]), line


@golden
def test_golden_responses_leave_the_same_marks(directory: Path) -> None:
    """Marks of a payload, and the hour of Last-Modified.

    Not compared: links, which only spiders follow here; where a redirect leads and what is tried again,
    which have tests of their own. A zone that is named and not GMT is not read as GMT here: RFC 9110
    allows GMT only, and an hour that is off is worse than none.
    """
    for line in lines(directory, "content.jsonl", kind="fetch_mapping"):
        if "error" in line:
            continue
        response, outcome = line["response"], line["outcome"]
        if "content_fp" in outcome:
            body = body_in(response)
            assert content_fingerprint(body) == number(outcome["content_fp"]), line["what"]
            assert simhash(body) == number(outcome["simhash"]), line["what"]
        header = response.get("last_modified", "")
        expected = 0 if header.endswith("MST") else outcome.get("last_modified", 0)
        assert hours_of_http_date(header) == expected, line["what"]


@golden
def test_golden_dates_agree(directory: Path) -> None:
    """Before 1970 the reference's hours wrap to the far end of time; ours are absent."""
    for line in lines(directory, "content.jsonl", kind="last_modified"):
        expected = 0 if line["hours"] == 2**32 - 1 else line["hours"]
        assert hours_of_http_date(line["header"]) == expected, line


@given(st.binary())
def test_white_space_does_not_matter_to_a_fingerprint(body: bytes) -> None:
    spread = b"\r\n\t " + body.replace(b" ", b" \f\v ") + b"\n"
    assert content_fingerprint(spread) == content_fingerprint(body)
    assert normalised_body(body) == b" ".join(body.split())


@given(st.lists(st.sampled_from(["alpha", "beta", "GAMMA", "d3lta", "e"]), max_size=50), st.randoms())
def test_the_order_of_words_does_not_matter_to_a_simhash(words: list[str], random: Any) -> None:
    shuffled = random.sample(words, len(words))
    assert simhash(" ".join(words).encode()) == simhash("<>".join(shuffled).lower().encode())
    assert simhash(" ".join(words).encode()) == simhash_of([(word.lower(), 1) for word in words])


@pytest.mark.parametrize("unit", [b"word other  ", b" ", b"x", b"a ", b"\n\n\t", b"0123456789 abc\xff"])
def test_long_bodies_are_read_as_short_ones_are(unit: bytes) -> None:
    for body in (unit * 30_000, b"lead" + unit * 20_000 + b"tail"):
        assert normalised_body(body) == b" ".join(body.split())
        words = body.replace(b"\xff", b" ").split()
        counted = [(word.decode(), words.count(word)) for word in set(words)]
        assert simhash(body) == simhash_of(counted)


@given(SIMHASHES, st.sets(st.integers(0, 63), max_size=8))
def test_near_means_few_different_bits(value: int, flipped: set[int]) -> None:
    other = value ^ sum(1 << bit for bit in flipped)
    assert hamming(value, other) == len(flipped)
    assert is_near(value, other) is (len(flipped) <= NEAR)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = st.integers(0, (datetime(2069, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1) - 1)


@given(SECONDS)
def test_the_three_forms_of_a_date_name_one_hour(seconds: int) -> None:
    moment = EPOCH + timedelta(seconds=seconds)
    day, month = moment.strftime("%a"), moment.strftime("%b")
    clock = moment.strftime("%H:%M:%S")
    forms = (
        f"{day}, {moment:%d} {month} {moment:%Y} {clock} GMT",
        f"{moment:%A}, {moment:%d}-{month}-{moment:%y} {clock} GMT",
        f"{day} {month} {moment.day:2} {clock} {moment:%Y}",
    )
    assert [hours_of_http_date(form) for form in forms] == [seconds // 3600] * 3


@given(st.text(max_size=60))
def test_any_other_text_is_no_date(text: str) -> None:
    assert hours_of_http_date(text) == 0


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("Sun, 06 Nov 1994 08:49:60 GMT", 217_808),
        ("Sun, 06 Nov 1994 08:49:37 -0130", 217_810),
        ("Sun, 06 Nov 1994 24:00:00 GMT", 0),
        ("Sun, 31 Feb 1994 08:49:37 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 PST", 0),
        ("Sun, 06 Foo 1994 08:49:37 GMT", 0),
        ("Thu, 01 Jan 1970 00:30:00 +0200", 0),
        ("Sun, 06 Nov 0000 08:49:37 GMT", 0),
        ("Sun, 0６ Nov 1994 08:49:37 GMT", 0),
    ],
)
def test_the_edges_of_a_date(text: str, hours: int) -> None:
    assert hours_of_http_date(text) == hours
