"""The sandbox of Chromium is on for whoever is not root, and pages are archived all the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from archive_reading import records
from browser.browsing_site import SETTINGS, needs_chromium, path_of, response
from loopback import PROJECT, QUICK, RawServer, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_chromium

SOMEBODY = 54321
"""A user that is not in the system's list, who needs none there."""
PAGE = b"""<!doctype html><p id=p><script>
fetch("/data").then((got) => got.text()).then((text) => { p.innerText = text; });</script>"""


def as_somebody(*capabilities: str) -> list[str]:
    """Return what a command begins with so that it is not root's, with *capabilities* all the same."""
    if os.geteuid():
        return []
    user = [f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
    kept = ",".join(f"+{each}" for each in capabilities) or "-all"
    return ["setpriv", *user, f"--inh-caps={kept}", f"--ambient-caps={kept}"]


def has_sandbox() -> bool:
    """Return whether the system lets Chromium have its sandbox."""
    if not shutil.which("setpriv"):
        return False
    return not subprocess.run([*as_somebody(), "unshare", "-U", "true"], check=False).returncode


def confinement() -> set[str]:
    """Return how the kernel confines the processes of Chromium that show pages, by their `Seccomp`."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        if "--type=renderer" in process.cmdline():
            status = Path(f"/proc/{process.pid}/status").read_text()
            found |= set(re.findall(r"^Seccomp:\s+(\d)", status, re.MULTILINE))
    return found


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter: those of pytest are for their user alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(
    not has_sandbox(), reason="this system has no user namespaces for Chromium's sandbox"
)
def test_whoever_is_not_root_crawls_in_the_sandbox(open_directory: Path) -> None:
    seen: set[str] = set()

    def site(head: bytes) -> bytes:
        if path_of(head) == "/data":
            seen.update(confinement())
            return response(b"made by a script", "text/plain")
        return response(PAGE) if path_of(head) == "/" else response(b"none", status="404 Not Found")

    home = open_directory / "home"
    home.mkdir()
    # The interpreter may be in the home of root, whose files Chromium is not to read.
    browser = open_directory / "chromium"
    browser.write_text(
        f'#!/bin/sh\nexec setpriv --inh-caps=-all --ambient-caps=-all {shutil.which("chromium")} "$@"\n'
    )
    browser.chmod(0o755)
    if not os.geteuid():
        os.chown(home, SOMEBODY, SOMEBODY)
    with RawServer(site) as server:
        settings = {**QUICK, **SETTINGS, "AMICRAWL_BROWSER_SANDBOX": "true"}
        line = [*as_somebody("dac_read_search"), sys.executable, "-m", "scrapy", "crawl", "site"]
        line += ["-a", f"url={server.url}/", "-a", f"out={home / 'out'}"]
        line += [f"-s{name}={value}" for name, value in settings.items()]
        done = subprocess.run(
            [*line, f"-sAMICRAWL_BROWSER_PATH={browser}"],
            cwd=PROJECT, env={**environment(), "HOME": str(home)}, capture_output=True, text=True,
            timeout=200, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    texts = [
        each.content_stream().read()
        for each in records(home / "out")
        if each.rec_headers.get("WARC-Target-URI", "").startswith("urn:text:")
    ]
    assert texts == [b"\n\nmade by a script"]
    # Its system calls are filtered.
    assert seen == {"2"}
