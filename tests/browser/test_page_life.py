"""How the life of a page ends, where its document is never shown."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from browser.browsing_site import needs_chromium, response
from loopback import RawServer
from playwright.async_api import async_playwright

from amicrawl.browser.page import PageLife
from amicrawl.browser.proxy import Pass

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = needs_chromium


class NoExchanges:
    """The requests of a page that are not looked at."""

    is_busy = False
    requests = 0

    def note_kind(self, method: str, url: str, kind: str) -> None:
        """Pass over it."""


def lived(respond: Callable[[bytes], bytes], *, within: float = 30, own: str = "") -> PageLife:
    """Have Chromium open a page of a server that responds by *respond*, with an *own* behaviour."""

    async def live(url: str) -> PageLife:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            context, until = await browser.new_context(), time.monotonic() + within
            life = PageLife(url, NoExchanges(), until=until, screenshot=False)  # type: ignore[arg-type]
            await life.live(context, Pass("name", "password"), own=own)
            await browser.close()
        return life

    with RawServer(respond) as server:
        return asyncio.run(live(f"{server.url}/"))


@pytest.mark.parametrize(
    "found",
    [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        response(b"<p>words", "text/html", "Content-Disposition: attachment"),
        response(b"<p>words", "text/html", "Location: /a", "Location: /b"),
        response(b"<p>words", "text/html", "X-Odd: a\0b"),
        response(b"<p>words", "text/html", *[f"X-{n}: {'x' * 200}" for n in range(1500)]),
    ],
    ids=["no content", "a download", "two places", "a NUL", "a head too long"],
)
def test_a_document_that_a_browser_does_not_show_is_said_so(found: bytes) -> None:
    life = lived(lambda _: found)
    assert (life.rendered.ended, life.has_crashed) == ("the browser does not show it", False)
    # What Chromium says in its place is no text of the page.
    assert (life.rendered.text, life.rendered.title) == ("", "")


def test_a_page_that_may_run_no_scripts_is_read_all_the_same() -> None:
    page = response(b"<title>t</title><p>words", "text/html", "Content-Security-Policy: sandbox")
    life = lived(lambda _: page, within=9)
    assert (life.rendered.title, life.rendered.text) == ("t", "words")
    assert life.rendered.ended == "its time was up"


def test_what_the_behaviour_of_an_operator_throws_is_said() -> None:
    life = lived(lambda _: response(b"<p>words"), own="missing()")
    assert life.rendered.ended == "quiet"
    assert any("AMICRAWL_BROWSER_BEHAVIOURS: ReferenceError" in each for each in life.rendered.faults)


@pytest.mark.parametrize("what", ["--type=renderer", "--user-data-dir", "run-driver"])
def test_a_page_whose_process_dies_before_the_document_is_there_has_crashed(what: str) -> None:
    """Its navigation fails first, as that of a document which is not shown."""

    def respond(_: bytes) -> bytes:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if what in " ".join(process.cmdline()):
                    process.kill()
        time.sleep(2)
        return response(b"<p>words")

    life = lived(respond)
    assert life.rendered.ended in {"it crashed", "its browser died"}
    assert life.has_crashed
