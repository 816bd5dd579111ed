"""Lists with one URL a line."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.seed import Seed, SeedFault
from amicrawl.seed.lines import MAX_LINE, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]


def test_every_line_is_a_seed_in_the_order_of_the_file(read: Read) -> None:
    seeds, faults = read(b"http://b.example/\nHTTPS://a.example/x?y=1#z\nhttp://b.example/\n")
    assert seeds == [
        Seed("http://b.example/"),
        Seed("HTTPS://a.example/x?y=1#z"),
        Seed("http://b.example/"),
    ]
    assert faults == []


def test_blank_lines_and_comments_are_no_faults(read: Read) -> None:
    seeds, faults = read(b"\n# http://no.example/\n   \t\n  #x\nhttp://a.example/\n\n")
    assert seeds == [Seed("http://a.example/")]
    assert faults == []


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfhttp://a.example/\r\nhttp://b.example/\r\n",
        b"  http://a.example/\t\n\x0chttp://b.example/ ",
    ],
    ids=["byte-order-mark-and-crlf", "white-space-and-no-last-line-feed"],
)
def test_what_editors_leave_around_urls_is_no_part_of_them(read: Read, content: bytes) -> None:
    seeds, faults = read(content)
    assert [seed.url for seed in seeds] == ["http://a.example/", "http://b.example/"]
    assert faults == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"ftp://a.example/", "'ftp://a.example/' is not an HTTP or HTTPS URL"),
        (b"a.example/page", "'a.example/page' is not an HTTP or HTTPS URL"),
        (b"http:a.example", "'http:a.example' is not an HTTP or HTTPS URL"),
        (b"http://", "'http://' names no host"),
        (b"https:///path", "'https:///path' names no host"),
        (b"https://?query", "'https://?query' names no host"),
        (b"http://a.example/\x00x", r"'http://a.example/\x00x' contains a NUL"),
        (b"http://a.example/\xff\xfe", "the line is not UTF-8 (byte 18 of it)"),
        (b"\xef\xbb\xbfhttp://a.example/", r"'\ufeffhttp://a.example/' is not an HTTP or HTTPS URL"),
        (
            b"http://a.example/\tTitle",
            "the line has a tab in it, as between columns; give its URL alone",
        ),
        (
            b"http://a.example/1\rhttp://a.example/2\r",
            "the line has a carriage return in it; end each line with a line feed (tr '\\r' '\\n')",
        ),
        (b'{"url": "http://a.example/"}', "the line is JSON; give jsonl as the format"),
        (
            b'[{"url": "http://a.example/"},',
            "a JSON array is not a seed list; convert it to one object per line with jq -c '.[]'",
        ),
    ],
)
def test_a_bad_line_is_reported_with_its_number_and_skipped(
    read: Read, line: bytes, reason: str
) -> None:
    seeds, faults = read(b"http://first.example/\n\n" + line + b"\nhttp://last.example/\n")
    assert [seed.url for seed in seeds] == ["http://first.example/", "http://last.example/"]
    assert [(fault.line, fault.reason, fault.kept) for fault in faults] == [(3, reason, False)]
    assert faults[0].source.endswith("seeds.txt")


@pytest.mark.parametrize("name", ["seeds.csv", "SEEDS.TSV", "seeds.csv.gz"])
@pytest.mark.parametrize("column", [b",2024", b"\t2024"])
def test_a_line_with_columns_is_not_taken_for_a_url(read: Read, name: str, column: bytes) -> None:
    content = b"http://a.example/\nhttp://b.example/" + column + b"\n"
    seeds, (fault,) = read(content, name)
    assert [seed.url for seed in seeds] == ["http://a.example/"]
    assert fault.reason.startswith("the line has columns; give its URL alone")
    # A comma may be in a URL, a tab may not.
    for again in (read(content, name, format="lines"), read(content)):
        assert [len(part) for part in again] == ([1, 1] if column[:1] == b"\t" else [2, 0])


def test_what_a_fault_quotes_can_do_no_harm_to_a_terminal(read: Read) -> None:
    _, faults = read("\x1b[2Jevil\u202egpj.exe\x9b31m".encode() + b"z" * 500)
    assert faults[0].reason.isascii()
    assert faults[0].reason.isprintable()
    assert len(faults[0].reason) < 250


def test_text_in_other_scripts_stays_as_it_is(read: Read) -> None:
    url = "http://пример.example/überall/日本語"
    assert read(url.encode())[0] == [Seed(url)]


def test_a_line_of_8_mib_is_read_and_a_longer_one_reported(read: Read) -> None:
    longest = b"http://a.example/".ljust(MAX_LINE, b"x")
    seeds, faults = read(b"\n".join([longest, longest + b"x", b"http://b.example/", longest + b"xx"]))
    assert [len(seed.url) for seed in seeds] == [MAX_LINE, 17]
    assert [(fault.line, fault.reason) for fault in faults] == [
        (2, f"the line is longer than {MAX_LINE} bytes"),
        (4, f"the line is longer than {MAX_LINE} bytes"),
    ]


def test_an_empty_list_gives_nothing_and_is_no_fault(read: Read) -> None:
    assert read(b"") == ([], [])


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_lines_do_not_depend_on_how_the_stream_is_cut(content: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    blocks = [content[start:end] for start, end in pairwise(edges)]
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert list(lines_of(blocks)) == expected
