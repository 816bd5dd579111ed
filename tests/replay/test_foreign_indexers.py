"""Other people's readers over our files: cdxj-indexer and jwarc, line by line, and what jwarc validates.

The tree is one of real files: what the packages of this environment bring of HTML, style sheets,
scripts, pictures and fonts.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from demo_site.server import DemoSite
from index.archive_files import exchange, gzip_member, http, warc
from loopback import crawl
from typer.testing import CliRunner

from amicrawl.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CDXJ_INDEXER = HERE / ".venv" / "bin" / "cdxj-indexer"
JWARC = next(iter(sorted((HERE / ".java").glob("jwarc-*.jar"))), None)
ENDINGS = (".html", ".css", ".js", ".png", ".svg", ".woff2", ".json", ".ico", ".gif")
MOST_OF_A_KIND = 120
CHUNKED = "payload digest failed"
TRUNCATED = "invalid HTTP header Content-Length"

needs_jwarc = pytest.mark.skipif(JWARC is None, reason="jwarc is not here: `make test` fetches it")
needs_cdxj_indexer = pytest.mark.skipif(
    not CDXJ_INDEXER.exists(), reason="cdxj-indexer is not installed: `make test` sets it up"
)


def real_files() -> Iterator[Path]:
    """Yield files of the packages that are installed, of each kind the first by name."""
    root = Path(sysconfig.get_path("purelib"))
    for ending in ENDINGS:
        found = sorted(path for path in root.rglob(f"*{ending}") if 0 < path.stat().st_size < 200_000)
        yield from found[:MOST_OF_A_KIND]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WARC file of a real tree, and a POST at its end."""
    path = tmp_path_factory.mktemp("tree") / "tree.warc.gz"
    with path.open("wb") as out:
        for number, file in enumerate(real_files()):
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            body = file.read_bytes()
            url = f"https://www.example.org/{'/'.join(file.parts[-4:])}?v={number % 7}&A=b"
            block = http(body, Content_Type=kind, Content_Length=str(len(body)))
            date = f"2026-11-{number % 28 + 1:02}T00:00:{number % 60:02}Z"
            digest = "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
            record = warc("response", url, block, WARC_Date=date, WARC_Payload_Digest=digest)
            out.write(gzip_member(record))
        posted = exchange("http://example.org/f", method="POST", kind="text/plain", body=b"no json")
        out.write(b"".join(map(gzip_member, posted)))
    return path


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WARC file of our own."""
    directory = tmp_path_factory.mktemp("crawled")
    with DemoSite() as site:
        site.seeds(directory / "seeds.jsonl")
        done = crawl(directory / "seeds.jsonl", directory / "out")
    assert done.returncode == 0, done.stderr
    [path] = (directory / "out").glob("*.warc.gz")
    return path


def ours(path: Path, *options: str) -> list[str]:
    """Return the lines that we make of *path*."""
    out = path.with_suffix(".ours.cdxj")
    done = CliRunner().invoke(app, ["index", str(path), "--merge", str(out), "-j", "1", *options])
    assert done.exit_code == 0, done.output
    return out.read_text("utf-8").splitlines()


def said_by(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=300)


def jwarc(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert JWARC is not None
    return said_by("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-jar", JWARC, *arguments)


@needs_cdxj_indexer
@pytest.mark.parametrize("options", [(), ("-p",)], ids=["plain", "post"])
def test_lines_of_a_real_tree_are_those_of_cdxj_indexer(tree: Path, options: tuple[str, ...]) -> None:
    theirs = said_by(CDXJ_INDEXER, "-s", *options, tree)
    assert theirs.returncode == 0, theirs.stderr
    lines = ours(tree, *options)
    assert len(lines) > 300
    assert lines == theirs.stdout.splitlines()


@needs_cdxj_indexer
def test_lines_of_our_own_crawl_are_those_of_cdxj_indexer(crawled: Path) -> None:
    theirs = said_by(CDXJ_INDEXER, "-s", crawled)
    assert ours(crawled) == theirs.stdout.splitlines()


@needs_jwarc
def test_lines_are_those_of_jwarc(tree: Path, crawled: Path) -> None:
    """It writes them in the order of the records."""
    for path in (tree, crawled):
        theirs = jwarc("cdxj", path)
        assert theirs.returncode == 0, theirs.stderr
        assert sorted(ours(path)) == sorted(theirs.stdout.splitlines())


@needs_jwarc
def test_jwarc_validates_what_we_write_but_for_what_is_known(crawled: Path, tmp_path: Path) -> None:
    """Two things of a crawl it refuses.

    The payload digest of a chunked body: ours is over the body as it was sent, as that of wget and
    warcio is, its own is over the body without the chunks. And a body that was cut off, which is shorter
    than the server's Content-Length; the record says `WARC-Truncated`.
    """
    done = jwarc("validate", crawled)
    errors = re.findall(r"ERROR: (payload digest failed|[^:]*)", done.stderr)
    assert set(errors) <= {CHUNKED, TRUNCATED}, done.stderr
    assert errors.count(TRUNCATED) == 1
    made = ["collection", str(crawled), "-o", str(tmp_path), "-j", "1", "--products", "sidecar,wat,wet"]
    assert CliRunner().invoke(app, made).exit_code in (0, 5)
    derived = sorted(tmp_path.glob("*/*.warc.*.gz"))
    assert len(derived) == 3
    for path in derived:
        done = jwarc("validate", path)
        assert done.returncode == 0, done.stderr
