"""Draw pictures of a site made by scripts into a directory: the site as `amicrawl replay` shows it.

Its archive is made without a browser, and with one.

    PYTHONPATH=tests python tests/replay_pictures.py docs/screenshots

The site is made up and served on this machine; it has ended when its archive is shown. Needs Chromium,
playwright, and pywb (`make pictures` sets it up).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from browser.browsing_site import path_of
from dashboard.browsing import chromium
from dashboard.screenshots import small_png
from loopback import RawServer, free_port, page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WAYBACK = Path(__file__).parent / "replay" / ".venv" / "bin" / "wayback"
LIGHTS = (
    ("Saltby Head", 1791, "#2a6f97", 34),
    ("Morrow Point", 1823, "#bc4749", 52),
    ("The Long Mole", 1840, "#386641", 18),
    ("Gannet Rock", 1858, "#e09f3e", 61),
    ("Old Ferry", 1877, "#5f0f40", 12),
    ("Cape Lantern", 1902, "#0f4c5c", 47),
)
SHELL = (
    b"<!doctype html><html lang=en><title>Lights of the coast</title>"
    b"<link rel=stylesheet href=/look.css><body><div id=app></div>"
    b"<script src=/app.js></script>"
)
SCRIPT = b"""
(async () => {
const number = location.pathname.split("/light/")[1];
const lights = await (await fetch("/data/lights.json")).json();
const head = `<header><h1>Lights of the coast</h1>
  <p>${lights.length} lighthouses, their years and heights</p></header>`;
const card = (each, at) => `<a class=card href="/light/${at}"><img src="/drawn/${at}.svg" alt="">
  <h2>${each.name}</h2><p>lit in ${each.year}, ${each.metres} m</p></a>`;
const one = (each, at) => `<article>${card(each, at)}<p><a href="/">All lights</a></p></article>`;
document.getElementById("app").innerHTML = head +
  (number ? one(lights[number], number) : `<main>${lights.map(card).join("")}</main>`);
})();
"""
LOOK = b"""
body { margin: 0; font: 17px/1.4 Georgia, serif; color: #18242c; background: #f6f3ec }
header { background: #17323f; color: #fff; padding: 18px 32px } h1 { margin: 0; font-size: 30px }
header p { margin: 2px 0 0; color: #c9d7dd } main { display: grid; gap: 20px; padding: 24px 32px;
grid-template-columns: repeat(3, 1fr) } .card { background: #fff; color: inherit; text-decoration: none;
border: 1px solid #d9d2c3 } .card img { display: block; width: 100%; height: 150px; object-fit: cover }
h2 { margin: 10px 14px 0; font-size: 19px } .card p { margin: 0 14px 12px; color: #5a666d }
"""


def respond(head: bytes) -> bytes:
    """Return what the site sends: the same shell for each page, a script, data and pictures."""
    path = path_of(head)
    if path == "/app.js":
        return page(SCRIPT, "Content-Type: text/javascript")
    if path == "/look.css":
        return page(LOOK, "Content-Type: text/css")
    if path == "/data/lights.json":
        lights = [{"name": name, "year": year, "metres": high} for name, year, _, high in LIGHTS]
        return page(json.dumps(lights).encode(), "Content-Type: application/json")
    if path.startswith("/drawn/"):
        _, _, colour, high = LIGHTS[int(path[7:-4])]
        return page(_drawn(colour, high), "Content-Type: image/svg+xml")
    if path == "/" or path.startswith("/light/"):
        return page(SHELL, "Content-Type: text/html; charset=utf-8")
    return page(b"not here", "Content-Type: text/plain", status="404 Not Found")


def _drawn(colour: str, high: int) -> bytes:
    top, stripe = 118 - high, 118 - high // 2
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 150">
<rect width="240" height="150" fill="#cfe3ea"/><circle cx="190" cy="34" r="16" fill="#f7e3a1"/>
<path d="M0 118h240v32H0z" fill="{colour}" opacity=".35"/>
<path d="M70 126q40 -22 100 0z" fill="#6b705c"/>
<path d="M106 118L112 {top}h16l6 {high}z" fill="#fff" stroke="{colour}" stroke-width="3"/>
<path d="M109 {stripe}h22l2 12h-26z" fill="{colour}"/><path d="M109 {top}h22l-11 -16z" fill="{colour}"/>
<path d="M131 {top + 3}L240 {top - 18}v36z" fill="#fff3b0" opacity=".8"/></svg>""".encode()


def draw(directory: Path) -> None:
    """Crawl the site without and with a browser, and draw what the archives show."""
    with tempfile.TemporaryDirectory() as place:
        without, rendered = Path(place) / "without", Path(place) / "with"
        with RawServer(respond, keep_open=True) as server:
            url = f"http://127.0.0.1:{server.port}/"
            _crawl(url, without)
            _crawl(url, rendered, "--browser", "always")
        with chromium() as browser:
            for out, name in ((without, "replay-without"), (rendered, "replay")):
                _replay(browser, out, url, directory / f"{name}.png")


def _replay(browser: Browser, out: Path, url: str, picture: Path) -> None:
    """Draw the page at *url* as `amicrawl replay` shows it of the archive in *out*."""
    port = free_port()
    line = [sys.executable, "-m", "amicrawl", "replay", str(out), "--port", str(port)]
    process = subprocess.Popen([*line, "--wayback", str(WAYBACK)], start_new_session=True)
    try:
        _wait_for(port)
        _shoot(browser, f"http://localhost:{port}/crawl/{url}", picture, height=620)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)


def _shoot(browser: Browser, url: str, path: Path, *, height: int = 900) -> None:
    context = browser.new_context(viewport={"width": 1000, "height": height})
    shown, blank = context.new_page(), context.new_page()
    shown.goto(url)
    shown.wait_for_load_state("networkidle")
    shown.wait_for_timeout(1500)
    path.write_bytes(small_png(blank, shown.screenshot()))
    context.close()


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(port)


def _crawl(url: str, out: Path, *words: str) -> None:
    settings = ("AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "AMICRAWL_BROWSER_SANDBOX=false")
    given = [word for setting in settings for word in ("-s", setting)]
    _amicrawl("crawl", url, "-o", out, "--delay", "0", *words, *given)


def _amicrawl(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "amicrawl", *map(str, words)], check=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots"))
