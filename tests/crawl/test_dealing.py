"""The directories of several processes made one: interrupted or not, on any disk, the same."""

from __future__ import annotations

import errno
import json
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from faulty_disks import FaultyDisk, KilledError, QuickDisk
from loopback import RawServer, crawl, page, write_lines

from amicrawl.crawl.processes.dealing import Dealing
from amicrawl.errors import ExitCode
from amicrawl.listing.files import NO_EARLIER_TABLE, PLAN_NAME
from amicrawl.meguri.opening import load

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


class WithoutLinks(QuickDisk):
    """A disk on which a file has one name."""

    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that one process began, and two have ended whose directories are still two."""
    place = tmp_path_factory.mktemp("dealing")
    out = place / "out"
    with RawServer(lambda _: page(b"x")) as server:
        for number, directory in enumerate([out, out / "processes" / "0", out / "processes" / "1"]):
            urls = [f"http://127.0.0.{1 + number}:{server.port}/{path}" for path in "abc"]
            seeds = write_lines(place / f"{number}.txt", urls)
            settings = {"AMICRAWL_WARC_PREFIX": f"ami-p{number - 1}" if number else "one"}
            done = crawl(seeds, directory, settings=settings)
            assert done.returncode == ExitCode.DONE, done.stderr
    plan = {"processes": 2, "prefix": "ami", "stage": "dealt", "replaced": {"stop_pages": 7}}
    (out / "processes" / "plan.json").write_text(json.dumps(plan))
    return out


def gathered(directory: Path, *, disk: Disk | None = None, reason: str = "shutdown") -> None:
    Dealing(directory, disk=disk or QuickDisk()).gather(reason=reason, finished=NOW)


def state(directory: Path) -> dict[str, Any]:
    """Return what is in *directory*, but for what differs from one gathering to the next."""
    told = json.loads((directory / "crawl.json").read_bytes())
    rows = pq.read_table(directory / "captures.parquet").to_pylist()
    return {
        "rows": sorted((row["url"], row["warc_file"], row["warc_offset"]) for row in rows),
        "names": sorted(path.name for path in directory.iterdir()),
        "frontier": len(load(directory / "frontier").urls["host_key"]),
        "files": sorted(file["name"] for file in told["files"]),
        "earlier": [(each["state"], each["finish_reason"]) for each in told["earlier"]],
        **{name: told[name] for name in ("state", "finish_reason", "unfinished", "started", "counts")},
        "stop_pages": told["settings"]["stop_pages"],
    }


def copied(ended: Path, tmp_path: Path) -> Path:
    there = tmp_path / "out"
    shutil.rmtree(there, ignore_errors=True)
    return shutil.copytree(ended, there)


def test_all_rows_and_the_settings_of_the_whole_are_in_one_directory(
    ended: Path, tmp_path: Path
) -> None:
    out = copied(ended, tmp_path)
    gathered(out)
    found = state(out)
    assert len(found["rows"]) == len(set(found["rows"])) == 9
    assert (found["stop_pages"], found["unfinished"]) == (7, False)
    assert (found["finish_reason"], found["earlier"]) == ("shutdown", [("finished", "finished")])
    assert "processes" not in found["names"]


def test_where_a_file_cannot_have_two_names_it_is_copied(ended: Path, tmp_path: Path) -> None:
    out = copied(ended, tmp_path)
    gathered(out)
    expected = state(out)
    out = copied(ended, tmp_path)
    gathered(out, disk=WithoutLinks())
    assert state(out) == expected


def test_what_was_killed_while_it_gathered_comes_out_as_if_it_had_not_been(
    ended: Path, tmp_path: Path
) -> None:
    out, whole = copied(ended, tmp_path), FaultyDisk(0)
    gathered(out, disk=whole)
    expected = state(out)
    steps = [
        number
        for number, call in enumerate(whole.calls, 1)
        if call.startswith(("rename", "link", "create"))
    ]
    assert len(steps) > 10
    for step in steps:
        out = copied(ended, tmp_path)
        with pytest.raises(KilledError):
            gathered(out, disk=FaultyDisk(step, killed=True))
        # The next run does not know why the one before had ended.
        is_begun = "gathering" in (out / "processes" / "plan.json").read_text()
        gathered(out, reason="killed" if is_begun else "shutdown")
        assert state(out) == expected, whole.calls[step - 1]


def test_what_is_changed_on_the_way_is_changed_by_the_disk_that_was_given(
    ended: Path, tmp_path: Path
) -> None:
    out, disk = copied(ended, tmp_path), FaultyDisk(0)
    (out / "captures.parquet").unlink()
    gathered(out, disk=disk)
    assert len(pq.read_table(out / "captures.parquet")) == 6
    # That there was no table before, and that all is done.
    assert any(call.startswith("create") and NO_EARLIER_TABLE in call for call in disk.calls)
    assert any(call.startswith("remove") and PLAN_NAME in call for call in disk.calls)
