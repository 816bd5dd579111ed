"""Payloads made to cost much: bombs, endless nesting, bytes that lie, expressions driven to despair.

Each has to be through long before the time limit, with a result or without.
"""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sidecar_material import http, read_back, warc

from amicrawl.archive.index.sidecar.detectors import Characteriser, installed_detectors
from amicrawl.archive.index.sidecar.findings import (
    added_fields,
    encode_block,
    parse_block,
    with_fields,
    written,
)
from amicrawl.archive.index.sidecar.soft404 import features_of
from amicrawl.archive.index.sidecar.subject import CONTENT_LIMIT, Subject, subject_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)

CHARACTERISER = Characteriser(installed_detectors())
_ALL_OF_IT = 40.0
"""Seconds of processor time that any of them may take; unloaded, the worst takes less than one."""

PAYLOADS = {
    "frames of audio that never end": b"\xff\xfb\x90" + (b"\xff\xfb\x90" + b"\x00" * 45) * 4000,
    "headers of films without films": b"\x00\x00\x00\x08mdat" + b"moov" * 32_000,
    "marks of pictures": b"II*\x00" + b"\x90\x00\x00\x07\x00\x00\x00\x04" * 16_000,
    "headings that are not closed": b"<html>" + b"<h1" * 200_000,
    "headings of headings": b"<html>" + b"<h1><b>" * 100_000,
    "scripts in scripts": b"<html>" + b"<script" * 100_000,
    "comments that are not closed": b"<!DOCTYPE html>" + b"<!--" * 200_000,
    "comments one after the other": b"<!---->" * 200_000,
    "titles": b"<title" * 100_000,
    "nesting": b"<html>" + b"<div>" * 400_000,
    "attributes": b"<html><meta " + b"a=b " * 300_000,
    "references": b"<title>&#" + b"9" * 100_000 + b"; &" * 1000,
    "one word": b"<html><title>" + b"a" * 2_000_000,
    "zeros": bytes(CONTENT_LIMIT),
    "every byte": bytes(range(256)) * 4096,
    "doctypes": b'<!DOCTYPE html PUBLIC "-//a//DTD ' * 30_000,
    "text that says it is a picture": b"\x89PNG\r\n\x1a\n<html><title>x</title>" + b"text " * 1000,
    "brackets": b"{" * 1_000_000,
    "escapes": b"\x1b$B" * 300_000,
    "wide text without an end": b"\xff\xfe" + b"\x00\xd8" * 300_000 + b"x",
    "not characters": "\ufdd0\ufffe\U0010ffff".encode() * 50_000,
    "xml of xml": b"<?xml version='1.0'?>" + b"<!ENTITY a '&a;&a;&a;'>" * 20_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAYLOADS)
def test_no_payload_takes_for_ever(name: str) -> None:
    began = time.process_time()
    subject = Subject(PAYLOADS[name], url="http://example.org/", status=200, content_type="text/html")
    found = CHARACTERISER.findings(subject)
    assert found.errors == {}
    assert time.process_time() - began < _ALL_OF_IT
    assert len(encode_block(found)) < 10_000


@pytest.mark.slow
def test_a_bomb_is_inflated_no_further_than_it_is_looked_at(tmp_path: Path) -> None:
    bomb = gzip.compress(b"<html>" + bytes(CONTENT_LIMIT * 8))
    block = http(bomb, fields=["Content-Type: text/html", "Content-Encoding: gzip"])
    (record,) = read_back(warc(block), tmp_path / "x.warc")
    subject = subject_of(record)
    assert subject is not None
    assert len(subject.content) == CONTENT_LIMIT
    assert not subject.is_whole


@given(
    payload=st.binary(max_size=3000),
    content_type=st.text(max_size=60),
    status=st.sampled_from([200, 404, None]),
)
def test_whatever_the_payload_the_block_reads_back(
    payload: bytes, content_type: str, status: int | None
) -> None:
    subject = Subject(payload, url=f"http://{content_type}/", status=status, content_type=content_type)
    found = CHARACTERISER.findings(subject)
    assert found.errors == {}
    fields = parse_block(encode_block(found))
    assert ("Preservation-Identifier" in fields) == bool(found.puid)
    assert ("Charset-Detected" in fields) == (found.charset is not None)


@pytest.mark.parametrize(
    "line",
    [
        b"Soft-404-Detected: " + b"9" * 400,
        b"Soft-404-Detected: -1e999",
        b'Charset-Detected: {"encoding": "\\ud800"}',
        b'Identified-Payload-Type: {"fido": "text/html", "other": "\\udfff"}',
        b"Languages-cld2: " + b"[" * 100_000,
    ],
)
def test_what_json_can_say_and_a_line_cannot_adds_nothing(line: bytes) -> None:
    addition = written(added_fields(parse_block(line)))
    assert with_fields(b"org,x)/ 2020 {}", {"charset": "x"}, addition, anew=True).endswith(
        b'{"charset": "x"}'
    )


@given(st.text(max_size=400), st.text(max_size=80))
def test_whatever_the_page_its_features_are_told(page: str, url: str) -> None:
    assert features_of(f"<title>{page}", url).rest
