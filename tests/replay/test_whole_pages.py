"""Pages with requisites of all kinds, crawled, and shown by Chromium from the archive as they were live.

Each page is fetched by the browser from its server, and then from pywb: both pictures are the same, and
what the live page requested is in the archive.
"""

from __future__ import annotations

import subprocess
import threading
import urllib.error
import urllib.request
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from dashboard.browsing import chromium
from loopback import RawServer, crawl_site, environment, free_port, page
from replay.test_replay import TOOLS, _run, _wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    not (TOOLS / "wayback").exists(), reason="pywb is not installed: `make test` sets it up"
)

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
    "rss": "application/rss+xml",
    "txt": "text/plain",
}


def color(value: str) -> str:
    """Return a picture of 60 pixels, all of one color."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60">'
        f'<rect width="60" height="60" fill="{value}"/></svg>'
    )


PAINT = "export function paint(value) { document.body.style.background = value; }"
BOX = "<p style='width: 60px; height: 60px'>box</p>"
PAGES = {
    # Live on `ON`; `OFF` stands for another host.
    "chain.html": f'<link rel=stylesheet href="OFF/css/a.css">{BOX}',
    "above.html": f'<link rel=stylesheet href="/above/u.css">{BOX}',
    "frame.html": '<iframe src="OFF/frame.html" width=200 height=120></iframe>',
    "frames.html": '<frameset cols="50%,50%"><frame src="OFF/frame.html"><frame src="left.html">'
    "<noframes><a href=old.html>old</a></noframes></frameset>",
    "object.html": '<object data="OFF/pic/o.svg" type="image/svg+xml"></object>',
    "module.html": '<body><script type=module src="OFF/js/app.js"></script>',
    "inline.html": '<body><script type=module>import {paint} from "./own.js"; paint("plum");</script>',
    "dynamic.html": '<body><script>import("./lazy.js")</script>',
    "map.html": '<script type=importmap>{"imports": {"painter": "./mapped.js"}}</script><body>'
    '<script type=module>import {paint} from "painter"; paint("peru");</script>',
    "worker.html": "<body><script src=js/start.js></script>",
    "preload.html": "<link rel=modulepreload href=preloaded.js><link rel=preload as=image "
    'imagesrcset="s1.svg 1x, s2.svg 2x"><body><script type=module src=preloaded.js></script>'
    '<img srcset="s1.svg 1x, s2.svg 2x">',
    "set.html": "<style>p { background: image-set('set1.svg' 1x, url(set2.svg) 2x) }</style>" + BOX,
    "srcdoc.html": "<iframe width=200 height=120 srcdoc='<img src=doc.svg>'></iframe>",
    "unseen.html": "<meta property=og:image content=OFF/og.svg><meta name=twitter:image content=tw.svg>"
    "<link rel=manifest href=m.webmanifest><a href=feed.rss>feed</a><a href=sitemap.txt>map</a>",
}
ON: dict[str, str] = {
    "index.html": "".join(f"<a href={name}>{name}</a> " for name in PAGES),
    **PAGES,
    "left.html": "<body style='background: url(left.svg)'>",
    "left.svg": color("olive"),
    "old.html": "for those without frames",
    "own.js": PAINT,
    "mapped.js": PAINT,
    "lazy.js": "const i = new Image(); i.src = new URL('lazy.svg', import.meta.url); "
    "document.body.append(i);",
    "lazy.svg": color("coral"),
    "js/start.js": "const w = new Worker('worker.js'); "
    "w.onmessage = told => document.body.style.background = told.data;",
    "worker.js": 'importScripts("part.js"); postMessage(told);',
    "part.js": 'var told = "gold";',
    "preloaded.js": 'document.body.style.background = "khaki";',
    "s1.svg": color("navy"),
    "s2.svg": color("red"),
    "set1.svg": color("teal"),
    "set2.svg": color("red"),
    "doc.svg": color("indigo"),
    "tw.svg": color("red"),
    "m.webmanifest": '{"icons": [{"src": "icon.svg"}]}',
    "icon.svg": color("red"),
    "feed.rss": "<rss xmlns:media='m'><channel><item>"
    "<link>item.html</link><enclosure url='OFF/cast.mp3'/>"
    "<media:content url='OFF/clip.mp4'/></item></channel></rss>",
    "item.html": "item",
    "blank.html": "",
    "sitemap.txt": "ON/site/from-lines.html\n",
    "from-lines.html": "lines",
}
OFF = {
    "css/a.css": "@import 'more/b.css'; body { background: url(../pic/a.svg) }",
    "css/more/b.css": "p { background: url(../../pic/b.svg) }",
    "pic/a.svg": color("silver"),
    "pic/b.svg": color("maroon"),
    "frame.html": "<link rel=stylesheet href=frame.css><p>in a frame</p>",
    "frame.css": "body { background: url(pic/f.svg) }",
    "pic/f.svg": color("pink"),
    "pic/o.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="60">'
    '<image href="q.svg" width="60" height="60"/><use href="s.svg#shape" x="60"/></svg>',
    "pic/q.svg": color("lime"),
    "pic/s.svg": color("blue").replace("<rect ", '<rect id="shape" '),
    "js/app.js": 'import {paint} from "./lib/paint.js"; paint("tan");',
    "js/lib/paint.js": 'export * from "../deep/paint.js";',
    "js/deep/paint.js": PAINT,
    "og.svg": color("red"),
    "cast.mp3": "sound",
    "clip.mp4": "film",
}
UNSEEN = [
    *("OFF/og.svg", "ON/site/tw.svg", "ON/site/icon.svg", "OFF/cast.mp3", "OFF/clip.mp4"),
    *("ON/site/old.html", "ON/site/from-lines.html", "ON/site/s2.svg", "ON/site/set2.svg"),
]
"""What no browser requests of its own, or only on other screens."""


class Site:
    """`ON` below /site/ of 127.0.0.1, `OFF` on 127.0.0.2."""

    def __init__(self) -> None:
        self.server = RawServer(self._respond, keep_open=True)
        self.is_live = True

    def names(self, text: str) -> str:
        """Return *text* with the addresses of both hosts put in."""
        off = self.server.url.replace("127.0.0.1", "127.0.0.2")
        return text.replace("OFF", off).replace("ON/", f"{self.server.url}/")

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode().partition("?")[0].removeprefix("/")
        if b"\r\nHost: 127.0.0.2" in head or b"\r\nhost: 127.0.0.2" in head:
            body = OFF.get(path)
        elif path == "above/u.css":
            body = "p { background: url(u.svg) }"
        elif path == "above/u.svg":
            body = color("green")
        else:
            body = ON.get(path.removeprefix("site/") or "index.html")
        if body is None:
            return page(b"none", status="404 Not Found")
        kind = TYPES.get(path.rpartition(".")[2], "text/html")
        return page(self.names(body).encode(), f"Content-Type: {kind}", "Access-Control-Allow-Origin: *")


class ArchiveProxy(BaseHTTPRequestHandler):
    """A proxy whose responses are the captures that pywb has, as they were: nothing is rewritten.

    What pywb rewrites is another question: scripts that are modules stop working on the way.
    """

    def __init__(self, archive: str, *given: Any) -> None:
        self.archive = archive
        super().__init__(*given)

    def do_GET(self) -> None:
        """Respond as the archive does."""
        try:
            found = urllib.request.urlopen(f"{self.archive}{self.path}", timeout=60)
        except urllib.error.HTTPError as error:
            found = error
        with found:
            body = found.read()
        self.send_response(found.status)
        for name in ("Content-Type", "Access-Control-Allow-Origin"):
            if name in found.headers:
                self.send_header(name, found.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Replay:
    """A crawl of the site, and a browser that has it live and from the archive."""

    def __init__(self, site: Site, browser: Any, *, replayed: str, proxy: str) -> None:
        self.site = site
        self._replayed = replayed
        size: Any = {"width": 300, "height": 200}
        self._failed: list[str] = []
        # A window each for all pages: to open one takes longer than to show a page.
        self._live = browser.new_context(viewport=size).new_page()
        self._archive = browser.new_context(
            viewport=size, proxy={"server": proxy, "bypass": "<-loopback>"}
        ).new_page()
        for opened in (self._live, self._archive):
            opened.on("response", self._note_failed)
        self.nothing = self.live(f"{site.server.url}/site/blank.html")

    def live(self, url: str) -> bytes:
        """Return the picture of the page at *url*."""
        return self._picture(self._live, url)

    def archived(self, url: str) -> bytes:
        """Return the picture of the page at *url* as the archive has it."""
        before = len(self.site.server.requests)
        picture = self._picture(self._archive, url)
        assert len(self.site.server.requests) == before
        return picture

    def status(self, url: str) -> int:
        """Return the status of the capture of *url*; 404 where there is none."""
        try:
            with urllib.request.urlopen(f"{self._replayed}{url}", timeout=60) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def _picture(self, opened: Any, url: str) -> bytes:
        self._failed.clear()
        opened.goto(url, timeout=120_000)
        opened.wait_for_load_state("networkidle", timeout=120_000)
        # A worker responds when it likes.
        opened.wait_for_timeout(300)
        picture = bytes(opened.screenshot())
        assert self._failed == []
        return picture

    def _note_failed(self, got: Any) -> None:
        if got.status >= 400 and not got.url.endswith("/favicon.ico"):
            self._failed.append(got.url)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    home = tmp_path_factory.mktemp("whole")
    site = Site()
    with site.server as server:
        done = crawl_site(f"{server.url}/site/", home / "out", settings={"AMICRAWL_DEDUP": "seed"})
        assert done.returncode == 0, done.stderr
        _run(home, "wb-manager", "init", "whole")
        _run(home, "wb-manager", "add", "whole", *map(str, (home / "out").glob("*.warc.gz")))
        port = free_port()
        line = [str(TOOLS / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
        pywb = subprocess.Popen(
            line, cwd=home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(port)
            replayed = f"http://127.0.0.1:{port}/whole/2026id_/"
            handler = partial(ArchiveProxy, replayed)
            with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy, chromium() as browser:
                threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
                address = f"http://127.0.0.1:{proxy.server_port}"
                yield Replay(site, browser, replayed=replayed, proxy=address)
                proxy.shutdown()
        finally:
            pywb.kill()
            pywb.wait()


@pytest.mark.parametrize("name", [name for name in PAGES if name != "unseen.html"])
def test_a_replayed_page_looks_as_it_did_live(replay: Replay, name: str) -> None:
    url = f"{replay.site.server.url}/site/{name}"
    live = replay.live(url)
    assert replay.archived(url) == live
    assert live != replay.nothing


@pytest.mark.parametrize("name", UNSEEN)
def test_what_a_page_names_for_others_is_in_the_archive(replay: Replay, name: str) -> None:
    assert replay.status(replay.site.names(name)) == 200
    assert replay.status(replay.site.names("ON/site/none")) == 404
