"""Keys of captures that were requested with a body, as two indexers make them.

Keys and bodies were taken from runs of these tools (cdxj-indexer 1.5.0, pywb 2.10.0) over such records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index.archive_files import (
    exchange,
    gzip_member,
    http,
    index_lines,
    packed,
    parse_cdxj,
    unexpected,
    warc,
)

from amicrawl.archive.lines.post_key import LONGEST_QUERY, keyed_by_body
from amicrawl.archive.lines.record_lines import Compat, IndexOptions
from amicrawl.reading.records import read_records

if TYPE_CHECKING:
    from pathlib import Path

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
PARTS = (
    b'--XBX\r\nContent-Disposition: form-data; name="a"\r\n\r\nx y\r\n'
    b'--XBX\r\nContent-Disposition: form-data; name="f"; filename="q.bin"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\n\x00\xff\x01\r\n--XBX--\r\n"
)

CASES = [
    # path, method, content type, body, key, requestBody: pywb's after the slash where it has another one
    ("form", "POST", FORM, b"B=2&a=x%20y", "form?__wb_method=post&a=x%20y&b=2", "B=2&a=x y"),
    (
        "j",
        "POST",
        JSON,
        b'{"t":"e","v":[true,null,3],"s":{"t":"c"}}',
        "j?__wb_method=post&t=e&t.2_=c&v=true&v.2_=none&v.3_=3",
        "t=e&v=True&v.2_=None&v.3_=3&t.2_=c",
    ),
    (
        "bin?q=1",
        "POST",
        "application/octet-stream",
        b"hello",
        "bin?__wb_method=post&__wb_post_data=agvsbg8=&q=1",
        "__wb_post_data=aGVsbG8=",
    ),
    ("put", "PUT", FORM, b"x=1", "put?__wb_method=put&x=1", "x=1"),
    ("amp?x=1&", "POST", FORM, b"y=1", "amp?&__wb_method=post&x=1&y=1", "y=1"),
    (
        "plain",
        "POST",
        "text/plain",
        b"no json",
        "plain?__wb_method=post&__wb_post_data=bm8gannvbg==",
        "__wb_post_data=bm8ganNvbg==",
    ),
    ("badjson", "POST", JSON, b"{no", "badjson?__wb_method=post", ""),
    (
        "badform",
        "POST",
        FORM,
        b"\xff\xfe=1",
        "badform?__wb_method=post&__wb_post_data=//49mq==",
        "__wb_post_data=//49MQ==",
    ),
    ("lines", "POST", JSON, b'{"a":1}\n{"a":2}', "lines?__wb_method=post&a=1&a.2_=2", "a=1&a.2_=2"),
    ("top", "POST", JSON, b'[1, "x", {"b": false}]', "top?__wb_method=post&b=false", "b=False"),
    (
        "many",
        "POST",
        "multipart/form-data; boundary=XBX",
        PARTS,
        "many?__wb_method=post&a=x+y&f=%00%ff%01",
        "a=x+y&f=%00%FF%01",
    ),
    (
        "nob",
        "POST",
        "multipart/form-data",
        b"zz",
        "nob?__wb_method=post&__wb_post_data=eno=",
        "__wb_post_data=eno=",
    ),
]


def line_of(path: Path, records: list[bytes], compat: Compat) -> tuple[str, dict[str, str]]:
    path.write_bytes(packed(records))
    options = IndexOptions(compat=compat, post=True)
    found = index_lines(
        read_records(path, on_broken=unexpected), "x", options=options, on_broken=unexpected
    )
    (line,) = (parse_cdxj(line) for line in found)
    return line.key, line.fields


@pytest.mark.parametrize(
    ("url", "method", "kind", "body", "key", "query"), CASES, ids=[case[0] for case in CASES]
)
def test_method_and_body_are_part_of_the_key(
    url: str, method: str, kind: str, body: bytes, key: str, query: str, tmp_path: Path
) -> None:
    records = exchange(f"http://example.org/{url}", method=method, kind=kind, body=body)
    found, fields = line_of(tmp_path / "post.warc.gz", records, Compat.CDXJ_INDEXER)
    assert found == f"org,example)/{key}"
    assert (fields["requestBody"], fields["method"]) == (query, method)
    assert (*fields,)[-3:] == ("filename", "requestBody", "method")


ZIPPED = gzip_member(b"a=1&b=2")


@pytest.mark.parametrize(
    ("fields", "body", "query"),
    [
        ({"Transfer_Encoding": "chunked"}, b"7\r\na=1&b=2\r\n0\r\n\r\n", "&a=1&b=2"),
        ({"Transfer_Encoding": "chunked", "Content_Length": "3"}, b"7\r\na=1&b=2\r\n0\r\n\r\n", "&a=1"),
        ({"Transfer_Encoding": "chunked"}, b"a=1&b=2", "&a=1&b=2"),
        ({"Content_Encoding": "gzip", "Content_Length": str(len(ZIPPED))}, ZIPPED, "&a=1&b=2"),
    ],
    ids=["chunked", "chunked and shorter", "not chunked after all", "compressed"],
)
def test_a_body_counts_without_its_codings_and_for_pywb_as_it_was_sent(
    fields: dict[str, str], body: bytes, query: str, tmp_path: Path
) -> None:
    request = http(body, first="POST /f HTTP/1.1", Content_Type=FORM, **fields)
    response, _ = exchange("http://example.org/f")
    concurrent = "<urn:uuid:00000000-0000-4000-8000-000000000001>"
    records = [response, warc("request", "http://example.org/f", request, WARC_Concurrent_To=concurrent)]
    found, _ = line_of(tmp_path / "post.warc.gz", records, Compat.CDXJ_INDEXER)
    assert found == f"org,example)/f?__wb_method=post{query}"
    if "Content_Length" not in fields:
        found, _ = line_of(tmp_path / "post.warc.gz", records, Compat.PYWB)
        assert found == "org,example)/f?__wb_method=post"


@pytest.mark.parametrize(
    ("body", "query"),
    [
        (b'{"a":true,"b":null,"c":1.0,"d":2.5}', "a=true&b=null&c=1&d=2.5"),
        (b'{"a":1}\n{"a":2}', ""),
    ],
)
def test_pywb_spells_json_as_browsers_do_and_knows_no_lines_of_it(
    body: bytes, query: str, tmp_path: Path
) -> None:
    records = exchange("http://example.org/j", method="POST", kind=JSON, body=body)
    found, fields = line_of(tmp_path / "post.warc.gz", records, Compat.PYWB)
    assert found == "org,example)/j?__wb_method=post" + ("&" + query if query else "")
    assert fields.get("requestBody", "") == query
    assert fields["method"] == "POST"


def test_other_methods_are_part_of_the_key_for_pywb_only(tmp_path: Path) -> None:
    records = exchange("http://example.org/opt", method="OPTIONS")
    assert (
        line_of(tmp_path / "a.warc.gz", records, Compat.PYWB)[0]
        == "org,example)/opt?__wb_method=options"
    )
    assert line_of(tmp_path / "b.warc.gz", records, Compat.CDXJ_INDEXER)[0] == "org,example)/opt"


def test_the_request_may_come_first_and_either_may_name_the_other(tmp_path: Path) -> None:
    response, request = exchange("http://example.org/f", method="POST", kind=FORM, body=b"a=1")
    assert (
        line_of(tmp_path / "a.warc.gz", [request, response], Compat.CDXJ_INDEXER)[1]["method"] == "POST"
    )
    response = warc("response", "http://example.org/f", http(), WARC_Concurrent_To="<urn:uuid:7>")
    request = warc(
        "request",
        "http://example.org/f",
        http(b"a=1", first="POST /f HTTP/1.1", Content_Type=FORM, Content_Length="3"),
        WARC_Record_ID="<urn:uuid:7>",
    )
    for records in ([response, request], [request, response]):
        assert (
            line_of(tmp_path / "b.warc.gz", records, Compat.CDXJ_INDEXER)[0]
            == "org,example)/f?__wb_method=post&a=1"
        )


@pytest.mark.parametrize("between", ["other URL", "no concurrent", "no request"])
def test_what_does_not_belong_together_is_not_joined(between: str, tmp_path: Path) -> None:
    response, request = exchange("http://example.org/f", method="POST", kind=FORM, body=b"a=1")
    if between == "other URL":
        request = request.replace(
            b"WARC-Target-URI: http://example.org/f", b"WARC-Target-URI: http://example.org/g"
        )
    elif between == "no concurrent":
        request = request.replace(b"WARC-Concurrent-To", b"WARC-Concurrent-2x")
    records = [response] if between == "no request" else [response, request]
    assert line_of(tmp_path / "x.warc.gz", records, Compat.CDXJ_INDEXER)[0] == "org,example)/f"


def test_the_digest_is_that_of_the_response_although_records_are_in_pairs(tmp_path: Path) -> None:
    response, request = exchange("http://example.org/f", method="POST", kind=FORM, body=b"a=1")
    bare = response.replace(b"WARC-Payload-Digest", b"X-Payload-Digest-00")
    _, fields = line_of(tmp_path / "x.warc.gz", [bare, request], Compat.CDXJ_INDEXER)
    assert fields["digest"] == "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"


def test_a_long_body_counts_with_its_beginning(tmp_path: Path) -> None:
    body = b"z=" + b"1" * 5000
    _, fields = line_of(
        tmp_path / "x.warc.gz",
        exchange("http://example.org/", method="POST", kind=FORM, body=body),
        Compat.CDXJ_INDEXER,
    )
    assert fields["requestBody"] == body[:LONGEST_QUERY].decode()


@given(
    st.binary(max_size=300),
    st.sampled_from(
        [FORM, JSON, "text/plain", "multipart/form-data; boundary=a", "multipart/x; boundary=", "", "x"]
    ),
    st.booleans(),
)
def test_no_body_is_too_odd_for_a_key(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, kind: str, pywb: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.warc"
    path.write_bytes(exchange("http://example.org/", method="POST", kind=kind or "x", body=body)[1])
    (request,) = read_records(path, on_broken=unexpected)
    keyed = keyed_by_body(request, "http://example.org/", pywb=pywb)
    assert keyed is not None
    assert len(keyed.query) <= LONGEST_QUERY


def test_json_without_a_bottom_is_no_query(tmp_path: Path) -> None:
    records = exchange("http://example.org/", method="POST", kind=JSON, body=b"[" * 3000 + b"]" * 3000)
    assert (
        line_of(tmp_path / "x.warc.gz", records, Compat.CDXJ_INDEXER)[0]
        == "org,example)/?__wb_method=post"
    )
