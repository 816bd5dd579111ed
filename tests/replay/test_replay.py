"""pywb replays what a crawl archived, as a reader of the archive would see it, by its index and by ours.

py-wacz, too, validates a package.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from archive_reading import rows
from dashboard.browsing import chromium
from demo_site.server import DemoSite
from index.lookup_lines import cluster, pages
from loopback import PROJECT, RawServer, crawl, environment, free_port, page, write_lines
from typer.testing import CliRunner

from amicrawl.archive.index.lookup.server import CdxServer
from amicrawl.archive.index.lookup.source import open_sources
from amicrawl.archive.index.wacz.package import Description, write_wacz
from amicrawl.archive.index.zipnum.writer import write_zipnum
from amicrawl.archive.lines.record_lines import cdxj_lines
from amicrawl.cli import app
from amicrawl.disk import Disk
from amicrawl.reading.records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = Path(__file__).parent / ".venv" / "bin"
PAGE = b"<html><title>A page</title><p>which is always the same.</p></html>"

CONFIGURATION = """
collections:
  zipnum:
    index_paths: ./zipnum/cluster.idx
    archive_paths: {archive}/
  paging:
    index_paths: ./paging/cluster.idx
    archive_paths: ./none/
"""

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
def package(archived: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive as a WACZ package."""
    path = tmp_path_factory.mktemp("wacz") / "demo.wacz"
    description = Description(datetime(2026, 1, 2, tzinfo=UTC), title="The demo site")
    write_wacz(sorted(archived.glob("*.warc.gz")), path, description=description, disk=Disk())
    return path


@pytest.fixture(scope="module")
def pywb_home(
    archived: Path, recrawled: list[Path], package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What pywb serves: the archive in three collections, and one to turn pages in.

    `demo` is indexed by pywb itself, `zipnum` by us, `wacz` is unpacked from our package.
    """
    home = tmp_path_factory.mktemp("pywb")
    warcs = sorted(archived.glob("*.warc.gz"))
    _run(home, "wb-manager", "init", "demo")
    _run(home, "wb-manager", "add", "demo", *map(str, warcs))
    _run(home, "wb-manager", "init", "again")
    for number, directory in enumerate(recrawled):
        # The files of all crawls have the same names.
        for warc in directory.glob("*.warc.gz"):
            shutil.copy(warc, home / f"{number}-{warc.name}")
    _run(home, "wb-manager", "add", "again", *map(str, home.glob("*.warc.gz")))
    _run(home, "wb-manager", "init", "wacz")
    _run(home, "wb-manager", "add", "--unpack-wacz", "wacz", str(package))
    (home / "config.yaml").write_text(CONFIGURATION.format(archive=archived))
    write_zipnum(_index_of(warcs), home / "zipnum", disk=Disk(), block_lines=7)
    cluster(pages(25), home / "paging", block=5)
    return home


@pytest.fixture(scope="module")
def pywb(pywb_home: Path) -> Iterator[str]:
    """A pywb that serves its home; yields its address."""
    port = free_port()
    command = [str(TOOLS / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(
        command, cwd=pywb_home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def ours(pywb_home: Path) -> Iterator[str]:
    """Our CDX server of the cluster that pywb serves; yields the address that takes questions."""
    with CdxServer(("127.0.0.1", 0), open_sources([pywb_home / "zipnum"])) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.port}/cdx"
        server.shutdown()


@pytest.fixture(params=["demo", "zipnum", "wacz"])
def replay(pywb: str, request: pytest.FixtureRequest) -> str:
    """The address under which a collection replays raw captures."""
    return f"{pywb}/{request.param}/2026id_/"


def _index_of(warcs: list[Path]) -> list[bytes]:
    broken: list[object] = []
    found = [
        line.encoded()
        for warc in warcs
        for record in read_records(warc, on_broken=broken.append)
        for line in cdxj_lines(record, filename=warc.name)
    ]
    assert not broken
    return sorted(found)


def test_every_page_that_came_is_replayed_as_it_was_sent(archived: Path, replay: str) -> None:
    found = rows(archived)
    pages = [row for row in found if row["status"] == 200 and "html" in row["content_type"]]
    pages = [row for row in pages if not row["truncated"]]
    assert len(pages) >= 10
    for row in pages:
        with urllib.request.urlopen(replay + row["url"], timeout=60) as response:
            body = response.read()
        assert response.status == 200, row["url"]
        assert b"<html" in body or response.headers.get("Content-Encoding"), row["url"]


@pytest.fixture(scope="module")
def recrawled(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three crawls of a page that stays the same, in other chunks each time."""
    directory = tmp_path_factory.mktemp("recrawled")
    made: list[Path] = []

    def respond(request: bytes) -> bytes:
        if request.startswith(b"GET /robots.txt "):
            return page(b"", status="404 Not Found")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n"
        size = 5 + len(made)
        chunks = [PAGE[start : start + size] for start in range(0, len(PAGE), size)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        return head + b"\r\n" + body + b"0\r\n\r\n"

    with RawServer(respond) as server:
        seeds = write_lines(directory / "seeds.txt", [f"{server.url}/same"])
        for number in range(3):
            out = directory / str(number)
            done = crawl(seeds, out)
            assert done.returncode == 0, done.stderr
            seeds = out / "captures.parquet"
            made.append(out)
            # Captures of one second have one timestamp in an index.
            now = int(time.time())
            while int(time.time()) == now:
                time.sleep(0.05)
    return made


def test_an_unchanged_page_is_replayed_from_each_crawl(pywb: str, recrawled: list[Path]) -> None:
    for number, directory in enumerate(recrawled):
        [row] = [row for row in rows(directory) if row["status"] == 200]
        assert row["unchanged"] == bool(number)
        begun = (row["fetched_at"] - row["duration_ms"]) // 1000
        moment = datetime.fromtimestamp(begun, tz=UTC)
        url = f"{pywb}/again/{moment:%Y%m%d%H%M%S}id_/{row['url']}"
        with urllib.request.urlopen(url, timeout=60) as response:
            assert response.headers["Memento-Datetime"] == format_datetime(moment, usegmt=True)
            assert response.read() == PAGE


def test_a_redirect_and_a_missing_page_are_replayed_as_such(archived: Path, replay: str) -> None:
    statuses = {}
    for row in rows(archived):
        if row["status"] in {301, 302, 404}:
            statuses[row["status"]] = _status(replay + row["url"])
    assert statuses == {301: 301, 302: 302, 404: 404}


def test_a_browser_shows_our_package_as_pywb_replays_it(pywb: str, archived: Path) -> None:
    """Pages, their style sheet and picture, and a link, all from the archive and from nowhere else."""
    start = next(row["url"] for row in rows(archived) if row["url"].endswith("/keepers/"))
    requested: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: requested.append(request.url))
        page.goto(f"{pywb}/wacz/2026/{start}", timeout=120_000)
        replayed: Any = page.wait_for_selector("#replay_iframe", timeout=120_000)
        shown = replayed.content_frame()
        shown.wait_for_url("**/keepers/", wait_until="load", timeout=120_000)
        assert shown.title().startswith("The keepers")
        assert shown.evaluate("document.images[0].naturalWidth") > 0
        assert shown.evaluate("[...document.styleSheets].some(sheet => sheet.cssRules.length > 0)")
        shown.get_by_role("link", name="The tides").first.click()
        shown.wait_for_url("**/tides.html", wait_until="load", timeout=120_000)
        assert shown.title().startswith("The tides")
    assert [url for url in requested if not url.startswith((pywb, "data:", "blob:"))] == []


def test_pywb_turns_the_pages_of_our_cluster(pywb: str) -> None:
    """25 lines, 5 a block, 2 blocks a page: 10, 10 and 5 lines, and no fourth page."""
    requested = f"{pywb}/paging/cdx?pageSize=2&url=http://example.com/*"
    assert json.loads(_body(f"{requested}&showNumPages=true")) == {
        "pages": 3,
        "pageSize": 2,
        "blocks": 5,
    }
    responses = [_body(f"{requested}&page={page}").splitlines() for page in range(3)]
    assert [len(lines) for lines in responses] == [10, 10, 5]
    assert [line.split()[0] for lines in responses for line in lines] == [
        line.split()[0] for line in pages(25)
    ]
    assert _status(f"{requested}&page=3") == 400
    missing = f"{pywb}/paging/cdx?pageSize=2&showNumPages=true&url=http://example.com/missing"
    assert json.loads(_body(missing)) == {"pages": 0, "pageSize": 2, "blocks": 0}


QUESTIONS: list[dict[str, str]] = [
    {"url": "{site}/"},
    {"url": "{site}/*"},
    {"url": "{site}/missing"},
    {"url": "{site}/keepers/", "matchType": "prefix"},
    {"url": "{site}/keepers/*", "output": "json"},
    {"url": "{site}/", "matchType": "host", "fields": "urlkey,timestamp,status", "output": "text"},
    {"url": "{site}/", "matchType": "host", "fl": "url,mime", "output": "json", "limit": "4"},
    {"url": "{site}/*", "filter": "=status:404"},
    {"url": "{site}/*", "filter": "!=status:200", "sort": "reverse", "limit": "3"},
    {"url": "{site}/*", "filter": "~mime:text/(html|css)"},
    {"url": "{site}/*", "filter": "keepers"},
    {"url": "{site}/*", "from": "2020", "to": "2020"},
    {"url": "{site}/", "from": "2020", "closest": "2021"},
    {"url": "{site}/*", "collapseTime": "4"},
    {"url": "{site}/*", "page": "1", "pageSize": "2"},
    {"url": "{site}/*", "page": "9"},
    {"url": "{site}/*", "showNumPages": "true", "pageSize": "1"},
    {"url": "{site}/", "resolveRevisits": "true", "output": "json"},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: " ".join(question)[:40])
def test_our_server_responds_as_pywb_does(
    archived: Path, pywb: str, ours: str, question: dict[str, str]
) -> None:
    site = "/".join(rows(archived)[0]["url"].split("/")[:3])
    requested = urlencode(question | {"url": question["url"].format(site=site), "allowFuzzy": "false"})
    status = _status(f"{ours}?{requested}")
    assert status == _status(f"{pywb}/zipnum/cdx?{requested}")
    if status == 200:
        found, expected = _body(f"{ours}?{requested}"), _body(f"{pywb}/zipnum/cdx?{requested}")
        assert list(map(_told, found.splitlines())) == list(map(_told, expected.splitlines()))


def _told(line: bytes) -> tuple[bytes, Any]:
    """Return what a line of a response says, but for where pywb has it from."""
    head, brace, rest = line.partition(b"{")
    fields = json.loads(brace + rest) if brace else {}
    return head, {name: value for name, value in fields.items() if not name.startswith("source")}


def test_py_wacz_accepts_our_package_and_sees_when_it_was_changed(package: Path, tmp_path: Path) -> None:
    assert "Validation succeeded" in _run(tmp_path, "wacz", "validate", "-f", str(package))
    changed = tmp_path / "changed.wacz"
    with zipfile.ZipFile(package) as whole, zipfile.ZipFile(changed, "w") as copy:
        for name in whole.namelist():
            more = b"\n" if name.endswith("pages.jsonl") else b""
            copy.writestr(name, whole.read(name) + more)
    assert "Validation succeeded" not in _run(
        tmp_path, "wacz", "validate", "-f", str(changed), fails=True
    )


def test_the_commands_of_the_page_run_one_after_the_other(archived: Path, tmp_path: Path) -> None:
    (tmp_path / "ami-out").symlink_to(archived)
    (block,) = re.findall(r"```sh\n(.*?)```", (PROJECT / "docs" / "replay.md").read_text(), re.DOTALL)
    said = ""
    with contextlib.chdir(tmp_path):
        for line in block.replace(
            "ami-out/*.warc.gz", " ".join(map(str, archived.glob("*.gz")))
        ).splitlines():
            name, *arguments = shlex.split(line)
            assert name == "amicrawl"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, (line, result.output, result.exception)
            said += result.output
    missing = next(row["url"] for row in rows(archived) if row["status"] == 404)
    assert missing in said
    assert zipfile.ZipFile(tmp_path / "collection.wacz").testzip() is None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _status(url: str) -> int:
    try:
        with urllib.request.build_opener(_NoRedirect).open(url, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _body(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:
        body: bytes = response.read()
    return body


def _run(home: Path, *command: str, fails: bool = False) -> str:
    line = [str(TOOLS / command[0]), *command[1:]]
    done = subprocess.run(line, cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("pywb did not start")


@pytest.mark.parametrize(("mode", "ended_by"), [((), signal.SIGINT), (("--proxy",), signal.SIGTERM)])
def test_a_crawl_is_replayed_by_one_command_until_it_is_stopped(
    archived: Path, mode: tuple[str, ...], ended_by: signal.Signals
) -> None:
    port = free_port()
    command = ["amicrawl", "replay", str(archived), "--port", str(port)]
    line = [sys.executable, "-m", *command, "--wayback", str(TOOLS / "wayback"), *mode]
    with subprocess.Popen(
        line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            url = next(row["url"] for row in rows(archived) if row["status"] == 200)
            if mode:
                browser = shlex.split(process.stderr.readline())
                assert f"--proxy-server=http://localhost:{port}" in browser
                # Nothing responds at this address any more but the proxy.
                found, proxies = url, {"http": f"http://127.0.0.1:{port}"}
            else:
                assert f"http://localhost:{port}/crawl/" in said
                found, proxies = f"http://127.0.0.1:{port}/crawl/id_/{url}", {}
            reader = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
            for _ in range(200):
                with contextlib.suppress(OSError), reader.open(found, timeout=10) as response:
                    assert response.status == 200
                    break
                time.sleep(0.1)
            else:
                pytest.fail("nothing was replayed")
        finally:
            # As a terminal sends it: to all processes of the group.
            os.killpg(process.pid, ended_by)
        said = process.stderr.read()
    assert process.returncode == 0, said
    assert "Stopped." in said
    assert "Traceback" not in said
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)), "pywb has ended with it"


def test_without_pywb_the_command_says_what_to_do(archived: Path) -> None:
    line = [sys.executable, "-m", "amicrawl", "replay", str(archived)]
    done = subprocess.run(line, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pipx install pywb" in done.stderr
