"""How Chromium is started: with nothing that a page does not need."""

import asyncio
import contextlib
import os
import shutil
import time

import psutil
import pytest
from browser.browsing_site import needs_chromium
from playwright.async_api import Browser, async_playwright

from amicrawl.browser.fields import OwnFields
from amicrawl.browser.page import PageLife
from amicrawl.browser.pool import FEATURES_OFF, BrowserPool
from amicrawl.browser.proxy import BrowserRequest, Pass, ProxyReply
from amicrawl.config import CrawlConfig
from amicrawl.errors import UsageError

pytestmark = needs_chromium


class NoExchanges:
    """The requests of a page that are not looked at."""

    is_busy = False
    requests = 0

    def note_kind(self, method: str, url: str, kind: str) -> None:
        """Pass over it."""


def new_pool(*, executable: str = "") -> BrowserPool:
    return BrowserPool(
        CrawlConfig.from_settings({"AMICRAWL_BROWSER_SANDBOX": "false"}),
        executable or str(shutil.which("chromium")),
        own=OwnFields("amicrawl"),
    )


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
        pool = new_pool()
        await pool.ready()
        try:
            assert pool._browser is not None
            return await targets(pool._browser)
        finally:
            await pool.close()

    assert "browser_ui" not in asyncio.run(opened())


@pytest.mark.parametrize("what", ["run-driver", "--user-data-dir"])
def test_a_browser_that_dies_while_it_starts_is_started_again(what: str) -> None:
    async def killed() -> None:
        while True:
            await asyncio.sleep(0.01)
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if what in " ".join(process.cmdline()):
                        process.kill()
                        return

    async def started() -> bool:
        pool = new_pool()
        killing = asyncio.ensure_future(killed())
        try:
            await pool.ready()
            assert killing.done()
            return pool.is_running
        finally:
            killing.cancel()
            await pool.close()

    assert asyncio.run(started())


def test_what_does_not_start_as_a_browser_is_said() -> None:
    async def started() -> None:
        pool = new_pool(executable="/bin/false")
        try:
            await pool.ready()
        finally:
            await pool.close()

    with pytest.raises(UsageError, match="/bin/false does not start as a browser"):
        asyncio.run(started())


def test_a_page_that_chromium_takes_from_http_to_https_by_itself_is_shown() -> None:
    async def respond(request: BrowserRequest) -> ProxyReply:
        body = f"<p>{request.url}".encode()
        return ProxyReply(200, [(b"Content-Type", b"text/html")], (body,), len(body))

    async def shown() -> tuple[str, str]:
        pool = new_pool()
        await pool.ready()
        given = pool.proxy.admit(respond)
        # All hosts below `dev` are on the list of Chromium.
        life = PageLife(
            "http://example.dev/",
            NoExchanges(),  # type: ignore[arg-type]
            until=time.monotonic() + 30,
            screenshot=False,
        )
        try:
            async with pool.context() as context:
                await life.live(context, given)
        finally:
            await pool.close()
        return life.rendered.ended, life.rendered.text

    assert asyncio.run(shown()) == ("quiet", "https://example.dev/")


def renderers() -> set[psutil.Process]:
    found = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "--type=renderer" in " ".join(process.cmdline()):
                found.add(process)
    return found


def test_a_page_whose_process_dies_before_the_page_is_open_has_crashed_at_once() -> None:
    """Playwright waits for ever if that happens before it listens: at one in three of these moments."""

    def kill_the_next(before: set[psutil.Process], until: float) -> None:
        while not (new := renderers() - before) and time.monotonic() < until:
            time.sleep(0.001)
        for process in new:
            process.kill()

    async def lived(pool: BrowserPool) -> PageLife:
        until = time.monotonic() + 9
        life = PageLife("http://a.test/", NoExchanges(), until=until, screenshot=False)  # type: ignore[arg-type]
        killing = asyncio.ensure_future(asyncio.to_thread(kill_the_next, renderers(), until))
        async with pool.context() as context:
            await life.live(context, Pass("name", "password"))
        await killing
        return life

    async def ends() -> set[tuple[str, bool]]:
        pool = new_pool()
        await pool.ready()
        try:
            lives = [await lived(pool) for _ in range(10)]
        finally:
            await pool.close()
        return {(life.rendered.ended, life.has_crashed) for life in lives}

    assert asyncio.run(ends()) == {("it crashed", True)}


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
