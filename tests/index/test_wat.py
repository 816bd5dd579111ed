"""Metadata of records and pages: the JSON that WAT readers know, key by key."""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import check_sealed
from index.page_making import documents, packed, record, records, write_pages
from typer.testing import CliRunner
from urls.vectors import CORPORA

from amicrawl.archive.index.derivatives.links import MOST_ENTRIES, html_metadata
from amicrawl.archive.index.derivatives.page import Pieces
from amicrawl.cli import app

if TYPE_CHECKING:
    from pathlib import Path

_FIELDS = {"Content-Type": "application/warc-fields"}
CORPUS = CORPORA / "warc"


def found(page: str) -> dict[str, Any]:
    return html_metadata(Pieces(page))


def links(page: str) -> list[dict[str, str]]:
    told: list[dict[str, str]] = found(page).get("Links", [])
    return told


def made(source: Path) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["wat", str(source), "-o", str(source.parent / "wat")])
    assert done.exit_code == 0, done.output
    name = source.name.removesuffix(".gz")
    return documents(source.parent / "wat" / f"{name}.wat.gz")


def test_the_head_of_a_page_is_told() -> None:
    page = """<!doctype html><html lang=es-MX xml:lang=es><head><base href="/b/"><title> A
      title </title><meta charset=utf-8><meta name=robots content="a &amp; b"><meta property="og:url"
      content=x><meta http-equiv=refresh content=1><link rel=stylesheet type=text/css href=/s.css>
      <link rel=x><script src=a.js type=module></script><script>no()</script></head>"""
    assert found(page) == {
        "Head": {
            "Title": "A title",
            "Base": "/b/",
            "Metas": [
                {"name": "HTML@/lang", "content": "es-MX"},
                {"name": "HTML@/xml:lang", "content": "es"},
                {"name": "robots", "content": "a & b"},
                {"content": "x", "property": "og:url"},
                {"content": "1", "http-equiv": "refresh"},
            ],
            "Link": [{"path": "LINK@/href", "url": "/s.css", "rel": "stylesheet", "type": "text/css"}],
            "Scripts": [{"path": "SCRIPT@/src", "url": "a.js", "type": "module"}],
        }
    }


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            "<a href=/x target=_top title=t rel=nofollow hreflang=de type=b alt=c>an <b>a</b> text </a>",
            [
                {
                    "path": "A@/href",
                    "url": "/x",
                    "target": "_top",
                    "alt": "c",
                    "title": "t",
                    "rel": "nofollow",
                    "hreflang": "de",
                    "type": "b",
                    "text": "an a text",
                }
            ],
        ),
        ("<a name=x>no address</a>", []),
        (
            "<a href='?a=1&copy=2&region=3&amp;b&copy;&#38;&#x26;' title='&copy &#0;'></a>",
            [{"path": "A@/href", "url": "?a=1&copy=2&region=3&b©&&", "title": "© \ufffd"}],
        ),
        (
            "<a href=1>one<a href=2>two",
            [
                {"path": "A@/href", "url": "1", "text": "one"},
                {"path": "A@/href", "url": "2", "text": "two"},
            ],
        ),
        ("<area href=x rel=y>", [{"path": "AREA@/href", "url": "x", "rel": "y"}]),
        (
            "<form action=f target=t method=post>",
            [{"path": "FORM@/action", "url": "f", "target": "t", "method": "post"}],
        ),
        (
            "<img src=i alt=a title=t longdesc=l>",
            [
                {"path": "IMG@/src", "url": "i", "alt": "a", "title": "t"},
                {"path": "IMG@/longdesc", "url": "l"},
            ],
        ),
        (
            "<iframe src=1></iframe><frame src=2><embed src=3><audio src=4><source src=5><track src=6>",
            [
                {"path": f"{name}@/src", "url": str(number)}
                for number, name in enumerate(
                    ("IFRAME", "FRAME", "EMBED", "AUDIO", "SOURCE", "TRACK"), 1
                )
            ],
        ),
        (
            "<video src=v poster=p>",
            [{"path": "VIDEO@/src", "url": "v"}, {"path": "VIDEO@/poster", "url": "p"}],
        ),
        (
            "<button formaction=b><input formaction=i>",
            [{"path": "BUTTON@/formaction", "url": "b"}, {"path": "INPUT@/formaction", "url": "i"}],
        ),
        (
            "<object codebase=c cdata=d data=e>",
            [
                {"path": "OBJECT@/codebase", "url": "c"},
                {"path": "OBJECT@/cdata", "url": "d"},
                {"path": "OBJECT@/data", "url": "e"},
            ],
        ),
        (
            "<q cite=1><blockquote cite=2><del cite=3><ins cite=4><menuitem icon=5>",
            [
                {"path": "Q@/cite", "url": "1"},
                {"path": "BLOCKQUOTE@/cite", "url": "2"},
                {"path": "DEL@/cite", "url": "3"},
                {"path": "INS@/cite", "url": "4"},
                {"path": "MENUITEM@/icon", "url": "5"},
            ],
        ),
        (
            "<div onclick=\"location.href='/x'\"><input onclick=\"window.open('w')\"><div onclick=go()>",
            [{"path": "DIV@/onclick", "url": "/x"}, {"path": "INPUT@/onclick", "url": "w"}],
        ),
        (
            "<body background=b><td data-href=c><p data-uri=d>",
            [
                {"path": "BODY@/background", "url": "b"},
                {"path": "TD@/data-href", "url": "c"},
                {"path": "P@/data-uri", "url": "d"},
            ],
        ),
        (
            "<style>@import 'i.css'; b {background: url(u.png)}</style>",
            [{"path": "STYLE/#text", "href": "i.css"}, {"path": "STYLE/#text", "href": "u.png"}],
        ),
        (
            "<img src='data:image/png;base64,AAAA'>",
            [{"path": "IMG@/src", "url": "data:image/png;base64,"}],
        ),
        ("<!--<a href=x>--><script>'<a href=x>'</script>", []),
    ],
)
def test_links_are_told_with_element_and_attribute(page: str, expected: list[dict[str, str]]) -> None:
    assert links(page) == expected


def test_titles_are_short_and_not_those_of_drawings() -> None:
    page = "<svg><title>drawn</title></svg><svg/><title>" + "x" * 200 + "</title><title>second</title>"
    assert found(page)["Head"]["Title"] == "x" * 128
    assert len(links(f"<a href=x>{'y' * 500}</a>")[0]["text"]) == 128


def test_links_without_end_are_counted_and_left_out() -> None:
    told = found("<a href=x>" * (MOST_ENTRIES + 7))
    assert len(told["Links"]) == MOST_ENTRIES
    assert told["Left-Out"] == "7"
    told = found("<meta name=a content='" + "x" * (5 << 20) + "'><a href=y>")
    assert told == {"Left-Out": "2"}


def test_every_record_has_its_metadata_record(tmp_path: Path) -> None:
    source = tmp_path / "x.warc.gz"
    write_pages(source, {"http://example.com/": b"<title>T</title><a href=x>y</a>"})
    info, response, request = made(source)
    path = tmp_path / "wat" / "x.warc.wat.gz"
    check_sealed(path)
    heads = [fields for fields, _ in records(path)]
    assert [head["WARC-Type"] for head in heads] == ["warcinfo", "metadata", "metadata", "metadata"]
    assert [head["WARC-Refers-To"] for head in heads[1:]] == [
        "<urn:test:0>",
        "<urn:test:1>",
        "<urn:test:2>",
    ]
    assert heads[2]["WARC-Target-URI"] == "http://example.com/"
    assert heads[2]["Content-Type"] == "application/json"
    assert "WARC-Block-Digest" not in heads[2]

    members = [fields["Container"]["Gzip-Metadata"] for fields in (info, response, request)]
    offsets = [int(fields["Container"]["Offset"]) for fields in (info, response, request)]
    raw = source.read_bytes()
    for offset, member in zip(offsets, members, strict=True):
        whole = raw[offset : offset + int(member["Deflate-Length"])]
        inflated = gzip.decompress(whole)
        assert member == {
            "Deflate-Length": str(len(whole)),
            "Header-Length": "10",
            "Footer-Length": "8",
            "Inflated-CRC": str(zlib.crc32(inflated)),
            "Inflated-Length": str(len(inflated)),
        }
    assert info["Container"]["Filename"] == "x.warc.gz"
    assert info["Container"]["Compressed"] is True
    envelope = response["Envelope"]
    assert envelope["Format"] == "WARC/1.1"
    assert envelope["WARC-Header-Metadata"]["WARC-Record-ID"] == "<urn:test:1>"
    payload = envelope["Payload-Metadata"]
    assert int(envelope["WARC-Header-Length"]) + int(payload["Actual-Content-Length"]) + 4 == int(
        members[1]["Inflated-Length"]
    )
    assert payload["Actual-Content-Type"] == "application/http; msgtype=response"
    message = payload["HTTP-Response-Metadata"]
    assert message["Response-Message"] == {"Version": "HTTP/1.1", "Status": "200", "Reason": "OK"}
    assert message["Headers"]["Set-Cookie"] == ["a=1", "b=2"]
    assert message["Headers"]["set-cookie"] == "b=1"
    assert int(message["Headers-Length"]) + int(message["Entity-Length"]) == int(
        payload["Actual-Content-Length"]
    )
    assert message["HTML-Metadata"] == {
        "Head": {"Title": "T"},
        "Links": [{"path": "A@/href", "url": "x", "text": "y"}],
    }
    requested = request["Envelope"]["Payload-Metadata"]["HTTP-Request-Metadata"]
    assert requested["Request-Message"] == {"Method": "GET", "Path": "/", "Version": "HTTP/1.1"}
    assert requested["Entity-Length"] == "0"
    about = info["Envelope"]["Payload-Metadata"]
    assert about["Actual-Content-Type"] == "application/warc-fields"
    assert about["WARC-Info-Metadata"]["operator"] == "Ami"


def test_fields_dns_and_what_is_corrupt_are_told_as_such(tmp_path: Path) -> None:
    source = tmp_path / "x.warc"
    http = {"WARC-Target-URI": "http://a.example/", "Content-Type": "application/http"}
    source.write_bytes(
        record("metadata", 1, b"via: x\r\nhop: L\r\nno colon", _FIELDS)
        + record("response", 2, b"20240518015810\na.example.\t60\tIN\tA\t10.0.0.1\n",
                 {"WARC-Target-URI": "dns:a.example", "Content-Type": "text/dns"})
        + record("response", 3, b"garbage\r\nA: b\r\n\r\nxy", http)
        + record("resource", 4, b"{}", {"WARC-Target-URI": "urn:x", "Content-Type": "application/json"})
    )  # fmt: skip
    metadata, dns, corrupt, resource = (told["Envelope"]["Payload-Metadata"] for told in made(source))
    assert metadata["Actual-Content-Type"] == "application/metadata-fields"
    assert metadata["WARC-Metadata-Metadata"] == {
        "Metadata-Records": [{"Name": "via", "Value": "x"}, {"Name": "hop", "Value": "L"}],
        "FIELDS_CORRUPT": True,
    }
    assert dns["Actual-Content-Type"] == "text/dns"
    assert dns["DNS-Metadata"] == {
        "Date": "20240518015810",
        "Entries": [
            {"Name": "a.example.", "TTL": "60", "Net-Class": "IN", "Type": "A", "Value": "10.0.0.1"}
        ],
    }
    assert corrupt["HTTP-Response-Metadata"]["Headers-Corrupt"] is True
    assert corrupt["HTTP-Response-Metadata"]["Entity-Length"] == "2"
    assert resource == {
        "Actual-Content-Type": "application/json",
        "Actual-Content-Length": "2",
        "Block-Digest": "sha1:" + base64.b32encode(hashlib.sha1(b"{}").digest()).decode(),
        "Trailing-Slop-Length": "0",
    }


def test_repeated_fields_of_a_record_are_a_list(tmp_path: Path) -> None:
    source = tmp_path / "x.warc.gz"
    raw = record(
        "metadata", 1, b"", {"WARC-Protocol": "h2\r\nWARC-Protocol: tls/1.3", "x-Odd": "a\r\n b"}
    )
    source.write_bytes(packed(raw))
    head = made(source)[0]["Envelope"]["WARC-Header-Metadata"]
    assert head["WARC-Protocol"] == ["h2", "tls/1.3"]
    assert head["x-Odd"] == "a b"


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of foreign WARC files is not here")
def test_arc_files_are_told_in_their_own_words(tmp_path: Path) -> None:
    name = "IAH-20080430204825-00000-blackbook-truncated.arc"
    CliRunner().invoke(app, ["wat", str(CORPUS / "webarchive-commons/arc" / name), "-o", str(tmp_path)])
    heads = [fields for fields, _ in records(tmp_path / f"{name}.wat.gz")]
    filedesc, dns, robots = documents(tmp_path / f"{name}.wat.gz")[:3]
    assert filedesc["Envelope"]["Format"] == "ARC"
    assert filedesc["Envelope"]["Payload-Metadata"]["Actual-Content-Type"] == "alexa/filedesc"
    about = filedesc["Envelope"]["Payload-Metadata"]["Filedesc-Metadata"]
    assert (about["Major-Version"], about["Organization"]) == ("1", "InternetArchive")
    assert dns["Envelope"]["ARC-Header-Metadata"] == {
        "Target-URI": "dns:www.archive.org",
        "IP-Address": "68.87.76.178",
        "Date": "20080430204825",
        "Content-Type": "text/dns",
        "Content-Length": "56",
    }
    assert robots["Container"] == {"Filename": name, "Compressed": False, "Offset": "1515"}
    assert heads[3]["WARC-Refers-To"] == f"<urn:arc:{name}:1515>"
    assert heads[3]["WARC-Date"] == "2008-04-30T20:48:25Z"


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of foreign WARC files is not here")
def test_links_of_foreign_pages_are_found(tmp_path: Path) -> None:
    CliRunner().invoke(
        app,
        ["wat", str(CORPUS / "webarchive-commons/html/link-extraction-test.warc"), "-o", str(tmp_path)],
    )
    paths = {
        link["path"]
        for told in documents(tmp_path / "link-extraction-test.warc.wat.gz")
        for link in told["Envelope"]["Payload-Metadata"]
        .get("HTTP-Response-Metadata", {})
        .get("HTML-Metadata", {})
        .get("Links", [])
    }
    assert {"A@/href", "DIV@/data-href", "DIV@/data-uri", "SOURCE@/src", "BLOCKQUOTE@/cite"} <= paths


def test_the_gzip_header_is_measured_with_what_is_in_it(tmp_path: Path) -> None:
    """RFC 1952: extra fields, a file name, a comment, and a checksum of the header."""
    source = tmp_path / "x.warc.gz"
    whole = gzip.compress(record("metadata", 1, b"", {}))
    header = whole[:3] + bytes([2 + 4 + 8 + 16]) + whole[4:10] + b"\4\0ab\0\0name.warc\0a comment\0"
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    source.write_bytes(header + whole[10:])
    member = made(source)[0]["Container"]["Gzip-Metadata"]
    assert member["Header-Length"] == str(len(header))
    assert member["Filename"] == "name.warc"
