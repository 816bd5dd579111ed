"""The demo site shows what it says it shows, byte for byte."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import pytest
from demo import site_at
from demo_site.responses import SiteResponses
from demo_site.server import DemoSite

from amicrawl.message import header_fields, status_of, unchunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site() -> Iterator[DemoSite]:
    with DemoSite(pause=0.05) as running:
        yield running


def get(site: DemoSite, target: str, *lines: str) -> bytes:
    """Return all that a GET of *target* brings until the server closes the connection."""
    address = urlsplit(site.url)
    fields = "".join(f"{line}\r\n" for line in (f"Host: {address.netloc}", "Connection: close", *lines))
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\n{fields}\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def split(message: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    head, _, body = message.partition(b"\r\n\r\n")
    return header_fields(head + b"\r\n\r\n"), body


def links(page: str, base: str) -> Iterator[str]:
    for link in re.findall(r'(?:href|src)="([^"]+)"|<loc>([^<]+)</loc>', page):
        yield urljoin(base, link[0] or link[1])


def test_the_bytes_on_the_wire_are_those_it_names(site: DemoSite) -> None:
    for target in (
        "/",
        "/tides.png",
        "/almanac.html",
        "/guest-book.html",
        "/fog.html",
        "/torn-page.html",
    ):
        assert get(site, target) == site.wire(target)


def test_every_seed_points_at_the_site_and_has_a_response(site: DemoSite, tmp_path: Path) -> None:
    seeds = [json.loads(line) for line in site.seeds(tmp_path / "seeds.jsonl").read_text().splitlines()]
    assert len(seeds) >= 20
    assert all(seed["url"].startswith(site.url) for seed in seeds)
    assert {"/" + seed["url"].removeprefix(site.url) for seed in seeds} <= SiteResponses(
        site.url
    ).targets
    assert len({seed["url"] for seed in seeds}) == len(seeds)


def test_some_seeds_bring_what_their_producer_knows_and_some_do_not(
    site: DemoSite, tmp_path: Path
) -> None:
    seeds = [json.loads(line) for line in site.seeds(tmp_path / "seeds.jsonl").read_text().splitlines()]
    assert {seed.get("source") for seed in seeds} == {None, "sitemap", "link"}
    assert all(isinstance(seed["depth"], int) for seed in seeds if "source" in seed)


def test_every_link_leads_to_something(site: DemoSite) -> None:
    responses = SiteResponses(site.url)
    seen = 0
    for target in sorted(responses.targets):
        if not target.endswith((".html", "/", ".xml")) or target in {"/almanac.html", "/wreck.html"}:
            continue
        for link in links(site.wire(target).decode("latin-1"), urljoin(site.url, target)):
            if link.startswith(site.url):
                assert "/" + link.removeprefix(site.url) in responses.targets, (target, link)
                seen += 1
    assert seen > 100


def test_fields_are_repeated_and_cased_as_written(site: DemoSite) -> None:
    fields, _ = split(get(site, "/guest-book.html"))
    assert [name for name, _ in fields if name.lower() == b"set-cookie"] == [
        b"Set-Cookie",
        b"SET-cookie",
    ]
    assert [(name, value) for name, value in fields if name.lower() == b"x-signed-by"] == [
        (b"X-Signed-By", b"Ada"),
        (b"x-signed-by", b"Bo"),
    ]
    assert (b"X-Empty", b"") in fields


def test_the_old_address_leads_to_the_lamp_in_two_hops(site: DemoSite) -> None:
    url = site.url + "lamp-room"
    statuses: list[int] = []
    while not statuses or statuses[-1] in {301, 302}:
        response = get(site, urlsplit(url).path)
        statuses.append(status_of(response) or 0)
        location = dict(split(response)[0]).get(b"Location", b"").decode()
        url = urljoin(url, location)
    assert statuses == [301, 302, 200]
    assert url == site.url + "lamp.html"


@pytest.mark.parametrize(
    ("target", "status"), [("/lost-volume.html", 404), ("/storm.html", 500), ("/nowhere", 404)]
)
def test_errors_are_errors(site: DemoSite, target: str, status: int) -> None:
    assert status_of(get(site, target)) == status


def test_the_almanac_is_gzip_in_chunks(site: DemoSite) -> None:
    fields, body = split(get(site, "/almanac.html"))
    assert (b"Content-Encoding", b"gzip") in fields
    assert body.count(b"\r\n") > 4, "more than one chunk"
    assert b"almanac" in gzip.decompress(b"".join(unchunk([body])))


def test_the_visitor_writes_in_latin_1(site: DemoSite) -> None:
    fields, body = split(get(site, "/logs/1879-visitor.html"))
    assert dict(fields)[b"Content-Type"] == b"text/html; charset=iso-8859-1"
    assert "Août" in body.decode("latin-1")
    with pytest.raises(UnicodeDecodeError):
        body.decode()


@pytest.mark.parametrize("target", ["/", "/style.css", "/tides.png", "/sitemap.xml"])
def test_a_copy_that_still_holds_gets_304(site: DemoSite, target: str) -> None:
    fields = dict(split(get(site, target))[0])
    etag, modified = fields[b"ETag"].decode(), fields[b"Last-Modified"].decode()
    assert status_of(get(site, target, f"If-None-Match: {etag}")) == 304
    assert status_of(get(site, target, f"If-None-Match: W/{etag}")) == 304
    assert status_of(get(site, target, f"If-Modified-Since: {modified}")) == 304
    assert (
        status_of(get(site, target, 'If-None-Match: "other"', f"If-Modified-Since: {modified}")) == 200
    )
    assert status_of(get(site, target, "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT")) == 200
    assert status_of(get(site, target, "If-Modified-Since: yesterday")) == 200


def test_the_torn_page_ends_before_its_length(site: DemoSite) -> None:
    fields, body = split(get(site, "/torn-page.html"))
    assert 0 < len(body) < int(dict(fields)[b"Content-Length"])


def test_the_wreck_resets_the_connection(site: DemoSite) -> None:
    with pytest.raises(ConnectionResetError):
        get(site, "/wreck.html")


def test_it_notes_what_was_requested() -> None:
    with DemoSite() as site:
        get(site, "/lamp.html?once")
        get(site, "/nowhere")
        assert site.requests == ("/lamp.html?once", "/nowhere")


def test_nothing_is_left_when_it_stops() -> None:
    before = threading.active_count()
    with DemoSite() as site:
        address = urlsplit(site.url)
        kept = socket.create_connection((address.hostname or "", address.port or 0), timeout=10)
        kept.sendall(b"GET /lamp.svg HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.recv(12) == b"HTTP/1.1 200"
    with kept:
        assert b"</svg>" in b"".join(iter(lambda: kept.recv(65536), b"")), "an open connection is ended"
    # Fewer where a thread of an earlier test has come to its end meanwhile.
    assert threading.active_count() <= before
    with pytest.raises(ConnectionRefusedError):
        get(site, "/")


def test_it_is_for_this_machine_only() -> None:
    with pytest.raises(ValueError, match="loopback"):
        DemoSite(host="0.0.0.0")


def test_the_demo_is_served_where_it_was_unless_somebody_else_is_there() -> None:
    """A second `make crawl` goes on with the first one's pages."""
    with DemoSite() as first:
        port = int(first.url.rstrip("/").rpartition(":")[2])
        with site_at(port) as elsewhere:
            assert elsewhere.url != first.url
    with site_at(port) as again:
        assert again.url == first.url
