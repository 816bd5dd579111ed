"""The pool: Chromium, started, watched and replaced.

One browser has all pages, each in a context of its own: no cookie, cache or storage is shared. Chromium
is started with the proxy as the only way out; what it requests outside a page has no password there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

import psutil

from amicrawl.browser.authority import KeyOfProxy
from amicrawl.browser.proxy import BrowserProxy
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, BrowserContext, Playwright

    from amicrawl.browser.fields import OwnFields
    from amicrawl.browser.proxy import BrowserRequest, Fields
    from amicrawl.config import CrawlConfig

logger = logging.getLogger(__name__)

_PAGES_EACH = 500
"""Pages after which a browser is replaced, at the next moment without one."""
_PATIENCE = 30.0
"""Seconds that starting, opening and closing may take."""
_STARTS = 3
"""How often a browser is started that dies, or does not respond, before it is there."""
_WATCH = 1.0
"""Seconds between two looks at the memory of pages."""
_JUST = 3.0
"""Seconds within which the death of a page is that of a process which was killed."""
_OWN_MEMORY = 1 << 30
"""Bytes that the browser, and what drives it, may have for itself besides those of a page."""

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

FEATURES_OFF = (
    # What a window has above its page is drawn by two further renderers, for each page anew.
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "PreloadTopChromeWebUI"),
    # A process for the next page is started in advance, and every other one is of no use.
    "SpareRendererForSitePerProcess",
    # Those that Playwright turns off, since only the last flag of this name counts.
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *(
        "DestroyProfileOnBrowserClose",
        "HttpsFirstBalancedModeAutoEnable",
        "HttpsUpgrades",
        "LensOverlay",
    ),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding"),
    *("PreconnectToSearch", "TcpPortRandomizationWin", "ThirdPartyStoragePartitioning"),
    *("msEdgeUpdateLaunchServicesPreferredVersion", "msForceBrowserSignIn"),
)
"""Features of Chromium that it is started without."""


class BrowserDiedError(Exception):
    """The browser died before it had opened a page."""


class BrowserPool:
    """The browser of a crawl, and its proxy; started when the first page is opened."""

    def __init__(self, config: CrawlConfig, executable: str, *, own: OwnFields) -> None:
        """Start *executable* when it is needed, with the operator's *own* fields."""
        self.proxy: BrowserProxy
        self.fields: dict[str, Fields] = {}
        """What is sent when a page is opened, by scheme."""
        self._config = config
        self._executable = executable
        self._own = own
        self._user_agent = ""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._process: psutil.Process | None = None
        self._driver: psutil.Process | None = None
        self._killed: tuple[float, str] = (0.0, "")
        """When a process was killed last, and why."""
        self._authority: KeyOfProxy
        self._opened = 0
        self._live = 0
        self._starting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a browser that pages can be opened in."""
        processes = (self._process, self._driver)
        return (
            self._browser is not None
            and self._browser.is_connected()
            and all(each is None or _is_alive(each) for each in processes)
        )

    async def ready(self) -> None:
        """Have a browser that runs. Raises UsageError where it does not start, tried several times."""
        async with self._starting:
            for _ in range(_STARTS):
                try:
                    return await asyncio.wait_for(self._started(), 2 * _PATIENCE)
                except Exception as error:  # noqa: BLE001  # the driver has no class of its own for its end
                    fault = " ".join((str(error) or "It did not respond.").split())[:500]
                    logger.info("The browser did not start: %s", fault)
                    await self._end_driver()
            raise UsageError(
                f"{self._executable} does not start as a browser: {fault} Name another one with "
                "AMICRAWL_BROWSER_PATH."
            )

    async def _started(self) -> None:
        """Have a browser that runs, and know what it sends."""
        if self._driver is not None and not _is_alive(self._driver):
            await self._end_driver()
        if self._playwright is None:
            await self._begin()
        if self._browser is not None and self._opened >= _PAGES_EACH and not self._live:
            await self._end_browser()
        if not self.is_running:
            await self._start()
        if not self.fields:
            await self._learn()

    async def _begin(self) -> None:
        from playwright.async_api import async_playwright  # noqa: PLC0415  # takes a third of a second

        if self._watching is None:
            self._authority = KeyOfProxy()
            self.proxy = BrowserProxy(self._authority)
            await self.proxy.open()
            self._watching = asyncio.ensure_future(self._watch())
        before = _descendants()
        try:
            self._playwright = await async_playwright().start()
        finally:
            self._driver = _newest(before, "run-driver")

    async def _start(self) -> None:
        from amicrawl.browser.devtools import close_crashed_pages  # noqa: PLC0415  # imports Playwright

        assert self._playwright is not None
        before = _descendants()
        heap = max(64, self._config.browser_page_memory // 2 >> 20)
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=self._executable,
                # Windows that no reader opens are none that an archive shows.
                ignore_default_args=["--disable-popup-blocking"],
                chromium_sandbox=self._config.browser_sandbox,
                proxy={"server": f"http://127.0.0.1:{self.proxy.port}"},
                args=[
                    *_ARGUMENTS,
                    f"--disable-features={','.join(FEATURES_OFF)}",
                    f"--ignore-certificate-errors-spki-list={self._authority.key_hash}",
                    f"--js-flags=--max-old-space-size={heap}",
                ],
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=_PATIENCE * 1000,
            )
        finally:
            self._process = _newest(before, "--user-data-dir")
        await close_crashed_pages(self._browser)
        self._opened = 0
        self._user_agent = self._own.agent_of(self._browser.version)

    def as_sent(self, fields: Fields) -> Fields:
        """Return *fields*, as Chromium wrote them, as they go to a server."""
        return self._own.as_sent(fields, user_agent=self._user_agent)

    async def _learn(self) -> None:
        """Learn what Chromium sends when it opens a page, from itself: a host that is not there."""
        from amicrawl.browser.devtools import SignedIn  # noqa: PLC0415  # imports Playwright
        from amicrawl.browser.proxy import ProxyReply  # noqa: PLC0415

        for scheme in ("http", "https"):
            seen: list[BrowserRequest] = []

            async def note(request: BrowserRequest, seen: list[BrowserRequest] = seen) -> ProxyReply:
                seen.append(request)
                return ProxyReply(200, [(b"Content-Type", b"text/plain")])

            given = self.proxy.admit(note)
            try:
                async with self.context() as context:
                    page = await context.new_page()
                    await (await SignedIn.to(page, given)).begin(lambda _: True)
                    await page.goto(f"{scheme}://page.invalid/", timeout=_PATIENCE * 1000)
            finally:
                self.proxy.dismiss(given)
            sent = self.as_sent(seen[0].fields)
            self.fields[scheme] = [field for field in sent if field[0].lower() != b"host"]

    @contextlib.asynccontextmanager
    async def context(self) -> AsyncIterator[BrowserContext]:
        """Give a context for one page: a browser that was never anywhere. Raises BrowserDiedError."""
        self._opened += 1
        self._live += 1
        context: BrowserContext | None = None
        try:
            context = await self._new_context()
            yield context
        finally:
            self._live -= 1
            if context is not None:
                await self._close(context)

    async def _new_context(self) -> BrowserContext:
        from playwright.async_api import Error  # noqa: PLC0415

        assert self._browser is not None
        made = self._browser.new_context(
            proxy={"server": f"http://127.0.0.1:{self.proxy.port}", "bypass": "<-loopback>"},
            user_agent=self._user_agent,
            locale=self._own.language or None,
            viewport={"width": 1280, "height": 720},
            accept_downloads=False,
            permissions=[],
        )
        try:
            return await asyncio.wait_for(made, _PATIENCE)
        except (Error, TimeoutError) as error:
            self.kill()
            raise BrowserDiedError from error

    async def _close(self, context: BrowserContext) -> None:
        """Close *context*; a browser that cannot do so any more is ended with all its pages."""
        try:
            await asyncio.wait_for(asyncio.shield(_closed(context)), _PATIENCE / 3)
        except TimeoutError:
            logger.warning("Chromium did not close a page within %d s, and is replaced.", _PATIENCE // 3)
            self.kill()

    def kill(self) -> None:
        """End the browser at once; the next page gets another one."""
        _kill(self._process)

    def killed_for(self) -> str:
        """Return why a process of a page was killed a moment ago; empty where none was."""
        at, reason = self._killed
        return reason if time.monotonic() - at < _JUST else ""

    async def _end_browser(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            try:
                await asyncio.wait_for(browser.close(), _PATIENCE / 3)
            except Exception:  # noqa: BLE001  # whatever it says, it is to go
                self.kill()

    async def _end_driver(self) -> None:
        playwright, self._playwright = self._playwright, None
        driver, self._driver = self._driver, None
        await self._end_browser()
        if playwright is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(playwright.stop(), _PATIENCE / 3)
        # What did not come to a browser, or to an end, may have left processes.
        self.kill()
        _kill(driver)

    async def close(self) -> None:
        """End the browser and the proxy."""
        if self._watching is None:
            return
        self._watching.cancel()
        await self._end_driver()
        await self.proxy.close()

    async def _watch(self) -> None:
        """Kill processes of pages that have grown too large, and a browser that has."""
        most = self._config.browser_page_memory
        while True:
            await asyncio.sleep(_WATCH)
            if self._process is None or not self._live:
                continue
            found = await asyncio.to_thread(_large, self._process, self._driver, most)
            for process, size, is_page in found:
                if is_page:
                    self._killed = time.monotonic(), f"its process took more than {most:,} bytes"
                    logger.warning("A page took %s bytes, and was ended.", f"{size:,}")
                    _kill(process)
                else:
                    logger.warning("Chromium took %s bytes, and is replaced.", f"{size:,}")
                    self.kill()
                    _kill(process)


async def _closed(context: BrowserContext) -> None:
    # A context of a browser that is gone is closed.
    with contextlib.suppress(Exception):
        await context.close()


def _descendants() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _newest(before: set[int], mark: str) -> psutil.Process | None:
    """Return the topmost process that is not among those of *before* and has *mark* in its command."""
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.pid not in before and mark in " ".join(child.cmdline()):
                return child
    return None


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _kill(process: psutil.Process | None) -> None:
    """Kill *process* and all that it has started."""
    if process is not None:
        with contextlib.suppress(psutil.Error):
            for each in [*process.children(recursive=True), process]:
                with contextlib.suppress(psutil.Error):
                    each.kill()


def _large(
    browser: psutil.Process, driver: psutil.Process | None, most: int
) -> list[tuple[psutil.Process, int, bool]]:
    """Return the processes of *browser*, and *driver*, that are too large: bytes, and whether of a page.

    Those of pages may have *most* bytes each.
    """
    found: list[tuple[psutil.Process, int, bool]] = []
    with contextlib.suppress(psutil.Error):
        every = [browser, *browser.children(recursive=True), *([driver] if driver else [])]
        for each in every:
            with contextlib.suppress(psutil.Error):
                size = each.memory_info().rss
                if size > most:
                    is_page = "--type=renderer" in each.cmdline()
                    if is_page or size > most + _OWN_MEMORY:
                        found.append((each, size, is_page))
    return found
