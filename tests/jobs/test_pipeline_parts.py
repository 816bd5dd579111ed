"""The parts of a pipeline, each by itself: pulse, directories, copies in a bucket, what is cleared."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import PosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, OutputError, UsageError
from amicrawl.fleet.checkpoints.checkpoint import (
    LIST_NAME,
    Checkpoints,
    checkpoint_url,
    path_of,
    restore_checkpoint,
    save,
)
from amicrawl.fleet.checkpoints.data_directory import (
    STORE_MARK,
    JobCopy,
    is_base,
    new_base,
    opened_store,
)
from amicrawl.fleet.checkpoints.job_bucket import end_of_finished, fetch, fetch_finished, url_of_job
from amicrawl.fleet.database.connection import JobStore, connect
from amicrawl.fleet.jobs.attempt import JobAttempt, Workshop, fetching, slot_after
from amicrawl.fleet.jobs.child import Child
from amicrawl.fleet.jobs.ending import Ending, EndVerdict, Reaper, sentence, verdict
from amicrawl.fleet.jobs.pipeline_record import (
    PipelineIdentity,
    PipelineRecord,
    figures,
    pipelines,
    tell_to_drain,
)
from amicrawl.fleet.jobs.record import encoded_info, info_of
from amicrawl.fleet.leases.lease import Claim, Claims, GivenBack, Happened
from amicrawl.fleet.leases.lease_time import HeartbeatMonitor
from amicrawl.fleet.leases.leased import FENCE, fenced, raise_fence
from amicrawl.fleet.logs.job_log import Inbox
from amicrawl.listing.files import SealedFile
from amicrawl.listing.uploaded import Uploaded, UploadManifest
from amicrawl.partition.outbox import Outbox
from amicrawl.record.writer import next_number
from amicrawl.uploads.bucket import check_bucket_url, open_bucket
from amicrawl.uploads.internet_archive import identifier_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
IDENT = "eed6rdmqqi18ps2eqfatkjyld"


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[JobStore]:
    store = connect({"REDIS_URL": redis_server.url})
    yield store
    store.close()


def raw(store: JobStore) -> Any:
    return store.client


def test_a_crawl_that_renews_is_alive_and_one_that_stops_to_is_hung() -> None:
    pulse = HeartbeatMonitor(30, 0)
    for second in range(1, 20):
        pulse.looked(29.9, second, second, has_begun=True)
    assert pulse.has_begun
    assert not pulse.is_our_turn(19)
    for second in range(20, 41):
        pulse.looked(29.9 - (second - 19), second, second, has_begun=True)
        assert not pulse.is_hung(second)
    pulse.looked(29.9 - 23, 42, 42, has_begun=True)
    assert pulse.is_hung(42)


def test_until_a_crawl_renews_itself_the_pipeline_does_for_a_while() -> None:
    pulse = HeartbeatMonitor(30, 0, startup=60)
    now = 0.0
    while not pulse.is_hung(now):
        now += 1
        pulse.looked(30 - (now - pulse._own), now, now, has_begun=False)
        if pulse.is_our_turn(now):
            pulse.renewed(now)
        assert not pulse.has_begun, "our own renewals are not taken for the crawl's"
    assert 60 < now <= 62


@pytest.mark.parametrize("by_crawl", [False, True])
def test_a_crawl_that_renews_right_after_its_pipeline_has_begun(
    store: JobStore, *, by_crawl: bool
) -> None:
    """What the lease gains by that is too little to be told from the time that a look takes."""
    lease, claims = timedelta(seconds=4), Claims(store)
    claim = claims.take(IDENT, "us", lease)
    assert claim is not None
    pulse = HeartbeatMonitor(4.0, 0.0)
    for second in range(1, 4):
        claims.renew(IDENT, claim.token, lease)
        pulse.renewed(float(second))
        claims.renew(IDENT, claim.token, lease, by_crawl=by_crawl)
        [(found, left)] = claims.look([IDENT])
        assert found is not None
        pulse.looked(left.total_seconds(), second, second, has_begun=found.has_begun)
    assert (pulse.has_begun, pulse.heard) == ((True, 1.0) if by_crawl else (False, 0.0))


def test_of_an_attempt_that_is_over_the_next_one_has_not_begun(store: JobStore) -> None:
    claims = Claims(store)
    first = claims.take(IDENT, "us")
    assert first is not None
    claims.renew(IDENT, first.token, by_crawl=True)
    claims.give_back(IDENT, first.token, Happened.DRAINED)
    second = claims.take(IDENT, "us")
    [(found, _)] = claims.look([IDENT])
    assert found is not None
    assert second is not None
    assert (found.token, found.has_begun) == (second.token, False)


@pytest.mark.parametrize("pause", [1, 5, 30])
def test_no_crawl_is_taken_for_hung_because_redis_did_not_respond(pause: int) -> None:
    """However long the last pause was between two tries to look."""
    pulse = HeartbeatMonitor(30, 0)
    pulse.looked(29.9, 2, 2, has_begun=True)
    assert pulse.has_begun
    for _ in range(3, 200, pause):
        pulse.could_not_look()
    pulse.looked(0, 230, 230, has_begun=True)
    assert not pulse.is_hung(230)
    pulse.looked(0, 250, 250, has_begun=True)
    assert not pulse.is_hung(250)
    pulse.looked(0, 253, 253, has_begun=True)
    assert pulse.is_hung(253)


def test_no_crawl_is_taken_for_hung_because_its_pipeline_stood_still() -> None:
    pulse = HeartbeatMonitor(30, 0)
    pulse.looked(29.9, 2, 2, has_begun=True)
    pulse.looked(0, 90, 90, has_begun=True)
    assert not pulse.is_hung(90)
    starting = HeartbeatMonitor(30, 0, startup=60)
    starting.looked(0, 90, 90, has_begun=False)
    assert not starting.is_hung(90)


@pytest.mark.parametrize(
    ("code", "was_stopped", "requested", "expected"),
    [
        (ExitCode.DONE, False, False, EndVerdict.DONE),
        (ExitCode.LIMIT, False, False, EndVerdict.DONE),
        (ExitCode.SEEDS_BAD, True, False, EndVerdict.DONE),
        (ExitCode.STOPPED, False, True, EndVerdict.ABORTED),
        (ExitCode.STOPPED, True, False, EndVerdict.RELEASED),
        (-9, True, False, EndVerdict.RELEASED),
        (ExitCode.STOPPED, False, False, EndVerdict.CRASHED),
        (ExitCode.OUR_ERROR, False, True, EndVerdict.CRASHED),
        (-11, False, False, EndVerdict.CRASHED),
        (ExitCode.OUTPUT, False, False, EndVerdict.UNABLE),
    ],
)
def test_the_end_of_a_crawl_is_judged_by_its_exit_code(
    code: int, expected: EndVerdict, *, was_stopped: bool, requested: bool
) -> None:
    assert verdict(code, was_stopped=was_stopped, abort_requested=requested) is expected


def test_the_end_of_a_process_is_told_by_name() -> None:
    assert sentence(3) == "the crawl ended with exit code 3"
    assert sentence(-9) == "the crawl was ended by SIGKILL"
    assert sentence(-200) == "the crawl was ended by signal 200"


def test_pipelines_of_one_directory_find_the_same_store(tmp_path: Path) -> None:
    data, found = tmp_path / "a" / "b", []
    threads = [
        threading.Thread(target=lambda: found.append(opened_store(data, disk=Disk()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [path.name for path in data.iterdir()] == [STORE_MARK]


def test_a_store_mark_that_holds_no_uuid_is_refused(tmp_path: Path) -> None:
    (tmp_path / STORE_MARK).write_text("../../somewhere")
    with pytest.raises(UsageError, match="holds no UUID"):
        opened_store(tmp_path, disk=Disk())


@pytest.mark.parametrize("slug", ["", "../../etc/passwd", "a/b\x00c", "-", "x" * 5000, "\udcff", "…"])
def test_no_slug_leads_out_of_the_data_directory(tmp_path: Path, slug: str) -> None:
    base = new_base(slug, NOON, IDENT, data=tmp_path)
    assert is_base(base)
    assert (tmp_path / base).parent == tmp_path
    assert base.endswith("-20261122-120000-eed6r")
    second = new_base(slug, NOON, IDENT, data=tmp_path)
    assert second == f"{base}-{IDENT}"
    with pytest.raises(OutputError, match="is there already"):
        new_base(slug, NOON, IDENT, data=tmp_path)


def test_a_fence_only_goes_up(tmp_path: Path) -> None:
    assert raise_fence(tmp_path, IDENT, 7, disk=Disk())
    assert not raise_fence(tmp_path, IDENT, 6, disk=Disk())
    assert raise_fence(tmp_path, IDENT, 8, disk=Disk())
    assert raise_fence(tmp_path, IDENT, 8, disk=Disk()), "the crawl that its pipeline has started"
    assert fenced(tmp_path) == 8
    for spoiled in (b"", b"{", b"[1]", b'{"token": "x"}', b"\xff" * 50_000):
        (tmp_path / FENCE).write_bytes(spoiled)
        assert fenced(tmp_path) == 0


def test_the_info_of_a_job_has_the_eight_fields_whatever_its_record_holds() -> None:
    info = info_of({"url": "u\udcff" * 20_000, "aborted": "false"}, Claim(IDENT, 3))
    eight = ["aborted", "fetch_depth", "pipeline_id", "queued_at", "started_by", "started_in", "url"]
    assert {*eight, "url_file"} <= info.keys()
    assert info["aborted"] is True, "any text is true"
    assert info["url_file"] is None
    assert len(encoded_info(info)) < 40_000
    assert json.loads(encoded_info(info)) == info


def crawl_directory(path: Path) -> Path:
    """Make something like the directory of a running crawl."""
    (path / "frontier").mkdir(parents=True)
    for name in ("super", "snap-3.meguri", "log-4", "log-5", "snap-4.meguri.open"):
        (path / "frontier" / name).write_bytes(name.encode() * 1000)
    (path / "captures-00000.open").write_bytes(b"{}\n" * 1000)
    (path / "ami-00001.warc.gz.open").write_bytes(b"x")
    files = [
        {"name": f"ami-0000{n}.warc.gz", "size": 1, "records": 1, "sha256": "0" * 64} for n in (0, 1)
    ]
    (path / "crawl.json").write_text(json.dumps({"format": 1, "files": files}))
    return path


def manifest_in(bucket: Path, *names: str) -> None:
    bucket.mkdir(parents=True, exist_ok=True)
    files = {name: Uploaded(SealedFile(name, 1, 1, "0" * 64), "2026-11-22T12:00:00Z") for name in names}
    (bucket / "uploaded.json").write_bytes(UploadManifest("file:///b", files).encoded(for_bucket=True))


class ReplacedOnceOpen(PosixPath):
    """A path whose file is replaced by a shorter one right after it was opened."""

    def open(self, *args: Any, **keywords: Any) -> Any:
        stream = super().open(*args, **keywords)
        if self.name == "crawl.json":
            shorter = self.with_name("shorter")
            shorter.write_bytes(b"{}")
            shorter.replace(self)
        return stream


def test_a_file_that_is_replaced_while_it_is_copied_is_copied_whole(tmp_path: Path) -> None:
    (tmp_path / "crawl" / "frontier").mkdir(parents=True)
    (tmp_path / "crawl" / "frontier" / "super").write_bytes(b"super block")
    (tmp_path / "crawl" / "crawl.json").write_bytes(b'{"files": []}')
    url = (tmp_path / "checkpoint").as_uri()
    save(ReplacedOnceOpen(tmp_path / "crawl"), url, disk=Disk(), stopped=lambda: False)
    (tmp_path / "there").mkdir()
    restore_checkpoint(tmp_path / "there", url, disk=Disk())
    assert (tmp_path / "there" / "crawl.json").read_bytes() == b'{"files": []}'


def test_a_checkpoint_is_what_a_killed_crawl_would_leave_and_is_fetched_whole(tmp_path: Path) -> None:
    crawl, url = crawl_directory(tmp_path / "here"), (tmp_path / "bucket").as_uri()
    manifest_in(tmp_path / "bucket")
    checkpoint = (tmp_path / "checkpoint").as_uri()
    manifest_in(tmp_path / "bucket", "ami-00000.warc.gz", "job-20260101000000-00007.warc.gz")
    assert save(crawl, checkpoint, disk=Disk(), stopped=lambda: False) > 10_000
    assert len(list((tmp_path / "checkpoint").iterdir())) == 7
    there = tmp_path / "there"
    there.mkdir()
    (there / "old").touch()
    assert fetch(there, url, checkpoints=[checkpoint], disk=Disk()) == checkpoint
    assert (there / "frontier" / "log-5").read_bytes() == (crawl / "frontier" / "log-5").read_bytes()
    assert (there / "captures-00000.open").read_bytes() == b"{}\n" * 1000
    assert not (there / "frontier" / "snap-4.meguri.open").exists()
    assert not (there / "old").exists(), "what was there is put aside"
    assert (next(tmp_path.glob("there.before-*")) / "old").exists()
    listed = json.loads((there / "crawl.json").read_text())["files"]
    assert [file["name"] for file in listed] == ["ami-00000.warc.gz"], "the other one never arrived"
    assert (there / "uploaded.json").exists()
    assert next_number(there) == 1008, "names are left to the machine that may not be dead"


def test_a_checkpoint_has_the_links_for_other_partitions_that_are_still_to_be_sent(
    tmp_path: Path,
) -> None:
    """Their pages are settled in the frontier that it has, and nobody would name them again."""
    crawl, url = crawl_directory(tmp_path / "here"), (tmp_path / "bucket").as_uri()
    manifest_in(tmp_path / "bucket", "ami-00000.warc.gz")
    outbox = Outbox(crawl, disk=Disk())
    outbox.begin_epoch("processes")
    outbox.append(1, ["{}"])
    outbox.sync()
    outbox.sent(outbox.parcels(most=1)[0])
    outbox.write_mark()
    outbox.append(2, ["{}"])
    outbox.flush()
    checkpoint = (tmp_path / "checkpoint").as_uri()
    save(crawl, checkpoint, disk=Disk(), stopped=lambda: False)
    there = tmp_path / "there"
    fetch(there, url, checkpoints=[checkpoint], disk=Disk())
    again = Outbox(there, disk=Disk())
    assert again.begin_epoch("processes") is False
    assert [parcel.recipient for parcel in again.parcels(most=9)] == [2]


def test_a_checkpoint_that_is_spoiled_or_begun_is_passed_over(tmp_path: Path) -> None:
    crawl, url = crawl_directory(tmp_path / "here"), (tmp_path / "bucket").as_uri()
    manifest_in(tmp_path / "bucket")
    slots = [(tmp_path / f"slot-{n}").as_uri() for n in range(2)]
    for slot in slots:
        save(crawl, slot, disk=Disk(), stopped=lambda: False)
    (tmp_path / "slot-0" / "part-001").write_bytes(b"spoiled")
    assert fetch(tmp_path / "there", url, checkpoints=slots, disk=Disk()) == slots[1]
    with pytest.raises(OutputError, match="given up"):
        save(crawl, slots[1], disk=Disk(), stopped=lambda: True)
    with pytest.raises(OutputError, match="no whole checkpoint"):
        restore_checkpoint(tmp_path / "there", slots[1], disk=Disk())
    with pytest.raises(OutputError, match="no frontier"):
        fetch(tmp_path / "elsewhere", url, checkpoints=slots, disk=Disk())
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "frontier/../../x", "a/b", "", "x\x00", 7])
def test_no_name_in_a_checkpoint_leads_out_of_the_directory(tmp_path: Path, name: object) -> None:
    slot = tmp_path / "slot"
    slot.mkdir()
    file = {"name": name, "part": "part-000", "size": 0, "sha256": "0" * 64}
    (slot / LIST_NAME).write_text(json.dumps({"format": 1, "files": [file]}))
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="no whole checkpoint"):
        restore_checkpoint(tmp_path / "there", slot.as_uri(), disk=Disk())
    assert list((tmp_path / "there").iterdir()) == []


def test_an_index_that_counts_on_a_file_that_never_arrived_is_not_gone_on_with(tmp_path: Path) -> None:
    crawl = crawl_directory(tmp_path / "here")
    manifest_in(tmp_path / "bucket", "ami-00000.warc.gz")
    pq.write_table(
        pa.table({"warc_file": ["ami-00000.warc.gz", "ami-00007.warc.gz"]}), crawl / "captures.parquet"
    )
    slot = (tmp_path / "slot").as_uri()
    save(crawl, slot, disk=Disk(), stopped=lambda: False)
    with pytest.raises(OutputError, match="ami-00007"):
        fetch(tmp_path / "there", (tmp_path / "bucket").as_uri(), checkpoints=[slot], disk=Disk())


POISONED: dict[str, bytes] = {
    "no files": b"{}",
    "no object": b"[]",
    "files without names": b'{"files": [{"size": 1}]}',
    "names that are none": b'{"files": [{"name": 7, "size": 1, "records": 1, "sha256": ""}]}',
    "names that lead out": b'{"files": [{"name": "../x", "size": 1, "records": 1, "sha256": ""}]}',
    "files that are no list": b'{"files": 7}',
    "earlier crawls that are none": b'{"files": [], "earlier": [7]}',
    "no JSON": b"\x00",
    "values without number": b'{"files": [' + b"{}," * 6_000_000 + b"{}]}",
}


@pytest.mark.parametrize("content", POISONED)
def test_a_checkpoint_with_a_poisoned_crawl_json_is_passed_over(content: str, tmp_path: Path) -> None:
    crawl = crawl_directory(tmp_path / "here")
    manifest_in(tmp_path / "bucket")
    (crawl / "crawl.json").write_bytes(POISONED[content])
    slot = (tmp_path / "slot").as_uri()
    save(crawl, slot, disk=Disk(), stopped=lambda: False)
    url = (tmp_path / "bucket").as_uri()
    if content == "no files":
        assert fetch(tmp_path / "there", url, checkpoints=[slot], disk=Disk()) == slot
        return
    with pytest.raises(OutputError, match=r"crawl\.json"):
        fetch(tmp_path / "there", url, checkpoints=[slot], disk=Disk())


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"warc_file": [7]}),
        pa.table({"url": ["http://a.example/"]}),
        pa.table({"warc_file": [["ami-00000.warc.gz"]]}),
    ],
)
def test_a_checkpoint_with_a_poisoned_index_is_passed_over(table: pa.Table, tmp_path: Path) -> None:
    crawl = crawl_directory(tmp_path / "here")
    manifest_in(tmp_path / "bucket")
    pq.write_table(table, crawl / "captures.parquet")
    slot = (tmp_path / "slot").as_uri()
    save(crawl, slot, disk=Disk(), stopped=lambda: False)
    with pytest.raises(OutputError, match=r"captures\.parquet"):
        fetch(tmp_path / "there", (tmp_path / "bucket").as_uri(), checkpoints=[slot], disk=Disk())


@pytest.mark.parametrize("name", ["/etc/hostname", "../outside", "a/../../outside"])
def test_no_name_leads_out_of_a_bucket_that_is_a_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / "bucket").mkdir()
    bucket = open_bucket((tmp_path / "bucket").as_uri(), disk=Disk())
    with pytest.raises(OSError, match="leads out"):
        next(bucket.blocks(name))
    with pytest.raises(OSError, match="leads out"):
        bucket.size(name)


def test_checkpoints_take_the_slots_in_turn_and_one_that_failed_takes_its_own_again(
    tmp_path: Path,
) -> None:
    crawl, bucket = crawl_directory(tmp_path / "here"), tmp_path / "bucket"
    for slot in (0, 1):
        (bucket / f"here.checkpoint-{slot}").mkdir(parents=True)
    checkpoints = Checkpoints(bucket.as_uri(), every=10.0, now=100.0, slot=1)
    assert not checkpoints.is_due(109.9)
    made = []
    for moment, fails in ((110.0, False), (200.0, True), (300.0, False), (400.0, False)):
        assert checkpoints.is_due(moment)
        missing = crawl / "frontier"
        if fails:
            missing.rename(crawl / "elsewhere")
        checkpoints.begin(crawl, moment, disk=Disk())
        while not checkpoints.is_due(moment + 1e6):
            time.sleep(0.01)
        if fails:
            (crawl / "elsewhere").rename(missing)
        made.append(checkpoints.made())
        assert checkpoints.made() is None, "each is reported once"
    assert made == [1, None, 0, 1]
    for slot in (0, 1):
        restored = tmp_path / f"restored-{slot}"
        restored.mkdir()
        restore_checkpoint(restored, checkpoint_url(bucket.as_uri(), "here", slot), disk=Disk())
        assert (restored / "frontier" / "super").is_file()


def test_no_checkpoint_is_made_before_the_crawl_has_opened_its_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "data" / "base").mkdir(parents=True)
    workshop = Workshop(tmp_path / "data", "ours", lambda *_: [], {}, 30.0, Disk(), tmp_path.as_uri())
    checkpoints = Checkpoints(tmp_path.as_uri(), every=1.0, now=0.0)
    command = ["sleep", "60"]
    child = Child(
        command, environment={}, console=tmp_path / "console", tell=lambda _: None, disk=Disk()
    )
    attempt = JobAttempt(
        Claim(IDENT, 1, directory="base"),
        HeartbeatMonitor(30.0, 0.0),
        child,
        inbox=Inbox(clock=time.time),
        checkpoints=checkpoints,
    )
    try:
        assert attempt.checkpoint_made(workshop, 100.0) is None
        assert checkpoints.is_due(100.0), "none was begun"
        (tmp_path / "data" / "base").rmdir()
        crawl_directory(tmp_path / "data" / "base")
        attempt.checkpoint_made(workshop, 101.0)
        assert not checkpoints.is_due(101.5)
    finally:
        child.kill()
        checkpoints.stop()
    assert caplog.text == ""


def finished_in(
    bucket: Path, *, reason: str = "finished", listed: tuple[str, ...] = ("a.warc.gz",)
) -> None:
    """Put into *bucket* what a crawl uploads at its end; the list has not the last file yet."""
    bucket.mkdir(parents=True)
    (bucket / "captures.parquet").write_bytes(b"table")
    digest = hashlib.sha256(b"table").hexdigest()
    table = SealedFile("captures.parquet", 5, 1, digest)
    warcs = [SealedFile(name, 1, 1, "0" * 64) for name in listed]
    crawl = {
        "format": 1,
        "state": "finished",
        "finish_reason": reason,
        "files": [asdict(SealedFile("a.warc.gz", 1, 1, "0" * 64)), asdict(table)],
    }
    (bucket / "crawl.json").write_text(json.dumps(crawl))
    files = {file.name: Uploaded(file, "2026-11-22T12:00:00Z") for file in [*warcs, table]}
    (bucket / "uploaded.json").write_bytes(UploadManifest("file:///b", files).encoded(for_bucket=True))


@pytest.mark.parametrize(("reason", "code"), [("finished", 0), ("limit-pages", 8)])
def test_a_crawl_that_had_finished_before_its_machine_died_is_not_crawled_again(
    reason: str, code: int, tmp_path: Path
) -> None:
    finished_in(tmp_path / "bucket", reason=reason)
    there = tmp_path / "there"
    assert fetch_finished(there, (tmp_path / "bucket").as_uri(), disk=Disk())
    assert (there / "captures.parquet").read_bytes() == b"table"
    assert end_of_finished(there) == code
    listed = json.loads((tmp_path / "bucket" / "uploaded.json").read_text())["files"]
    assert "crawl.json" in {file["name"] for file in listed}, (
        "the last step is done for the dead machine"
    )


@pytest.mark.parametrize(("reason", "listed"), [("shutdown", ("a.warc.gz",)), ("finished", ())])
def test_a_crawl_that_was_stopped_or_is_not_whole_in_the_bucket_is_resumed(
    reason: str, listed: tuple[str, ...], tmp_path: Path
) -> None:
    finished_in(tmp_path / "bucket", reason=reason, listed=listed)
    assert not fetch_finished(tmp_path / "there", (tmp_path / "bucket").as_uri(), disk=Disk())
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("slot", [0, 1])
def test_of_two_checkpoints_the_last_one_is_fetched(slot: int, tmp_path: Path) -> None:
    base, bucket = "a.example-inf-20260101-000000-eed6r", (tmp_path / "bucket").as_uri()
    crawl = crawl_directory(tmp_path / "here")
    manifest_in(tmp_path / "bucket" / base, "ami-00000.warc.gz")
    for number in range(2):
        (crawl / "captures-00000.open").write_bytes(b"%d\n" % number)
        save(crawl, checkpoint_url(bucket, base, number), disk=Disk(), stopped=lambda: False)
    (tmp_path / "data").mkdir()
    ours = Workshop(tmp_path / "data", "ours", lambda *_: [], {}, 30.0, Disk(), bucket)
    theirs = Claim(IDENT, 2, directory=base, store="theirs", checkpoint=str(slot))
    copying = fetching(theirs, ours)
    assert copying is not None
    while not copying.is_over:
        time.sleep(0.01)
    assert copying.fault == ""
    assert (tmp_path / "data" / base / "captures-00000.open").read_bytes() == b"%d\n" % slot


@pytest.mark.parametrize(("last", "first"), [("0", 1), ("1", 0), ("", 0), ("2", 0), ("x", 0)])
def test_the_next_owner_does_not_begin_with_the_slot_of_the_last_checkpoint(
    last: str, first: int
) -> None:
    """Until its own first one is whole, that is all there is."""
    assert slot_after(last) == first


def test_each_job_has_a_path_of_its_own_below_the_bucket() -> None:
    assert path_of("s3://b/p?region=x", "base") == "s3://b/p/base?region=x"
    assert path_of("file:///srv/archive/", "base") == "file:///srv/archive/base"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:hush@a.example/x?y=1", "http://a.example/x?y=1"),
        ("http://a.example/\u00e9 &collection=x", "http://a.example/\u00e9 &collection=x"),
        ("http://[a/", ""),
    ],
)
def test_the_item_of_a_job_is_described_by_its_record(url: str, shown: str, tmp_path: Path) -> None:
    directory = tmp_path / "a.example-inf-20260101-000000-abcde"
    directory.mkdir()
    record = {"url": url, "started_at": "1767225600.5"}
    JobCopy("abcde" * 5, record=record).write(directory, disk=Disk())
    parts = urlsplit(url_of_job("ia://crawls?collection=c&date=2020", directory))
    check_bucket_url(urlunsplit(parts))
    assert identifier_of(parts) == f"crawls-{directory.name}"
    about = parse_qs(parts.query)
    assert about.pop("date") == ["2020"], "what the operator says"
    assert about.pop("collection") == ["c"]
    assert about == ({"originalurl": [shown], "title": [f"Web crawl of {shown}"]} if shown else {})
    dated = parse_qs(urlsplit(url_of_job("ia://crawls", directory)).query)
    assert dated["date"] == ["2026-01-01"]
    assert url_of_job("s3://b/p?x=1", directory) == f"s3://b/p/{directory.name}?x=1"


def test_an_item_has_no_checkpoints_and_is_not_resumed_from(tmp_path: Path) -> None:
    workshop = replace(
        Workshop(tmp_path, "id", lambda *_: [], {}, 4, Disk()), bucket="ia://crawls?collection=c"
    )
    assert workshop.state_bucket == ""
    assert replace(workshop, bucket="s3://crawls").state_bucket == "s3://crawls"


def test_records_of_dead_pipelines_and_claims_of_no_job_are_cleared_away(
    store: JobStore, tmp_path: Path
) -> None:
    client = raw(store)
    now = int(client.time()[0])
    old, new = (f"pipeline:{digit * 32}" for digit in "01")
    client.hset(old, mapping={"ts": now - 90_000, "nickname": "dead"})
    client.hset(new, mapping={"ts": now - 80_000, "nickname": "not yet"})
    client.set(f"pipeline:{'2' * 32}", "no hash")
    client.hset("pipeline:foreign", "ts", 1)
    client.sadd("pipelines", old, new)
    client.hset(store.keys.claim(IDENT), mapping={"token": 1, "state": "held"})
    Reaper(store, Claims(store)).reap()
    assert client.smembers("pipelines") == {new}
    assert client.exists(new, f"pipeline:{'2' * 32}", "pipeline:foreign") == 3
    assert 0 < client.ttl(store.keys.claim(IDENT)) <= 60
    assert [fields["nickname"] for fields in pipelines(store)] == ["not yet"]


def test_a_job_is_given_back_once_its_lease_has_been_expired_for_a_while(store: JobStore) -> None:
    """After an outage all leases have expired: the time in which owners regain them starts again."""
    now = 100.0
    raw(store).hset(IDENT, "url", "http://a.example/")
    raw(store).lpush("pending", IDENT)
    claims = Claims(store)
    assert claims.reserve(["pending"], "pipeline:dead") is not None
    raw(store).delete(store.keys.lease(IDENT))
    reaper = Reaper(store, claims, grace=15, clock=lambda: now)
    assert reaper.reap() == {}
    now = 114.0
    assert reaper.reap() == {}
    reaper.forget()
    now = 117.0
    assert reaper.reap() == {}
    now = 131.0
    assert reaper.reap() == {}
    now = 133.5
    assert reaper.reap(ours=[IDENT]) == {}, "its own crawls have other signs of life"
    now = 136.0
    assert reaper.reap() == {}
    now = 151.5
    assert reaper.reap() == {IDENT: GivenBack.QUEUED}
    assert raw(store).lrange("pending", 0, -1) == [IDENT]


def test_a_job_that_is_aborted_before_its_files_are_fetched_says_where_they_are(
    store: JobStore, tmp_path: Path
) -> None:
    base = "a.example-inf-20261122-120000-eed6r"
    job: dict[Any, Any] = {"url": "http://a.example/", "fetch_depth": "inf", "log_key": f"{IDENT}_log"}
    store.client.hset(store.keys.job(IDENT), mapping=job | {"abort_requested": "true"})
    claimed: dict[Any, Any] = {"directory": base, "store": "of-another", "checkpoint": "0"}
    store.client.hset(store.keys.claim(IDENT), mapping=claimed | {"attempt": "1", "state": "queued"})
    store.client.lpush(store.keys.queue("pending"), IDENT)
    claims = Claims(store, has_bucket=True)
    claim = claims.reserve(["pending"], "pipeline:x", timedelta(seconds=30), store_id="ours")
    assert claim is not None
    workshop = Workshop(tmp_path, "ours", lambda *_: [], {}, 30, Disk(), bucket=tmp_path.as_uri())
    attempt = JobAttempt(
        claim,
        HeartbeatMonitor(30, time.monotonic()),
        inbox=Inbox(clock=time.time, room=100),
        checkpoints=Checkpoints("", every=1, now=0, slot=0),
    )
    attempt.fault = "s3://bucket cannot be reached"
    ending, judged = Ending(store, claims, workshop), None
    while judged is None:
        judged = ending.report(attempt)
    assert judged is EndVerdict.ABORTED
    entries = store.client.zrange(f"{IDENT}_log", 0, -1)
    elsewhere, end = [json.loads(str(entry))["message"] for entry in entries]
    assert elsewhere == (
        "Attempt 2 began no crawl here: s3://bucket cannot be reached. What was archived before is in "
        f"{base} of the data directory with the ID of-another, and in the bucket with checkpoint 0\n"
    )
    assert end == f"Finished RsyncUpload for Item {IDENT}: the job was aborted\n"


def test_a_pipeline_does_not_drain_since_one_of_its_name_was_to(store: JobStore, tmp_path: Path) -> None:
    """As in a container, whose processes have the same host name and number each time."""
    identity = PipelineIdentity("h", "h.example", 7, "nick-1")
    killed, restarted = PipelineRecord(store, identity), PipelineRecord(store, identity)
    killed.report("Running", 0.0, figures(tmp_path), slots=1, running=0)
    tell_to_drain(store, "nick-1")
    assert killed.report("Running", 0.0, figures(tmp_path), slots=1, running=0) == "release"
    assert restarted.report("Running", 0.0, figures(tmp_path), slots=1, running=0) == ""
    tell_to_drain(store, "nick-1", how="finish")
    assert restarted.report("Running", 0.0, figures(tmp_path), slots=1, running=0) == "finish"


def test_a_pipeline_is_told_to_drain_by_its_name_or_key(store: JobStore, tmp_path: Path) -> None:
    record = PipelineRecord(store, PipelineIdentity("h", "h.example", 7, "nick-1"))
    assert record.key == "pipeline:" + hashlib.md5(b"h:h.example:7").hexdigest()
    measured = figures(tmp_path / "not" / "there")
    assert record.report("Running", 1.5, measured, slots=1, running=0) == ""
    assert tell_to_drain(store, "nick-1", how="finish") == [record.key]
    assert record.report("Running", 1.5, measured, slots=1, running=0) == "finish"
    raw(store).hset(record.key, "amicrawl_drain", "rm -rf")
    assert record.report("Running", 1.5, measured, slots=1, running=0) == ""
    with pytest.raises(InputError, match="amicrawl pipeline ls"):
        tell_to_drain(store, "nick")
    raw(store).delete("pipelines")
    raw(store).rpush("pipelines", "a list, as the document says")
    record.report("Running", 1.5, measured, slots=1, running=0)
    record.unregister()
    assert pipelines(store) == []
