"""Chromium: where it is, and whether all is there that pages in a browser need."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from amicrawl.config import CrawlConfig

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_EXTRA = "It comes with the extra `browser`: pip install 'amicrawl[browser]'."


def find_chromium(config: CrawlConfig) -> str:
    """Return the path of the Chromium to start, once all that is needed is there.

    Raises UsageError where something is missing, or where root would start it in its sandbox.
    """
    for module in ("playwright", "h11", "cryptography"):
        if find_spec(module) is None:
            raise UsageError(f"Pages in a browser need {module}, which is not installed. {_EXTRA}")
    if config.browser_sandbox and hasattr(os, "geteuid") and os.geteuid() == 0:
        raise UsageError(
            "Chromium does not run in its sandbox as root. Crawl as another user, or set "
            "AMICRAWL_BROWSER_SANDBOX=false where this machine, or container, is sandbox enough."
        )
    if config.browser_path:
        if not os.access(config.browser_path, os.X_OK):
            raise UsageError(
                f"AMICRAWL_BROWSER_PATH is {config.browser_path!r}, and no program is there. "
                "Name the Chromium to start, or leave it away."
            )
        return config.browser_path
    found = next(filter(None, map(shutil.which, _NAMES)), "") or _playwrights_own()
    if not found:
        raise UsageError(
            "Pages in a browser need Chromium, and there is none. Install it (apt-get install chromium, "
            "or playwright install chromium), or name it with AMICRAWL_BROWSER_PATH."
        )
    return found


def _playwrights_own() -> str:
    """Return the newest Chromium that Playwright has installed; empty for none."""
    places = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright"
    found = Path(places).expanduser().glob("chromium-*/chrome-linux*/chrome")
    return str(max(found, key=lambda path: path.parts[-3], default=""))
