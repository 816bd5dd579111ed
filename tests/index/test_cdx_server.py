"""Looking captures up: ranges of keys, the steps of a query, and the server around them."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import warm_processes
from hypothesis import given
from hypothesis import strategies as st
from index.lookup_lines import cluster, line, pages, plain
from loopback import environment
from typer.testing import CliRunner

from amicrawl.archive.index.lookup.query import (
    FORMATS,
    Bounds,
    IndexRow,
    TooMuch,
    count_pages,
    response_lines,
)
from amicrawl.archive.index.lookup.request import MatchType, filter_of, key_range, request_of
from amicrawl.archive.index.lookup.server import CdxServer
from amicrawl.archive.index.lookup.source import IndexSource, SortedFile, open_sources
from amicrawl.cli.cdx import app
from amicrawl.errors import AmicrawlError, InputError, OutputError, UsageError
from amicrawl.urls import surt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = sorted(
    [
        line("com,example)/", "20190101000000", digest="B" * 32),
        line("com,example)/", "20200101000000"),
        line("com,example)/", "20200101000001", status="404"),
        line("com,example)/", "20210101000000", mime="warc/revisit", status="304"),
        line("com,example)/a", "20200202000000", mime="image/png"),
        line("com,example)/a/b", "20200203000000"),
        line("com,example)/a?x=1", "20200204000000"),
        line("com,example)/ab", "20200205000000"),
        line("com,example,sub)/", "20200206000000"),
        line("com,example:8080)/", "20200207000000"),
        line("com,examples)/", "20200208000000"),
        line("com,example-two)/", "20200209000000"),
        line("org,example)/", "20200210000000"),
    ]
)


@pytest.fixture(scope="module", params=["cdxj", "zipnum", "both"])
def sources(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[IndexSource]:
    """The same lines as a plain file, as a cluster, and half of them in each."""
    directory = tmp_path_factory.mktemp("sources")
    packed = {"cdxj": [], "zipnum": LINES, "both": LINES[::2]}[request.param]
    text = [each for each in LINES if each not in packed]
    cluster(packed, directory, block=3, shard=6)
    plain(text, directory / "lines.cdxj")
    return open_sources([directory])


def found(sources: list[IndexSource], url: str, **given: str | list[str]) -> list[str]:
    """Return key and time of the lines that a query finds."""
    parameters = {name: [value] if isinstance(value, str) else value for name, value in given.items()}
    request = request_of({"url": [url], **parameters})
    rows = [each.decode().split(" ", 2) for each in response_lines(request, sources)]
    return [f"{key.removeprefix('com,example')} {time.rstrip('0')}" for key, time, _ in rows]


ROOT = [")/ 20190101", ")/ 20200101", ")/ 20200101000001", ")/ 20210101"]


@pytest.mark.parametrize(
    ("url", "match", "expected"),
    [
        ("http://www.example.com/", "", ROOT),
        ("example.com", "", ROOT),
        ("http://example.com/a", "", [")/a 20200202"]),
        ("http://example.com/missing", "", []),
        (
            "http://example.com/a*",
            "",
            [")/a 20200202", ")/a/b 20200203", ")/a?x=1 20200204", ")/ab 20200205"],
        ),
        ("http://example.com/a/*", "", [")/a/b 20200203"]),
        ("http://example.com/a?*", "", [")/a?x=1 20200204"]),
        (
            "http://example.com/a",
            "prefix",
            [")/a 20200202", ")/a/b 20200203", ")/a?x=1 20200204", ")/ab 20200205"],
        ),
        ("http://sub.example.com/whatever", "host", [",sub)/ 20200206"]),
        ("http://sub.example.com/", "domain", [",sub)/ 20200206"]),
        ("http://example.com/a*", "exact", []),
    ],
)
def test_a_kind_of_match_finds_its_captures(
    sources: list[IndexSource], url: str, match: str, expected: list[str]
) -> None:
    assert found(sources, url, matchType=match) == expected


def test_a_host_is_not_its_subdomains_and_a_domain_is_no_other(sources: list[IndexSource]) -> None:
    host = found(sources, "http://example.com/a", matchType="host")
    assert len(host) == 8
    assert all(each.startswith(")/") for each in host)
    domain = found(sources, "*.example.com")
    assert domain == [*host, ",sub)/ 20200206"]
    assert len(found(sources, "*.com")) == 12
    for everything in ("*", "http*", "https://*", "HTTP:*"):
        assert len(found(sources, everything)) == len(LINES)


def test_a_url_without_a_host_has_no_other_match_than_itself() -> None:
    assert key_range("urn:x:Y").start == b"urn:x:y"
    with pytest.raises(ValueError, match="has no host"):
        key_range("urn:x:Y", MatchType.DOMAIN)
    with pytest.raises(UsageError, match="matchType=exact"):
        request_of({"url": ["urn:x:Y"], "matchType": ["host"]})


@given(st.from_regex(r"https?://[a-z0-9.:\[\]-]{1,12}(/[a-zA-Z0-9/?&=.%~-]{0,12})?", fullmatch=True))
def test_the_captures_of_a_url_lie_in_every_range_of_it(url: str) -> None:
    each = f"{surt(url)} 20200101000000 {{}}".encode()
    for match in (MatchType.EXACT, MatchType.HOST, MatchType.DOMAIN):
        with contextlib.suppress(ValueError):
            start, end = key_range(url, match)
            assert start <= each < end or (match is not MatchType.EXACT and "." not in url)
    assert key_range(url, first="2019", last="2021").start <= each
    assert each < key_range(url, first="2019", last="2021").end


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2020", "", ROOT[1:]),
        ("", "2020", ROOT[:3]),
        ("2020", "2020", ROOT[1:3]),
        ("20200101000001", "20200101000001", ROOT[2:3]),
        ("2022", "", []),
        ("2021", "2019", []),
    ],
)
def test_times_are_inclusive_at_both_ends(
    sources: list[IndexSource], first: str, last: str, expected: list[str]
) -> None:
    given = {"from": first, "to": last}
    assert found(sources, "example.com", **given) == expected
    wide = [each for each in found(sources, "*.example.com", **given) if each.startswith(")/ ")]
    assert wide == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["=status:200"], ROOT[:2]),
        (["!=status:200"], ROOT[2:]),
        (["mime:html"], ROOT[:3]),
        (["mimetype:html", "!statuscode:404"], ROOT[:2]),
        (["~mime:text/.*"], ROOT[:3]),
        (["~mime:ext"], []),
        (["~status:[34]0\\d$"], ROOT[2:]),
        (["digest:BBBB"], ROOT[:1]),
        (["warc/revisit"], ROOT[3:]),
        (["=missing:x"], []),
        (["!=missing:x"], ROOT),
    ],
)
def test_filters_contain_equal_match_and_turn_round(
    sources: list[IndexSource], filters: list[str], expected: list[str]
) -> None:
    assert found(sources, "example.com", filter=filters) == expected


@pytest.mark.parametrize(
    ("expression", "is_kept"),
    [("(a+)+$", False), ("(?:a|aa)+$", False), ("^(([a-z])+.)+[A-Z]([a-z])+$", False), ("(.*)*x", True)],
)
def test_an_expression_that_backtracking_would_never_end_gets_its_response(
    expression: str, is_kept: bool
) -> None:
    row = IndexRow(line(f"com,example)/{'a' * 5000}!", "2020"))
    assert filter_of(f"~url:{expression}").keeps([row] * 50) == [is_kept] * 50


@pytest.mark.parametrize(
    "written",
    [
        *("", "=", "~url:(", r"~url:(a)\1", "~url:(?=a)", "~url:(a{0,50}){0,50}x"),
        *("x" * 1001, "~url:\ud800"),
    ],
)
def test_what_is_no_filter_is_refused(written: str) -> None:
    with pytest.raises(UsageError):
        filter_of(written)


def test_order_offset_and_limit_count_what_is_left(sources: list[IndexSource]) -> None:
    assert found(sources, "example.com", sort="reverse") == ROOT[::-1]
    assert found(sources, "example.com", limit="2") == ROOT[:2]
    assert found(sources, "example.com", limit="-2") == ROOT[2:]
    assert found(sources, "example.com", limit="2", sort="reverse") == [ROOT[3], ROOT[2]]
    assert found(sources, "example.com", limit="2", offset="1") == ROOT[1:3]
    assert found(sources, "example.com", limit="-2", offset="1") == ROOT[1:3]
    assert found(sources, "example.com", offset="3") == ROOT[3:]
    assert found(sources, "example.com", limit="1", filter=["=status:404"]) == ROOT[2:3]


def test_the_closest_capture_comes_first(sources: list[IndexSource]) -> None:
    nearest = [ROOT[2], ROOT[1], ROOT[3], ROOT[0]]
    assert found(sources, "example.com", sort="closest", closest="20200401") == nearest
    assert found(sources, "example.com", closest="20200401", limit="1") == nearest[:1]
    assert found(sources, "example.com", closest="20219999", limit="1") == ROOT[3:]


def test_neighbours_collapse_by_a_field_its_beginning_or_time_and_status(
    sources: list[IndexSource],
) -> None:
    assert found(sources, "example.com", collapse=["timestamp:4"]) == [ROOT[0], ROOT[1], ROOT[3]]
    assert found(sources, "example.com", collapse=["digest"]) == ROOT[:2]
    assert found(sources, "example.com", collapse=["timestamp:4", "digest"]) == ROOT[:2]
    assert found(sources, "example.com", collapseTime="4") == ROOT


def test_a_revisit_is_told_with_its_original(tmp_path: Path) -> None:
    original = line("com,example)/", "2020", digest="sha1:X", offset="7", length="9", filename="a.gz")
    repeated = line("com,example)/", "2021", digest="X", mime="warc/revisit", status="304")
    lonely = line("com,example)/", "2022", digest="Y", mime="warc/revisit")
    source = SortedFile(plain([original, repeated, lonely], tmp_path / "x.cdxj"))
    request = request_of({"url": ["example.com"], "resolveRevisits": ["true"], "output": ["json"]})
    first, second, third = map(json.loads, response_lines(request, [source]))
    assert (first["orig.offset"], first["offset"], first["mime"]) == ("-", "7", "text/html")
    assert (second["orig.offset"], second["orig.length"], second["orig.filename"]) == ("7", "9", "a.gz")
    assert (second["mime"], second["status"]) == ("text/html", "200")
    assert (third["orig.filename"], third["mime"]) == ("-", "warc/revisit")
    filtered = request_of(
        {
            "url": ["example.com"],
            "resolveRevisits": ["true"],
            "filter": ["=status:200", "=mime:text/html"],
        }
    )
    assert len(list(response_lines(filtered, [source]))) == 2
    later = request_of(
        {"url": ["example.com"], "resolveRevisits": ["true"], "from": ["2021"], "limit": ["1"]}
    )
    (only,) = response_lines(later, [source])
    assert b'"orig.offset": "7"' in only


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "url= is missing"),
        ({"url": ["x"] * 2}, "2 times"),
        ({"url": ["x" * 20_000]}, "characters"),
        ({"url": ["x"], "fliter": ["=status:200"]}, "'fliter' is not a known parameter"),
        ({"url": ["x"], "matchType": ["some"]}, "exact, prefix, host, domain"),
        ({"url": ["x"], "from": ["yesterday"]}, "from="),
        ({"url": ["x"], "to": ["2" * 15]}, "to="),
        ({"url": ["x"], "sort": ["closest"]}, "closest=TIMESTAMP"),
        ({"url": ["x"], "sort": ["up"]}, "sort="),
        ({"url": ["x"], "sort": ["reverse"], "closest": ["2020"]}, "contradict"),
        ({"url": ["x"], "limit": ["0"]}, "limit="),
        ({"url": ["x"], "limit": ["1e9"]}, "limit="),
        ({"url": ["x"], "limit": ["٣"]}, "limit="),
        ({"url": ["x"], "page": ["-1"]}, "page="),
        ({"url": ["x"], "pageSize": ["51"]}, "50 at most"),
        ({"url": ["x"], "output": ["xml"]}, "output="),
        ({"url": ["x"], "fields": ["a"], "fl": ["b"]}, "Give one"),
        ({"url": ["x"], "collapse": [":4"]}, "collapse="),
        ({"url": ["x"], "filter": ["a:b"] * 21}, "20 is the most"),
        ({"url": ["x"], "showNumPages": ["maybe"]}, "true or false"),
    ],
)
def test_a_request_that_cannot_be_followed_is_refused_with_a_reason(
    given: dict[str, list[str]], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        request_of(given)


def test_pages_are_those_of_a_cluster(tmp_path: Path) -> None:
    lines = pages(25)
    cluster(lines, tmp_path)
    (source,) = open_sources([tmp_path])
    requested = {"url": ["example.com/*"], "pageSize": ["2"]}
    assert count_pages(request_of(requested), [source]) == (3, 2, 5)
    turned = [
        list(response_lines(request_of(requested | {"page": [str(page)]}), [source]))
        for page in range(3)
    ]
    assert [len(page) for page in turned] == [10, 10, 5]
    assert [each.rstrip() for page in turned for each in page] == lines
    with pytest.raises(UsageError, match="no page 3: the last one is 2"):
        list(response_lines(request_of(requested | {"page": ["3"]}), [source]))
    missing = {"url": ["example.com/missing"]}
    assert count_pages(request_of(missing), [source]) == (0, 10, 0)
    assert list(response_lines(request_of(missing | {"page": ["0"]}), [source])) == []


def test_a_range_beyond_the_cluster_and_one_in_the_middle_of_a_block_are_counted_right(
    tmp_path: Path,
) -> None:
    cluster(pages(25), tmp_path)
    for url, pages_found in (("example.com/p000003", 1), ("a.com/*", 0), ("zzz.com/*", 0), ("*.com", 1)):
        request = request_of({"url": [url]})
        assert count_pages(request, open_sources([tmp_path])).pages == pages_found, url


def test_forms_of_output() -> None:
    row = IndexRow(
        b"com,example)/ 20200101000000 "
        b'{"url": "http://example.com/\\u00e9 x\\n", "status": 200, "n": null}'
    )
    assert FORMATS["cdxj"][1](row, ()) == row.line + b"\n"
    assert FORMATS["cdxj"][1](row, ("status", "missing")) == (
        b'com,example)/ 20200101000000 {"status": "200"}\n'
    )
    assert json.loads(FORMATS["json"][1](row, ())) == {
        "urlkey": "com,example)/",
        "timestamp": "20200101000000",
        "url": "http://example.com/é x\n",
        "status": "200",
        "n": "null",
    }
    assert json.loads(FORMATS["json"][1](row, ("status",))) == {"status": "200"}
    assert FORMATS["text"][1](row, ("url", "timestamp", "missing")) == (
        "http://example.com/é%20x%0A 20200101000000 -\n".encode()
    )


@pytest.mark.parametrize("more", [{"fields": ["url"]}, {"resolveRevisits": ["true"]}])
def test_an_object_cannot_replace_the_key_of_its_line(
    more: dict[str, list[str]], tmp_path: Path
) -> None:
    line = b'com,example)/ 20200101000000 {"urlkey": "com,a)/ 1 {}\\ncom,b)/", "url": "http://example.com/"}'
    source = SortedFile(plain([line], tmp_path / "x.cdxj"))
    (written,) = response_lines(request_of({"url": ["example.com"], **more}), [source])
    assert written.startswith(b'com,example)/ 20200101000000 {"url": "http://example.com/"')
    assert written.count(b"\n") == 1


def test_cdx_lines_have_fields_too() -> None:
    eleven = IndexRow(
        b"com,example)/ 20200101000000 http://example.com/ text/html 200 ABC - - 123 456 x.warc.gz"
    )
    assert eleven.fields["length"] == "123"
    assert eleven.fields["offset"] == "456"
    assert "redirect" not in eleven.fields
    nine = IndexRow(
        b"com,example)/ 20200101000000 http://example.com/ text/html 200 ABC - 456 x.warc.gz"
    )
    assert nine.fields["offset"] == "456"
    assert IndexRow(b"a b").fields == {"urlkey": "a", "timestamp": "b"}
    assert IndexRow(b"").timestamp == ""


@given(st.lists(st.binary(max_size=40).filter(lambda each: b"\n" not in each), max_size=8))
def test_hostile_lines_raise_nothing_but_our_errors(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = plain(sorted(lines), tmp_path_factory.mktemp("hostile") / "x.cdxj")
    given: dict[str, list[str]] = {
        "url": ["*"],
        "filter": ["!status:9"],
        "collapse": ["url"],
        "closest": ["2"],
    }
    with contextlib.suppress(AmicrawlError):
        source = SortedFile(path)
        for output in FORMATS:
            for each in response_lines(request_of(given | {"output": [output]}), [source]):
                assert each.count(b"\n") == 1


def test_work_is_bounded_and_a_cut_response_is_never_given(tmp_path: Path) -> None:
    source = SortedFile(plain(pages(200), tmp_path / "x.cdxj"))

    def count(bounds: Bounds, **given: str) -> int:
        request = request_of({"url": ["*"]} | {name: [value] for name, value in given.items()})
        return len(list(response_lines(request, [source], bounds=bounds)))

    wide = Bounds(1000, 1000, 10**6)
    assert count(wide) == 200
    for bounds in (wide._replace(scanned=100), wide._replace(lines=100), wide._replace(octets=1000)):
        for order in ({}, {"sort": "reverse"}, {"closest": "2020"}):
            with pytest.raises(TooMuch):
                count(bounds, **order)
    assert count(wide._replace(lines=100), limit="100") == 100
    assert count(wide._replace(scanned=100), limit="50") == 50
    narrow = wide._replace(lines=100)
    for order in ({"sort": "reverse"}, {"closest": "2020"}, {"limit": "-60"}, {"limit": "60"}):
        given = {"limit": "60"} | order
        assert count(narrow, **given, offset="40") == 60
        if order != {"limit": "60"}:
            with pytest.raises(TooMuch):
                count(narrow, **given, offset="41")
    for order in ({"sort": "reverse"}, {"closest": "2020"}):
        with pytest.raises(TooMuch):
            count(narrow, **order, offset="150")
    assert count(narrow, offset="150") == 50


# The server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdxServer]:
    directory = tmp_path_factory.mktemp("served")
    cluster(pages(25), directory)
    plain(LINES[8:], directory / "x.cdxj")
    (directory / "secret.txt").write_text("not for you")
    with CdxServer(("127.0.0.1", 0), open_sources([directory])) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def get(server: CdxServer, path: str, *, method: str = "GET", **fields: str) -> tuple[int, Any, bytes]:
    url = f"http://127.0.0.1:{server.port}{path}"
    request = urllib.request.Request(url, method=method, headers=fields)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def requested(server: CdxServer, **given: str) -> tuple[int, Any, bytes]:
    return get(server, f"/cdx?{urlencode(given)}")


def test_the_server_responds_in_each_form(server: CdxServer) -> None:
    status, fields, body = requested(server, url="http://example.com/p000003")
    assert (status, body) == (200, pages(4)[3] + b"\n")
    assert fields["Content-Type"] == "text/x-cdxj"
    assert fields["X-Content-Type-Options"] == "nosniff"
    status, fields, body = requested(
        server, url="example.com/p000003", output="json", fl="urlkey,statuscode"
    )
    assert json.loads(body) == {"urlkey": "com,example)/p000003", "status": "200"}
    assert fields["Content-Type"] == "application/x-ndjson"
    status, _, body = requested(
        server, url="example.com/*", fields="timestamp", output="text", limit="2"
    )
    assert body == b"20200101000000\n20200101000001\n"


def test_an_index_that_is_cut_while_it_is_served_costs_the_response_and_not_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = plain(pages(30_000), tmp_path / "x.cdxj")
    with CdxServer(("127.0.0.1", 0), [SortedFile(path)]) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        os.truncate(path, 1000)
        for _ in range(2):
            status, _, body = requested(server, url="http://example.com/p025000")
            assert (status, body) == (500, b'{"message": "The index cannot be read."}\n')
        server.shutdown()
    assert "the file was cut while it was in use" in capsys.readouterr().err


def test_a_url_may_be_sent_as_it_is_typed(tmp_path: Path) -> None:
    line = 'com,example)/%c3%a9 20200101000000 {"url": "http://example.com/é"}'.encode()
    source = SortedFile(plain([line], tmp_path / "x.cdxj"))
    with CdxServer(("127.0.0.1", 0), [source]) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall("GET /cdx?url=http://example.com/é HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        response = b"".join(iter(lambda: client.recv(1 << 16), b""))
        client.close()
        server.shutdown()
    assert response.endswith(line + b"\n")


def test_the_server_turns_pages_and_says_when_there_is_none(server: CdxServer) -> None:
    status, fields, body = requested(server, url="example.com/p*", pageSize="2", showNumPages="true")
    assert (status, fields["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == {"pages": 3, "pageSize": 2, "blocks": 5}
    assert len(requested(server, url="example.com/p*", pageSize="2", page="2")[2].splitlines()) == 5
    status, _, body = requested(server, url="example.com/p*", pageSize="2", page="3")
    assert (status, json.loads(body)["message"]) == (400, "There is no page 3: the last one is 2.")


def test_only_reading_is_allowed_and_only_of_the_index(server: CdxServer) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, fields, _ = get(server, "/cdx?url=x", method=method)
        assert (status, fields["Allow"]) == (405, "GET, HEAD")
    status, fields, body = get(server, "/cdx?url=example.com/p000003", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(fields["Content-Length"]) == len(pages(4)[3]) + 1
    for path in (
        "/secret.txt",
        "/../secret.txt",
        "/cdx/../secret.txt",
        "/%2e%2e/secret.txt",
        "/cdx/",
    ):
        assert get(server, path)[0] == 404, path
    assert b"CDX server" in get(server, "/")[2]


def test_a_bad_request_gets_a_sentence(server: CdxServer) -> None:
    wrong: list[dict[str, str]] = [{}, {"url": "x", "output": "<b>"}, {"url": "x", "filter": "~url:("}]
    for parameters in wrong:
        status, fields, body = requested(server, **parameters)
        assert (status, fields["Content-Type"]) == (400, "application/json")
        assert len(json.loads(body)["message"].split()) > 3
    assert get(server, "/cdx?" + "&".join(f"a{number}=1" for number in range(200)))[0] == 400


def test_a_page_on_the_web_cannot_have_the_index_read(server: CdxServer) -> None:
    """By DNS rebinding a foreign name comes to mean our address; the name in the request betrays it."""
    assert get(server, "/cdx?url=example.com/p000003", Host="evil.example")[0] == 421
    assert get(server, "/cdx?url=example.com/p000003", Host="[::1")[0] == 421
    for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
        assert get(server, "/cdx?url=example.com/p000003", Host=host)[0] == 200


def test_a_request_in_absolute_form_is_that_of_its_path_and_its_host(server: CdxServer) -> None:
    statuses = []
    for target in (
        "http://127.0.0.1/cdx?url=example.com/p000003",
        "HTTP://localhost:80/cdx?url=example.com/p000003",
        "http://127.0.0.1?url=x",
        "http://evil.example/cdx?url=example.com/p000003",
        "http:///cdx?url=example.com/p000003",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            statuses.append(connection.makefile("rb").readline().split()[1])
    assert statuses == [b"200", b"200", b"200", b"421", b"404"]


def test_a_server_for_all_responds_at_any_name(tmp_path: Path) -> None:
    with CdxServer(("0.0.0.0", 0), [SortedFile(plain(LINES, tmp_path / "x.cdxj"))]) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        assert get(server, "/cdx?url=example.com", Host="archive.example")[0] == 200
        server.shutdown()


def test_more_connections_than_it_serves_are_closed_and_do_no_harm(server: CdxServer) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(32):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        refused = held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        refused.settimeout(20)
        with contextlib.suppress(ConnectionError):
            assert refused.recv(1) == b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # threads notice the ends of connections one by one
        with contextlib.suppress(OSError):
            if requested(server, url="example.com/p000003")[0] == 200:
                return
        time.sleep(0.02)
    pytest.fail("the server did not come back")


def test_connections_that_send_no_whole_head_keep_no_one_out(server: CdxServer) -> None:
    with contextlib.ExitStack() as kept:
        opened = []
        for _ in range(40):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            opened.append(kept.enter_context(connection))
            connection.sendall(b"GET /cdx?url=example.com HTTP/1.0\r\n")
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/", timeout=30) as found:
            assert found.status == 200
        assert opened[0].recv(1) == b"", "the oldest is closed"


def test_a_head_that_drips_is_given_up_however_steadily_it_does(tmp_path: Path) -> None:
    plain(LINES, tmp_path / "lines.cdxj")
    with (
        CdxServer(("127.0.0.1", 0), open_sources([tmp_path]), head_seconds=0.2) as dripped_on,
        socket.create_connection(("127.0.0.1", dripped_on.port), timeout=30) as connection,
    ):
        thread = threading.Thread(target=dripped_on.serve_forever, daemon=True)
        thread.start()
        sent = 0
        with contextlib.suppress(ConnectionError):
            for octet in b"GET / HTTP/1.0\r\nX: " + b"x" * 2000:
                connection.sendall(bytes([octet]))
                time.sleep(0.02)
                sent += 1
        assert sent < 2000
        dripped_on.shutdown()
        thread.join()


def test_more_questions_than_it_works_on_are_put_off(server: CdxServer) -> None:
    for _ in range(4):
        assert server.responses.acquire(timeout=60)
    status, fields, _ = requested(server, url="example.com/p000003")
    for _ in range(4):
        server.responses.release()
    assert (status, fields["Retry-After"]) == (503, "1")
    assert requested(server, url="example.com/p000003")[0] == 200


def test_an_address_of_ipv6_is_listened_on(tmp_path: Path) -> None:
    sources = open_sources([plain(LINES, tmp_path / "x.cdxj")])
    try:
        server = CdxServer(("::1", 0), sources)
    except OutputError:
        pytest.skip("this machine has no IPv6")
    with server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with urllib.request.urlopen(
            f"http://[::1]:{server.port}/cdx?url=example.org", timeout=60
        ) as response:
            assert response.read() == LINES[-1] + b"\n"
        server.shutdown()


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = ("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(OutputError, match="cannot be listened on"):
            CdxServer(address, [])


def test_a_damaged_index_is_an_error_of_the_server_that_names_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(pages(5), tmp_path)
    (tmp_path / "cdx-00000.gz").write_bytes(b"damaged")
    with CdxServer(("127.0.0.1", 0), open_sources([tmp_path])) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        status, _, body = requested(server, url="example.com/*")
        server.shutdown()
    assert (status, json.loads(body)) == (500, {"message": "The index cannot be read."})
    assert "cdx-00000.gz" in capsys.readouterr().err


# The commands


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, AmicrawlError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_without_index_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.cdxj"
    path.write_text("hello world\nthis is no index\n")
    with pytest.raises(InputError, match="not a CDXJ or CDX file"):
        run("query", path, "--url", "example.com")
    path.write_bytes(b"a damaged line\n" + LINES[0] + b"\n")
    open_sources([path])


def test_blank_lines_are_no_captures_and_hide_none(tmp_path: Path) -> None:
    path = tmp_path / "x.cdxj"
    lines = b"\n".join(LINES)
    path.write_bytes(b"\n\n" + lines + b"\n\n")
    (source,) = open_sources([path])
    assert list(source.lines(b"", b"\xff")) == LINES
    for place in range(1, len(LINES)):
        path.write_bytes(b"\n".join([*LINES[:place], b"", *LINES[place:]]) + b"\n")
        with pytest.raises(InputError, match="not in byte order"):
            open_sources([path])


def test_the_command_responds_as_the_server_does(tmp_path: Path) -> None:
    cluster(pages(25), tmp_path)
    assert run("query", tmp_path, "--url", "example.com/p000003") == pages(4)[3].decode() + "\n"
    shown = run("query", tmp_path, "--url", "*.example.com", "--fields", "timestamp", "--output", "text",
                "--filter", "=status:200", "--limit", -2)  # fmt: skip
    assert shown == "20200101000023\n20200101000024\n"
    counted = run("query", tmp_path, "--url", "example.com/*", "--show-num-pages", "--page-size", 2)
    assert json.loads(counted) == {"pages": 3, "pageSize": 2, "blocks": 5}
    assert (
        len(run("query", tmp_path, "--url", "example.com/*", "--page", 2, "--page-size", 2).splitlines())
        == 5
    )
    with pytest.raises(InputError):
        run("query", tmp_path / "missing", "--url", "x")
    with pytest.raises(UsageError):
        run("query", tmp_path, "--url", "x", "--sort", "up")


def test_a_terminal_is_shown_no_character_that_it_would_obey(tmp_path: Path) -> None:
    odd = line("com,example)/odd", "20200101000000", mime="\x1b[2Jtext\u202eplain")
    odd = odd.replace(b"\\u001b", b"\x1b").replace(b"\\u202e", "\u202e".encode())
    (tmp_path / "odd.cdxj").write_bytes(odd + b"\n")
    requested_for = ["cdx", "query", "--url", "example.com/odd", str(tmp_path)]
    command = [sys.executable, "-m", "amicrawl", *requested_for]
    ours, theirs = pty.openpty()
    warm_processes.run(command, stdout=theirs, env=environment(), check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "com,example)/odd" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    piped = warm_processes.run(command, capture_output=True, env=environment(), check=True).stdout
    assert piped == odd + b"\n", "a program gets the bytes as they are"


def test_files_sorted_or_not_packed_or_not_become_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = pages(25)
    plain([*lines[:10][::-1], b"nonsense", lines[3]], tmp_path / "in" / "a.cdxj")
    (tmp_path / "in" / "b.cdxj.gz").write_bytes(gzip.compress(b"\n".join(lines[10:])))
    out = tmp_path / "out"
    arguments = ["zipnum", tmp_path / "in", "-o", out, "--block-lines", 5, "--shard-lines", 10]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 5
    assert "Left out, no urlkey, timestamp and fields, with a space between: nonsense" in result.output
    assert "25 lines in 5 blocks and 3 shards; 1 repeated, 1 not index lines" in result.output
    shown = run("query", out, "--url", "*")
    assert shown.encode().splitlines() == lines
    with pytest.raises(UsageError, match="already"):
        run(*arguments)


def test_an_address_that_others_can_reach_has_to_be_meant(tmp_path: Path) -> None:
    path = plain(LINES, tmp_path / "x.cdxj")
    for host in ("0.0.0.0", "::", "192.0.2.1", "archive.example", ""):
        with pytest.raises(UsageError, match="--public"):
            run("serve", path, "--host", host)


def test_the_served_index_is_the_one_named_until_interrupted(tmp_path: Path) -> None:
    path = plain(LINES, tmp_path / "x.cdxj")
    command = [sys.executable, "-m", "amicrawl", "cdx", "serve", str(path), "--port", "0"]
    with warm_processes.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/cdx", process.stdout.readline())
            assert address is not None
            with urllib.request.urlopen(f"{address[0]}?url=example.org", timeout=60) as response:
                assert response.read() == LINES[-1] + b"\n"
            process.send_signal(2)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
