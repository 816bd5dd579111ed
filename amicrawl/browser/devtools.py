"""Pages over the DevTools protocol, for what Playwright has no calls.

The page signs in to the proxy, its navigation is watched, and scripts of ours run in it: in a world of
their own, which what the page's scripts do to its window cannot reach.
"""

from __future__ import annotations

import asyncio
import contextlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Browser, CDPSession, Page

    from amicrawl.browser.proxy import Pass

STUCK = 5.0
"""Seconds within which a page has to evaluate the simplest expression."""


class Commands:
    """Sends commands over a *session* whose replies are of no interest."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, method: str, parameters: dict[str, Any]) -> None:
        """Send a command; what it is for may be over by then."""
        task = asyncio.ensure_future(self._sent(method, parameters))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sent(self, method: str, parameters: dict[str, Any]) -> None:
        with contextlib.suppress(Error):
            await self._session.send(method, parameters)


async def close_crashed_pages(browser: Browser) -> None:
    """Have each page of *browser* closed whose process dies from now on.

    Playwright does not notice that of a page which it does not listen to yet, and would wait for it.
    """
    session = await browser.new_browser_cdp_session()
    commands = Commands(session)
    session.on(
        "Target.targetCrashed",
        lambda event: commands.send("Target.closeTarget", {"targetId": event["targetId"]}),
    )
    # Of pages alone: to close a frame whose process died would close the page that it is in.
    await session.send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})


class SignedIn:
    """A page that is signed in to the proxy, and whose navigation is watched."""

    def __init__(self, session: CDPSession, frame: str, given: Pass) -> None:
        self.session = session
        self.frame = frame
        self._given = given
        self._may_go: Callable[[str], bool]
        self._commands = Commands(session)

    @classmethod
    async def to(cls, page: Page, given: Pass) -> SignedIn:
        """Sign *page* in by what it was *given*."""
        session = await page.context.new_cdp_session(page)
        tree: Any = await session.send("Page.getFrameTree")
        return cls(session, tree["frameTree"]["frame"]["id"], given)

    async def begin(
        self, may_go: Callable[[str], bool], opens: Callable[[str], None] = lambda _: None
    ) -> None:
        """Sign in to the proxy from now on; *may_go* says whether the window may be taken to a URL.

        Of requests, only those for documents are held up for it. *opens* is called with the URL of each
        window that a script or a link opens, which Chromium then does not do.
        """
        self._may_go = may_go
        self.session.on("Page.windowOpen", lambda event: opens(event["url"]))
        await self.session.send("Page.enable")
        self.session.on("Fetch.requestPaused", self._paused)
        self.session.on("Fetch.authRequired", self._challenged)
        patterns = [{"resourceType": "Document"}]
        await self.session.send("Fetch.enable", {"patterns": patterns, "handleAuthRequests": True})

    async def responds(self) -> bool:
        """Return whether the process of the page is there: it responds, or its scripts do not pause."""
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.session.send("Runtime.evaluate", {"expression": "1"}), STUCK)
        except Error:
            return False
        return True

    async def shows_own_words(self) -> bool:
        """Return whether Chromium shows words of its own: why it does not show the page."""
        tree: Any = await asyncio.wait_for(self.session.send("Page.getFrameTree"), STUCK)
        frame = tree["frameTree"]["frame"]
        return "unreachableUrl" in frame or frame["url"].startswith("chrome-error:")

    def _paused(self, event: Any) -> None:
        url, number = event["request"]["url"], {"requestId": event["requestId"]}
        # No document is a redirect: what redirects is Chromium, to https, for hosts on its list.
        is_new = event.get("frameId") == self.frame and not event.get("redirectedRequestId")
        if is_new and not self._may_go(url):
            self._commands.send("Fetch.failRequest", {**number, "errorReason": "Aborted"})
        else:
            self._commands.send("Fetch.continueRequest", number)

    def _challenged(self, event: Any) -> None:
        # A server that requests a password is not the proxy, and gets none.
        is_ours = event["authChallenge"].get("source") == "Proxy"
        credentials = (
            {
                "response": "ProvideCredentials",
                "username": self._given.name,
                "password": self._given.password,
            }
            if is_ours
            else {"response": "CancelAuth"}
        )
        self._commands.send(
            "Fetch.continueWithAuth",
            {"requestId": event["requestId"], "authChallengeResponse": credentials},
        )


class OwnWorld:
    """A world of scripts of our own in the document of a page: it shares the elements, and no names."""

    def __init__(self, session: CDPSession, context: int) -> None:
        self.session = session
        self._context = context

    @classmethod
    async def of(cls, signed: SignedIn) -> OwnWorld:
        """Return the world in the window of the page. TimeoutError if its scripts never pause."""
        made: Any = await asyncio.wait_for(
            signed.session.send(
                "Page.createIsolatedWorld", {"frameId": signed.frame, "worldName": "amicrawl"}
            ),
            STUCK,
        )
        world = cls(signed.session, made["executionContextId"])
        source = resources.files("amicrawl.browser").joinpath("behaviours.js").read_text()
        await world.evaluate(f"globalThis.behaviours = {source}; 0", within=STUCK)
        return world

    async def call(self, what: str, *, within: float) -> Any:
        """Return what one of the behaviours gives."""
        return await self.evaluate(f"behaviours.{what}", within=within)

    async def evaluate(
        self, expression: str, *, within: float, on_fault: Callable[[str], None] = lambda _: None
    ) -> Any:
        """Return the value of *expression*; None where it throws: *on_fault* is called with what.

        Raises TimeoutError and Error.
        """
        parameters = {
            "expression": expression,
            "contextId": self._context,
            "awaitPromise": True,
            "returnByValue": True,
        }
        found: Any = await asyncio.wait_for(self.session.send("Runtime.evaluate", parameters), within)
        if details := found.get("exceptionDetails"):
            said = details.get("exception", {}).get("description") or details["text"]
            on_fault(f"AMICRAWL_BROWSER_BEHAVIOURS: {said}")
        return found["result"].get("value")
