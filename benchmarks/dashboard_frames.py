"""Frames of the dashboard: the time between two of them while hundreds of jobs run, in Chromium.

The crawls of `benchmarks.dashboard_load` write log lines and figures, `amicrawl dashboard` serves them,
and a headless browser of 1440 x 900 shows the page of all jobs. What is measured: milliseconds between
two frames of the page (`requestAnimationFrame`), and the processor time of each task of its main thread;
first while nothing is touched, then while jobs are sorted, searched and turned over beside two logs.

    python -m benchmarks.dashboard_frames --seconds 60
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.jobs.submission import Submission, submit
from benchmarks.dashboard_load import dashboard, redis_server, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_FRAMES = """() => {
  window.gaps = [];
  let before = performance.now();
  const look = (now) => { window.gaps.push(now - before); before = now; requestAnimationFrame(look); };
  requestAnimationFrame(look);
}"""
_WARM_UP = 10


def timed(page: Page, act: Any) -> dict[str, Any]:
    """Return the frames of *page* while *act* goes on."""
    page.evaluate("window.gaps.length = 0")
    act()
    gaps = sorted(page.evaluate("window.gaps"))
    return {
        "frames": len(gaps),
        "frame_median_ms": round(gaps[len(gaps) // 2], 1),
        "frame_99_ms": round(gaps[len(gaps) * 99 // 100], 1),
        "frame_longest_ms": round(gaps[-1], 1),
        "frames_above_100_ms": sum(gap > 100 for gap in gaps),
    }


def traced(browser: Browser, page: Page, act: Any) -> dict[str, Any]:
    """Return the longest task of *page* while *act* goes on, which tracing makes slower."""
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    act()
    return {"task_longest_ms": max(main_thread_tasks(json.loads(browser.stop_tracing()))) / 1000}


def main_thread_tasks(trace: Any) -> list[int]:
    """Return the processor time of each task of the page's main thread, in microseconds."""
    events = trace["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return [
        event["tdur"]
        for event in events
        if "tdur" in event and (event["pid"], event["tid"]) in main and event["name"].endswith("RunTask")
    ]


def use(page: Page, seconds: int) -> None:
    """Do for *seconds* what operators do."""
    page.locator("#jobs tr").first.focus()
    page.keyboard.press("l")
    page.keyboard.press("j")
    page.keyboard.press("l")
    page.keyboard.press("a")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for column in ("rate", "fetched", "url", "state"):
            page.locator(f'[data-sort="{column}"]').click()
            page.wait_for_timeout(700)
        page.keyboard.press("]")
        page.wait_for_timeout(700)
        page.keyboard.press("/")
        page.keyboard.type("site-1", delay=60)
        page.wait_for_timeout(700)
        page.locator("#job-search").fill("")
        page.keyboard.press("Escape")


def frames(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one browser."""
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    path = os.environ.get("AMICRAWL_TEST_CHROMIUM") or shutil.which("chromium")
    with redis_server() as (url, _), sync_playwright() as driver:
        writer = context.Process(
            target=write, args=(url, options.running, options.lines, ready, stop), daemon=True
        )
        writer.start()
        ready.wait(120)
        store = connect(RedisSettings(url=url))
        for number in range(options.running, options.jobs):
            submit(store, Submission(url=f"http://site-{number}.example/"), now=time.time())
        with dashboard(url) as (address, _):
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(address)
            page.locator("#job-range", has_text=f"of {options.jobs} jobs").wait_for()
            page.wait_for_timeout(_WARM_UP * 1000)
            page.evaluate(_FRAMES)
            load = os.getloadavg()[0]

            def look() -> None:
                page.wait_for_timeout(options.seconds * 1000)

            def work() -> None:
                use(page, options.seconds)

            said = {
                "jobs": options.jobs,
                "running": options.running,
                "lines_a_second": options.lines,
                "shown": timed(page, look) | traced(browser, page, look),
                "lines_a_second_shown": page.locator('[data-t="lines_per_s"]').inner_text(),
                "used": timed(page, work) | traced(browser, page, work),
                "nodes": page.evaluate("document.querySelectorAll('*').length"),
                "load": [round(load, 2), round(os.getloadavg()[0], 2)],
            }
            browser.close()
        stop.set()
        writer.join(30)
        store.close()
    return said


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--lines", type=int, default=400, help="log lines a second, of all jobs")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text = json.dumps(frames(options), indent=2)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
