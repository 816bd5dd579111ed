"""Sites made by scripts, archived in a browser, and shown by pywb after their server has ended.

The text is that of the live page, and less than a hundredth of the pixels differ.
"""

from __future__ import annotations

import base64
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from browser.browsing_site import crawl_pages, needs_chromium
from dashboard.browsing import chromium
from loopback import RawServer, environment, free_port
from replay.scripted_sites import SITES, respond
from replay.test_replay import TOOLS, _run, _wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(
        not (TOOLS / "wayback").exists(), reason="pywb is not installed: `make test` sets it up"
    ),
]
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

SCROLL = """async () => {
  for (let still = 0, height = 0; still < 4;) {
    scrollTo(0, document.body.scrollHeight);
    await new Promise((done) => setTimeout(done, 150));
    still = document.body.scrollHeight === height ? still + 1 : 0;
    height = document.body.scrollHeight;
  }
  scrollTo(0, 0);
}"""
NOT_BY_PYWB = {"/modules/", "/frame/"}
"""What pywb does not show: modules, and messages between frames; it rewrites both."""


class Shown:
    """What a browser shows of a page: its text and its picture."""

    def __init__(self, context: Any, url: str, awaited: str) -> None:
        page = context.new_page()
        page.goto(url, timeout=120_000)
        page.wait_for_load_state("networkidle", timeout=60_000)
        # What is loaded when it is seen.
        page.evaluate(SCROLL)
        frames = [frame.inner_text("body") for frame in page.frames]
        self.text = "\n".join(frames)
        self.is_complete = awaited in self.text
        self.picture = base64.b64encode(page.screenshot()).decode()
        page.close()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Shown, Shown, float]]]:
    """Each page live and replayed, and the share of pixels that differ."""
    home = tmp_path_factory.mktemp("scripted")
    with chromium() as browser, RawServer(respond) as server:
        done = crawl_pages(f"{server.url}/", home / "out", {"AMICRAWL_BROWSER_PAGES": "3"})
        assert done.returncode == 0, done.stderr
        live = {path: Shown(_context(browser), server.url + path, text) for path, text in SITES.items()}
        before = len(server.requests)
    _run(home, "wb-manager", "init", "scripted")
    _run(home, "wb-manager", "add", "scripted", *map(str, (home / "out").glob("*.warc.gz")))
    # The page alone, without a frame and a banner around it.
    (home / "config.yaml").write_text("framed_replay: false\n")
    (home / "templates").mkdir(exist_ok=True)
    (home / "templates" / "banner.html").write_text("")
    port = free_port()
    pywb = subprocess.Popen(
        [str(TOOLS / "wayback"), "-b", "127.0.0.1", "-p", str(port)],
        cwd=home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for(port)
        with chromium() as browser:
            archive = f"http://127.0.0.1:{port}/scripted/2026/{server.url}"
            found = {}
            comparing = browser.new_page()
            for path, text in SITES.items():
                replayed = Shown(_context(browser), archive + path, text)
                differs = comparing.evaluate(DIFFERENT, [live[path].picture, replayed.picture])
                found[path] = live[path], replayed, differs
            assert len(server.requests) == before
            yield found
    finally:
        pywb.kill()
        pywb.wait()


def _context(browser: Any) -> Any:
    return browser.new_context(viewport={"width": 800, "height": 600})


@pytest.mark.parametrize("path", [path for path in SITES if path not in NOT_BY_PYWB])
def test_a_site_made_by_scripts_is_replayed_as_it_was(
    shown: dict[str, tuple[Shown, Shown, float]], path: str
) -> None:
    live, replayed, differs = shown[path]
    assert live.is_complete, live.text
    assert replayed.text == live.text
    assert differs < 0.01
