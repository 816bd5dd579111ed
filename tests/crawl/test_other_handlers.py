"""Responses of other download handlers are archived too, and marked as reconstructed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from archive_reading import check_sealed, record, rows
from loopback import RawServer, crawl, crawl_foreign, page, write_lines

if TYPE_CHECKING:
    from pathlib import Path

HANDLER = "newsroom.browser.BrowserHandler"
BODY = b"<html><title>rendered</title></html>"


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
    assert block.endswith(BODY)
    assert block.count(b"X-Rendered: ") == 2
    for path in (tmp_path / "out").glob("*.warc.gz"):
        check_sealed(path)


def test_scrapys_own_stop_conditions_work_for_a_list_crawl(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok"), pause=0.02) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(200)])
        done = crawl(seeds, tmp_path / "out", settings={"CLOSESPIDER_PAGECOUNT": "10"})
    assert done.returncode == 0, done.stderr
    assert 10 <= len(rows(tmp_path / "out")) < 60


@pytest.mark.parametrize("most", ["9", "0"])
def test_a_body_of_another_handler_is_held_to_the_limit_of_downloads(most: str, tmp_path: Path) -> None:
    done = crawl_foreign(
        ["-a", "site=http://example.test"],
        settings={
            "AMICRAWL_OUT": str(tmp_path / "out"),
            "DOWNLOAD_HANDLERS": f'{{"http": "{HANDLER}", "https": "{HANDLER}"}}',
            "DOWNLOAD_MAXSIZE": most,
        },
    )
    assert ("DownloadCancelledError" in done.stderr) == (most == "9")
    for row in rows(tmp_path / "out"):
        _, block = record(tmp_path / "out", row)
        assert block.partition(b"\r\n\r\n")[2] == BODY[: int(most) or None]
        assert b"\r\nContent-Length: %d\r\n" % len(BODY) in block
        assert row["truncated"] == ("length" if most == "9" else "")


@pytest.mark.parametrize("setting", ["DOWNLOAD_MAXSIZE", "AMICRAWL_MAX_BODY"])
def test_a_crawl_of_our_own_holds_another_handler_to_both_limits(setting: str, tmp_path: Path) -> None:
    seeds = write_lines(tmp_path / "s.txt", ["http://example.test/"])
    handler = f"tests.foreign_project.{HANDLER}"
    settings = {"DOWNLOAD_HANDLERS": f'{{"http": "{handler}"}}', setting: "9"}
    done = crawl(seeds, tmp_path / "out", settings=settings)
    assert done.returncode == 0, done.stderr
    (row,) = rows(tmp_path / "out")
    assert record(tmp_path / "out", row)[1].partition(b"\r\n\r\n")[2] == BODY[:9]
    assert row["truncated"] == "length"


def test_what_another_handler_has_ours_fetch_is_archived_once_and_as_it_came(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        return page(b"whole") if b" /whole " in head else page(b"no", status="403 Forbidden")

    with RawServer(respond) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/whole", f"{server.url}/forbidden"])
        handler = "tests.foreign_project.newsroom.browser.HandingOnHandler"
        settings = {"DOWNLOAD_HANDLERS": f'{{"http": "{handler}"}}', "AMICRAWL_ROBOTS": "ignore"}
        done = crawl(seeds, tmp_path / "out", settings=settings)
    assert done.returncode == 0, done.stderr
    found = {(row["url"].rpartition("/")[2], row["status"]): row for row in rows(tmp_path / "out")}
    assert len(rows(tmp_path / "out")) == 3
    assert found.keys() == {("whole", 200), ("forbidden", 403), ("forbidden", 203)}
    assert record(tmp_path / "out", found["whole", 200])[1].endswith(b"\r\n\r\nwhole")
    assert record(tmp_path / "out", found["forbidden", 203])[1].endswith(BODY)


def test_a_crawl_of_our_own_without_a_reactor_of_twisted_has_our_handler(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/"])
        done = crawl(seeds, tmp_path / "out", settings={"TWISTED_REACTOR_ENABLED": "False"})
    assert done.returncode == 0, done.stderr
    (row,) = rows(tmp_path / "out")
    assert "WARC-Reconstructed-By" not in record(tmp_path / "out", row)[0]
