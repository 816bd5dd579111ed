"""Draw docs/screenshots: every page of the dashboard over real jobs, on a desk and on a phone.

    PYTHONPATH=tests python tests/dashboard/screenshots.py [DIRECTORY]

Three pipelines on this machine crawl made-up sites for some minutes. Needs redis-server, Chromium and
playwright. The picture files have at most 256 colours, to be small.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dashboard.browsing import chromium, open_page
from dashboard_serving import serve_in_thread
from picture_sites import Manners, PictureSites
from redis_server import end, started_server

from amicrawl.disk import Disk
from amicrawl.fleet.dashboard.users import Role, Users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

PASSWORD = "only for a picture"
SECONDS = 330
"""How long the jobs run before they are drawn: their history has a bar a minute."""
PATIENCE = 600
RUNNING = {
    "www.coastal-archive.example": ("closes on 1 December", Manners(missing_every=13)),
    "library.example": ("requested by the map room", Manners(pause=0.2)),
    "forum.old-radios.example": ("goes read-only next week", Manners(missing_every=9, busy_every=40)),
    "stad.example": ("", Manners()),
    "observatory.example": ("plates of 1931 to 1958", Manners(pause=0.6)),
    "letters.example": ("", Manners(missing_every=30)),
    "trams.example": ("host moves", Manners(busy_every=25)),
}
WAITING = ("museum.example", "gazette.example", "harbour.example")
ENDED = {
    "seed-bank.example": Manners(pages=30),
    "wiki.amateur-press.example": Manners(pages=50, missing_every=12),
    "events.example": Manners(),
}
ABORTED = "events.example"
DRAWN = "forum.old-radios.example"
SHOTS = (
    *(("jobs", "/", 1280, "light"), ("jobs-dark", "/", 1280, "dark"), ("jobs-phone", "/", 390, "dark")),
    *(
        ("job", "JOB", 1280, "light"),
        ("job-dark", "JOB", 1280, "dark"),
        ("job-phone", "JOB", 390, "light"),
    ),
    *(("pending", "/pending", 1280, "light"), ("pipelines", "/pipelines", 1280, "light")),
    *(("finished", "/finished", 1280, "light"), ("submit", "/submit", 1280, "light")),
    *(("users", "/users", 1280, "light"), ("login", "/login", 1280, "light")),
)
_PIXELS = """async (url) => {
  const picture = await createImageBitmap(await (await fetch(url)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const bytes = canvas.getImageData(0, 0, picture.width, picture.height).data;
  const parts = [];
  for (let at = 0; at < bytes.length; at += 32768) parts.push(bytes.subarray(at, at + 32768));
  const text = parts.map((part) => String.fromCharCode(...part)).join("");
  return [picture.width, picture.height, btoa(text)];
}"""


class Fleet:
    """Pipelines on this machine, and commands to them, over one Redis."""

    def __init__(self, redis: str, sites: PictureSites, data: Path) -> None:
        self._sites, self._data = sites, data
        self._environment = {**os.environ, "REDIS_URL": redis}
        self._pipelines: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, slots: int) -> None:
        """Start a pipeline."""
        line = ["pipeline", "--name", name, "--slots", str(slots), "--data", str(self._data)]
        line += ["--min-free", "0", *self._sites.settings]
        started = subprocess.Popen(
            [sys.executable, "-m", "amicrawl", *line],
            env=self._environment,
            stderr=subprocess.DEVNULL,
        )
        self._pipelines.append(started)

    def say(self, *words: str) -> str:
        """Run a command; return what it prints."""
        line = [sys.executable, "-m", "amicrawl", *words]
        return subprocess.run(
            line, env=self._environment, check=True, capture_output=True, text=True
        ).stdout

    def submit(self, name: str, *options: str, by: str = "mira") -> str:
        """Submit the site *name*; return the identifier of its job."""
        given = [self._sites.url(name), "--by", by, "--ignore", r"[?&](sort|order)=", *options]
        return self.say("job", "submit", *given).split()[0]

    def totals(self) -> dict[str, int]:
        """Return how many jobs there are of each state."""
        said: dict[str, int] = json.loads(self.say("job", "status", "--json"))
        return said

    def end(self) -> None:
        """End all of them at once."""
        for _ in range(2):
            for each in self._pipelines:
                each.terminate()
            time.sleep(1)
        for each in self._pipelines:
            each.wait(60)


@contextlib.contextmanager
def working_fleet(redis: str, data: Path) -> Iterator[str]:
    """Have jobs ended, running and waiting as long as the block lasts; give the job that is drawn."""
    manners = {name: of for name, (_, of) in RUNNING.items()} | ENDED
    with PictureSites(manners) as sites:
        fleet = Fleet(redis, sites, data)
        try:
            fleet.start("ams-1", 3)
            fleet.start("ams-2", 3)
            ended = {name: fleet.submit(name, by="jo") for name in ENDED}
            wait_until(lambda: fleet.totals()["completed"] == len(ENDED) - 1)
            fleet.say("job", "abort", ended[ABORTED])
            wait_until(lambda: fleet.totals()["aborted"] == 1)
            fleet.start("fra-big", 1)
            jobs = {
                name: fleet.submit(name, *(["--note", note] if note else []))
                for name, (note, _) in RUNNING.items()
            }
            wait_until(lambda: fleet.totals()["working"] == len(RUNNING))
            for name in WAITING:
                fleet.submit(name, by="hana")
            fleet.say("pipeline", "drain", "fra-big", "--finish")
            time.sleep(SECONDS)
            yield jobs[DRAWN]
        finally:
            fleet.end()


def wait_until(holds: Callable[[], bool]) -> None:
    """Return once *holds* does; TimeoutError where that takes too long."""
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("the jobs do not come to where they are to be drawn")
        time.sleep(1)


def distances(colours: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """Return how far each of *colours* is from each of *palette*, squared."""
    parts = [
        np.stack([some >> 16, some >> 8 & 255, some & 255], axis=-1).astype(np.int32)
        for some in (colours, palette)
    ]
    squares: np.ndarray = ((parts[0][:, None] - parts[1][None]) ** 2).sum(axis=-1)
    return squares


def fewer(colours: np.ndarray, indices: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a palette of 256 of *colours*, and *indices* into it instead of those into *colours*.

    The 160 that are painted most, and then those that would be changed most: a mark of a legend has
    fewer pixels than the edges of letters have in any of their greys.
    """
    kept = np.argsort(counts)[::-1][:160]
    for _ in range(6):
        lost = distances(colours, colours[kept]).min(axis=-1) * counts
        kept = np.union1d(kept, np.argsort(lost)[::-1][:16][np.sort(lost)[::-1][:16] > 0])
    return colours[kept], distances(colours, colours[kept]).argmin(axis=-1)[indices]


def small_png(page: Page, picture: bytes) -> bytes:
    """Return *picture* with at most 256 colours; the browser is what reads it."""
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    width, height, text = page.evaluate(_PIXELS, url)
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3]
    codes = (
        pixels[..., 0].astype(np.uint32) << 16 | pixels[..., 1].astype(np.uint32) << 8 | pixels[..., 2]
    )
    colours, indices, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colours, indices = fewer(colours, indices, counts)
    palette = b"".join(int(colour).to_bytes(3, "big") for colour in colours)
    lines = indices.reshape(height, width).astype(np.uint8)
    raw = b"".join(b"\0" + line.tobytes() for line in lines)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def shoot(browser: Browser, address: str, ident: str, out: Path) -> None:
    """Write one picture a page."""
    out.mkdir(parents=True, exist_ok=True)
    with open_page(browser) as blank:
        for name, path, width, scheme in SHOTS:
            with open_page(browser, width=width, scheme=scheme) as page:
                if name != "login":
                    page.goto(f"{address}/login")
                    page.get_by_label("Name").fill("mira")
                    page.get_by_label("Password").fill(PASSWORD)
                    page.get_by_role("button", name="Sign in").click()
                page.goto(address + path.replace("JOB", f"/jobs/{ident}"))
                page.locator("html[data-ready]").wait_for()
                if path in {"/", "JOB"}:
                    page.locator("#log li").nth(50).wait_for(state="attached")
                    page.wait_for_timeout(12_000 if path == "/" else 2000)
                picture = small_png(blank, page.screenshot())
                (out / f"{name}.png").write_bytes(picture)
                print(f"{out / name}.png: {len(picture):,} bytes")


def main() -> None:
    """Start everything, draw everything."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots")
    server = started_server()
    try:
        with tempfile.TemporaryDirectory() as private:
            users = Users(Path(private) / "users.json", disk=Disk())
            users.put("mira", role=Role.admin, password=PASSWORD)
            users.put("desk", role=Role.view, password=PASSWORD)
            users.put("bot", role=Role.operate, password=None)
            users.add_token("bot")
            data = Path(private) / "jobs"
            with (
                working_fleet(server.url, data) as ident,
                serve_in_thread(server.url, users=users.path, archives=data) as dashboard,
                chromium() as browser,
            ):
                shoot(browser, dashboard.url, ident, out)
    finally:
        end(server)


if __name__ == "__main__":
    main()
