"""Fifty busy jobs in one browser: what the page holds is bounded, and it stays responsive."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from dashboard.browsing import open_page, visit
from dashboard.made_up_jobs import MadeUpJob, pages, store_of
from dashboard_serving import serve_in_thread

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from redis_server import RedisServer

JOBS = 50
LINES = 4
"""Lines a job tells at a time."""
ROUNDS = 50
MOST_LINES = 400
"""On the page while the log is held."""
MOST_NODES = 20_000
MOST_HEAP = 40_000_000


def measured(page: Page) -> dict[str, float]:
    """Return what the page holds once its garbage is gone."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def test_ten_thousand_lines_of_fifty_jobs_leave_a_small_page_that_responds(
    browser: Browser, redis_server: RedisServer
) -> None:
    store = store_of(redis_server.url)
    jobs = [MadeUpJob.queued(store, f"https://site-{n}.example.org/").start() for n in range(JOBS)]

    def tell() -> None:
        for number in range(ROUNDS):
            for job in jobs:
                job.tell(pages(job, number * LINES, LINES))
                job.count(items_downloaded=number * LINES, items_queued=number * LINES + 7)
            time.sleep(0.01)

    try:
        with serve_in_thread(redis_server.url) as dashboard, open_page(browser) as page:
            visit(page, dashboard.url)
            page.locator("#jobs tr").nth(JOBS - 1).wait_for()
            before = measured(page)
            telling = threading.Thread(target=tell)
            telling.start()
            page.locator("#log li").nth(50).wait_for()
            # It responds while lines rush past: a filter is typed, a job chosen, the log held.
            page.keyboard.press("f")
            page.keyboard.type("site-7\\.")
            page.locator("#log li", has_text="site-8.").first.wait_for(state="detached")
            page.locator("#log-filter").fill("")
            page.keyboard.press("Escape")
            telling.join()
            page.keyboard.press("p")
            page.locator("#log-held").wait_for()
            after = measured(page)
            assert page.locator("#log li").count() <= MOST_LINES
    finally:
        store.close()
    assert after["Nodes"] < MOST_NODES, (before, after)
    assert after["JSHeapUsedSize"] < MOST_HEAP, (before, after)
