"""What a line holds, and which records have one, as `amicrawl index` is told on the command line."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from index.archive_files import exchange, http, packed, parse_cdxj, warc
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

FORM = "application/x-www-form-urlencoded"
RECORDS = [
    warc("warcinfo", None, b"software: x\r\n", Content_Type="application/warc-fields"),
    *exchange("http://example.org/form", method="POST", kind=FORM, body=b"a=b"),
    warc("metadata", "http://example.org/m", b"a: b", Content_Type="application/warc-fields"),
    warc("resource", "http://example.org/r", b"text", Content_Type="text/plain"),
    warc("response", "http://example.org/moved", http(first="HTTP/1.1 302 Found", Location="/x")),
]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(packed(RECORDS))
    return path


def fields(archive: Path, *options: str) -> list[dict[str, str]]:
    result = CliRunner().invoke(app, ["index", str(archive), "--merge", "-", "-j", "1", *options])
    assert result.exit_code == ExitCode.DONE, result.stderr
    return [parse_cdxj(line).fields for line in result.stdout_bytes.splitlines(keepends=True)]


def mimes(archive: Path, *options: str) -> list[str]:
    return sorted(line.get("mime", "") for line in fields(archive, *options))


def test_records_of_the_types_that_are_named_have_lines_and_no_others(archive: Path) -> None:
    assert mimes(archive) == ["", "text/html", "text/plain"]
    assert mimes(archive, "--records", "request, metadata") == ["application/warc-fields", FORM]
    assert mimes(archive, "--records", "resource") == ["text/plain"]
    assert fields(archive, "--records", "all") == fields(archive, "--all")
    assert len(fields(archive, "--all")) == len(RECORDS)


def test_a_warcinfo_record_has_no_digest_as_it_has_no_payload(archive: Path) -> None:
    (line,) = fields(archive, "--records", "warcinfo")
    assert "digest" not in line


def test_a_type_that_there_is_not_is_refused(archive: Path) -> None:
    with pytest.raises(UsageError, match="no records of type page"):
        CliRunner().invoke(
            app,
            ["index", str(archive), "--records", "page"],
            standalone_mode=False,
            catch_exceptions=False,
        )


def test_a_line_can_have_just_the_fields_that_are_named_in_their_order(archive: Path) -> None:
    first, second, third = fields(
        archive, "-p", "-rf", "method,url,WARC-Date,redirect,http:content-type"
    )
    assert list(first) == ["method", "url", "WARC-Date", "http:content-type"]
    assert first["method"] == "POST"
    assert list(second) == ["url", "WARC-Date", "redirect"]
    assert second["redirect"] == "http://example.org/x"
    assert list(third) == ["url", "WARC-Date"]


@pytest.mark.parametrize("more", [("-f", "recordid"), ("--format", "cdx11")])
def test_all_fields_and_some_more_are_not_both_requested(archive: Path, more: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="all that a line has"):
        CliRunner().invoke(
            app,
            ["index", str(archive), "-rf", "url", *more],
            standalone_mode=False,
            catch_exceptions=False,
        )


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_record_digest_is_that_of_the_bytes_at_offset_and_length(
    tmp_path: Path, *, is_packed: bool
) -> None:
    data = packed(RECORDS) if is_packed else b"".join(RECORDS)
    archive = tmp_path / ("x.warc.gz" if is_packed else "x.warc")
    archive.write_bytes(data)
    lines = fields(archive, "-d", "-f", "recordid")
    assert len(lines) == 3
    for line in lines:
        assert list(line)[-3:] == ["filename", "recordDigest", "recordid"]
        stored = data[int(line["offset"]) :][: int(line["length"])]
        assert line["recordDigest"] == f"sha256:{hashlib.sha256(stored).hexdigest()}"


def test_what_cannot_be_sought_has_no_record_digest(tmp_path: Path) -> None:
    archive = tmp_path / "x.warc.gz"
    archive.write_bytes(gzip.compress(b"".join(RECORDS)))
    result = CliRunner().invoke(app, ["index", str(archive), "--merge", "-", "-j", "1", "-d"])
    assert result.exit_code == ExitCode.DAMAGED
    assert b'"url"' in result.stdout_bytes
    assert b"recordDigest" not in result.stdout_bytes


def test_an_index_can_be_packed_in_blocks_that_are_found_by_their_first_key(tmp_path: Path) -> None:
    archive = tmp_path / "x.warc.gz"
    names = [f"http://example.org/{letter}" for letter in "abcdefg"]
    archive.write_bytes(packed(warc("response", name, http()) for name in names))
    out = tmp_path / "out.cdxj.gz"
    whole = CliRunner().invoke(app, ["index", str(archive), "--merge", "-", "-j", "1"]).stdout_bytes
    assert CliRunner().invoke(app, ["index", str(archive), "-c", str(out), "-l", "3"]).exit_code == 0
    head, *places = (tmp_path / "out.idx").read_bytes().splitlines()
    assert head == b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "out.cdxj.gz"}'
    data = out.read_bytes()
    lines = b""
    for place in places:
        key, time, where = place.split(b" ", 2)
        at = json.loads(where)
        block = gzip.decompress(data[at["offset"] :][: at["length"]])
        assert block.startswith(key + b" " + time + b" ")
        lines += block
    assert len(places) == 3
    assert lines == whole
    assert not list(tmp_path.glob("*.parts"))
