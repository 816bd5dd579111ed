"""Other add-ons of a project beside ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from archive_reading import record, rows
from guests.guest_runs import LINE, run
from loopback import free_port, page

if TYPE_CHECKING:
    from pathlib import Path

BY = "WARC-Reconstructed-By"


@pytest.mark.parametrize("meta", [{}, {"rendered": True}])
def test_what_another_handler_hands_on_to_ours_is_archived_once_and_to_the_byte(
    tmp_path: Path, meta: dict[str, bool]
) -> None:
    addons = json.loads(LINE["ADDONS"]) | {"delegating.DelegatingAddon": 500}
    ran = run(
        "single_request.py",
        lambda _: page(b"said", "Content-Type: text/plain"),
        tmp_path,
        has_line=True,
        settings={"ADDONS": addons},
        arguments={"meta": json.dumps(meta)},
    )
    assert ran.items[0]["said"] == ("rendered" if meta else "said"), ran.log
    (row,) = rows(ran.archive)
    assert (BY in record(ran.archive, row)[0]) == bool(meta)


@pytest.mark.parametrize("meta", [{}, {"breaks": True}])
def test_what_another_handler_does_where_ours_has_not_got_the_page_is_archived_too(
    tmp_path: Path, meta: dict[str, bool]
) -> None:
    addons = json.loads(LINE["ADDONS"]) | {"delegating.DelegatingAddon": 500}
    ran = run(
        "single_request.py",
        lambda _: page(b"blocked", "Content-Type: text/plain", status="403 Forbidden"),
        tmp_path,
        has_line=True,
        settings={"ADDONS": addons, "RETRY_ENABLED": False},
        arguments={"meta": json.dumps(meta)},
    )
    blocked, second = sorted(rows(ran.archive), key=lambda row: row["status"] != 403)
    assert (blocked["status"], blocked["body_length"]) == (403, len(b"blocked")), ran.log
    if meta:
        assert second["error"].startswith("other"), ran.log
    else:
        assert record(ran.archive, second)[1].endswith(b"rendered")


def test_nor_is_its_failure_told_of_twice(tmp_path: Path) -> None:
    addons = json.loads(LINE["ADDONS"]) | {"delegating.DelegatingAddon": 500}
    ran = run(
        "single_request.py",
        lambda _: page(b""),
        tmp_path,
        has_line=True,
        settings={"ADDONS": addons, "RETRY_ENABLED": False},
        arguments={"url": f"http://127.0.0.1:{free_port()}/"},
    )
    assert ran.items == [{"missed": "DownloadConnectionRefusedError"}], ran.log
    (row,) = rows(ran.archive)
    assert row["error"].startswith("connection-refused")
