"""Crawls that a script starts, in the forms of Scrapy's documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
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
