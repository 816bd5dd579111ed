"""The life of a page: opened, loaded, quiet, its behaviours, read, left.

    open      the context signs in to the proxy; windows, downloads, dialogs are refused
    load      until the event `load`, or a third of the time
    quiet     no request for half a second
    behave    each behaviour, and quiet after it
    read      links, text, picture

All of it is bounded by the time of the page. What its scripts do to its window cannot reach what is run
here: that has a world of its own in the document.
"""

from __future__ import annotations

import asyncio
import base64
import time
from importlib import resources
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from amicrawl.browser.records import MOST_TEXT, Rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import BrowserContext, CDPSession, Dialog, Page, Request

    from amicrawl.browser.exchanges import PageExchanges
    from amicrawl.browser.proxy import Pass

_QUIET = 0.5
_RESTLESS = 10.0
"""Seconds for which the next step waits for a page to be quiet."""
_TICK = 0.05
_STUCK = 5.0
"""Seconds within which a page has to answer the simplest question."""
_MOST_LINKS = 20_000
_MOST_DIALOGS = 20
_STEPS = (
    ("lazy", 0.5),
    ("details", 0.5),
    ("media", 0.5),
    ("scroll", 10.0),
    ("more", 8.0),
    ("routes", 6.0),
)
"""Behaviours in their order, and the seconds of each."""


class SignedIn:
    """A page that is signed in to the proxy, and whose navigation is watched."""

    def __init__(self, session: CDPSession, frame: str, given: Pass) -> None:
        self.session = session
        self.frame = frame
        self._given = given
        self._may_go: Callable[[str], bool]
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def to(cls, page: Page, given: Pass) -> SignedIn:
        """Sign *page* in by what it was *given*."""
        session = await page.context.new_cdp_session(page)
        tree: Any = await session.send("Page.getFrameTree")
        return cls(session, tree["frameTree"]["frame"]["id"], given)

    async def begin(self, may_go: Callable[[str], bool]) -> None:
        """Answer the proxy from now on; *may_go* says whether the window may be taken to a URL.

        Of requests, only those for documents are held up for it.
        """
        self._may_go = may_go
        self.session.on("Fetch.requestPaused", self._paused)
        self.session.on("Fetch.authRequired", self._challenged)
        patterns = [{"resourceType": "Document"}]
        await self.session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})

    def _paused(self, event: Any) -> None:
        url, number = event["request"]["url"], {"requestId": event["requestId"]}
        if event.get("frameId") == self.frame and not self._may_go(url):
            self._send("Fetch.failRequest", {**number, "errorReason": "Aborted"})
        else:
            self._send("Fetch.continueRequest", number)

    def _challenged(self, event: Any) -> None:
        # A server that asks for a password is not the proxy, and gets none.
        is_ours = event["authChallenge"].get("source") == "Proxy"
        answer = (
            {
                "response": "ProvideCredentials",
                "username": self._given.name,
                "password": self._given.password,
            }
            if is_ours
            else {"response": "CancelAuth"}
        )
        self._send(
            "Fetch.continueWithAuth",
            {"requestId": event["requestId"], "authChallengeResponse": answer},
        )

    def _send(self, method: str, parameters: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._sent(method, parameters))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sent(self, method: str, parameters: dict[str, Any]) -> None:
        try:
            await self.session.send(method, parameters)
        except Error:
            # The request, or the page, is over by now.
            return


class PageLife:
    """One page, from its opening to the end; *exchanges* are its requests."""

    def __init__(self, url: str, exchanges: PageExchanges, *, until: float, screenshot: bool) -> None:
        self._url = url
        self._exchanges = exchanges
        self._until = until
        self._screenshot = screenshot
        now = time.monotonic()
        self._read_at = until - min(_STUCK, (until - now) / 3)
        """When it is read at the latest."""
        self._is_quiet = False
        self._crashed = asyncio.Event()
        self._has_gone = False
        self._dialogs = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.rendered = Rendered()
        self.has_crashed = False
        """Whether the page, or its browser, died: trying again may help."""

    async def live(self, context: BrowserContext, given: Pass, *, own: str = "") -> None:
        """Live in *context*, signed in as *given*, with an *own* behaviour of the operator.

        Nothing is raised: what goes wrong is in `rendered`.
        """
        rendered = self.rendered
        life = asyncio.ensure_future(self._lived(context, given, own))
        crash = asyncio.ensure_future(self._crashed.wait())
        try:
            await asyncio.wait({life, crash}, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
            if life.done() and not life.cancelled() and (error := life.exception()) is not None:
                rendered.note_fault(_first_line(error))
                rendered.ended = rendered.ended or "its browser gave up"
                if not isinstance(error, (Error, TimeoutError)):
                    raise error
                if not rendered.text and "closed" in str(error):
                    self._crashed.set()
            elif self._crashed.is_set():
                rendered.ended = "it crashed"
            elif not life.done():
                rendered.ended = "time"
        finally:
            self.has_crashed = self._crashed.is_set() and not rendered.ended.startswith(
                ("quiet", "time")
            )
            for task in (life, crash, *self._tasks):
                task.cancel()
            await asyncio.wait({life, crash}, timeout=_STUCK)

    def _left(self) -> float:
        return max(0.1, self._until - time.monotonic())

    async def _lived(self, context: BrowserContext, given: Pass, own: str) -> None:
        page = await context.new_page()
        self._watch(context, page)
        signed = await SignedIn.to(page, given)
        await signed.begin(self._may_go)
        patience = max(2.0, self._left() / 3)
        try:
            await page.goto(self._url, wait_until="load", timeout=patience * 1000)
        except Error as error:
            self.rendered.note_fault(_first_line(error))
            if "ERR_ABORTED" in str(error) or page.is_closed():
                self.rendered.ended = self.rendered.ended or "the browser does not show it"
                return
        await self._quiet()
        world = await _World.of(signed)
        try:
            if await self._behave(world, own):
                self.rendered.ended = "quiet" if self._is_quiet else "restless"
        finally:
            await self._read(world)

    def _watch(self, context: BrowserContext, page: Page) -> None:
        rendered = self.rendered

        def popped_up(other: Page) -> None:
            if other is page:
                return
            rendered.note_refused(f"a window: {other.url}")
            self._do(other.close())

        def asked(request: Request) -> None:
            self._exchanges.note_kind(request.method, request.url, request.resource_type)

        def said(dialog: Dialog) -> None:
            self._dialogs += 1
            if self._dialogs == 1:
                rendered.note_refused(f"a dialog: {dialog.type}: {dialog.message[:200]}")
            if self._dialogs > _MOST_DIALOGS:
                # It would go on for all of its time.
                rendered.ended = "it opened dialogs without end"
                self._do(page.close())
            else:
                self._do(dialog.dismiss())

        context.on("page", popped_up)
        context.on("request", asked)
        page.on("dialog", said)
        page.on("download", lambda download: rendered.note_refused(f"a download: {download.url}"))
        page.on("pageerror", lambda error: rendered.note_fault(str(error)))
        page.on("crash", lambda _: self._crashed.set())
        context.on("close", lambda _: self._crashed.set())

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
        if len(self.rendered.went_to) < 100:
            self.rendered.went_to.append(url)
        return False

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

    async def _behave(self, world: _World, own: str) -> bool:
        """Run the behaviours; False where the time is nearly up before the last."""
        for name, most in _STEPS:
            # What is left at the end is for reading the page.
            seconds = min(most, self._read_at - time.monotonic())
            if seconds <= 0:
                self.rendered.ended = "time"
                return False
            before = self._exchanges.asked
            await world.call(f"run({name!r}, {seconds * 1000:.0f})", within=seconds + _STUCK)
            await asyncio.sleep(_TICK)
            if self._exchanges.asked > before:
                await self._quiet()
        if own:
            await world.evaluate(own, within=max(1.0, self._read_at - time.monotonic()))
            await self._quiet()
        return True

    async def _read(self, world: _World) -> None:
        rendered = self.rendered
        links = await world.call(f"links({_MOST_LINKS})", within=_STUCK)
        if isinstance(links, list):
            rendered.links = [(str(url), str(where)) for url, where in links]
        read = await world.call(f"text({MOST_TEXT})", within=_STUCK)
        if isinstance(read, list) and len(read) == 2:
            rendered.title, rendered.text = str(read[0]), str(read[1])
        if self._screenshot:
            picture = await asyncio.wait_for(
                world.session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 80}), _STUCK
            )
            rendered.screenshot = base64.b64decode(picture["data"])


class _World:
    """A world of scripts of our own in the document of a page: it shares the elements, and no names."""

    def __init__(self, session: CDPSession, context: int) -> None:
        self.session = session
        self._context = context

    @classmethod
    async def of(cls, signed: SignedIn) -> _World:
        """Return the world in the window of the page. TimeoutError if its scripts never pause."""
        made: Any = await asyncio.wait_for(
            signed.session.send(
                "Page.createIsolatedWorld", {"frameId": signed.frame, "worldName": "amicrawl"}
            ),
            _STUCK,
        )
        world = cls(signed.session, made["executionContextId"])
        source = resources.files("amicrawl.browser").joinpath("behaviours.js").read_text()
        await world.evaluate(f"globalThis.behaviours = {source}; 0", within=_STUCK)
        return world

    async def call(self, what: str, *, within: float) -> Any:
        """Return what one of the behaviours gives."""
        return await self.evaluate(f"behaviours.{what}", within=within)

    async def evaluate(self, expression: str, *, within: float) -> Any:
        """Return the value of *expression*; None where it throws. Raises TimeoutError and Error."""
        parameters = {
            "expression": expression,
            "contextId": self._context,
            "awaitPromise": True,
            "returnByValue": True,
        }
        found: Any = await asyncio.wait_for(self.session.send("Runtime.evaluate", parameters), within)
        return found["result"].get("value")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]
