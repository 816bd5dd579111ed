"""What opening pages in Chromium costs without an archive: Playwright alone, two pages at a time.

Each page is opened in a context of its own until half a second passes without a request; its links, text
and picture are taken, as `amicrawl crawl --browser` does.
"""

from __future__ import annotations

import asyncio
import sys
from urllib.parse import urlsplit

from playwright.async_api import Browser, async_playwright

READ = """() => [[...document.querySelectorAll("a[href]")].map((each) => each.href.split("#")[0]),
  document.title, document.body.innerText]"""
PAGES = 2


async def crawl(start: str, chromium: str, *arguments: str) -> int:
    """Open all pages that *start* leads to on its host, and return how many there were.

    The browser *chromium* gets these further *arguments*.
    """
    seen, waiting = {start}, asyncio.Queue[str]()
    waiting.put_nowait(start)

    async def work(browser: Browser) -> None:
        while True:
            url = await waiting.get()
            context = await browser.new_context(viewport={"width": 1280, "height": 720})
            page = await context.new_page()
            await page.goto(url, wait_until="networkidle")
            links, _, _ = await page.evaluate(READ)
            await page.screenshot(type="jpeg", quality=80)
            await context.close()
            for link in links:
                if urlsplit(link).netloc == urlsplit(start).netloc and link not in seen:
                    seen.add(link)
                    waiting.put_nowait(link)
            waiting.task_done()

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, chromium_sandbox=False, args=["--disable-gpu", *arguments]
        )
        workers = [asyncio.ensure_future(work(browser)) for _ in range(PAGES)]
        await waiting.join()
        for worker in workers:
            worker.cancel()
        await browser.close()
    return len(seen)


if __name__ == "__main__":
    print(asyncio.run(crawl(*sys.argv[1:])))
