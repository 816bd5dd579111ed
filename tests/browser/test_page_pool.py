"""How Chromium is started: with nothing that a page does not need."""

import asyncio
import os
import shutil

import psutil
from browser.browsing_site import needs_chromium
from playwright.async_api import Browser, async_playwright

from amicrawl.browser.fields import OwnFields
from amicrawl.browser.pool import FEATURES_OFF, BrowserPool
from amicrawl.config import CrawlConfig

pytestmark = needs_chromium


def features_off() -> set[str]:
    """Return the features that the Chromium among the children of this process was started without."""
    lines = [process.cmdline() for process in psutil.Process().children(recursive=True)]
    (line,) = [line for line in lines if any(each.startswith("--user-data-dir") for each in line)][:1]
    # The last of several flags counts.
    return set([each for each in line if each.startswith("--disable-features=")][-1][19:].split(","))


async def targets(browser: Browser) -> list[str]:
    """Open a page in *browser*, and return the kinds of documents that it has then."""
    page = await (await browser.new_context()).new_page()
    await page.goto("data:text/html,<p>text")
    session = await browser.new_browser_cdp_session()
    found = await session.send("Target.getTargets", {"filter": [{}]})
    return [each["type"] for each in found["targetInfos"]]


def test_a_page_has_no_renderers_beside_it_that_draw_the_window() -> None:
    async def opened() -> list[str]:
        pool = BrowserPool(
            CrawlConfig.from_settings({"AMICRAWL_BROWSER_SANDBOX": "false"}),
            str(shutil.which("chromium")),
            own=OwnFields("amicrawl"),
        )
        await pool.ready()
        try:
            assert pool._browser is not None
            return await targets(pool._browser)
        finally:
            await pool.close()

    assert "browser_ui" not in asyncio.run(opened())


def test_all_that_playwright_turns_off_is_off() -> None:
    async def off() -> set[str]:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=shutil.which("chromium"), chromium_sandbox=os.geteuid() != 0
            )
            try:
                return features_off()
            finally:
                await browser.close()

    assert asyncio.run(off()) <= set(FEATURES_OFF)
