"""What each kind of record becomes in an index, as the two indexers that others use write it.

The lines were taken from runs of these tools (cdxj-indexer 1.5.0, pywb 2.10.0) over the same records.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from index.archive_files import (
    ARC_HEADER,
    DIGEST,
    arc,
    http,
    index_lines,
    packed,
    parse_cdxj,
    unexpected,
    warc,
)

from amicrawl.archive.lines.cdxj import Layout
from amicrawl.archive.lines.record_lines import Compat, IndexOptions, timestamp_of
from amicrawl.reading.records import Broken, read_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SITE = "http://www.example.org"
BARE = DIGEST.removeprefix("sha1:")
TIME = "20240424100000"
EMPTY = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
HELLO = "VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"

RECORDS = [
    warc("warcinfo", None, b"software: x\r\n", Content_Type="application/warc-fields"),
    warc(
        "response",
        f"{SITE}/get",
        http(Content_Type="text/html; charset=utf-8"),
        WARC_Payload_Digest=DIGEST,
    ),
    warc("request", f"{SITE}/get", http(b"", first="GET /get HTTP/1.1", Host="x")),
    warc("revisit", f"{SITE}/seen", http(b"", Content_Type="text/html"), WARC_Payload_Digest=DIGEST),
    warc("revisit", f"{SITE}/bare", b"", WARC_Payload_Digest=DIGEST),
    warc("revisit", f"{SITE}/nodigest", http(b"")),
    warc("response", "dns:www.example.org", b"20240424100000\n", Content_Type="text/dns"),
    warc("resource", f"{SITE}/text", b"plain", Content_Type="text/plain; charset=utf-8"),
    warc("resource", f"{SITE}/fields", b"a: b\r\n", Content_Type="application/warc-fields"),
    warc("resource", "urn:thing:A", b"plain", Content_Type="image/png"),
    warc("metadata", f"{SITE}/meta", b"a: b\r\n", Content_Type="application/warc-fields"),
    warc("metadata", f"{SITE}/meta2", b"a", Content_Type="text/x-meta"),
    warc("metadata", f"{SITE}/anvl", b"a", Content_Type="text/anvl"),
    warc("conversion", f"{SITE}/conversion", b"text", Content_Type="text/plain"),
    warc("response", f"{SITE}/empty", http(b"", Content_Type="Text/Plain")),
    warc("response", f"{SITE}/nomime", http()),
    warc("response", f"{SITE}/emptymime", http(Content_Type="")),
    warc("response", f"{SITE}/blankmime", http(Content_Type="text/html charset=x")),
    warc("response", f"{SITE}/moved", http(b"", first="HTTP/1.1 302 Found", Location="/x")),
    warc("response", f"{SITE}/204", http(b"", first="HTTP/1.1 204 Some Error")),
    warc("response", f"{SITE}/sha256", http(), WARC_Payload_Digest="sha256:abcd"),
    warc("response", f"{SITE}/identified", http(), WARC_Identified_Payload_Type="text/css"),
    warc("response", f"{SITE}/noblock", b""),
    warc(
        "response", f"{SITE}/folded", b"HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n a=b\r\n\r\nhello"
    ),
    warc("response", f"{SITE}/lf", b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nhello"),
    warc("response", f"<{SITE}/angle>", http(Content_Type="text/html")),
    warc("response", f"{SITE}/a b", http(Content_Type="text/html")),
]

# What is left when the URL's host, and what depends on the packing, are taken off.
CDXJ_INDEXER = {
    "/get": {"mime": "text/html", "status": "200", "digest": DIGEST},
    "/seen": {"mime": "warc/revisit", "status": "200", "digest": DIGEST},
    "/bare": {"mime": "warc/revisit", "digest": DIGEST},
    "/nodigest": {"mime": "warc/revisit", "status": "200"},
    "dns:www.example.org": {"digest": "sha1:AAP6JVA3WYGZAAMEE4QVYTLIBAC3N7YJ"},
    "/text": {"mime": "text/plain", "digest": "sha1:NDCG5BGXNUXH42DOKFML6WMJBGV5JZC3"},
    "urn:thing:A": {"mime": "image/png", "digest": "sha1:NDCG5BGXNUXH42DOKFML6WMJBGV5JZC3"},
    "/meta2": {"mime": "text/x-meta", "digest": "sha1:Q336IN72UWT7ZYK5DXOLT2XK5I3XMZ5Y"},
    "/anvl": {"mime": "text/anvl", "digest": "sha1:Q336IN72UWT7ZYK5DXOLT2XK5I3XMZ5Y"},
    "/empty": {"mime": "Text/Plain", "status": "200", "digest": f"sha1:{EMPTY}"},
    "/nomime": {"status": "200", "digest": f"sha1:{HELLO}"},
    "/emptymime": {"mime": "", "status": "200", "digest": f"sha1:{HELLO}"},
    "/blankmime": {"mime": "text/html", "status": "200", "digest": f"sha1:{HELLO}"},
    "/moved": {"status": "302", "digest": f"sha1:{EMPTY}"},
    "/204": {"status": "204", "digest": f"sha1:{EMPTY}"},
    "/sha256": {"status": "200", "digest": "sha256:abcd"},
    "/identified": {"status": "200", "digest": f"sha1:{HELLO}"},
    "/noblock": {"digest": f"sha1:{EMPTY}"},
    "/folded": {"mime": "text/html", "status": "200", "digest": f"sha1:{HELLO}"},
    "/lf": {"mime": "text/html", "status": "200", "digest": f"sha1:{HELLO}"},
    "/angle": {"mime": "text/html", "status": "200", "digest": f"sha1:{HELLO}"},
    "/a%20b": {"mime": "text/html", "status": "200", "digest": f"sha1:{HELLO}"},
}
PYWB = {
    "/get": {"mime": "text/html", "status": "200", "digest": BARE},
    "/seen": {"mime": "warc/revisit", "digest": BARE},
    "/bare": {"mime": "warc/revisit", "digest": BARE},
    "/nodigest": {"mime": "warc/revisit"},
    "dns:www.example.org": {
        "mime": "text/dns",
        "status": "200",
        "digest": "AAP6JVA3WYGZAAMEE4QVYTLIBAC3N7YJ",
    },
    "/text": {"mime": "text/plain", "digest": "NDCG5BGXNUXH42DOKFML6WMJBGV5JZC3"},
    "urn:thing:A": {"mime": "image/png", "digest": "NDCG5BGXNUXH42DOKFML6WMJBGV5JZC3"},
    "/meta2": {"mime": "text/x-meta", "digest": "Q336IN72UWT7ZYK5DXOLT2XK5I3XMZ5Y"},
    "/conversion": {"mime": "text/plain", "digest": "G4XKBDFLGPTRYAWGKHN4QOSHJUZMM5XK"},
    "/empty": {"mime": "Text/Plain", "status": "200", "digest": EMPTY},
    "/nomime": {"mime": "unk", "status": "200", "digest": HELLO},
    "/emptymime": {"mime": "unk", "status": "200", "digest": HELLO},
    "/blankmime": {"mime": "text/html", "status": "200", "digest": HELLO},
    "/moved": {"mime": "unk", "status": "302", "digest": EMPTY},
    "/204": {"mime": "unk", "digest": EMPTY},
    "/sha256": {"mime": "unk", "status": "200", "digest": "sha256:abcd"},
    "/identified": {"mime": "unk", "mime-detected": "text/css", "status": "200", "digest": HELLO},
    "/noblock": {"mime": "application/http", "status": "200", "digest": EMPTY},
    "/folded": {"mime": "text/html", "status": "200", "digest": HELLO},
    "/lf": {"mime": "text/html", "status": "200", "digest": HELLO},
    "/angle": {"mime": "text/html", "status": "200", "digest": HELLO},
    "/a%20b": {"mime": "text/html", "status": "200", "digest": HELLO},
}


def lines_of(path: Path, options: IndexOptions, layout: Layout = Layout.CDXJ) -> list[bytes]:
    records = read_records(path, on_broken=unexpected)
    return list(index_lines(records, path.name, options=options, layout=layout, on_broken=unexpected))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "test.warc.gz"
    path.write_bytes(packed(RECORDS))
    return path


@pytest.mark.parametrize(
    ("compat", "expected"),
    [(Compat.CDXJ_INDEXER, CDXJ_INDEXER), (Compat.PYWB, PYWB)],
    ids=["cdxj-indexer", "pywb"],
)
def test_each_kind_of_record_has_the_fields_that_the_named_indexer_gives_it(
    compat: Compat, expected: dict[str, dict[str, str]], archive: Path
) -> None:
    found = {}
    for line in lines_of(archive, IndexOptions(compat=compat)):
        fields = json.loads(line.split(b" ", 2)[2])
        assert (*fields,)[-3:] == ("length", "offset", "filename")
        found[fields.pop("url").removeprefix(SITE)] = fields
        for name in ("length", "offset", "filename"):
            del fields[name]
    assert found == expected
    for url, fields in found.items():
        assert list(fields) == list(expected[url]), "the order of the fields is theirs too"


def test_lines_are_those_of_cdxj_indexer_to_the_byte(archive: Path) -> None:
    lines = lines_of(archive, IndexOptions())
    length, offset = len(packed(RECORDS[1:2])), len(packed(RECORDS[:1]))
    assert lines[0].decode() == (
        'org,example)/get 20240424100000 {"url": "http://www.example.org/get", "mime": "text/html", '
        f'"status": "200", "digest": "{DIGEST}", "length": "{length}", "offset": "{offset}", '
        '"filename": "test.warc.gz"}\n'
    )


@pytest.mark.parametrize("compat", list(Compat))
def test_a_status_keeps_its_three_digits(compat: Compat, tmp_path: Path) -> None:
    path = tmp_path / "test.warc.gz"
    firsts = ("HTTP/1.1 000", "HTTP/1.1 099 Odd", "HTTP/2 200", "HTTP/1.1 20")
    path.write_bytes(packed(warc("response", f"{SITE}{first}", http(first=first)) for first in firsts))
    lines = map(parse_cdxj, lines_of(path, IndexOptions(compat=compat)))
    assert [line.fields.get("status") for line in lines] == ["000", "099", "200", None]


@pytest.mark.parametrize("first", ["HTTPX/1.1 200 OK", "SPDY/3 200 x", "ICY 200 OK", "HTTP 200"])
def test_a_status_of_another_protocol_counts_too(first: str, tmp_path: Path) -> None:
    path = tmp_path / "test.warc.gz"
    path.write_bytes(packed([warc("response", block=http(first=first))]))
    [line] = map(parse_cdxj, lines_of(path, IndexOptions()))
    assert line.fields["status"] == "200"


def test_a_head_of_pseudo_headers_has_no_status(tmp_path: Path) -> None:
    path = tmp_path / "test.warc.gz"
    path.write_bytes(packed([warc("response", block=http(first=":status: 200"))]))
    [line] = map(parse_cdxj, lines_of(path, IndexOptions()))
    assert "status" not in line.fields


def test_an_empty_member_before_a_record_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "test.warc.gz"
    empty, member = packed([b""]), packed([warc("response", block=http())])
    path.write_bytes(empty + member)
    [line] = map(parse_cdxj, lines_of(path, IndexOptions()))
    assert (line.fields["offset"], line.fields["length"]) == (str(len(empty)), str(len(member)))


PLAIN = warc("response", block=http())


@pytest.mark.parametrize("pack", [packed, b"".join])
@pytest.mark.parametrize(
    "odd",
    [
        PLAIN.replace(b"WARC/1.0", b"warc/1.0"),
        PLAIN.replace(b"WARC/1.0", b"Warc/1.1"),
        PLAIN.replace(b"Content-Length: ", b"Content-Length:\r\n "),
        PLAIN.replace(b"Content-Length: ", b"content-length: \r\n\t"),
        PLAIN.replace(b"WARC-Type: ", b"WARC-Type:\r\n "),
        PLAIN.replace(b"WARC-Target-URI: ", b"WARC-Target-URI:\r\n "),
        PLAIN.replace(b"\r\n\r\nHTTP", b"\r\n\r\r\nHTTP"),
        b"\r\r\n".join(PLAIN.split(b"\r\n", 8)),
        warc("response", block=http().replace(b"\r\n", b"\r\r\n")),
    ],
    ids=["warc", "Warc", "length", "content-length", "type", "URI", "blank line", "all lines", "HTTP"],
)
def test_odd_heads_give_the_lines_of_cdxj_indexer(
    odd: bytes, pack: Callable[[list[bytes]], bytes], tmp_path: Path
) -> None:
    """The tool gives the line of the plain record for each but a folded type, which it does not know."""
    path = tmp_path / "test.warc"
    path.write_bytes(pack([PLAIN, odd, PLAIN]))
    records = read_records(path, on_broken=lambda _: None)
    found = index_lines(records, "x", options=IndexOptions(), on_broken=unexpected)
    lines = list(map(parse_cdxj, found))
    usual = {"url": f"{SITE}/", "status": "200", "digest": f"sha1:{HELLO}"}
    assert [{name: line.fields.get(name) for name in usual} for line in lines] == [usual] * 3


def test_a_record_that_is_not_packed_counts_without_the_lines_that_close_it(tmp_path: Path) -> None:
    path = tmp_path / "test.warc"
    path.write_bytes(b"".join(RECORDS))
    first, second = (parse_cdxj(line) for line in lines_of(path, IndexOptions())[:2])
    assert first.fields["offset"] == str(len(RECORDS[0]))
    assert first.fields["length"] == str(len(RECORDS[1]) - 4)
    assert second.fields["offset"] == str(len(b"".join(RECORDS[:3])))


@pytest.mark.parametrize(
    ("compat", "mime"), [(Compat.CDXJ_INDEXER, "text/html"), (Compat.PYWB, "text/css")]
)
def test_an_arc_file_is_indexed_alike(compat: Compat, mime: str, tmp_path: Path) -> None:
    page = arc(
        f"{SITE}/arc", http(Content_Type="text/html; x=y"), kind="text/css", date="20080430204825"
    )
    name = arc("dns:www.example.org", b"answer\n", kind="text/dns")
    for path, data in (
        (tmp_path / "x.arc.gz", packed([ARC_HEADER, page, name])),
        (tmp_path / "x.arc", ARC_HEADER + page + name),
    ):
        path.write_bytes(data)
        found, other = (parse_cdxj(line) for line in lines_of(path, IndexOptions(compat=compat)))
        assert (found.key, found.timestamp) == ("org,example)/arc", "20080430204825")
        assert found.fields["mime"] == mime
        assert found.fields["status"] == "200"
        assert other.fields.get("mime") == (None if compat is Compat.CDXJ_INDEXER else "text/dns")
        start, length = int(found.fields["offset"]), int(found.fields["length"])
        assert data[start : start + length] in (packed([page]), page[:-1])


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (
            Layout.CDX9,
            f"org,example)/get 20240424100000 {SITE}/get text/html 200 {BARE} - OFFSET test.warc.gz",
        ),
        (
            Layout.CDX10,
            f"org,example)/get 20240424100000 {SITE}/get text/html 200 {BARE} - - OFFSET test.warc.gz",
        ),
        (
            Layout.CDX11,
            f"org,example)/get {TIME} {SITE}/get text/html 200 {BARE} - - LENGTH OFFSET test.warc.gz",
        ),
    ],
)
def test_older_layouts_have_columns_and_bare_digests(
    layout: Layout, expected: str, archive: Path
) -> None:
    lines = lines_of(archive, IndexOptions(), layout)
    length, offset = len(packed(RECORDS[1:2])), len(packed(RECORDS[:1]))
    assert (
        lines[0].decode()
        == expected.replace("LENGTH", str(length)).replace("OFFSET", str(offset)) + "\n"
    )
    assert {line.count(b" ") for line in lines} == {layout.legend.count(b" ") - 2}


def test_all_records_have_lines_if_all_are_requested(archive: Path) -> None:
    assert len(lines_of(archive, IndexOptions(all_records=True))) == len(RECORDS)


def test_pywb_says_nothing_of_a_request_but_what_its_header_says(archive: Path) -> None:
    lines = lines_of(archive, IndexOptions(compat=Compat.PYWB, records=("request",)))
    (fields,) = (parse_cdxj(line).fields for line in lines)
    assert list(fields) == ["url", "length", "offset", "filename"]


def test_more_fields_can_be_requested(tmp_path: Path) -> None:
    path = tmp_path / "more.warc"
    result = warc(
        "response",
        f"{SITE}/a/b",
        http(first="HTTP/1.1 301 Moved", Location="../c", Server="s", Last_Modified="then"),
        WARC_Record_ID="<urn:uuid:1>",
        WARC_IP_Address="192.0.2.1",
        WARC_Truncated="length",
    )
    request = warc(
        "request",
        f"{SITE}/a/b",
        http(b"", first="GET / HTTP/1.1", Referer="r"),
        WARC_Concurrent_To="<urn:uuid:1>",
    )
    path.write_bytes(result + request)
    requested = "recordid,ipaddress,truncated,redirect,lastmod,server,profile,referrer,method"
    requested += ",http:SERVER,http:location,warc-date,req.http:nothing"
    (line,) = lines_of(path, IndexOptions(fields=tuple(requested.split(","))))
    fields = parse_cdxj(line).fields
    assert {name: fields.get(name) for name in requested.split(",")} == {
        "recordid": "1",
        "ipaddress": "192.0.2.1",
        "truncated": "length",
        "redirect": f"{SITE}/c",
        "lastmod": "then",
        "server": "s",
        "profile": None,
        "referrer": "r",
        "method": "GET",
        "http:SERVER": "s",
        "http:location": "../c",
        "warc-date": "2024-04-24T10:00:00Z",
        "req.http:nothing": None,
    }


def test_a_header_that_is_there_and_empty_is_a_field_that_is_empty(tmp_path: Path) -> None:
    """As in cdxj-indexer 1.5."""
    path = tmp_path / "empty.warc"
    path.write_bytes(warc("response", SITE, http(X_Empty=""), WARC_Mine=" "))
    (line,) = lines_of(
        path, IndexOptions(fields=("http:x-empty", "warc-mine", "http:x-none", "warc-none"))
    )
    fields = parse_cdxj(line).fields
    assert (fields["http:x-empty"], fields["warc-mine"]) == ("", "")
    assert not fields.keys() & {"http:x-none", "warc-none"}


def test_a_record_without_a_date_is_told_and_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "undated.warc"
    path.write_bytes(warc("response", SITE, http(), WARC_Date="") + warc("response", SITE, http()))
    broken: list[Broken] = []
    records = read_records(path, on_broken=broken.append)
    assert len(list(index_lines(records, "x", options=IndexOptions(), on_broken=broken.append))) == 1
    assert broken == [Broken(path, 0, "a record has no date, so it has no line")]


@pytest.mark.parametrize(
    ("date", "timestamp"),
    [
        ("2024-04-24T10:00:09Z", "20240424100009"),
        ("2024-04-24T10:00:09.987654Z", "20240424100009"),
        ("20080430204825", "20080430204825"),
        ("201404010000000000", "20140401000000"),
        ("2016", "20160101000000"),
        ("2016-03", "20160301000000"),
        ("2016-03-04", "20160304000000"),
        ("2016-03-04T05:06Z", "20160304050600"),
        ("", ""),
        ("soon", ""),
        ("123", ""),
    ],
)
def test_a_timestamp_is_the_digits_of_the_date(date: str, timestamp: str) -> None:
    assert timestamp_of(date) == timestamp


@pytest.mark.parametrize("odd", ["\xa0", "\x85", "\u3000"])
def test_a_blank_of_another_script_is_in_the_key_as_the_bytes_of_its_utf_8(
    odd: str, tmp_path: Path
) -> None:
    archive = tmp_path / "x.warc.gz"
    archive.write_bytes(packed([warc("response", f"{SITE}/a{odd}b", http())]))
    (line,) = lines_of(archive, IndexOptions())
    found = parse_cdxj(line)
    octets = "".join(f"%{octet:02x}" for octet in odd.encode())
    assert (found.key, found.fields["url"]) == (f"org,example)/a{octets}b", f"{SITE}/a{odd}b")


def test_a_blank_in_a_column_of_cdx_is_encoded_and_not_dropped(tmp_path: Path) -> None:
    archive = tmp_path / "a b.warc.gz"
    archive.write_bytes(packed([warc("response", f"{SITE}/\xa0x", http())]))
    (line,) = lines_of(archive, IndexOptions(), Layout.CDX11)
    columns = line.split()
    assert (columns[2], columns[-1]) == (f"{SITE}/%C2%A0x".encode(), b"a%20b.warc.gz")


@pytest.mark.parametrize("kind", ["WARC", "ARC"])
def test_a_header_that_is_not_utf_8_is_read_as_latin_1(kind: str, tmp_path: Path) -> None:
    if kind == "WARC":
        record = warc("response", f"{SITE}/caf@", http(), WARC_Payload_Digest="é")
    else:
        record = arc(f"{SITE}/caf@", http())
    archive = tmp_path / "x.gz"
    archive.write_bytes(packed([record.replace(b"@", b"\xe9")]))
    (line,) = lines_of(archive, IndexOptions())
    found = parse_cdxj(line)
    assert (found.key, found.fields["url"]) == ("org,example)/caf%c3%a9", f"{SITE}/café")
    if kind == "WARC":
        assert found.fields["digest"] == "é", "each line is read by itself"
