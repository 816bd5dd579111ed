"""The made-up site: what it says has to be found is what a plain walk over its links finds."""

from __future__ import annotations

import gzip
import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from benchmarks.follow import verdict
from benchmarks.site import OFF, OFF_SITE_REQUISITES, ON, Site
from benchmarks.site_traps import TRAPS

PROJECT = Path(__file__).parents[2]
PORT = 8080


class Tags(HTMLParser):
    """Links and requisites, by Python's own parser of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.found: list[str] = []
        self._in_text = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        # This parser takes what stands in a text field for tags; browsers do not.
        if tag == "textarea" or self._in_text:
            self._in_text = True
        elif tag == "base":
            self.base = self.base or given["href"]
        elif tag == "meta" and given.get("http-equiv") == "refresh":
            self.found.append(given["content"].partition("URL=")[2])
        elif tag == "link" and given["rel"] == "dns-prefetch":
            return
        elif tag != "form":
            self.found += [given[name] for name in ("href", "src") if name in given]
            self.found += [part.split()[0] for part in given.get("srcset", "").split(",") if part]

    def handle_endtag(self, tag: str) -> None:
        self._in_text = self._in_text and tag != "textarea"


def links(body: bytes, url: str, fields: dict[str, str]) -> list[str]:
    """Return what the page at *url* names, as absolute URLs without fragment."""
    kind, base = fields["content-type"].partition(";")[0], url
    found = re.findall(r"<([^>]+)>; ?rel", fields.get("link", ""))
    if "location" in fields:
        found.append(fields["location"])
    elif kind == "text/html":
        tags = Tags()
        tags.feed(body.decode())
        base, found = urljoin(url, tags.base), found + tags.found
    elif kind == "text/css":
        text = re.sub(r"/\*.*?\*/", "", body.decode(), flags=re.DOTALL)
        pairs = re.findall(r"""url\(\s*["']?([^"')\s]+)|@import\s+"([^"]+)""", text)
        found += [one or other for one, other in pairs]
    elif kind in ("application/xml", "application/rss+xml", "application/gzip"):
        text = (gzip.decompress(body) if kind.endswith("gzip") else body).decode()
        found += re.findall(r"<(?:loc|link)>([^<]+)<", text)
    elif url.endswith("/robots.txt"):
        found += re.findall(r"Sitemap: (\S+)", body.decode())
    absolute = [urljoin(base, link).partition("#")[0] for link in found]
    return [link for link in absolute if link.startswith("http")]


def split(response: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = response.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert len(body) == int(fields["content-length"])
    return int(first.split()[1]), fields, body


class Walk:
    """A walk over *site* from its start page that keeps out of traps and of what is forbidden."""

    def __init__(self, site: Site) -> None:
        self.requested: set[str] = set()
        self.kept_out: set[str] = set()
        self.off_site: set[str] = set()
        self.statuses: list[int] = []
        waiting = ["/", "/robots.txt"]
        while waiting:
            target = waiting.pop()
            if target in self.requested:
                continue
            self.requested.add(target)
            status, fields, body = split(site.respond(target.encode(), ON.encode()))
            self.statuses.append(status)
            for link in links(body, site.on + target, fields):
                if not link.startswith(f"{site.on}/"):
                    self.off_site.add(link)
                    continue
                path = link.removeprefix(site.on)
                kind = site.kind(path).partition(" ")[0]
                assert kind != "unknown", f"{target} names {path}"
                if kind == "truth":
                    waiting.append(path)
                else:
                    self.kept_out.add(site.kind(path))


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(300, port=PORT)


def test_a_plain_walk_finds_the_truth_and_nothing_else(site: Site) -> None:
    walk = Walk(site)
    assert walk.requested == site.truth
    assert all(site.in_scope(path) for path in walk.requested)
    # Comments, scripts and texts name more; of what is forbidden, this alone is linked.
    assert walk.kept_out == {f"trap {name}" for name in TRAPS.values()} | {"forbidden private"}
    assert {f"{site.off}{path}" for path in OFF_SITE_REQUISITES[:2]} < walk.off_site
    assert f"{site.off}/landing.html" in walk.off_site
    assert set(walk.statuses) == {200, 301, 302, 303, 307, 308, 404}


def test_what_is_forbidden_is_there_to_be_mistaken_for_a_link(site: Site) -> None:
    pages = b"".join(
        site.respond(path, ON.encode()) for path in (b"/assets/site.css", b"/assets/site.js", b"/go/0")
    ) + b"".join(site.respond(path.encode(), ON.encode()) for path in sorted(site.truth)[-200:])
    names = set(re.findall(rb"/hidden/[a-z.-]+", pages))
    assert len(names) >= 6


def test_the_truth_does_not_depend_on_the_process() -> None:
    code = (
        "import hashlib; from benchmarks.site import Site; s = Site(100, port=1);"
        "print(hashlib.sha256(b''.join(s.respond(p.encode(), b'127.0.0.1') for p in sorted(s.truth)))"
        ".hexdigest())"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=PROJECT, check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1]


def test_pages_are_as_large_and_as_different_as_pages_are(site: Site) -> None:
    paths = [path.encode() for path in site.truth if re.fullmatch(r"/[a-z-]+/[a-z-]+-\d+\.html", path)]
    pages = [site.respond(path, ON.encode()) for path in paths]
    assert len(pages) == 299
    assert len({page[2000:4000] for page in pages}) == len(pages)
    assert all(8_000 < len(page) < 26_000 for page in pages)
    counts = [page.count(b"<a href") for page in pages]
    assert min(counts) >= 20
    assert max(counts) <= 70


@pytest.mark.parametrize("name", sorted(TRAPS.values()))
def test_a_trap_has_no_end(site: Site, name: str) -> None:
    waiting = [
        path.partition("#")[0]
        for number in range(9)
        for path in re.findall(r'<a href="([^"]+)"', site.respond(*_page(site, number)).decode())
        if site.kind(path.replace("&amp;", "&")) == f"trap {name}"
    ]
    seen: set[str] = set()
    while waiting and len(seen) < 500:
        target = waiting.pop()
        if target in seen:
            continue
        seen.add(target)
        status, fields, body = split(site.respond(target.encode(), ON.encode()))
        assert status == 200
        for link in links(body, site.on + target, fields):
            parts = urlsplit(link)
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            if site.kind(path) == f"trap {name}":
                waiting.append(path)
    assert len(seen) == 500


def _page(site: Site, number: int) -> tuple[bytes, bytes]:
    path = next(path for path in site.truth if number == 0 or path.endswith(f"-{number}.html"))
    return ("/" if number == 0 else path).encode(), ON.encode()


def test_equal_content_and_error_pages_are_equal_to_the_byte(site: Site) -> None:
    for trap, names in (("same", ("0", "1", "77")), ("lost", ("a", "b/c.html", "d?e=f"))):
        bodies = {split(site.respond(f"/{trap}/{name}".encode(), ON.encode()))[2] for name in names}
        assert len(bodies) == 1


def test_the_server_responds_on_both_addresses_and_logs_what_was_requested(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "benchmarks.site_server", "100", str(log)]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for address, target in ((ON, "/"), (OFF, "/cdn/logo.png"), (ON, "/gone/1.html")):
            with socket.create_connection((address, port), timeout=10) as connection:
                request = f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"
                connection.sendall(request.encode() * 2)
                assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 ")
        server.stdin.close()
        server.wait(60)
    lines = log.read_text().splitlines()
    assert lines[::2] == lines[1::2] == [f"{ON} /", f"{OFF} /cdn/logo.png", f"{ON} /gone/1.html"]


def test_a_crawl_that_missed_a_page_or_requested_too_much_is_reported(site: Site) -> None:
    right = [f"{ON} {path}" for path in sorted(site.truth)]
    right += [f"{OFF} {path}" for path in (*OFF_SITE_REQUISITES, "/robots.txt")]
    indexed = {site.on + path for path in site.truth}
    assert verdict(site, right, indexed)["is_right"]
    assert verdict(site, [*right, f"{ON} /same/7"], indexed)["is_right"]
    for log, rows, wrong in (
        (right[1:], indexed, "missing"),
        (right, indexed - {f"{site.on}/robots.txt"}, "not_in_index"),
        ([*right, f"{ON} /private/a.html"], indexed, "forbidden"),
        ([*right, f"{ON} /never/heard/of"], indexed, "forbidden"),
        ([*right, f"{OFF} /landing.html"], indexed, "forbidden"),
        (right[:-3], indexed, "requisites_missing"),
    ):
        said = verdict(site, log, rows)
        assert not said["is_right"]
        assert said[wrong]["count"] >= 1
