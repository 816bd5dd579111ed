"""Draw docs/screenshots: every page of the dashboard over made-up jobs, on a desk and on a phone.

    PYTHONPATH=tests python tests/dashboard/screenshots.py [DIRECTORY]

Needs redis-server, Chromium and playwright. The picture files have at most 256 colours, to be small.
"""

from __future__ import annotations

import base64
import itertools
import math
import struct
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dashboard.browsing import chromium, open_page
from dashboard.made_up_jobs import MadeUpJob, made_up_pipeline, pages, store_of
from dashboard_serving import serve_in_thread
from redis_server import end, started_server

from amicrawl.disk import Disk
from amicrawl.fleet.dashboard.users import Role, Users

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Browser, Page

    from amicrawl.fleet.jobs.connection import JobStore

PASSWORD = "only for a picture"
SITES = (
    ("https://www.coastal-archive.example/", "closes on 1 December", 48_211, 3.1),
    ("https://library.example.edu/maps/", "asked for by the map room", 131_804, 6.4),
    ("https://forum.old-radios.example/", "goes read-only next week", 309_522, 8.8),
    ("https://stad.example.nl/", "", 9_420, 2.2),
    ("https://observatory.example.ac.uk/~data/", "plates of 1931 to 1958", 2_077, 0.9),
    ("https://letters.example.fr/correspondance/", "", 760, 4.7),
)
WAITING = (
    ("https://museum.example.org/", "budget cut", "mira"),
    ("https://gazette.example.in/1962/", "", "jo"),
    ("https://trams.example.pt/", "host moves", "hana"),
)
ENDED = (
    ("https://seed-bank.example.no/", False, 18_400),
    ("https://wiki.amateur-press.example/", False, 77_013),
    ("https://events.example.org/calendar/", True, 310_877),
)
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


def report_pipelines(store: JobStore) -> list[str]:
    """Have two pipelines report now; a third is silent. Return the keys of all."""
    return [
        made_up_pipeline(store, "ams-1"),
        made_up_pipeline(store, "ams-2", mem_usage="83.4", load_average_1m="3.91"),
        made_up_pipeline(store, "fra-big", ago=900, disk_usage="93.1", disk_available="41000000000"),
    ]


def fill(store: JobStore) -> list[MadeUpJob]:
    """Write the made-up jobs; return those that run."""
    pipelines = report_pipelines(store)
    jobs = []
    for (url, note, done, rate), pipeline in zip(SITES, itertools.cycle(pipelines), strict=False):
        job = MadeUpJob.queued(store, url, settings={"note": note}, started_by="mira")
        jobs.append(job.start(pipeline, ago=done / rate))
        tell(job, done, rate)
    for url, note, nick in WAITING:
        MadeUpJob.queued(store, url, settings={"note": note}, started_by=nick)
    for number, (url, aborted, done) in enumerate(ENDED, 1):
        job = MadeUpJob.queued(store, url, started_by="jo").start(pipelines[0], ago=number * 9000)
        tell(job, done, 3.0)
        job.end(aborted=aborted, ago=number * 2400)
    return jobs


def tell(job: MadeUpJob, done: int, rate: float) -> None:
    """Tell of *job* what a crawl would that has fetched *done* pages."""
    shares = {"r2xx": 0.82, "r3xx": 0.1, "r4xx": 0.06, "r5xx": 0.012, "runk": 0.008}
    job.count(
        items_downloaded=done,
        items_queued=int(done * 1.7),
        bytes_downloaded=done * 41_300,
        error_count=int(done * 0.02),
        **{name: int(done * share) for name, share in shares.items()},
    )
    host = job.url.split("/")[2]
    now = time.time()
    paces = [
        rate * 60 * (1 + 0.35 * math.sin(minute / 19) + 0.06 * math.sin(minute**1.6))
        for minute in range(180)
    ]
    counts = [max(int(done - sum(paces[minute:])), 0) for minute in range(180)]
    history = [
        {
            "ts": now - 60 * (180 - minute),
            "downloaded": count,
            "bytes": count * 41_300,
            "errors": count // 50,
            "todo": int(done * (0.9 - 0.2 * minute / 180) + done / 9 * math.sin(minute / 30)),
        }
        for minute, count in enumerate(counts)
    ]
    busy = [(host, 3, done), (f"static.{host}", 1, done // 9), (f"media.{host}", 1, done // 31)]
    tell_rate(job, rate)
    job.facts(
        hosts=[{"host": name, "in_flight": n, "pages": p, "waiting": p // 3} for name, n, p in busy],
        ignores=[{"pattern": r"[?&](sort|order|dir)=", "source": "job", "hits": 4_211}],
        history=history,
        files=[
            {"name": f"ami-{n:05d}.warc.gz", "bytes": 1_073_000_000 - n * 3_100_000, "sealed": True}
            for n in range(3)
        ],
    )
    job.store.client.sadd(job.store.keys.ignores(job.ident), r"[?&](sort|order|dir)=")
    job.tell(pages(job, 0, 120))


def tell_rate(job: MadeUpJob, rate: float) -> None:
    """Tell how fast *job* is now."""
    rates = {"items": rate, "bytes": rate * 41_300}
    job.facts(now={"ts": time.time(), "state": "running", "rates": rates, "attempt": 1})


def keep_going(jobs: Sequence[MadeUpJob], stop: threading.Event) -> None:
    """Have *jobs* tell a little more twice a second, until *stop*."""
    for tick in itertools.count():
        if stop.wait(0.5):
            return
        report_pipelines(jobs[0].store)
        for number, job in enumerate(jobs):
            pace = SITES[number][3] * (1 + 0.4 * math.sin(tick / 5 + number))
            tell_rate(job, pace)
            done = job.figures["items_downloaded"] + max(int(pace / 2), 1)
            job.count(items_downloaded=done, items_queued=int(done * 1.7), r2xx=int(done * 0.82))
            job.tell(pages(job, 200 + tick * 5, 1 + number % 3))


def nearest(colours: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """Return for each of *colours* the place of the one in *palette* that is most like it."""
    parts = [
        np.stack([some >> 16, some >> 8 & 255, some & 255], axis=-1).astype(np.int32)
        for some in (colours, palette)
    ]
    return np.concatenate(
        [
            ((chunk[:, None] - parts[1][None]) ** 2).sum(axis=-1).argmin(axis=-1)
            for chunk in np.array_split(parts[0], max(len(colours) // 512, 1))
        ]
    )


def small_png(page: Page, picture: bytes) -> bytes:
    """Return *picture* with at most 256 colours; the browser is what reads it."""
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    width, height, text = page.evaluate(_PIXELS, url)
    pixels = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)[..., :3]
    codes = (
        pixels[..., 0].astype(np.uint32) << 16 | pixels[..., 1].astype(np.uint32) << 8 | pixels[..., 2]
    )
    colours, indices, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = np.sort(np.argsort(counts)[::-1][:256])
    indices = nearest(colours, colours[kept])[indices]
    colours = colours[kept]
    palette = b"".join(int(colour).to_bytes(3, "big") for colour in colours)
    lines = indices.reshape(height, width).astype(np.uint8)
    raw = b"".join(b"\0" + line.tobytes() for line in lines)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def shoot(browser: Browser, address: str, job: MadeUpJob, out: Path) -> None:
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
                page.goto(address + path.replace("JOB", f"/jobs/{job.ident}"))
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
    store = store_of(server.url)
    try:
        with tempfile.TemporaryDirectory() as private:
            users = Users(Path(private) / "users.json", disk=Disk())
            users.put("mira", role=Role.admin, password=PASSWORD)
            users.put("desk", role=Role.view, password=PASSWORD)
            users.put("bot", role=Role.operate, password=None)
            users.add_token("bot")
            jobs, stop = fill(store), threading.Event()
            going = threading.Thread(target=keep_going, args=(jobs, stop))
            going.start()
            try:
                with serve_in_thread(server.url, users=users.path) as dashboard, chromium() as browser:
                    shoot(browser, dashboard.url, jobs[2], out)
            finally:
                stop.set()
                going.join()
    finally:
        store.close()
        end(server)


if __name__ == "__main__":
    main()
