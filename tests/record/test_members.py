"""Reading the whole members of a file: every cut, every kind of rest, nothing but faults told."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from isal import igzip_lib

from amicrawl.capture import BytesBody
from amicrawl.reading import MemberBody, Members
from amicrawl.record.warc import Record, RecordType, gzip_member

if TYPE_CHECKING:
    from pathlib import Path


def member(number: int, body: bytes = b"body") -> bytes:
    fields = f"WARC-Target-URI: http://h/{number}\r\n"
    return gzip_member(
        Record(
            RecordType.RESPONSE,
            f"<urn:uuid:{number}>",
            "2026-01-01T00:00:00Z",
            fields,
            b"",
            BytesBody(body),
        )
    )


def read(content: bytes) -> tuple[list[tuple[int, int]], int, str]:
    members = Members(io.BytesIO(content))
    return [(found.offset, found.length) for found in members], members.end, members.fault


THREE = [member(number, b"x" * number * 100) for number in range(3)]
ENDS = [sum(map(len, THREE[:count])) for count in range(4)]
PLACES = [(ENDS[index], len(THREE[index])) for index in range(3)]


def test_whole_members_are_found_with_what_they_hold() -> None:
    members = Members(io.BytesIO(b"".join(THREE)))
    found = list(members)
    assert [(entry.offset, entry.length) for entry in found] == PLACES
    assert [entry.block_length for entry in found] == [0, 100, 200]
    assert [entry.fields["warc-target-uri"] for entry in found] == [f"http://h/{n}" for n in range(3)]
    assert (members.end, members.fault) == (ENDS[3], "")


def test_every_cut_keeps_the_members_before_it() -> None:
    content = b"".join(THREE)
    for cut in range(len(content) + 1):
        found, end, fault = read(content[:cut])
        whole = sum(stop <= cut for stop in ENDS[1:])
        assert found == PLACES[:whole]
        assert end == ENDS[whole]
        assert bool(fault) == (cut not in ENDS)


@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        (b"\0" * 4096, "no gzip member begins"),
        (b"no gzip at all", "no gzip member begins"),
        (gzip.compress(b"no record"), "no WARC record"),
        (gzip.compress(b""), "no WARC record"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: 3\r\n\r\nab\r\n\r\n"), "Content-Length"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: 1\r\n\r\nab\r\n\r\n"), "Content-Length"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: 2\r\n\r\nab\n\n\n\n"), "Content-Length"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\r\n" * 2), "Content-Length"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: -2\r\n\r\n\r\n\r\n"), "no WARC record"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: \xc2\xb2\r\n\r\n\r\n\r\n"), "no WARC record"),
        (gzip.compress(b"WARC/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"), "no WARC record"),
        (gzip.compress(b"WARC/1.1\r\nA: b\r\n\r\n\r\n\r\n"), "no WARC record"),
        (gzip.compress(b"WARC/9.9\r\nContent-Length: 0\r\n\r\n\r\n\r\n"), "no WARC record"),
        (gzip.compress(b"x" * 3_000_000), "no WARC record"),
    ],
)
def test_what_is_no_whole_record_ends_the_file(rest: bytes, fault: str) -> None:
    found, end, told = read(THREE[0] + rest + THREE[1])
    assert found == PLACES[:1]
    assert end == ENDS[1]
    assert fault in told


def test_a_flipped_bit_is_found() -> None:
    content = bytearray(THREE[1] + THREE[2])
    for position in range(10, len(THREE[1])):
        content[position] ^= 4
        found, end, fault = read(bytes(content))
        content[position] ^= 4
        assert (found, end, bool(fault)) == ([], 0, True), position


def test_a_body_whose_member_was_damaged_since_is_an_error_and_not_shorter(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(THREE[2])
    with path.open("rb") as stream:
        [found] = Members(stream)
    body = MemberBody(path, found, start=0)
    assert b"".join(body.blocks()) == b"x" * 200
    path.write_bytes(THREE[2][:-1])
    with pytest.raises(OSError, match=r"a\.warc\.gz"):
        list(body.blocks())


@given(st.binary(max_size=300))
@example(b"\x1f\x8b\x08")
def test_no_bytes_at_all_raise(content: bytes) -> None:
    found, end, _ = read(THREE[0] + content)
    assert found[0] == PLACES[0]
    assert ENDS[1] <= end <= ENDS[1] + len(content)


@pytest.mark.slow
def test_a_member_that_inflates_enormously_is_not_held_in_memory() -> None:
    head = b"WARC/1.1\r\nContent-Length: 200000000\r\n\r\n"
    bomb = igzip_lib.compress(head + b"\0" * 200_000_000 + b"\r\n\r\n", 1, igzip_lib.COMP_GZIP)
    tracemalloc.start()
    found, _, fault = read(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found), fault) == (1, "")
    assert peak < 30_000_000


def test_of_repeated_fields_the_first_counts_and_values_may_hold_colons() -> None:
    header = b"WARC/1.1\r\nA: http://x:80/\r\nContent-Length: 0\r\nWARC-Protocol: h2\r\n"
    header += b"warc-protocol: tls/1.3\r\n\r\n"
    (found,) = Members(io.BytesIO(gzip.compress(header + b"\r\n\r\n")))
    assert found.fields == {"a": "http://x:80/", "content-length": "0", "warc-protocol": "h2"}
