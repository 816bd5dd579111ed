"""Crawls that a script starts, in the forms of Scrapy's documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import record, rows
from guests.guest_runs import both, run
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path


def respond(head: bytes) -> bytes:
    return page(b"<p>ok</p>", "Content-Type: text/html")


@pytest.mark.parametrize("form", ["process", "runner", "async-runner"])
def test_a_script_gets_its_items_and_its_pages_are_archived(tmp_path: Path, form: str) -> None:
    _, archived = both("shared.py", respond, tmp_path, command=[form])
    assert len(archived.items) == (10 if form == "process" else 5)
    assert archived.archived == {f"/{item['path']}" for item in archived.items}


def test_a_reactor_without_asyncio_is_refused_by_a_sentence(tmp_path: Path) -> None:
    refused = run("shared.py", respond, tmp_path, has_line=True, command=["select"])
    assert refused.returncode == 1
    assert refused.items == []
    assert "The add-on archives on asyncio" in refused.log


def test_without_a_reactor_of_twisted_the_archive_has_the_bytes_all_the_same(tmp_path: Path) -> None:
    """Scrapy replaces its handlers then, which must not replace ours: they know no guard either."""
    settings: dict[str, Any] = {"TWISTED_REACTOR_ENABLED": False}
    _, archived = both("single_request.py", respond, tmp_path / "both", settings=settings)
    assert archived.archived == {"/"}
    (row,) = rows(archived.archive)
    fields, block = record(archived.archive, row)
    assert "WARC-Reconstructed-By" not in fields
    assert block == respond(b"")
    settings |= {"AMICRAWL_ALLOW_PRIVATE": "10.0.0.0/8"}
    refused = run("single_request.py", respond, tmp_path, has_line=True, settings=settings)
    assert (refused.items, refused.requested) == ([{"missed": "DownloadFailedError"}], [])
