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
