"""A real, headless Chromium for tests of the pages; they are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.browser.pool import FEATURES_OFF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Dialog, Locator, Page

PATIENCE = 60_000
"""Milliseconds in which a page has to show what it is to show."""

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    f"--disable-features={','.join(FEATURES_OFF)}",
]
"""No sandbox, since tests run as root in containers; and no request leaves the machine."""


def chromium_path() -> str:
    """Return the browser of `AMICRAWL_TEST_CHROMIUM`, else one of the path; empty if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [os.environ.get("AMICRAWL_TEST_CHROMIUM"), *map(shutil.which, names)]
    return next((path for path in found if path), "")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; skips the test where playwright or a browser is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium_path()
    if not path:
        pytest.skip("Chromium is not installed; make test installs it, AMICRAWL_TEST_CHROMIUM names it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS, timeout=120_000)
        try:
            yield browser
        finally:
            browser.close()


class Faults(list[str]):
    """What a page complains of: exceptions of scripts, refusals by its policy, failed requests."""

    def watch(self, page: Page) -> Page:
        """Collect what *page* complains of from now on."""
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("console", lambda said: self.append(said.text) if said.type == "error" else None)
        page.on("dialog", self._complain)
        return page

    def _complain(self, dialog: Dialog) -> None:
        self.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def open_page(
    browser: Browser,
    *,
    width: int = 1280,
    scheme: str = "light",
    scripts: bool = True,
    expected: str = "",
) -> Iterator[Page]:
    """Open a page in a profile of its own; fails at the end if it complained of the unexpected."""
    height = 900 if width > 600 else 844
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
    )
    context.set_default_timeout(PATIENCE)
    faults = Faults()
    try:
        yield faults.watch(context.new_page())
    finally:
        context.close()
    assert not [fault for fault in faults if not expected or expected not in fault], faults


def visit(page: Page, url: str) -> None:
    """Have *page* show the page of the dashboard at *url*, and wait until its script listens."""
    page.goto(url)
    page.locator("html[data-ready]").wait_for()


def expect(shown: Locator) -> Any:
    """Return what can be asserted of *shown*: each waits for what the page is still to draw."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    playwright.expect.set_options(timeout=PATIENCE)
    return playwright.expect(shown)


def sideways(page: Page) -> int:
    """Return how far the page reaches beyond its window, in pixels."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def violations(page: Page, within: str | None = None) -> list[str]:
    """Return the rules of accessibility (axe) that the page as it is now breaks, and where.

    A hundred rows take seconds: *within* is a selector of what is of interest.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page, context=within).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
