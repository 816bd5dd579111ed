"""Lines of indexes and of sidecars, plain and odd, and what the rules of merging make of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from amicrawl.archive.index.merging.join import Join, MergeCounts
from amicrawl.archive.index.merging.sides import Side, side_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

IDS = ("00000000-0000-4000-8000-000000000001", "<urn:uuid:00000000-0000-4000-8000-00000000000A>")
_KEYS = st.sampled_from(["org,a)/", "org,b)/", "org,ä)/", 'org,"q)/'])
_SECONDS = st.sampled_from(["20121026215942", "20121026215943", "2012102621594", "20121026215942123"])
_TIES = st.fixed_dictionaries(
    {},
    optional={
        "recordid": st.sampled_from([*IDS, "", 5]),
        "warc-record-id": st.sampled_from(IDS),
        "filename": st.sampled_from(["x/a.warc.gz", "a.warc.gz", "b.warc.gz", "", None]),
        "offset": st.sampled_from(["1", "2", 1, ""]),
        "digest": st.sampled_from(["sha1:A", "A", "B", ""]),
    },
)
_USUAL = st.fixed_dictionaries({"recordid": st.sampled_from(IDS)})
INDEX_FIELDS = st.fixed_dictionaries(
    {"url": st.sampled_from(["http://a/", 'http://"/', "http://ä/"])},
    optional={
        "puid": st.just("x"),
        "n": st.sampled_from([1, 0.5, -7, 1e30, True, False, None, [1, 2], ["x", 5, "y"], {"b": 1}]),
        "status": st.just("200"),
    },
)
_LANGUAGES = st.lists(
    st.builds(
        lambda code, share: {"name": "X", "code": code, "score": 8.5, **share},
        st.sampled_from(["en", "zh-Hant", "xx", "de"]),
        st.sampled_from([{"text-covered": 83}, {"text-covered": 12}, {}, {"text-covered": 8.5}]),
    ),
    max_size=4,
)
FOUND = st.fixed_dictionaries(
    {},
    optional={
        "Identified-Payload-Type": st.sampled_from(
            [{"fido": "a/b"}, {"python-magic": "c/d", "fido": "a/b"}, {"python-magic": "", "fido": ""},
             {"amicrawl": "e/f"}, {"amicrawl": "e/f", "fido": "a/b"}, {"amicrawl": ""}, {}, "x", None]
        ),
        "Preservation-Identifier": st.sampled_from(["fmt/96", "", None, 5]),
        "Charset-Detected": st.sampled_from(
            [{"encoding": "utf-8", "confidence": 0.99}, {"encoding": None}, 5]
        ),
        "Languages-cld2": st.one_of(
            _LANGUAGES.map(lambda each: {"reliable": True, "languages": each}), st.sampled_from([{}, 5])
        ),
        "Soft-404-Detected": st.sampled_from(
            [0.25, 0.0001, 0.00001, 1, 1.0, 0, 0.0, 2, "x", True, None]
        ),
    },
)  # fmt: skip
_ODD = st.sampled_from(
    [
        b"",
        b"broken",
        b'!meta 0 {"a": 1}',
        b"org,a)/ 20121026215942 [1]",
        b'org,a)/ 20121026215942 {"url": "\xff"}',
    ]
)


@st.composite
def any_line(draw: st.DrawFn, fields: st.SearchStrategy[dict[str, Any]]) -> bytes:
    """Return a line with *fields* and what it may be known by, or one that is odd."""
    if draw(st.integers(0, 9)) == 0:
        return draw(_ODD)
    is_usual = draw(st.booleans())
    key = "org,a)/" if is_usual else draw(_KEYS)
    second = draw(_SECONDS) if not is_usual else "20121026215942"
    said = {**draw(fields), **draw(_USUAL if is_usual else _TIES)}
    separators = draw(st.sampled_from([None, (",", ":"), (", ", " : ")]))
    written = json.dumps(said, ensure_ascii=draw(st.booleans()), separators=separators)
    return f"{key} {second} {written}{draw(st.sampled_from(['', '', '', ' ']))}".encode()


def sides_in_lines(path: Path, *, report: Callable[[str], None]) -> Iterator[Side]:
    """Yield what the sidecar *path*, CDXJ, says, read line by line; what is no line goes to *report*."""
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        if line and not line.startswith(b"!"):
            side = side_of(line)
            if side is None:
                report(f"{path.name}, line {number}: no line of a sidecar")
            else:
                yield side


def by_the_rules(index: bytes, side: Path, *, by_key_only: bool) -> tuple[list[bytes], MergeCounts]:
    """Merge line by line."""
    counts = MergeCounts()

    def broken(_: str) -> None:
        counts.faults += 1

    join = Join(sides_in_lines(side, report=broken), counts, by_key_only=by_key_only)
    lines = index.split(b"\n")[:-1]
    merged = list(join.decided(lambda: lines))
    counts.records = len(join.used)
    counts.records_unused = join.used.count(0)
    return merged, counts
