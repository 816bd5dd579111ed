"""Buckets: a file counts as uploaded when it was seen whole there, and only then may go here."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow.fs as pafs
import pytest
import warm_processes
from faulty_disks import FaultyDisk, QuickDisk
from loopback import environment
from object_store import BUCKET, CREDENTIALS, GoogleStore, ObjectStore
from record.exchanges import BEGAN, open_archive, pages, table_rows, urls_of

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, DamagedFileError, ExitCode, OutputError, UsageError
from amicrawl.fleet.checkpoints import fetch, ship
from amicrawl.listing import CrawlJson
from amicrawl.listing.files import SealedFile
from amicrawl.record.repair import repair
from amicrawl.record.writer import next_number
from amicrawl.uploads.bucket import DirectoryBucket, ObjectBucket, check_bucket_url, open_bucket
from amicrawl.uploads.progress import UploadProgress
from amicrawl.uploads.upload import ConflictError, NotAsSealedError, StoppedError, Uploads

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from amicrawl.uploads.bucket import Bucket

WARCS = ["ami-00000.warc.gz", "ami-00001.warc.gz", "ami-00002.warc.gz"]


def crawl(directory: Path, *, first: int = 0, number: int = 12, seal: bool = True) -> Path:
    """Store some pages in *directory* as a crawl does, with its `crawl.json`; unsealed: as if killed."""
    directory.mkdir(exist_ok=True)
    sealed: list[SealedFile] = []
    archive = open_archive(directory, on_sealed=sealed.append)
    listing = CrawlJson(directory, started=BEGAN, asked={}, settings={}, versions={}, disk=QuickDisk())
    archive.store(pages(number, first=first))
    if seal:
        archive.seal()
    else:
        archive.close()
    for file in sealed:
        listing.add_file(file)
    if seal:
        listing.finish("finished", finished=BEGAN, counts={})
    return directory


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return crawl(tmp_path / "out")


def uploads(out: Path, bucket: Bucket | Path, **options: Any) -> Uploads:
    if isinstance(bucket, Path):
        bucket = open_bucket(bucket.as_uri(), disk=QuickDisk())
    options.setdefault("disk", QuickDisk())
    return Uploads(out, bucket, now=lambda: BEGAN, **options)


def send_all(sending: Uploads, *, frontier: bool = False) -> None:
    for file in [*sending.warc_files(), *sending.closing_files(frontier=frontier)]:
        sending.upload(file)
    sending.publish()


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_all_of_a_crawl_lies_in_the_bucket_byte_for_byte(out: Path, tmp_path: Path) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    there, here = contents(tmp_path / "bucket"), contents(out)
    listed = json.loads(there.pop("uploaded.json"))
    assert there == {name: block for name, block in here.items() if name != "uploaded.json"}
    assert len([name for name in there if name.endswith(".warc.gz")]) >= 2
    assert {entry["name"]: entry["sha256"] for entry in listed["files"]} == {
        name: hashlib.sha256(block).hexdigest() for name, block in there.items()
    }
    assert listed["files"] == json.loads(here["uploaded.json"])["files"]


def test_what_lies_there_is_not_sent_again(out: Path, tmp_path: Path) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    before = {path: path.stat().st_ino for path in (tmp_path / "bucket").iterdir()}
    send_all(uploads(out, tmp_path / "bucket"))
    after = {path: path.stat().st_ino for path in (tmp_path / "bucket").iterdir()}
    before.pop(tmp_path / "bucket" / "uploaded.json")
    assert before.items() <= after.items()


def test_the_frontier_goes_up_only_where_that_is_requested(out: Path, tmp_path: Path) -> None:
    (out / "frontier").mkdir()
    (out / "frontier" / "super").write_bytes(b"state")
    send_all(uploads(out, tmp_path / "bucket"))
    assert not (tmp_path / "bucket" / "frontier").exists()
    send_all(uploads(out, tmp_path / "bucket"), frontier=True)
    assert (tmp_path / "bucket" / "frontier" / "super").read_bytes() == b"state"


def test_only_the_last_frontier_that_was_shipped_is_fetched(out: Path, tmp_path: Path) -> None:
    """Else a job that changes machines often downloads every frontier that it ever had."""
    url = (tmp_path / "bucket").as_uri()
    (out / "frontier").mkdir()
    (out / "frontier" / "super").write_bytes(b"0")
    for number in range(3):
        (out / "frontier" / f"snap-{number}.meguri").write_bytes(b"state")
        (out / "frontier" / f"snap-{number - 1}.meguri").unlink(missing_ok=True)
        ship(out, url, disk=Disk())
    fetch(tmp_path / "next", url, checkpoints=(), disk=Disk())
    assert contents(tmp_path / "next" / "frontier") == {"super": b"0", "snap-2.meguri": b"state"}
    assert [path.name for path in (tmp_path / "next").glob("*.parquet")] == ["captures.parquet"]


def test_only_warc_files_are_removed_and_the_next_crawl_misses_nothing(
    out: Path, tmp_path: Path
) -> None:
    number, before = next_number(out), {row["url"]: row for row in table_rows(out)}
    listed = json.loads((out / "crawl.json").read_text())["files"]
    send_all(uploads(out, tmp_path / "bucket", remove=True))
    assert sorted(contents(out)) == ["captures.parquet", "crawl.json", "uploaded.json"]
    assert not repair(out, disk=QuickDisk()).found_anything
    crawl(out, first=100)
    rows = {row["url"]: row for row in table_rows(out)}
    assert {url: rows[url] for url in before} == before
    fresh = sorted(path.name for path in out.glob("*.warc.gz"))
    assert fresh[0] == f"ami-{number:05d}.warc.gz", "the name of a file is never used again"
    after = json.loads((out / "crawl.json").read_text())["files"]
    assert [entry for entry in after if entry["name"] != "captures.parquet"][: len(listed) - 1] == [
        entry for entry in listed if entry["name"] != "captures.parquet"
    ]
    send_all(uploads(out, tmp_path / "bucket", remove=True))
    assert set(fresh) < set(contents(tmp_path / "bucket"))


def test_removed_files_are_known_without_a_crawl_json(out: Path, tmp_path: Path) -> None:
    number = next_number(out)
    send_all(uploads(out, tmp_path / "bucket", remove=True))
    (out / "crawl.json").unlink()
    crawl(out, first=100)
    assert (out / f"ami-{number:05d}.warc.gz").exists()
    names = [entry["name"] for entry in json.loads((out / "crawl.json").read_text())["files"]]
    assert names[:number] == [f"ami-{at:05d}.warc.gz" for at in range(number)]
    send_all(uploads(out, tmp_path / "bucket"))


def test_a_killed_crawl_whose_sealed_files_are_gone_has_lost_no_row(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out", seal=False)
    sending = uploads(out, tmp_path / "bucket", remove=True)
    for file in sending.warc_files():
        sending.upload(file)
    assert not list(out.glob("*.warc.gz"))
    assert list(out.glob("*.open"))
    repaired = repair(out, disk=QuickDisk())
    assert repaired.lost_urls == []
    assert sorted(urls_of(pages(12))) == sorted(row["url"] for row in table_rows(out))


def test_another_object_of_the_same_name_is_never_written_over(out: Path, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    theirs = tmp_path / "bucket" / WARCS[1]
    theirs.write_bytes(b"somebody else's")
    sending = uploads(out, tmp_path / "bucket", remove=True)
    first, second, *_ = sending.warc_files()
    sending.upload(first)
    with pytest.raises(ConflictError, match=r"holds another ami-00001.*not written over"):
        sending.upload(second)
    assert theirs.read_bytes() == b"somebody else's"
    assert (out / WARCS[1]).exists()
    assert not (out / WARCS[0]).exists()


def test_a_later_state_of_the_index_replaces_the_earlier_one(out: Path, tmp_path: Path) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    crawl(out, first=100)
    send_all(uploads(out, tmp_path / "bucket"))
    assert (tmp_path / "bucket" / "captures.parquet").read_bytes() == (
        out / "captures.parquet"
    ).read_bytes()
    (tmp_path / "bucket" / "captures.parquet").write_bytes(b"theirs by now")
    crawl(out, first=200)
    sending = uploads(out, tmp_path / "bucket")
    with pytest.raises(ConflictError):
        sending.upload(sending.closing_files()[0])


def test_of_a_job_all_that_an_earlier_owner_has_sent_late_is_replaced_but_for_warc_files(
    out: Path, tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    sending = uploads(out, bucket, is_jobs_own=True)
    for name in ("captures.parquet", "crawl.json", WARCS[1]):
        (bucket / name).write_bytes(b"of a machine that was frozen")
    with pytest.raises(ConflictError):
        sending.upload(sending.warc_files()[1])
    for file in sending.closing_files():
        sending.upload(file)
    for name in ("captures.parquet", "crawl.json"):
        assert (bucket / name).read_bytes() == (out / name).read_bytes()
    assert (bucket / WARCS[1]).read_bytes() == b"of a machine that was frozen"


def test_a_bucket_with_another_crawl_in_it_is_refused(out: Path, tmp_path: Path) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    other = crawl(tmp_path / "other", first=500)
    with pytest.raises(UsageError, match="the files of another crawl"):
        uploads(other, tmp_path / "bucket")
    with pytest.raises(UsageError, match="the files of another crawl"):
        uploads(tmp_path / "not there yet", tmp_path / "bucket")


def test_a_bucket_that_is_the_directory_itself_is_refused(out: Path, tmp_path: Path) -> None:
    """Each WARC file was found there, and the only copy removed as one that had been uploaded."""
    original = contents(out)
    (tmp_path / "link").symlink_to(out)
    for place in (out, tmp_path / "link"):
        with pytest.raises(UsageError, match=r"itself.*Give another place"):
            send_all(uploads(out, place, remove=True))
        assert contents(out) == original


def test_a_second_bucket_is_refused(out: Path, tmp_path: Path) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    with pytest.raises(UsageError, match="is another bucket"):
        uploads(out, tmp_path / "second")


def test_a_lost_list_is_made_up_for_by_the_one_in_the_bucket(out: Path, tmp_path: Path) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    (out / "uploaded.json").unlink()
    sending = uploads(out, tmp_path / "bucket", remove=True)
    assert WARCS[0] in sending.uploaded
    send_all(sending)
    assert not list(out.glob("*.warc.gz"))


def test_an_object_that_was_spoiled_since_is_seen_before_anything_is_removed(
    out: Path, tmp_path: Path
) -> None:
    send_all(uploads(out, tmp_path / "bucket"))
    copy = tmp_path / "bucket" / WARCS[0]
    copy.write_bytes(copy.read_bytes()[:-1] + b"?")
    sending = uploads(out, tmp_path / "bucket", remove=True)
    with pytest.raises(ConflictError):
        sending.upload(sending.warc_files()[0])
    assert (out / WARCS[0]).exists()


def test_a_file_that_is_not_what_was_sealed_is_neither_uploaded_nor_removed(
    out: Path, tmp_path: Path
) -> None:
    path = out / WARCS[0]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    sending = uploads(out, tmp_path / "bucket", remove=True)
    with pytest.raises(NotAsSealedError, match="not the file that was sealed"):
        sending.upload(sending.warc_files()[0])
    assert path.exists()
    assert not (tmp_path / "bucket" / WARCS[0]).exists()


def test_a_file_that_does_not_arrive_whole_is_not_uploaded_and_stays_here(
    out: Path, tmp_path: Path
) -> None:
    class Spoils(DirectoryBucket):
        """Shows other bytes than it was given, of the same number."""

        def blocks(self, name: str) -> Iterator[bytes]:
            for block in super().blocks(name):
                yield bytes(len(block))

    (tmp_path / "bucket").mkdir()
    spoils = Spoils((tmp_path / "bucket").as_uri(), tmp_path / "bucket", disk=QuickDisk())
    sending = uploads(out, spoils, remove=True, pause=lambda _: None)
    with pytest.raises(OutputError, match=r"ami-00000\.warc\.gz did not arrive whole"):
        sending.upload(sending.warc_files()[0])
    assert not sending.uploaded
    assert (out / WARCS[0]).exists()


def test_an_upload_that_is_stopped_leaves_nothing_under_the_name(out: Path, tmp_path: Path) -> None:
    sending = uploads(out, tmp_path / "bucket", remove=True, stopped=lambda: True)
    with pytest.raises(StoppedError):
        sending.upload(sending.warc_files()[0])
    assert not (tmp_path / "bucket" / WARCS[0]).exists()
    assert (out / WARCS[0]).exists()


def test_a_store_that_shows_later_what_it_has_taken_is_given_some_seconds(
    out: Path, tmp_path: Path
) -> None:
    class Late(DirectoryBucket):
        """Shows each object only after some pauses."""

        def size(self, name: str) -> int | None:
            return super().size(name) if pauses and pauses[-1] >= 1.0 else None

    (tmp_path / "bucket").mkdir()
    pauses: list[float] = []
    late = Late((tmp_path / "bucket").as_uri(), tmp_path / "bucket", disk=QuickDisk())
    sending = uploads(out, late, pause=pauses.append)
    send_all(sending)
    assert sending.uploaded.keys() >= {"captures.parquet", "crawl.json"}
    assert pauses == [0.25, 0.5, 1.0]


def test_what_is_left_to_upload_is_said_in_files_and_bytes() -> None:
    files = [SealedFile(name, size, 1, "") for name, size in (("a", 100), ("b", 300))]
    progress = UploadProgress(files)
    progress.moved(100)
    assert str(progress) == "uploading 1 of 2, 12 %", "it is to be read back, too"
    progress.begin()
    assert str(progress) == "uploading 1 of 2, 0 %", "a file that failed begins again"
    progress.end(files[0])
    progress.moved(600)
    assert str(progress) == "uploading 2 of 2, 99 %"
    progress.end(files[1])
    assert str(progress) == "listed"


class Failing:
    """A file system of pyarrow's of which call number *fatal* fails, half of a write having been done.

    Instead of failing, a read gives something else where *lies*.
    """

    def __init__(self, fatal: int, *, lies: bool = False) -> None:
        self._real = pafs.LocalFileSystem()
        self._left = fatal
        self._lies = lies
        self.failed_at = ""

    def fails(self, call: str) -> bool:
        self._left -= 1
        if self._left:
            return False
        self.failed_at = call
        if self._lies and call == "read":
            return True
        raise OSError(errno.EIO, f"the store failed at {call}")

    def get_file_info(self, path: str) -> Any:
        self.fails("get_file_info")
        return self._real.get_file_info(path)

    def open_output_stream(self, path: str, *, compression: None) -> Any:
        self.fails("open_output_stream")
        return FailingStream(self, self._real.open_output_stream(path, compression=compression))

    def open_input_stream(self, path: str, *, compression: None) -> Any:
        self.fails("open_input_stream")
        return FailingStream(self, self._real.open_input_stream(path, compression=compression))

    def move(self, source: str, target: str) -> None:
        self.fails("move")
        self._real.move(source, target)


class FailingStream:
    def __init__(self, store: Failing, real: Any) -> None:
        self._store = store
        self._real = real

    def write(self, block: bytes) -> None:
        try:
            self._store.fails("write")
        except OSError:
            self._real.write(block[: len(block) // 2])
            # What pyarrow does with a stream that is let go of.
            self._real.close()
            raise
        self._real.write(block)

    def read(self, size: int) -> bytes:
        block: bytes = self._real.read(size)
        return b"x" * len(block) if self._store.fails("read") else block

    def close(self) -> None:
        self._store.fails("close")
        self._real.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._real.close()


def verified(out: Path, bucket: Path, original: dict[str, bytes]) -> None:
    """Fail unless every WARC file is here or, byte for byte and listed, there."""
    listed: set[str] = set()
    if (out / "uploaded.json").exists():
        listed = {entry["name"] for entry in json.loads((out / "uploaded.json").read_text())["files"]}
    for name, block in original.items():
        if name.endswith(".warc.gz") and not (out / name).exists():
            assert (bucket / name).read_bytes() == block
            assert name in listed
        elif name.endswith((".warc.gz", ".parquet")):
            assert (out / name).read_bytes() == block
    for path in bucket.glob("*.warc.gz"):
        assert path.read_bytes() == original[path.name], "half a file under the name of a whole one"


@pytest.mark.parametrize("lies", [False, True])
def test_whichever_call_to_the_store_fails_nothing_is_removed_that_is_not_there(
    lies: bool, tmp_path: Path
) -> None:
    steps: set[str] = set()
    for fatal in count(1):
        root = tmp_path / str(fatal)
        root.mkdir()
        out, bucket = crawl(root / "out", number=4), root / "bucket"
        bucket.mkdir()
        original = contents(out)
        store = Failing(fatal, lies=lies)
        target = ObjectBucket("s3://b/p", store, str(bucket), disk=QuickDisk())
        for _ in range(2):
            try:
                send_all(uploads(out, target, remove=True))
            except OutputError:
                verified(out, bucket, original)
            except UsageError:
                # The list in the bucket was read as something else.
                assert lies
                verified(out, bucket, original)
        verified(out, bucket, original)
        assert not list(out.glob("*.warc.gz")), f"the second attempt does the rest ({store.failed_at})"
        if not store.failed_at:
            break
        steps.add(store.failed_at)
    assert steps == {"get_file_info", "open_output_stream", "write", "close", "move"} | {
        "open_input_stream",
        "read",
    }


@pytest.mark.parametrize("killed", [False, True])
def test_whichever_call_to_the_disk_fails_nothing_is_removed_that_is_not_there(
    killed: bool, tmp_path: Path
) -> None:
    for fatal in count(1):
        root = tmp_path / str(fatal)
        root.mkdir()
        out, bucket = crawl(root / "out", number=4), root / "bucket"
        original = contents(out)
        disk = FaultyDisk(fatal, killed=killed)
        try:
            send_all(uploads(out, bucket, disk=disk, remove=True))
        except AmicrawlError:
            assert disk.failed_at
        except BaseException as error:
            if not killed or type(error).__name__ != "KilledError":
                raise
        verified(out, bucket, original)
        send_all(uploads(out, bucket, remove=True))
        verified(out, bucket, original)
        assert not list(out.glob("*.warc.gz"))
        if not disk.failed_at:
            break
    assert fatal > 20


def list_of(**changes: object) -> bytes:
    """Return a list of one file, but for *changes*."""
    entry = {"name": "a.warc.gz", "size": 1, "records": 0, "sha256": "0" * 64, "uploaded": ""}
    return json.dumps({"format": 1, "bucket": "", "files": [entry | changes]}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 2, "bucket": "", "files": []}',
        b'{"format": 1, "bucket": "", "files": [1]}',
        list_of(name="../../etc/passwd"),
        list_of(name="frontier/../crawl.json"),
        list_of(name="a\n.warc.gz"),
        list_of(size=True),
        list_of(size=-1),
        list_of(sha256="no digest"),
    ],
)
def test_a_list_that_is_none_is_refused_wherever_it_lies(
    content: bytes, out: Path, tmp_path: Path
) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "uploaded.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"an uploaded\.json of something else"):
        uploads(out, tmp_path / "bucket")
    (out / "uploaded.json").write_bytes(content)
    with pytest.raises(DamagedFileError):
        uploads(out, tmp_path / "empty")


@pytest.mark.parametrize(
    "url",
    [
        "archive",
        "/srv/archive",
        "ftp://archive/x",
        "s3://",
        "s3:///x",
        "s3://b/p?bogus=1",
        "file://host/x",
        "file:///",
        "s3://[/x",
    ],
)
def test_a_url_that_means_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="Write s3://bucket/path"):
        open_bucket(url, disk=Disk())


def test_a_secret_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="credentials") as refused:
        open_bucket("s3://AKIA:hush@bucket/path", disk=Disk())
    assert "hush" not in str(refused.value)


def test_a_directory_is_made_only_where_its_parent_is_there(tmp_path: Path) -> None:
    open_bucket((tmp_path / "new").as_uri(), disk=Disk())
    assert (tmp_path / "new").is_dir()
    with pytest.raises(UsageError, match="No such file"):
        open_bucket((tmp_path / "not mounted" / "new").as_uri(), disk=Disk())


@pytest.mark.parametrize("start", ["file:///tmp/a", "s3://archive/a", "rsync://a.example/module"])
def test_no_bucket_is_named_with_a_nul(start: str) -> None:
    check_bucket_url(f"{start}/b")
    with pytest.raises(UsageError, match="must not hold a NUL"):
        check_bucket_url(f"{start}%00/b")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with ObjectStore() as running:
        yield running


def command(out: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", "upload", str(out), "--to", url, *options],
        env={**environment(), **CREDENTIALS},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_uploads_to_s3_and_removes_what_it_has_verified(
    out: Path, store: ObjectStore
) -> None:
    original = contents(out)
    done = command(out, store.url("run/1"), "--remove")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "verified" in done.stdout
    there = store.contents("run/1")
    assert there.pop("uploaded.json")
    assert there == original
    assert not list(out.glob("*.warc.gz"))
    (out / "captures-00009.open").touch()
    unfinished = command(out, store.url("run/1"))
    assert unfinished.returncode == ExitCode.INPUT
    assert "amicrawl repair" in unfinished.stderr


def test_the_command_sends_again_what_is_gone_from_the_bucket(out: Path, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    assert command(out, bucket.as_uri()).returncode == ExitCode.DONE
    (bucket / WARCS[0]).unlink()
    (bucket / "crawl.json").write_bytes(b"cut")
    again = command(out, bucket.as_uri())
    assert again.returncode == ExitCode.OUTPUT
    assert "holds another crawl.json" in again.stderr
    assert (bucket / WARCS[0]).read_bytes() == (out / WARCS[0]).read_bytes()
    (bucket / "crawl.json").unlink()
    done = command(out, bucket.as_uri())
    assert done.returncode == ExitCode.DONE, done.stderr
    assert (bucket / "crawl.json").read_bytes() == (out / "crawl.json").read_bytes()


def test_the_command_says_what_is_neither_here_nor_in_the_bucket_any_more(
    out: Path, tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    first = command(out, bucket.as_uri(), "--remove")
    (bucket / WARCS[0]).unlink()
    again = command(out, bucket.as_uri())
    assert again.returncode == ExitCode.DONE
    assert f"1 file uploaded before ({WARCS[0]}): not in {bucket.as_uri()} any more" in again.stderr
    assert first.stdout != again.stdout


def test_the_command_uploads_to_google_cloud_storage(out: Path) -> None:
    original = contents(out)
    with GoogleStore() as store:
        done = command(out, store.url("run/1"), "--remove")
        assert done.returncode == ExitCode.DONE, done.stderr
        assert "verified" in done.stdout
        there = store.contents("run/1")
    assert there.pop("uploaded.json")
    assert there == original
    assert not list(out.glob("*.warc.gz"))


def test_an_object_of_several_parts_arrives_whole(tmp_path: Path, store: ObjectStore) -> None:
    block = os.urandom(1 << 20)
    size = 23 * len(block) + 7
    bucket = ObjectBucket("s3://archive/big", store.filesystem(), f"{BUCKET}/big", disk=QuickDisk())
    bucket.write("file", [*[block] * 23, b"the end"], size=size)
    assert bucket.size("file") == size
    assert b"".join(bucket.blocks("file")) == block * 23 + b"the end"
    assert bucket.size("file.open") is None


def test_s3_keeps_another_object_of_the_same_name(out: Path, store: ObjectStore) -> None:
    filesystem = store.filesystem()
    key = f"{BUCKET}/taken/{WARCS[0]}"
    with filesystem.open_output_stream(key, compression=None) as stream:
        stream.write(b"theirs")
    done = command(out, store.url("taken"), "--remove")
    assert done.returncode == ExitCode.OUTPUT
    assert "holds another ami-00000.warc.gz" in done.stderr
    assert store.contents("taken")[WARCS[0]] == b"theirs"
    assert [path.name for path in out.glob("*.warc.gz")] == [WARCS[0]]


class LosesTheLease(Disk):
    """Permits changes until a transfer begins."""

    is_lost = False

    def permit(self) -> None:
        if self.is_lost:
            raise PermissionError(errno.EPERM, "the lease was lost")


def test_what_was_sent_gets_no_name_in_the_store_once_the_lease_is_lost(store: ObjectStore) -> None:
    disk = LosesTheLease()
    bucket = ObjectBucket("s3://archive/late", store.filesystem(), f"{BUCKET}/late", disk=disk)
    bucket.write("crawl.json", [b"the newer owner's"], size=17)

    def frozen() -> Iterator[bytes]:
        yield b"the older owner's"
        disk.is_lost = True

    with pytest.raises(OSError, match="the lease was lost"):
        bucket.write("crawl.json", frozen(), size=17)
    assert b"".join(bucket.blocks("crawl.json")) == b"the newer owner's"


def test_a_transfer_that_breaks_off_leaves_nothing_under_the_name(store: ObjectStore) -> None:
    bucket = ObjectBucket("s3://archive/torn", store.filesystem(), f"{BUCKET}/torn", disk=QuickDisk())

    def torn() -> Iterator[bytes]:
        yield b"the first half"
        raise OSError(errno.EIO, "the disk failed")

    with pytest.raises(OSError, match="the disk failed"):
        bucket.write("file", torn(), size=28)
    assert bucket.size("file") is None


def test_a_bucket_that_is_not_there_is_a_mistake(out: Path, store: ObjectStore) -> None:
    missing = command(out, store.url("x", bucket="nowhere"))
    assert missing.returncode == ExitCode.USAGE
    assert "there is no bucket 'nowhere'" in missing.stderr
    assert "Traceback" not in missing.stderr
