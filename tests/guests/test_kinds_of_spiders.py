"""Spiders of every kind: same items, same requests in the same order, and every page in the archive."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest
from archive_reading import rows
from guests.guest_runs import Ran, run, target_of
from loopback import page
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "quotes": 9, "rules": 7, "sitemap": 3, "xml": 2, "csv": 2, "login": 2, "files": 8, "images": 1,
    "cached": 2, "throttled": 4, "filtered": 3, "same": 7, "raw": 2, "silent": 1, "obeying": 2,
}  # fmt: skip
"""Spiders of `spiders/kinds.py`, and how many items each scrapes."""
HOSTS = {name: f"127.0.0.{11 + number}" for number, name in enumerate(KINDS)}


def html(text: str) -> bytes:
    return page(text.encode(), "Content-Type: text/html")


def quotes(number: int) -> bytes:
    last = "" if number == 3 else f'<a class="next" href="/quotes/{number + 1}">next</a>'
    spans = "".join(f'<div class="quote"><span>{number}.{n}</span></div>' for n in range(2))
    return html(f'{spans}<a class="author" href="/author/{number}">by</a>{last}')


def author(number: int) -> bytes:
    return html(f"<h3>author {number}</h3>")


def tree(number: int) -> bytes:
    links = [f'<a href="/tree/{child}">x</a>' for child in (2 * number + 1, 2 * number + 2) if child < 7]
    return html("<html>" + "".join(links))


def image() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (3, 3), "blue").save(made, "PNG")
    return made.getvalue()


PICTURE = image()


class Server:
    """Responds to all of them; remembers who has logged in, and what failed once."""

    def __init__(self) -> None:
        self.failed = False

    def __call__(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        name, _, rest = path[1:].partition("/")
        host = head.partition(b"Host: ")[2].partition(b"\r")[0].decode()
        if name in ("quotes", "tree", "author"):
            return {"quotes": quotes, "tree": tree, "author": author}[name](int(rest))
        if path == "/robots.txt":
            allowed = "User-agent: *\nDisallow: /closed\n" if HOSTS["obeying"] in host else ""
            return page(f"{allowed}Sitemap: http://{host}/sitemap.xml\n".encode())
        if path == "/sitemap.xml":
            urls = "".join(f"<url><loc>http://{host}/page/{n}</loc></url>" for n in range(3))
            sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
            return page(sitemap.encode(), "Content-Type: text/xml")
        if path == "/feed.xml":
            feed = "<feed><entry><title>one</title></entry><entry><title>two</title></entry></feed>"
            return page(feed.encode(), "Content-Type: text/xml")
        if path == "/feed.csv":
            return page(b"name;size\none;1\ntwo;2\n", "Content-Type: text/csv")
        return self._of_a_session(head, path)

    def _of_a_session(self, head: bytes, path: str) -> bytes:
        if path == "/login" and head.startswith(b"POST"):
            return page(b"", "Location: /home", "Set-Cookie: session=in", status="302 Found")
        if path == "/login":
            return html('<form method="post" action="/login"><input name="token" value="t"></form>')
        if path in ("/home", "/private"):
            return html("<p>welcome</p>" if b"session=in" in head else "<p>who?</p>")
        if path.startswith("/missing"):
            return page(b"", status="404 Not Found")
        if path.startswith("/image"):
            return page(PICTURE, "Content-Type: image/png")
        if path == "/moved":
            return page(b"", "Location: /page", status="302 Found")
        if path == "/gzip":
            packed = gzip.compress(b"<p>packed</p>", mtime=0)
            return page(packed, "Content-Type: text/html", "Content-Encoding: gzip")
        if path == "/silent":
            return b""
        if path == "/unstable" and not self.failed:
            self.failed = True
            return page(b"", status="503 Service Unavailable")
        return html(f"<p>{path}</p>")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Ran]:
    """All spiders in one process, without the line and with it."""
    directory = tmp_path_factory.mktemp("kinds")
    plain = run("kinds.py", Server(), directory / "plain", has_line=False, command=[])
    archived = run("kinds.py", Server(), directory / "archived", has_line=True, command=[])
    assert (plain.returncode, archived.returncode) == (0, 0), archived.log
    return plain, archived


def items_of(ran: Ran, kind: str) -> list[str]:
    feed: Path = ran.archive.parent / f"{kind}.jsonl"
    found = [json.loads(line) for line in feed.read_text().splitlines()]
    for item in found:
        for file in item.get("files", []) + item.get("images", []):
            # Every run has its port, which is in the name of the file, too.
            file["url"], file["path"] = target_of(file["url"]), ""
        for name in ("file_urls", "image_urls"):
            item[name] = [target_of(url) for url in item.get(name, [])]
    return sorted(json.dumps(item, sort_keys=True) for item in found)


def requested_of(ran: Ran, kind: str) -> list[str]:
    host = f"Host: {HOSTS[kind]}:".encode()
    return [" ".join(head.decode("latin-1").split(" ")[:2]) for _, head in ran.arrivals if host in head]


@pytest.mark.parametrize("kind", KINDS)
def test_it_scrapes_and_requests_what_it_does_without_the_line(runs: tuple[Ran, Ran], kind: str) -> None:
    plain, archived = runs
    assert len(items_of(plain, kind)) == KINDS[kind], plain.log
    assert items_of(archived, kind) == items_of(plain, kind)
    assert requested_of(archived, kind) == requested_of(plain, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_response_that_it_saw_is_archived(runs: tuple[Ran, Ran], kind: str) -> None:
    archived = runs[1]
    kept = rows(archived.archive / kind)
    requested = [each.split(" ")[1] for each in requested_of(archived, kind)]
    assert sorted(target_of(row["url"]) for row in kept) == sorted(requested)
    for row in kept:
        assert bool(row["warc_file"]) == bool(row["status"]), row["url"]
