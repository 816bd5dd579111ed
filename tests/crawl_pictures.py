"""Draw pictures of a crawl into a directory: while it runs (`watch`), then `report` and `summary`.

    PYTHONPATH=tests python tests/crawl_pictures.py docs/screenshots

The crawl is real, of seven made-up sites on this machine. Needs Chromium and playwright.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.browsing import chromium, open_page, visit
from dashboard.screenshots import small_png
from picture_sites import Manners, PictureSites

if TYPE_CHECKING:
    from playwright.sync_api import Page

SITES = {
    "www.coastal-archive.example": Manners(),
    "library.example": Manners(),
    "forum.old-radios.example": Manners(busy_every=9),
    "stad.example": Manners(missing_every=11),
    "observatory.example": Manners(pause=0.9),
    "letters.example": Manners(missing_every=11),
    "trams.example": Manners(),
}
SECONDS = 40
"""How long the crawl runs before it is drawn."""
AMICRAWL = (sys.executable, "-m", "amicrawl")
SHOTS = (("watch", 1280, "light"), ("watch-dark", 1280, "dark"), ("watch-phone", 390, "light"))


def draw(directory: Path) -> None:
    """Crawl, and draw the crawl into *directory*."""
    with PictureSites(SITES) as sites, tempfile.TemporaryDirectory() as place:
        out = Path(place) / "seven-sites"
        starts = [sites.url(name) for name in SITES]
        line = [*AMICRAWL, "crawl", *starts, "-o", out.name, "--watch", "--delay", "0.4"]
        with subprocess.Popen(
            [*line, *sites.settings], stderr=subprocess.PIPE, text=True, cwd=place
        ) as process:
            try:
                assert process.stderr is not None
                url = next(said.split()[-1] for said in process.stderr if said.startswith("watch "))
                time.sleep(SECONDS)
                _draw_watch(url, directory)
            finally:
                process.terminate()
        _draw_afterwards(out, directory)


def _draw_afterwards(out: Path, directory: Path) -> None:
    report, summary = out.with_suffix(".html"), out.with_name("summary.html")
    collection = out.with_name("collection")
    files = sorted(map(str, out.glob("*.warc.gz")))
    for words in (
        ["report", str(out), "-o", str(report), "--title", "Seven sites"],
        ["collection", *files, "-o", str(collection)],
        ["summary", str(collection / "cdxj"), "--html", str(summary)],
    ):
        subprocess.run([*AMICRAWL, *words], check=True, stdout=subprocess.DEVNULL)
    with chromium() as browser:
        with open_page(browser) as shown:
            shown.goto(report.as_uri())
            tree = shown.locator("section").filter(has_text="Where the responses are").last
            picture = tree.screenshot()
            shown.evaluate("scrollTo(0, 0)")
            _write(shown, directory / "report.png")
            (directory / "tree.png").write_bytes(small_png(shown, picture))
        with open_page(browser) as shown:
            shown.goto(summary.as_uri())
            shown.set_viewport_size({"width": 1280, "height": 1500})
            _write(shown, directory / "summary.png")


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
