"""`python -m benchmarks.browser`: what a page in a browser costs, beside Playwright alone.

A site whose pages are made by scripts is crawled on a loopback server by `amicrawl crawl --browser`, and
by Playwright without an archive (`peers/plain_browser.py`). Printed are processor time of all
processes per page, requests that the server saw per page, the share of exchanges whose record is what
the server sent, and memory per page that is open at once.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
from warcio.archiveiterator import ArchiveIterator

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = Path(__file__).parent / "peers" / "plain_browser.py"
BUNDLE = b"".join(b"var v%d = %d;\n" % (n, n) for n in range(9000))
APP = b"""fetch("/api" + location.pathname).then((got) => got.json()).then((data) => {
  document.title = data.title;
  document.body.innerHTML = data.rows.map((row) => `<p>${row}</p>`).join("")
    + data.links.map((to) => `<a href="${to}">${to}</a>`).join(" ") + '<img src="/logo.svg">';
});"""
SHELL = (
    b"<!doctype html><link rel=stylesheet href=/app.css><body>"
    b"<script src=/bundle.js></script><script src=/app.js></script>"
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
FILES = {
    "/bundle.js": ("text/javascript", BUNDLE), "/app.js": ("text/javascript", APP),
    "/app.css": ("text/css", b"p { margin: 1px }"), "/logo.svg": ("image/svg+xml", SVG),
}  # fmt: skip


class Site(ThreadingHTTPServer):
    """A site of *pages* pages; `requests` counts paths, `sent` has the digest of each response."""

    daemon_threads = True

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.requests: Counter[str] = Counter()
        self.sent: dict[str, str] = {}
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}/"

    def respond(self, path: str) -> bytes:
        """Return the response for *path*, head and all."""
        kind, body = FILES.get(path, ("text/html", SHELL))
        if path.startswith("/api/"):
            name = path.removeprefix("/api/") or "0"
            links = [f"/{n}" for n in range(1, self.pages)] if name == "0" else ["/"]
            rows = [f"Row {n} of page {name}" for n in range(60)]
            kind = "application/json"
            body = json.dumps({"title": name, "rows": rows, "links": links}).encode()
        packed = gzip.compress(body, 6, mtime=0)
        head = f"HTTP/1.1 200 OK\r\ncontent-TYPE: {kind}\r\nContent-Encoding: gzip\r\n"
        return f"{head}Content-Length: {len(packed)}\r\n\r\n".encode() + packed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        whole = self.server.respond(self.path)
        self.server.requests[self.path] += 1
        self.server.sent[self.path] = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        self.wfile.write(whole)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Cost(NamedTuple):
    """What a run took, all its processes together."""

    cpu_s: float
    wall_s: float
    memory: int
    """Bytes that were not shared with another process, at the most."""


def measured(command: Sequence[str], log: Path) -> Cost:
    """Run *command*, and return what it took."""
    began, memory = time.perf_counter(), 0
    with log.open("wb") as output:
        process = psutil.Popen(command, stdout=output, stderr=output)
        used: dict[int, float] = {}
        looks = 0
        while process.poll() is None:
            found, looks = 0, looks + 1
            with contextlib.suppress(psutil.Error):
                for each in [process, *process.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        times = each.cpu_times()
                        used[each.pid] = times.user + times.system
                        found += each.memory_full_info().uss if looks % 10 == 0 else 0
            memory = max(memory, found)
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(log.read_text()[-2000:])
    return Cost(sum(used.values()), time.perf_counter() - began, memory)


def exact(out: Path, site: Site) -> float:
    """Return the share of response records in *out* that are what *site* sent."""
    right = total = 0
    for path in out.glob("*.warc.gz"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, no_record_parse=True):
                if record.rec_type == "response":
                    target = "/" + record.rec_headers["WARC-Target-URI"].split("/", 3)[3]
                    block = record.content_stream().read()
                    total += 1
                    right += hashlib.sha1(block, usedforsecurity=False).hexdigest() == site.sent[target]
    return right / total


def crawl(site: Site, out: Path, *, pages: int) -> Cost:
    """Crawl *site* with amicrawl, *pages* at a time."""
    settings = {
        "BROWSER_PAGES": pages, "BROWSER_SANDBOX": "false", "DELAY": 0, "PER_HOST": 8,
        "ROBOTS": "ignore", "ALLOW_PRIVATE": "127.0.0.0/8",
        "BROWSER": "always", "BROWSER_PATH": _chromium(),
    }  # fmt: skip
    line = [sys.executable, "-m", "scrapy", "crawl", "site"]
    line += ["-a", f"url={site.url}", "-a", f"out={out}"]
    line += [f"-sAMICRAWL_{name}={value}" for name, value in settings.items()]
    return measured(line, out.with_suffix(".log"))


def _chromium() -> str:
    return shutil.which("chromium") or "chromium"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for number in range(given.rounds):
            for name in ("amicrawl", "playwright"):
                site, out = Site(given.pages), home / f"{name}-{number}"
                if name == "amicrawl":
                    cost = crawl(site, out, pages=2)
                else:
                    line = [sys.executable, str(PLAIN), site.url, _chromium()]
                    cost = measured(line, out.with_suffix(".log"))
                found: dict[str, Any] = {
                    "by": name, "cpu_s_per_page": round(cost.cpu_s / given.pages, 3),
                    "wall_s_per_page": round(cost.wall_s / given.pages, 3),
                    "requests_per_page": round(site.requests.total() / given.pages, 2),
                    "bundle_requests": site.requests["/bundle.js"], "memory_mib": cost.memory >> 20,
                }  # fmt: skip
                if name == "amicrawl":
                    found["exact"] = exact(out, site)
                print(json.dumps(found), flush=True)
                site.shutdown()
        memory = {}
        for pages in (1, 4):
            site = Site(given.pages)
            memory[pages] = crawl(site, home / f"memory-{pages}", pages=pages).memory
            site.shutdown()
        print(json.dumps({"memory_mib_per_open_page": (memory[4] - memory[1]) // 3 >> 20}))


if __name__ == "__main__":
    with contextlib.suppress(subprocess.SubprocessError):
        main()
