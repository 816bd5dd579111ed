"""The sidecar's records: their fields, their lines, and the line that an index gets of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sidecar_material import (
    ENGLISH,
    HTML_4_0,
    arc,
    heads,
    html,
    http,
    read_back,
    record_id,
    warc,
    write_packed,
)

from amicrawl.archive.index.derivatives.file import Maker, Publisher
from amicrawl.archive.index.merging.sides import is_sidecar_record, sidecar_fields, sidecar_tie
from amicrawl.archive.index.sidecar.detectors import Characteriser, installed_detectors
from amicrawl.archive.index.sidecar.file import SidecarFile
from amicrawl.archive.index.sidecar.subject import subject_of
from amicrawl.archive.lines.record_lines import key_of, timestamp_of, url_of
from amicrawl.disk import Disk
from amicrawl.reading.records import read_records
from amicrawl.record import block_digest
from amicrawl.urls import surt

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.reading.records import Record

URI = "http://140.194.76.129/publications/eng-pamphlets/index.html"
NOBODY = Publisher()
NOON = datetime(2024, 4, 24, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def characteriser() -> Characteriser:
    return Characteriser(installed_detectors())


def made(source: Path, characteriser: Characteriser, *, publisher: Publisher = NOBODY) -> bytes:
    """Return the sidecar of *source*."""
    path = source.with_name("out.meta.gz")
    maker = Maker(disk=Disk(), clock=lambda: NOON, random=bytes, hostname="host")
    file = SidecarFile(
        path, source=source, maker=maker, detectors=characteriser.detectors, publisher=publisher
    )
    for record in read_records(source, on_broken=lambda broken: pytest.fail(str(broken))):
        if (subject := subject_of(record)) is not None:
            file.add(record, characteriser.findings(subject))
    file.seal()
    return path.read_bytes()


def line_of(record: Record) -> str:
    """Return the CDXJ line that an indexer makes of the sidecar's *record*."""
    fields = json.dumps(sidecar_fields(record))
    return f"{key_of(surt(url_of(record)))} {timestamp_of(record.date)} {fields}\n"


def metadata_of(data: bytes, path: Path) -> list[Record]:
    return [record for record in read_back(data, path) if is_sidecar_record(record)]


def test_the_page_of_the_talk_gives_its_five_lines_and_the_index_its_line(
    tmp_path: Path, characteriser: Characteriser
) -> None:
    """Types, PRONOM id, charset and languages as shown, with how likely it is no page behind."""
    page = html(ENGLISH * 80, doctype=HTML_4_0).encode()
    source = write_packed(tmp_path / "x.warc.gz", [warc(http(page), uri=URI)])
    (record,) = metadata_of(made(source, characteriser), tmp_path)

    lines = record.block.decode().split("\n")
    assert lines[:3] == [
        'Identified-Payload-Type: {"fido": "text/html", "python-magic": "text/html"}',
        "Preservation-Identifier: fmt/99",
        'Charset-Detected: {"encoding": "ascii", "confidence": 1.0}',
    ]
    name, _, value = lines[3].partition(": ")
    languages = json.loads(value)
    assert name == "Languages-cld2"
    assert list(languages) == ["reliable", "text-bytes", "languages"]
    assert languages["reliable"] is True
    assert languages["text-bytes"] == pytest.approx(len(ENGLISH) * 80, rel=0.05)
    (language,) = languages["languages"]
    assert list(language) == ["name", "code", "text-covered", "score"]
    assert (language["name"], language["code"], language["text-covered"]) == ("ENGLISH", "en", 99)
    assert isinstance(language["score"], float)
    name, _, value = lines[4].partition(": ")
    assert name == "Soft-404-Detected"
    assert 0 < float(value) < 0.5
    assert len(lines) == 5

    assert line_of(record).startswith(
        "129,76,194,140)/publications/eng-pamphlets/index.html 20121026215942 "
        '{"Identified-Payload-Type": '
        '{"fido": "text/html", "python-magic": "text/html"}, "Preservation-Identifier": "fmt/99", '
        '"Charset-Detected": {"encoding": "ascii", "confidence": 1.0}, "Languages-cld2": '
        '{"reliable": true, '
    )


def test_the_block_of_the_talk_gives_the_line_of_the_talk_to_the_byte(tmp_path: Path) -> None:
    block = (
        b'Identified-Payload-Type: {"fido": "text/html", "python-magic": "text/html"}\n'
        b"Preservation-Identifier: fmt/99\n"
        b'Charset-Detected: {"encoding": "ascii", "confidence": 1.0}\n'
        b'Languages-cld2: {"reliable": true, "text-bytes": 16199, "languages": [{"name": "ENGLISH", '
        b'"code": "en", "text-covered": 99, "score": 878.0}]}'
    )
    assert len(block) == 308
    theirs = warc(
        block,
        kind="metadata",
        uri=URI,
        content_type="application/warc-fields",
        fields=["WARC-Concurrent-ID: <urn:uuid:da5927b0-4efb-469b-a885-04c7347a0dc6>"],
    )
    (record,) = read_back(theirs, tmp_path / "x.warc.meta")
    assert line_of(record) == (
        "129,76,194,140)/publications/eng-pamphlets/index.html 20121026215942 "
        '{"Identified-Payload-Type": '
        '{"fido": "text/html", "python-magic": "text/html"}, "Preservation-Identifier": "fmt/99", '
        '"Charset-Detected": {"encoding": "ascii", "confidence": 1.0}, "Languages-cld2": '
        '{"reliable": true, '
        '"text-bytes": 16199, "languages": [{"name": "ENGLISH", "code": "en", "text-covered": 99, '
        '"score": 878.0}]}}\n'
    )
    assert sidecar_tie(record) == ("<urn:uuid:da5927b0-4efb-469b-a885-04c7347a0dc6>", "", -1)


def test_fields_stand_in_the_order_of_the_tool_that_others_use(
    tmp_path: Path, characteriser: Characteriser
) -> None:
    source = write_packed(
        tmp_path / "x.warc.gz",
        [
            warc(http(b"", status=204), number=7),
            warc(
                http(html(ENGLISH).encode()),
                date="2012-10-26T21:59:42.5Z",
                fields=["WARC-Warcinfo-ID: <urn:x:1>"],
            ),
        ],
    )
    data = made(source, characteriser)
    _, head = heads(data)
    assert [name for name, _ in head] == [
        "WARC-Date",
        "WARC-Concurrent-ID",
        "WARC-Warcinfo-ID",
        "WARC-Type",
        "WARC-Record-ID",
        "WARC-Target-URI",
        "WARC-Payload-Digest",
        "WARC-Block-Digest",
        "WARC-Refers-To",
        "WARC-Source-Filename",
        "WARC-Source-Offset",
        "Content-Type",
        "Content-Length",
    ]
    (record,) = metadata_of(data, tmp_path)
    assert record.version == "WARC/1.0"
    assert record.date == "2012-10-26T21:59:42.5Z"
    assert record.fields["warc-concurrent-id"] == record.fields["warc-refers-to"] == record_id(1)
    digest = block_digest(record.block)
    assert record.fields["warc-payload-digest"] == record.fields["warc-block-digest"] == digest
    assert not record.block.endswith(b"\n")
    assert b"\r" not in record.block
    offset = int(record.fields["warc-source-offset"])
    assert source.read_bytes()[offset : offset + 2] == b"\x1f\x8b"
    assert sidecar_tie(record) == (record_id(1), "x.warc.gz", offset)


def test_the_warcinfo_says_what_it_is_for_and_whether_there_is_nothing(
    tmp_path: Path, characteriser: Characteriser
) -> None:
    publisher = Publisher(operator="Ann\r\nWARC/1.0", publisher="House", address="127.0.0.1")
    source = write_packed(tmp_path / "x.warc.gz", [warc(b"1", kind="request")])
    (warcinfo,) = read_back(made(source, characteriser, publisher=publisher), tmp_path)
    lines = warcinfo.block.decode().splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "software", "hostname", "ip", "conformsTo", "description", "publisher", "operator", "detectors",
    ]  # fmt: skip
    assert lines[4] == "description: WARC metadata sidecar for x.warc.gz; 0 metadata sidecar records"
    assert lines[6] == "operator: AnnWARC/1.0"


def test_responses_and_resources_are_looked_at_and_nothing_else(
    tmp_path: Path, characteriser: Characteriser
) -> None:
    page = html(ENGLISH).encode()
    records = [
        warc(http(page), number=1),
        warc(page, number=2, kind="resource", content_type="text/html", uri="file:///x"),
        warc(http(page), number=3, kind="digests"),
        warc(http(page), number=4, kind="request"),
        warc(page, number=5, kind="metadata", content_type="text/html"),
        warc(page, number=6, kind="conversion", content_type="text/html"),
        warc(b"20120101000000\n1.2.3.4\n", number=7, uri="dns:example.org", content_type="text/dns"),
        warc(http(b""), number=8),
    ]
    source = write_packed(tmp_path / "x.warc.gz", records)
    found = metadata_of(made(source, characteriser), tmp_path)
    assert [sidecar_tie(record).record_id for record in found] == [record_id(1), record_id(2)]


def test_records_of_arc_are_tied_by_file_and_byte(tmp_path: Path, characteriser: Characteriser) -> None:
    source = tmp_path / "x.arc"
    source.write_bytes(arc(html(ENGLISH).encode()))
    (record,) = metadata_of(made(source, characteriser), tmp_path)
    assert record.date == "2008-04-30T20:48:25Z"
    tie = sidecar_tie(record)
    assert (tie.record_id, tie.filename) == ("", "x.arc")
    assert source.read_bytes()[tie.offset :].startswith(b"http://example.org/ 127.0.0.1")
    assert "warc-concurrent-id" not in record.fields


def test_what_is_no_json_stays_text_and_failures_stay_out(tmp_path: Path) -> None:
    block = b'Soft-404-Detected: 0.25\nA: {"x": NaN}\nno colon\nA: second\nDetection-Error: {"a": "B"}'
    record = read_back(
        warc(block, kind="metadata", content_type="application/warc-fields"), tmp_path / "x"
    )[0]
    assert sidecar_fields(record) == {"Soft-404-Detected": 0.25, "A": '{"x": NaN}'}
