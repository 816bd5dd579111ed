"""Archive files of other projects: each goes through, and every loss is told.

What is expected of a file is in `expectations.jsonl` beside it: how many records, of what type, where.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from index.archive_files import index_lines, parse_cdxj, unexpected
from urls.vectors import CORPORA

from amicrawl.archive.lines.record_lines import Compat, IndexOptions
from amicrawl.reading.records import Broken, read_records

WARCS = CORPORA / "warc"
LISTED = WARCS / "expectations.jsonl"

if not LISTED.is_file():
    pytest.skip(f"the collection of archive files is not here: {WARCS}", allow_module_level=True)

CASES = [
    case for case in map(json.loads, LISTED.read_text().splitlines()) if case.get("format") != "gzip"
]
TYPES = {"arc_header": "warcinfo", "myType": "unknown"}
TELLS_OF_NOTHING = {
    # Their structure is sound; a digest in them is wrong, and digests are not checked here.
    "warcio/example-digest.warc",
    "gowarc-nlnwa/wrong-block-digest.warc",
}
HEADER_CUT = (
    "gowarc-nlnwa/truncated-record.warc"  # its listed type was read from a header without an end
)


def _name(case: dict[str, Any]) -> str:
    return str(case["file"])


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_records_are_found_as_others_find_them_and_losses_are_told(case: dict[str, Any]) -> None:
    broken: list[Broken] = []
    records = list(read_records(WARCS / case["file"], on_broken=broken.append))
    types = [TYPES.get(kind, kind) for kind in case.get("types", case.get("types_after_repair", ()))]
    if types and case["file"] != HEADER_CUT:
        assert [record.type for record in records] == types
    assert len(records) == case.get("records", len(records))
    assert not (case["valid"] is True and broken)
    assert broken or case["valid"] is not False or case["file"] in TELLS_OF_NOTHING
    if "content_lengths" in case:
        assert [record.block_length for record in records] == case["content_lengths"]


@pytest.mark.parametrize("case", [case for case in CASES if "offsets" in case], ids=_name)
def test_records_lie_where_others_find_them(case: dict[str, Any]) -> None:
    records = list(read_records(WARCS / case["file"], on_broken=lambda _: None))
    if isinstance(case["offsets"], dict):
        where = {str(record.offset): record.uri for record in records}
        assert case["offsets"].items() <= where.items()
        return
    assert [record.offset for record in records] == case["offsets"]
    for record, length in zip(records, case.get("lengths", ()), strict=False):
        # Others count two line ends to the header of an ARC file that is not packed.
        assert record.length == length or record.uri.startswith("filedesc:")


@pytest.mark.parametrize("case", CASES, ids=_name)
@pytest.mark.parametrize("compat", Compat)
def test_every_file_can_be_indexed(case: dict[str, Any], compat: Compat) -> None:
    path = WARCS / case["file"]
    options = IndexOptions(compat=compat, post=True, all_records=True)
    told: list[Broken] = []
    records = read_records(path, on_broken=told.append)
    for line in index_lines(records, path.name, options=options, on_broken=told.append):
        assert parse_cdxj(line).fields["filename"] == path.name
    assert all(0 <= broken.offset <= path.stat().st_size and broken.reason for broken in told)


@pytest.mark.parametrize(
    ("file", "url"),
    [
        ("warcio/example-space-in-target-uri.warc.gz", "file:///example%20with%20spaces.png"),
        ("warcio/example-wget-bad-target-uri.warc.gz", "http://example.com/"),
    ],
)
def test_urls_are_mended_as_others_mend_them(file: str, url: str) -> None:
    records = read_records(WARCS / file, on_broken=unexpected)
    lines = index_lines(records, "x", options=IndexOptions(), on_broken=unexpected)
    assert url in [parse_cdxj(line).fields["url"] for line in lines]


def test_repeated_fields_are_kept() -> None:
    path = Path(WARCS / "webarchive-commons/warc/mutliple-headers.warc")
    (record,) = read_records(path, on_broken=unexpected)
    assert [value for name, value in record.http_fields if name.lower() == b"x-powered-by"] == [
        b"PHP/8.3.11",
        b"PleskLin",
    ]
    assert record.fields["warc-protocol"] == "h2"
