"""Tools that show an archive in a browser: pywb, and ReplayWeb.page from a WACZ package.

A page of the archive is opened alone, without a frame of the tool's own around it, so that its text and
its picture can be held against those of the live page.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import warm_processes
from loopback import PROJECT, RawServer, environment, free_port, page
from replay.test_replay import TOOLS, _run, _wait_for

REPLAYWEB = Path(__file__).parent / ".replayweb" / "package"
"""What `.ci/replayweb` fetches."""
WINDOW: Any = {"width": 800, "height": 600}
AROUND = """<!doctype html><style>body { margin: 0 }
iframe { border: 0; display: block; width: 800px; height: 600px }</style><iframe src="%s"></iframe>"""
"""What both tools expect around a page that they rewrite: a window with a frame."""
SCROLL = """async () => {
  for (let still = 0, height = 0; still < 4;) {
    scrollTo(0, document.body.scrollHeight);
    await new Promise((done) => setTimeout(done, 150));
    still = document.body.scrollHeight === height ? still + 1 : 0;
    height = document.body.scrollHeight;
  }
  scrollTo(0, 0);
}"""
DIFFERENT = """async ([one, other]) => {
  const pixels = [];
  for (const each of [one, other]) {
    const image = new Image();
    image.src = "data:image/png;base64," + each;
    await image.decode();
    const canvas = Object.assign(new OffscreenCanvas(image.width, image.height));
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    pixels.push(context.getImageData(0, 0, image.width, image.height).data);
  }
  const [a, b] = pixels;
  if (a.length !== b.length) return 1;
  let count = 0;
  for (let at = 0; at < a.length; at += 4) {
    if (a[at] !== b[at] || a[at + 1] !== b[at + 1] || a[at + 2] !== b[at + 2]) count += 1;
  }
  return count / (a.length / 4);
}"""
"""A function of two pictures (PNG, base64): the share of pixels that differ."""


class Shown:
    """What a browser shows of a page: its text and its picture."""

    def __init__(self, opened: Any, shown: Any, awaited: str) -> None:
        """Read the frame *shown* of the page *opened*, which is to show the text *awaited*."""
        opened.wait_for_load_state("networkidle", timeout=60_000)
        # What is loaded when it is seen.
        shown.evaluate(SCROLL)
        for _ in range(100):
            self.text = _text(shown)
            self.is_complete = awaited in self.text
            if self.is_complete:
                break
            opened.wait_for_timeout(100)
        opened.wait_for_timeout(300)
        self.text = _text(shown)
        self.picture = base64.b64encode(opened.screenshot()).decode()

    def differs(self, other: Shown, page: Any) -> float:
        """Return the share of the pixels that *other* has otherwise, computed in *page*."""
        return float(page.evaluate(DIFFERENT, [self.picture, other.picture]))


def _within(opened: Any, awaited: str) -> Shown:
    """Show the frame in *opened*, which is closed then."""
    try:
        (shown,) = opened.main_frame.child_frames
        return Shown(opened, shown, awaited)
    finally:
        opened.close()


def _text(frame: Any) -> str:
    return "\n".join([frame.inner_text("body"), *(_text(child) for child in frame.child_frames)])


def show(context: Any, url: str, awaited: str) -> Shown:
    """Show the page at *url* in *context*."""
    opened = context.new_page()
    try:
        opened.goto(url, timeout=120_000)
        return Shown(opened, opened.main_frame, awaited)
    finally:
        opened.close()


class Pywb:
    """pywb, in two ways: with addresses and scripts rewritten, and as a proxy, which changes neither."""

    def __init__(self, browser: Any, out: Path, home: Path) -> None:
        """Serve the WARC files of *out* from the empty directory *home*."""
        _run(home, "wb-manager", "init", "scripted")
        _run(home, "wb-manager", "add", "scripted", *map(str, out.glob("*.warc.gz")))
        # What a proxy shows has no frame for its banner.
        (home / "templates").mkdir(exist_ok=True)
        (home / "templates" / "banner.html").write_text("")
        self._browser, self._home, self._port = browser, home, free_port()

    def __enter__(self) -> Self:
        line = [str(TOOLS / "wayback"), "-b", "127.0.0.1", "-p", str(self._port)]
        self._process = subprocess.Popen(
            [*line, "--proxy", "scripted"],
            cwd=self._home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _wait_for(self._port)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def rewritten(self, url: str, awaited: str) -> Shown:
        """Show the archived page at *url* below an address of pywb's."""
        opened = self._browser.new_context(viewport=WINDOW).new_page()
        around = AROUND % f"/scripted/2026mp_/{url}"
        opened.route("**/around", lambda route: route.fulfill(body=around, content_type="text/html"))
        opened.goto(f"http://127.0.0.1:{self._port}/around", timeout=120_000)
        return _within(opened, awaited)

    def as_proxy(self, url: str, awaited: str) -> Shown:
        """Show the archived page at *url* in a browser whose proxy is pywb."""
        proxy = {"server": f"http://127.0.0.1:{self._port}", "bypass": "<-loopback>"}
        return show(self._browser.new_context(viewport=WINDOW, proxy=proxy), url, awaited)


def package(out: Path, path: Path) -> Path:
    """Pack the WARC files of *out* as the WACZ package *path*, and return that."""
    files = [str(each) for each in sorted(out.glob("*.warc.gz"))]
    warm_processes.run(
        [sys.executable, "-m", "amicrawl", "wacz", *files, "-o", str(path)],
        cwd=PROJECT, env=environment(), capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    return path


class ReplayWebPage:
    """ReplayWeb.page, served on the loopback with one package, which its service worker reads."""

    def __init__(self, browser: Any, wacz: Path) -> None:
        self._wacz = wacz.read_bytes()
        self.server = RawServer(self._respond)
        self._browser = browser
        self._context: Any = None
        self._collection = ""

    def __enter__(self) -> Self:
        self.server.__enter__()
        self._context = self._browser.new_context(viewport=WINDOW)
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()
        self.server.__exit__()

    def list_of_pages(self) -> Any:
        """Open the package as a reader does, and return the page with its list."""
        opened = self._context.new_page()
        opened.goto(f"{self.server.url}/?source=/site.wacz#view=pages", timeout=120_000)
        opened.get_by_text("Pages").first.wait_for(timeout=60_000)
        return opened

    def shown(self, url: str, awaited: str) -> Shown:
        """Show the archived page at *url*."""
        if not self._collection:
            opened = self.list_of_pages()
            found = opened.evaluate("() => fetch('/w/api/coll-index').then((got) => got.json())")
            self._collection = found["colls"][0]["id"]
            opened.close()
        opened = self._context.new_page()
        opened.goto(f"{self.server.url}/around?/w/{self._collection}/mp_/{url}", timeout=120_000)
        return _within(opened, awaited)

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ", 2)[1].decode()
        if path.startswith("/around?"):
            return page((AROUND % path.removeprefix("/around?")).encode(), "Content-Type: text/html")
        if path.startswith("/site.wacz"):
            return self._part(head)
        name = path.partition("?")[0].removeprefix("/") or "index.html"
        if name not in {"index.html", "ui.js", "sw.js"}:
            return page(b"none", status="404 Not Found")
        kind = "text/html" if name.endswith("html") else "text/javascript"
        return page((REPLAYWEB / name).read_bytes(), f"Content-Type: {kind}")

    def _part(self, head: bytes) -> bytes:
        size = len(self._wacz)
        found = re.search(rb"\r\n[Rr]ange: bytes=(\d*)-(\d*)", head)
        first, last = 0, size - 1
        if found and found[1]:
            first, last = int(found[1]), min(int(found[2] or last), last)
        elif found:
            first = max(0, size - int(found[2]))
        body = self._wacz[first : last + 1] if not head.startswith(b"HEAD") else b""
        status = "206 Partial Content" if found else "200 OK"
        fields = [f"Content-Length: {last + 1 - first}", "Accept-Ranges: bytes"]
        if found:
            fields.append(f"Content-Range: bytes {first}-{last}/{size}")
        lines = "".join(f"{field}\r\n" for field in fields)
        return f"HTTP/1.1 {status}\r\nContent-Type: application/zip\r\n{lines}\r\n".encode() + body
