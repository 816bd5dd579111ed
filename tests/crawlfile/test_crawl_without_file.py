"""`amicrawl crawl` of a URL or a list: anywhere, with one command, by real processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import rows
from loopback import QUICK, RawServer, environment, page

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

COMMAND = Path(sys.executable).with_name("amicrawl")


def respond(head: bytes) -> bytes:
    return page(b'<a href="/b">b</a>' if b" / " in head else b"ok", "Content-Type: text/html")


def crawl(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    settings = [part for name, value in QUICK.items() for part in ("-s", f"{name}={value}")]
    return warm_processes.run(
        [COMMAND, "crawl", *arguments, *settings],
        cwd=cwd, env=environment(), input=stdin, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def foreign_project(directory: Path, settings: Sequence[str] = ()) -> Path:
    """Make a Scrapy project that knows nothing of amicrawl but what *settings* say."""
    (directory / "news").mkdir(parents=True)
    (directory / "scrapy.cfg").write_text("[settings]\ndefault = news.settings\n")
    (directory / "news" / "__init__.py").touch()
    (directory / "news" / "settings.py").write_text("\n".join(["BOT_NAME = 'news'", *settings]))
    return directory


def operator(directory: Path) -> str:
    return str(json.loads((directory / "crawl.json").read_text())["settings"]["operator"])


def paths(directory: Path) -> set[str]:
    return {"/" + row["url"].partition("//")[2].partition("/")[2] for row in rows(directory)}


def test_a_site_is_crawled_in_an_empty_directory_by_its_url_alone(tmp_path: Path) -> None:
    with RawServer(respond) as server:
        done = crawl(f"{server.url}/", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert paths(tmp_path / "ami-out") == {"/", "/b"}


def test_a_list_is_crawled_by_our_settings_in_a_project_that_does_not_archive(tmp_path: Path) -> None:
    project = foreign_project(tmp_path, ["AMICRAWL_OPERATOR = 'nobody, n@a.example'"])
    with RawServer(respond) as server:
        (project / "l.txt").write_text(f"{server.url}/\n")
        done = crawl("l.txt", "--out", "out", cwd=project)
    assert done.returncode == 0, done.stderr
    assert paths(project / "out") == {"/"}
    assert operator(project / "out") == ""


def test_a_list_on_standard_input_is_crawled_by_the_settings_of_a_project_that_archives(
    tmp_path: Path,
) -> None:
    addon = "ADDONS = {'amicrawl.crawl.addon.ArchiveAddon': 300}"
    project = foreign_project(tmp_path, [addon, "AMICRAWL_OPERATOR = 'A Library, a@library.example'"])
    with RawServer(respond) as server:
        done = crawl("-", "-o", "out", "-a", "format=lines", cwd=project, stdin=f"{server.url}/c\n")
    assert done.returncode == 0, done.stderr
    assert paths(project / "out") == {"/c"}
    assert operator(project / "out") == "A Library, a@library.example"
