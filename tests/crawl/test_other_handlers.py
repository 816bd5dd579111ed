"""Responses of other download handlers are archived too, and marked as reconstructed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive_reading import check_sealed, record, rows
from loopback import RawServer, crawl, crawl_foreign, page, write_lines

if TYPE_CHECKING:
    from pathlib import Path

HANDLER = "newsroom.browser.BrowserHandler"


def test_a_response_of_another_handler_is_archived_and_says_who_made_it(tmp_path: Path) -> None:
    handlers = f'{{"http": "{HANDLER}", "https": "{HANDLER}"}}'
    done = crawl_foreign(
        ["-a", "site=http://example.test"],
        settings={"AMICRAWL_OUT": str(tmp_path / "out"), "DOWNLOAD_HANDLERS": handlers},
    )
    assert done.returncode == 0, done.stderr
    found = {row["url"].rpartition("/")[2]: row for row in rows(tmp_path / "out")}
    assert found.keys() == {"front", "search", "gone"}
    fields, block = record(tmp_path / "out", found["front"])
    assert HANDLER in fields.values()
    assert block.startswith(b"HTTP/1.1 203 ")
    assert block.endswith(b"<html><title>rendered</title></html>")
    assert block.count(b"X-Rendered: ") == 2
    for path in (tmp_path / "out").glob("*.warc.gz"):
        check_sealed(path)


def test_scrapys_own_stop_conditions_work_for_a_list_crawl(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok"), pause=0.02) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(200)])
        done = crawl(seeds, tmp_path / "out", settings={"CLOSESPIDER_PAGECOUNT": "10"})
    assert done.returncode == 0, done.stderr
    assert 10 <= len(rows(tmp_path / "out")) < 60
