"""`python -m benchmarks.browser`: what a page in a browser costs, beside Playwright alone.

A site whose pages are made by scripts is crawled on a loopback server by `amicrawl crawl --browser`, by
brozzler with warcprox (`peers/brozzler`, in an environment of its own), and by Playwright without an
archive (`peers/plain_browser.py`): as it starts Chromium, and as we start it. Printed are processor
time of all processes per page, requests that the server saw per page, the share of exchanges whose
record is what the server sent, the least gap between two pages with a delay of a second, and memory per
page that is open at once.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import itertools
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

from amicrawl.browser.pool import FEATURES_OFF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PEERS = Path(__file__).parent / "peers"
PLAIN = PEERS / "plain_browser.py"
BROZZLER = PEERS / "brozzler"
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
    """A site of *pages* pages; `requests` counts paths, `sent` has the digest of each response.

    `arrivals` has the second and the path of each request.
    """

    daemon_threads = True

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.requests: Counter[str] = Counter()
        self.sent: dict[str, str] = {}
        self.arrivals: list[tuple[float, str]] = []
        super().__init__(("", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        # warcprox fetches nothing from 127.0.0.1.
        self.url = f"http://127.0.0.2:{self.server_port}/"

    def gap(self) -> float:
        """Return the least seconds between the last request of a page and the document of the next."""
        documents = {"/", *(f"/{number}" for number in range(self.pages))}
        pairs = itertools.pairwise(self.arrivals)
        return min(after[0] - before[0] for before, after in pairs if after[1] in documents)

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
        self.server.arrivals.append((time.perf_counter(), self.path))
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
                url = record.rec_headers.get("WARC-Target-URI", "")
                if record.rec_type == "response" and url.startswith(site.url):
                    target = "/" + url.removeprefix(site.url)
                    block = record.content_stream().read()
                    total += 1
                    right += hashlib.sha1(block, usedforsecurity=False).hexdigest() == site.sent[target]
    return right / total


def crawl(site: Site, out: Path, *, pages: int, delay: float = 0.0) -> Cost:
    """Crawl *site* with amicrawl, *pages* at a time, the host with a *delay* of so many seconds."""
    settings = {
        "BROWSER_PAGES": pages, "BROWSER_SANDBOX": "false", "DELAY": delay,
        "PER_HOST": 1 if delay else 8,
        "ROBOTS": "ignore", "ALLOW_PRIVATE": "127.0.0.0/8",
        "BROWSER": "always", "BROWSER_PATH": _chromium(),
    }  # fmt: skip
    line = [sys.executable, "-m", "scrapy", "crawl", "site"]
    line += ["-a", f"url={site.url}", "-a", f"out={out}"]
    line += [f"-sAMICRAWL_{name}={value}" for name, value in settings.items()]
    return measured(line, out.with_suffix(".log"))


def _chromium() -> str:
    return shutil.which("chromium") or "chromium"


def plain(site: Site, out: Path, *arguments: str) -> Cost:
    """Open the pages of *site* with Playwright, whose Chromium gets these *arguments*."""
    line = [sys.executable, str(PLAIN), site.url, _chromium(), *arguments]
    return measured(line, out.with_suffix(".log"))


def brozzle(site: Site, out: Path) -> Cost:
    """Archive the pages of *site* with brozzler, in an environment that is made where there is none."""
    python = BROZZLER / ".venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", BROZZLER / ".venv"], check=True)
        pins = ["--require-hashes", "--no-deps", "-r", str(BROZZLER / "requirements.txt")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pins], check=True)
    line = [str(python), str(BROZZLER / "crawl.py"), site.url, str(site.pages), _chromium(), str(out)]
    return measured(line, out.with_suffix(".log"))


def main() -> None:
    """Print a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--brozzler-pages", type=int, default=10, help="it takes some 20 s a page")
    given = parser.parse_args()
    same = f"--disable-features={','.join(FEATURES_OFF)}"
    ways: dict[str, Callable[[Site, Path], Cost]] = {
        "amicrawl": lambda site, out: crawl(site, out, pages=2),
        "playwright": plain,
        "playwright, our flags": lambda site, out: plain(site, out, same),
        "brozzler": brozzle,
    }
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for number, (name, way) in itertools.product(range(given.rounds), ways.items()):
            pages = given.brozzler_pages if name == "brozzler" else given.pages
            if not pages:
                continue
            site, out = Site(pages), home / f"{name.partition(',')[0]}-{len(name)}-{number}"
            print(json.dumps({"by": name, **found(site, out, way(site, out))}), flush=True)
            site.shutdown()
        site = Site(8)
        crawl(site, home / "gap", pages=2, delay=1.0)
        print(json.dumps({"delay_s": 1.0, "least_gap_s": round(site.gap(), 3)}), flush=True)
        site.shutdown()
        memory = {}
        for pages in (1, 4):
            site = Site(given.pages)
            memory[pages] = crawl(site, home / f"memory-{pages}", pages=pages).memory
            site.shutdown()
        print(json.dumps({"memory_mib_per_open_page": (memory[4] - memory[1]) // 3 >> 20}))


def found(site: Site, out: Path, cost: Cost) -> dict[str, Any]:
    """Return what is printed of a run that was crawled into *out*."""
    share = exact(out, site) if out.exists() else None
    return {
        "cpu_s_per_page": round(cost.cpu_s / site.pages, 3),
        "wall_s_per_page": round(cost.wall_s / site.pages, 3),
        "requests_per_page": round(site.requests.total() / site.pages, 2),
        "bundle_requests": site.requests["/bundle.js"], "memory_mib": cost.memory >> 20,
        **({} if share is None else {"exact": round(share, 4)}),
    }  # fmt: skip


if __name__ == "__main__":
    with contextlib.suppress(subprocess.SubprocessError):
        main()
