"""What was cut is for the spider what it is without the line, and in the archive what came."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import record, rows
from guests.guest_runs import both, run, target_of
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path

BODY = bytes(range(256)) * 80
ANNOUNCED = page(BODY, "Content-Type: text/plain")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5000\r\n" + BODY

ODD = {
    "surplus": page(b"whole", "Content-Type: text/plain") + b"surplus",
    "surplus-of-none": b"HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\nsurplus",
    "to-the-close": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nwhole",
}
ENDLESS = {
    "endless": page(b"whole", "Content-Type: text/plain", "Connection: close") + bytes(8 * 1024**2),
    "endless-chunks": CHUNKED[:45]
    + b"Connection: close\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"
    + bytes(8 * 1024**2),
}
"""Surplus that goes on and on."""


def respond(head: bytes) -> bytes:
    kind = head.split(b" ")[1][1:].decode()
    if kind.startswith("cut"):
        return ANNOUNCED[:8000]
    if kind == "chunked-cut":
        return CHUNKED[:8000]
    if kind in ODD or kind in ENDLESS:
        return (ODD | ENDLESS)[kind]
    if kind == "large":
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + 2 * BODY
    if kind == "large-announced":
        return page(200 * BODY, "Content-Type: text/plain")
    if kind == "slow":
        time.sleep(3)
    return ANNOUNCED


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return both("cut.py", respond, tmp_path_factory.mktemp("cut"))


def test_the_spider_sees_what_it_sees_without_the_line(runs: Any) -> None:
    seen = {item["kind"]: item for item in runs[1].items}
    assert seen["cut"]["why"] == seen["chunked-cut"]["why"] == "ResponseDataLossError"
    assert seen["cut"]["tried"] == 1
    assert seen["cut-allowed"]["flags"] == ["dataloss"]
    assert seen["slow"]["why"] == "DownloadTimeoutError"
    assert {seen[kind]["why"] for kind in ("large", "large-announced")} == {"DownloadCancelledError"}
    assert seen["stop-at-head"]["flags"] == ["download_stopped"]
    assert seen["stop-in-body"]["why"] == "StopDownload"
    assert seen["to-the-close"]["flags"] == ["partial"]
    assert [seen[kind]["length"] for kind in ODD] == [5, 0, 5]
    assert [seen[kind]["length"] for kind in ENDLESS] == [5, 5]
    assert not any(seen[kind]["flags"] for kind in ENDLESS)
    for said in ("Got data loss in", "Retrying <GET", "which is larger than download"):
        assert runs[1].log.count(said) == runs[0].log.count(said) > 0, said


def test_the_archive_has_what_came_and_says_that_it_was_cut(runs: Any) -> None:
    kept: dict[str, list[Any]] = {}
    for row in rows(runs[1].archive):
        kept.setdefault(target_of(row["url"])[1:], []).append(row)
    assert len(kept["cut"]) == 2, "each try has its row"
    assert {row["truncated"] for row in kept["cut"] + kept["chunked-cut"]} == {"disconnect"}
    assert not kept["whole"][0]["truncated"]
    for kind, said in ODD.items():
        _, block = record(runs[1].archive, kept[kind][0])
        assert block == said, "what is not for the spider is in the archive"
    assert {row["truncated"] for row in kept["large"] + kept["large-announced"]} == {"length"}
    endless = [row for kind in ENDLESS for row in kept[kind]]
    assert {row["truncated"] for row in endless} == {"length"}
    assert max(row["body_length"] for row in endless) < 2 * 1024**2, "nor is the disk theirs"


def test_a_file_that_is_larger_than_what_our_own_spiders_keep_comes_whole(tmp_path: Path) -> None:
    length = 66 * 1024**2
    both("large.py", lambda _: page(bytes(length)), tmp_path, settings={"LOG_LEVEL": "INFO"})
    for which in ("plain", "archived"):
        (stored,) = (tmp_path / which / "files" / "full").iterdir()
        assert stored.stat().st_size == length
    (row,) = rows(tmp_path / "archived" / "ami-out")
    assert not row["truncated"]


def test_a_length_of_thousands_of_digits_costs_no_capture(tmp_path: Path) -> None:
    said = b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nwhole"
    archived = run("large.py", lambda _: said, tmp_path, has_line=True)
    (row,) = rows(archived.archive)
    assert (row["status"], row["body_length"]) == (200, 5)
    assert [stored.read_bytes() for stored in (tmp_path / "files" / "full").iterdir()] == [b"whole"]


CODED, TEXT = "Transfer-Encoding: chunked", "Content-Type: text/plain"


@pytest.mark.parametrize(
    "said", [page(b"4\r\nsome\r\nno size\r\n", CODED, TEXT), page(b"some", "Content-Length: 5", TEXT)]
)
def test_a_response_that_contradicts_itself_is_data_loss_and_no_timeout(
    tmp_path: Path, said: bytes
) -> None:
    given: dict[str, Any] = {"keep_open": True, "has_line": True}
    settings = {"RETRY_ENABLED": False, "DOWNLOAD_TIMEOUT": 1}
    lost = run("single_request.py", lambda _: said, tmp_path / "lost", settings=settings, **given)
    assert lost.items == [{"missed": "ResponseDataLossError"}]
    settings["DOWNLOAD_FAIL_ON_DATALOSS"] = False
    kept = run("single_request.py", lambda _: said, tmp_path / "kept", settings=settings, **given)
    assert kept.items[0]["flags"] == ["dataloss"]
