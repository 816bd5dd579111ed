"""Draw pictures of one crawl into a directory: while it runs (`watch`), and afterwards (`report`).

    PYTHONPATH=tests python tests/crawl_pictures.py docs/screenshots

The crawl is real, of seven made-up sites on this machine. Needs Chromium and playwright.
"""

from __future__ import annotations

import http.server
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.browsing import chromium, open_page, visit
from dashboard.screenshots import small_png

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTS = tuple(f"127.0.0.{number}" for number in range(2, 9))
SECONDS = 40
"""How long the crawl runs before it is drawn."""
SHOTS = (("watch", 1280, "light"), ("watch-dark", 1280, "dark"), ("watch-phone", 390, "light"))
PARTS = ("news", "people", "maps", "letters", "sound")


class Sites(http.server.BaseHTTPRequestHandler):
    """Sites of some thousand pages each; one host is slow, one is busy, one misses pages."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = int((self.headers["Host"] or "127.0.0.2").split(":")[0].rpartition(".")[2])
        found = re.search(r"p(\d+)", self.path)
        number = int(found[1]) if found else 0
        status, kind = 200, "text/html; charset=utf-8"
        links = "".join(
            f'<li><a href="/{PARTS[each % len(PARTS)]}/p{each}.html">{each}</a>'
            for each in range(4 * number + 1, 4 * number + 5)
        )
        body = f"<!doctype html><title>{number}</title><link rel=stylesheet href=/s.css><ul>{links}</ul>"
        if self.path == "/s.css":
            kind, body = "text/css", "body { font: 16px serif }"
        elif host == 4 and number % 9 == 8:
            status, body = 503, "busy"
        elif host in (5, 7) and number % 11 == 10:
            status, body = 404, "missing"
        time.sleep(0.9 if host == 6 else 0.03)
        content = (body + " " * (number * 137 % 9000)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def draw(directory: Path) -> None:
    """Crawl, and draw the crawl into *directory*."""
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Sites)  # 127.0.0.2 and so on
    threading.Thread(target=server.serve_forever, daemon=True).start()
    starts = [f"http://{host}:{server.server_address[1]}/" for host in HOSTS]
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "seven-sites"
        line = [sys.executable, "-m", "amicrawl", "crawl", *starts, "-o", out.name, "--watch"]
        settings = ["--delay", "0.4", "-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
        with subprocess.Popen(
            [*line, *settings], stderr=subprocess.PIPE, text=True, cwd=place
        ) as process:
            try:
                assert process.stderr is not None
                url = next(said.split()[-1] for said in process.stderr if said.startswith("watch "))
                time.sleep(SECONDS)
                _draw_watch(url, directory)
            finally:
                process.terminate()
        page = Path(place) / "report.html"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "amicrawl",
                "report",
                str(out),
                "-o",
                str(page),
                "--title",
                "Seven sites",
            ],
            check=True,
        )
        with chromium() as browser, open_page(browser) as shown:
            shown.goto(page.as_uri())
            tree = shown.locator("section, .card").filter(has_text="Where the responses are").last
            picture = tree.screenshot()
            _write(shown, directory / "report.png")
            (directory / "tree.png").write_bytes(small_png(shown, picture))
    server.shutdown()


def _draw_watch(url: str, directory: Path) -> None:
    with chromium() as browser:
        for name, width, scheme in SHOTS:
            with open_page(browser, width=width, scheme=scheme) as shown:
                visit(shown, url)
                time.sleep(3)
                _write(shown, directory / f"{name}.png")


def _write(shown: Page, path: Path) -> None:
    picture = shown.screenshot()
    # The policy of the page permits no reading of a picture.
    shown.goto("about:blank")
    path.write_bytes(small_png(shown, picture))


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots"))
