"""pywb replays what a crawl archived, as a reader of the archive would see it."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from archive_reading import rows
from demo_site.server import DemoSite
from loopback import crawl, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = Path(__file__).parent / ".venv" / "bin"

pytestmark = pytest.mark.skipif(
    not (TOOLS / "wayback").exists(), reason="pywb is not installed: `make test` sets it up"
)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("replay")
    with DemoSite() as site:
        site.seeds(directory / "seeds.jsonl")
        done = crawl(directory / "seeds.jsonl", directory / "out")
    assert done.returncode == 0, done.stderr
    return directory / "out"


@pytest.fixture(scope="module")
def replay(archived: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A pywb that serves the archive; yields the address under which it replays raw captures."""
    home = tmp_path_factory.mktemp("pywb")
    _run(home, "wb-manager", "init", "demo")
    _run(home, "wb-manager", "add", "demo", *map(str, sorted(archived.glob("*.warc.gz"))))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(TOOLS / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(
        command, cwd=home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/demo/2026id_/"
    finally:
        server.kill()
        server.wait()


def test_every_page_that_came_is_replayed_as_it_was_sent(archived: Path, replay: str) -> None:
    found = rows(archived)
    pages = [row for row in found if row["status"] == 200 and "html" in row["content_type"]]
    pages = [row for row in pages if not row["truncated"]]
    assert len(pages) >= 10
    for row in pages:
        with urllib.request.urlopen(replay + row["url"], timeout=20) as response:
            body = response.read()
        assert response.status == 200, row["url"]
        assert b"<html" in body or response.headers.get("Content-Encoding"), row["url"]


def test_a_redirect_and_a_missing_page_are_replayed_as_such(archived: Path, replay: str) -> None:
    statuses = {}
    for row in rows(archived):
        if row["status"] in {301, 302, 404}:
            statuses[row["status"]] = _status(replay + row["url"])
    assert statuses == {301: 301, 302: 302, 404: 404}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _status(url: str) -> int:
    try:
        with urllib.request.build_opener(_NoRedirect).open(url, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _run(home: Path, *command: str) -> None:
    line = [str(TOOLS / command[0]), *command[1:]]
    done = subprocess.run(line, cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("pywb did not start")
