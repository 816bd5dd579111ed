"""Whatever a spider requests, it gets what it would have got without the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from guests.guest_runs import Ran, both
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path


def respond(head: bytes) -> bytes:
    if head.split(b" ")[1] == b"/silent":
        return b""
    return page(b"ok " + head.split(b" ")[0], "Content-Type: text/plain")


def counted(ran: Ran) -> list[str]:
    """Return the statistics of exceptions."""
    return [line.strip("{ ") for line in ran.log.splitlines() if "downloader/exception_" in line]


@pytest.mark.parametrize("kind", ["post", "form", "lambda", "errback"])
def test_a_crawl_does_not_end_while_a_request_runs(tmp_path: Path, kind: str) -> None:
    settings = {"DOWNLOAD_DELAY": "0.05", "RETRY_TIMES": "2"}
    plain, archived = both("forms.py", respond, tmp_path, arguments={"kind": kind}, settings=settings)
    assert len(plain.items) >= 1
    assert "'finish_reason': 'finished'" in archived.log
    if kind == "errback":
        assert plain.items == [{"missed": plain.items[0]["missed"], "times": 2}]
        assert archived.log.count("Retrying <GET") == plain.log.count("Retrying <GET") == 2
        assert counted(archived) == counted(plain) != []


def test_a_failed_download_without_an_errback_is_an_error_in_the_log(tmp_path: Path) -> None:
    settings = {"RETRY_TIMES": "0", "LOG_LEVEL": "ERROR"}
    plain, archived = both(
        "forms.py", respond, tmp_path, arguments={"kind": "unheard"}, settings=settings
    )
    said = "ERROR: Error downloading <GET http"
    assert plain.log.count(said) == archived.log.count(said) == 1
