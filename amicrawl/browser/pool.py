"""The pool: Chromium, started, watched and replaced.

One browser has all pages, each in a context of its own: no cookie, cache or storage is shared. Chromium
is started with the proxy as the only way out; what it asks for outside a page has no password there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

import psutil

from amicrawl.browser.authority import KeyOfProxy
from amicrawl.browser.proxy import BrowserProxy
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, BrowserContext, Playwright

    from amicrawl.browser.proxy import BrowserRequest, Fields
    from amicrawl.config import CrawlConfig

logger = logging.getLogger(__name__)

_PAGES_EACH = 500
"""Pages after which a browser is replaced, at the next moment without one."""
_PATIENCE = 30.0
"""Seconds that starting, opening and closing may take."""
_WATCH = 1.0
"""Seconds between two looks at the memory of pages."""

_ARGUMENTS = (
    "--proxy-bypass-list=<-loopback>",
    # Names are for the proxy to look up.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-client-side-phishing-detection",
    "--disable-breakpad",
    "--no-first-run",
    "--no-default-browser-check",
    "--metrics-recording-only",
    "--disable-notifications",
    "--deny-permission-prompts",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-gpu",
    "--force-color-profile=srgb",
)


class BrowserPool:
    """The browser of a crawl, and its proxy; started when the first page is opened."""

    def __init__(self, config: CrawlConfig, executable: str, *, user_agent: str) -> None:
        self.proxy: BrowserProxy
        self.fields: dict[str, Fields] = {}
        """What Chromium sends when it opens a page, by scheme."""
        self._config = config
        self._executable = executable
        self._crawler = user_agent
        self._user_agent = ""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._process: psutil.Process | None = None
        self._authority: KeyOfProxy
        self._opened = 0
        self._live = 0
        self._starting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Have a browser that runs. Raises UsageError where it does not start."""
        async with self._starting:
            if self._playwright is None:
                await self._begin()
            if self._browser is not None and self._opened >= _PAGES_EACH and not self._live:
                await self._end_browser()
            if self._browser is None or not self._browser.is_connected():
                await self._start()
            if not self.fields:
                await self._learn()

    async def _begin(self) -> None:
        from playwright.async_api import async_playwright  # noqa: PLC0415  # takes a third of a second

        self._authority = KeyOfProxy()
        self.proxy = BrowserProxy(self._authority)
        await self.proxy.open()
        self._playwright = await async_playwright().start()
        self._watching = asyncio.ensure_future(self._watch())

    async def _start(self) -> None:
        from playwright.async_api import Error  # noqa: PLC0415

        assert self._playwright is not None
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        heap = max(64, self._config.browser_page_memory // 2 >> 20)
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=self._executable,
                chromium_sandbox=self._config.browser_sandbox,
                proxy={"server": f"http://127.0.0.1:{self.proxy.port}"},
                args=[
                    *_ARGUMENTS,
                    f"--ignore-certificate-errors-spki-list={self._authority.key_hash}",
                    f"--js-flags=--max-old-space-size={heap}",
                ],
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=_PATIENCE * 1000,
            )
        except Error as error:
            sentence = " ".join(str(error).split())[:500]
            raise UsageError(
                f"{self._executable} does not start as a browser: {sentence} Name another one with "
                "AMICRAWL_BROWSER_PATH."
            ) from error
        self._opened = 0
        self._process = _new_browser(before)
        number = self._browser.version.partition(".")[0]
        chrome = (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
            f"Chrome/{number}.0.0.0 Safari/537.36"
        )
        # A server finds both: who crawls, and which browser it is.
        is_whole = self._crawler.startswith("Mozilla/")
        self._user_agent = self._crawler if is_whole else f"{chrome} {self._crawler}"

    async def _learn(self) -> None:
        """Learn what Chromium sends when it opens a page, from itself: a host that is not there."""
        from amicrawl.browser.page import SignedIn  # noqa: PLC0415  # imports Playwright
        from amicrawl.browser.proxy import ProxyReply  # noqa: PLC0415

        for scheme in ("http", "https"):
            seen: list[BrowserRequest] = []

            async def note(asked: BrowserRequest, seen: list[BrowserRequest] = seen) -> ProxyReply:
                seen.append(asked)
                return ProxyReply(200, [(b"Content-Type", b"text/plain")])

            given = self.proxy.admit(note)
            try:
                async with self.context() as context:
                    page = await context.new_page()
                    await (await SignedIn.to(page, given)).begin(lambda _: True)
                    await page.goto(f"{scheme}://page.invalid/", timeout=_PATIENCE * 1000)
            finally:
                self.proxy.dismiss(given)
            self.fields[scheme] = [
                (name, _readable(name, value)) for name, value in seen[0].fields
                if name.lower() != b"host"
            ]  # fmt: skip

    @contextlib.asynccontextmanager
    async def context(self) -> AsyncIterator[BrowserContext]:
        """Give a context for one page: a browser that has never been anywhere."""
        assert self._browser is not None
        self._opened += 1
        self._live += 1
        context: BrowserContext | None = None
        try:
            context = await asyncio.wait_for(
                self._browser.new_context(
                    proxy={"server": f"http://127.0.0.1:{self.proxy.port}", "bypass": "<-loopback>"},
                    user_agent=self._user_agent,
                    viewport={"width": 1280, "height": 720},
                    accept_downloads=False,
                    permissions=[],
                ),
                _PATIENCE,
            )
            yield context
        finally:
            self._live -= 1
            if context is not None:
                await self._close(context)

    async def _close(self, context: BrowserContext) -> None:
        """Close *context*; a browser that cannot do so any more is ended with all its pages."""
        try:
            await asyncio.wait_for(asyncio.shield(_closed(context)), _PATIENCE / 3)
        except TimeoutError:
            logger.warning("Chromium did not close a page within %d s, and is replaced.", _PATIENCE // 3)
            self.kill()

    def kill(self) -> None:
        """End the browser at once; the next page gets another one."""
        if self._process is not None:
            with contextlib.suppress(psutil.Error):
                for each in [*self._process.children(recursive=True), self._process]:
                    with contextlib.suppress(psutil.Error):
                        each.kill()

    async def _end_browser(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            try:
                await asyncio.wait_for(browser.close(), _PATIENCE / 3)
            except Exception:  # noqa: BLE001  # whatever it says, it is to go
                self.kill()

    async def close(self) -> None:
        """End the browser and the proxy."""
        if self._playwright is None:
            return
        if self._watching is not None:
            self._watching.cancel()
        await self._end_browser()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._playwright.stop(), _PATIENCE / 3)
        await self.proxy.close()

    async def _watch(self) -> None:
        """End processes of pages that have grown too large, which ends their pages."""
        while True:
            await asyncio.sleep(_WATCH)
            if self._process is None or not self._live:
                continue
            for each in await asyncio.to_thread(_large, self._process, self._config.browser_page_memory):
                logger.warning("A page took more than %s bytes, and was ended.", each)


def _readable(name: bytes, value: bytes) -> bytes:
    """Return *value*, of the field *name*, without the coding that replay tools cannot undo."""
    return value.replace(b", zstd", b"") if name.lower() == b"accept-encoding" else value


async def _closed(context: BrowserContext) -> None:
    # A context of a browser that is gone is closed.
    with contextlib.suppress(Exception):
        await context.close()


def _new_browser(before: set[int]) -> psutil.Process | None:
    """Return the topmost process of Chromium that is not among those of *before*."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.pid not in before and "--user-data-dir" in " ".join(child.cmdline()):
                return child
    return None


def _large(process: psutil.Process, most: int) -> list[int]:
    """Kill the renderers below *process* that have more than *most* bytes, and return what each had."""
    ended: list[int] = []
    with contextlib.suppress(psutil.Error):
        for each in process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                size = each.memory_info().rss
                if size > most and "--type=renderer" in each.cmdline():
                    each.kill()
                    ended.append(size)
    return ended
