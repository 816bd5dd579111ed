"""The life of a page: opened, loaded, quiet, its behaviours, read, left.

    open      the context signs in to the proxy; windows, downloads, dialogs are refused
    load      until the event `load`, or a third of the time
    quiet     no request for half a second
    behave    each behaviour, and quiet after it
    read      links, text, picture

All of it is bounded by the time of the page.
"""

from __future__ import annotations

import asyncio
import base64
import time
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from amicrawl.browser.devtools import STUCK, OwnWorld, SignedIn
from amicrawl.browser.records import MOST_TEXT, Rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import BrowserContext, Dialog, Page, Request

    from amicrawl.browser.exchanges import PageExchanges
    from amicrawl.browser.proxy import Pass

_QUIET = 0.5
_RESTLESS = 10.0
"""Seconds for which the next step waits for a page to be quiet."""
_TICK = 0.05
_MOST_WENT_TO = 100
_BEAT, _STOOD_STILL = 0.25, 1.5
"""Seconds between two looks at whether the process runs; and by which one that stood still is late."""
_LATE = 1.0
"""Seconds by which a step may come too late to its end, out of those for reading the page."""
_MOST_LINKS = 20_000
_MOST_DIALOGS = 20
_MOST_WINDOWS = 100
"""Dialogs and windows after which a page is left: it would go on for all of its time."""
_STEPS = (
    ("lazy", 0.5),
    ("details", 0.5),
    ("media", 0.5),
    ("scroll", 10.0),
    ("more", 8.0),
    ("routes", 6.0),
)
"""Behaviours in their order, and the seconds of each."""


class PageLife:
    """One page, from its opening to the end; *exchanges* are its requests."""

    def __init__(
        self,
        url: str,
        exchanges: PageExchanges,
        *,
        until: float,
        screenshot: bool,
        killed_for: Callable[[], str] = lambda: "",
    ) -> None:
        """Live until the monotonic second *until*.

        *killed_for* returns why the process of a page was just killed; empty where it died by itself.
        """
        self._url = url
        self._exchanges = exchanges
        self._until = until
        self._screenshot = screenshot
        self._killed_for = killed_for
        now = time.monotonic()
        self._read_at = until - min(STUCK, (until - now) / 3)
        """When it is read at the latest."""
        self._is_quiet = False
        self._over = asyncio.Event()
        self._signed: SignedIn | None = None
        self._has_gone = False
        self._dialogs = self._windows = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.rendered = Rendered()
        self.has_crashed = False
        """Whether its process, or the browser, died by itself: trying again may help."""
        self.has_stood_still = False
        """Whether nothing ran here for a while, so that its limits of time say nothing of the page."""
        self._beat_at = now

    async def live(self, context: BrowserContext, given: Pass, *, own: str = "") -> None:
        """Live in *context*, signed in as *given*, with an *own* behaviour of the operator.

        Nothing is raised: what goes wrong is in `rendered`.
        """
        life = asyncio.ensure_future(self._lived(context, given, own))
        # What it fails by after its end is not reported.
        life.add_done_callback(lambda life: life.cancelled() or life.exception())
        over = asyncio.ensure_future(self._over.wait())
        self._tasks.add(asyncio.ensure_future(self._beats()))
        try:
            await asyncio.wait({life, over}, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
            if life.done() and (error := life.exception()) is not None:
                await self._failed(error)
            self._end("its time was up")
            self._beat()
        finally:
            for task in (life, over, *self._tasks):
                task.cancel()
            await asyncio.wait({life, over}, timeout=STUCK)

    async def _beats(self) -> None:
        """Notice when nothing runs: the process was stopped, or the machine paused."""
        while True:
            self._beat()
            await asyncio.sleep(_BEAT)

    def _beat(self) -> None:
        now = time.monotonic()
        self.has_stood_still = self.has_stood_still or now - self._beat_at > _STOOD_STILL
        self._beat_at = now

    def _end(self, why: str, *, has_crashed: bool = False) -> None:
        """Have the page left because of *why*; the first reason stands."""
        if not self._over.is_set():
            self.rendered.ended, self.has_crashed = why, has_crashed
            self._over.set()

    def died(self, what: str) -> None:
        """Have the page left: its process is gone, or its browser."""
        if reason := self._killed_for():
            self._end(reason)
        else:
            self._end(what, has_crashed=True)

    async def _failed(self, error: BaseException) -> None:
        """Say why its life ended by *error*, which is raised unless it is one of the browser."""
        self.rendered.note_fault(_first_line(error))
        if isinstance(error, TimeoutError):
            self._end("its scripts did not pause")
        elif isinstance(error, Error):
            await self._end_unless_died("it left its document")
        else:
            raise error

    async def _end_unless_died(self, why: str) -> None:
        """Have the page left because of *why*, an error of the browser; or since its process is gone.

        What dies fails each of its steps by an error of that step, a while before the event that says
        so. Only what lives can respond.
        """
        if not self._over.is_set() and (self._signed is None or not await self._signed.responds()):
            self.died("it crashed")
        self._end(why)

    def _left(self) -> float:
        return max(0.1, self._until - time.monotonic())

    async def _lived(self, context: BrowserContext, given: Pass, own: str) -> None:
        page = await context.new_page()
        self._watch(context, page)
        self._signed = signed = await SignedIn.to(page, given)
        await signed.begin(self._may_go, self._opens)
        patience = max(2.0, self._left() / 3)
        try:
            await page.goto(self._url, wait_until="load", timeout=patience * 1000)
        except Error as error:
            self.rendered.note_fault(_first_line(error))
            is_none = "Download is starting" in str(error) or "ERR_ABORTED" in str(error)
            if is_none or await signed.shows_own_words():
                await self._end_unless_died("the browser does not show it")
                return
        await self._quiet()
        world = await OwnWorld.of(signed)
        try:
            is_done = await self._behave(world, own)
        except (Error, TimeoutError):
            await self._read(world)
            raise
        await self._read(world)
        if is_done:
            self._end("quiet" if self._is_quiet else "restless")

    def _watch(self, context: BrowserContext, page: Page) -> None:
        rendered = self.rendered

        def popped_up(other: Page) -> None:
            # Chromium opens windows for readers alone; a page that gets one all the same loses it.
            if other is not page:
                self._do(other.close())

        def note_kind(request: Request) -> None:
            self._exchanges.note_kind(request.method, request.url, request.resource_type)

        def said(dialog: Dialog) -> None:
            self._dialogs += 1
            if self._dialogs == 1:
                rendered.note_refused(f"a dialog: {dialog.type}: {dialog.message[:200]}")
            if self._dialogs > _MOST_DIALOGS:
                self._end("it opened dialogs without end")
            else:
                self._do(dialog.dismiss())

        context.on("page", popped_up)
        context.on("request", note_kind)
        page.on("dialog", said)
        page.on("download", lambda download: rendered.note_refused(f"a download: {download.url}"))
        page.on("pageerror", lambda error: rendered.note_fault(str(error)))
        page.on("crash", lambda _: self.died("it crashed"))
        context.on("close", lambda _: self.died("its browser died"))

    def _do(self, awaitable: Any) -> None:
        async def done() -> None:
            try:
                await awaitable
            except Error:
                return

        task = asyncio.ensure_future(done())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _may_go(self, url: str) -> bool:
        """Let the window be taken to the page once; where else its scripts want to go is noted."""
        if not self._has_gone:
            self._has_gone = True
            return True
        self.rendered.note_refused(f"navigation: {url}")
        self._wanted(url)
        return False

    def _opens(self, url: str) -> None:
        """Note that its scripts, or a link, open a window."""
        self._windows += 1
        self.rendered.note_refused(f"a window: {url}")
        self._wanted(url)
        if self._windows > _MOST_WINDOWS:
            self._end("it opened windows without end")

    def _wanted(self, url: str) -> None:
        if len(self.rendered.went_to) < _MOST_WENT_TO:
            self.rendered.went_to.append(url)

    async def _quiet(self) -> None:
        """Wait until nothing that holds the page was under way for half a second, but not for ever."""
        since = time.monotonic()
        until = min(since + _RESTLESS, self._read_at)
        self._is_quiet = False
        while (now := time.monotonic()) < until:
            if now - since >= _QUIET:
                self._is_quiet = True
                return
            await asyncio.sleep(_TICK)
            if self._exchanges.is_busy:
                since = time.monotonic()

    async def _behave(self, world: OwnWorld, own: str) -> bool:
        """Run the behaviours; return whether there was time for the last."""
        for name, most in _STEPS:
            # What is left at the end is for reading the page.
            left = self._read_at - time.monotonic()
            seconds = min(most, left)
            if seconds <= 0:
                return False
            before = self._exchanges.requests
            try:
                within = min(seconds + STUCK, left + _LATE)
                await world.call(f"run({name!r}, {seconds * 1000:.0f})", within=within)
            except TimeoutError:
                # Where no scripts may run, no timer ends a step. TimeoutError if they never pause.
                await world.evaluate("0", within=STUCK)
            await asyncio.sleep(_TICK)
            if self._exchanges.requests > before:
                await self._quiet()
        if own:
            seconds = max(1.0, self._read_at - time.monotonic())
            await world.evaluate(own, within=seconds, on_fault=self.rendered.note_fault)
            await self._quiet()
        return True

    async def _read(self, world: OwnWorld) -> None:
        rendered = self.rendered
        links = await world.call(f"links({_MOST_LINKS})", within=STUCK)
        if isinstance(links, list):
            rendered.links = [(str(url), str(where)) for url, where in links]
        read = await world.call(f"text({MOST_TEXT})", within=STUCK)
        if isinstance(read, list) and len(read) == 2:
            rendered.title, rendered.text = str(read[0]), str(read[1])
        if self._screenshot:
            try:
                picture = await asyncio.wait_for(
                    world.session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 80}),
                    STUCK,
                )
            except TimeoutError:
                rendered.note_fault("Chromium did not make a picture.")
                return
            rendered.screenshot = base64.b64decode(picture["data"])


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]
