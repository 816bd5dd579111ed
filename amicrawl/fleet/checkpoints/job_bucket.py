"""A job's crawl kept in a bucket, so that a machine that shares no disk can resume it.

Each job has a path of its own below the bucket's, called after its directory. The crawl itself copies
its WARC files there as they are sealed, and its index at its end (`crawl/uploading.py`). When it was
stopped before it was done, the pipeline adds the frontier, and from then on the claim says `shipped`.

The next owner fetches everything but the WARC files, whose names and sizes are enough to resume. Each
file is verified by the list in the bucket, and the directory bears its name only when all are there.
Of a machine that died the last checkpoint is taken (`checkpoint.py`); what came after it, or was in no
WARC file that had arrived, is fetched from the web again.

`crawl.json` is the last file that a crawl uploads. Where it says that the crawl has finished, and all
files that it lists are in the bucket, the machine died before it could report that: nothing is crawled
again (`fetch_finished`, `end_of_finished`).
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import orjson

from amicrawl.clock import warc_date
from amicrawl.disk import OutputFile, explained, rename_durably, replace_file
from amicrawl.errors import AmicrawlError, ExitCode, OutputError
from amicrawl.fleet.checkpoints.checkpoint import is_fetched, path_of, restore_checkpoint
from amicrawl.fleet.checkpoints.data_directory import JobCopy
from amicrawl.listing import (
    DEFAULT_PREFIX,
    FILE_NAME,
    MANIFEST_NAME,
    SIZE_LIMIT,
    SUFFIX,
    TABLE_NAME,
    NotAManifestError,
    SealedFile,
    Uploaded,
    decoded,
    number_in,
    read_crawl_json,
    read_manifest,
    warc_name,
)
from amicrawl.uploads import (
    UploadProgress,
    Uploads,
    keeps_state,
    open_bucket,
    small_object,
    usable,
    with_metadata,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.listing import UploadManifest
    from amicrawl.uploads import Bucket

ROOM = 1000
"""Numbers of WARC files that are left to a machine that is believed dead."""

_FETCHED = ".fetched"
_LONGEST_URL = 2000


class NothingToFetchError(OutputError):
    """The bucket responds, and holds nothing that a crawl can be resumed from."""


def url_of_job(url: str, directory: Path) -> str:
    """Return where the crawl of a job in *directory* uploads to, in the bucket at *url*.

    An item gets title, date and address of what the job is, from its record.
    """
    place = path_of(url, directory.name)
    copy = None if keeps_state(url) else JobCopy.read(directory)
    if copy is None:
        return place
    address = _without_user(copy.record.get("url", ""))
    begun = copy.claim.get("first_started_at") or copy.record.get("started_at") or "0"
    about = {"originalurl": address, "title": address and f"Web crawl of {address}"}
    with suppress(ValueError, OverflowError, OSError):
        about["date"] = f"{datetime.fromtimestamp(float(begun), UTC):%Y-%m-%d}" if float(begun) else ""
    return with_metadata(place, about)


def _without_user(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))[:_LONGEST_URL]


def ship(
    directory: Path,
    url: str,
    *,
    disk: Disk,
    stopped: Callable[[], bool] = lambda: False,
    begun: Callable[[UploadProgress], object] = lambda _: None,
) -> None:
    """Copy what the next owner of *directory* needs to the bucket at *url*, its path included.

    No crawl may run in it, and its files are sealed. *begun* gets what says how far it is. Raises
    AmicrawlError where that fails, or where *stopped*, which is called all the time, says so.
    """
    uploads = Uploads(
        directory,
        open_bucket(url, disk=disk),
        disk=disk,
        now=lambda: datetime.now(UTC),
        is_jobs_own=True,
        stopped=stopped,
    )
    files = [*uploads.warc_files(), *uploads.closing_files(frontier=True)]
    progress = UploadProgress(files)
    uploads.on_moved = progress.moved
    begun(progress)
    for file in files:
        progress.begin()
        uploads.upload(file)
        progress.end(file)
    uploads.drop_frontier_but(files)
    uploads.publish()


def fetch(directory: Path, url: str, *, checkpoints: Sequence[str], disk: Disk) -> str:
    """Make *directory* from what is at *url*; return from which URL. An existing one is renamed.

    The *checkpoints*, URLs, are newer than what was shipped, and are tried first. Raises
    NothingToFetchError where nothing is there whole, OutputError where the bucket cannot be read, which
    may change. Then nothing is there under that name.
    """
    faults: list[Exception] = []
    for source in [*checkpoints, url]:
        beginning = directory.with_name(directory.name + _FETCHED)
        with explained(beginning, "made"):
            shutil.rmtree(beginning, ignore_errors=True)
            (beginning / "frontier").mkdir(parents=True)
        try:
            _fetch_into(beginning, url, source, disk=disk)
        except (AmicrawlError, OSError) as error:
            faults.append(error)
            continue
        if directory.exists():
            _put_aside(directory, disk=disk)
        rename_durably(beginning, directory, disk=disk)
        return source
    may_change = any(isinstance(fault.__cause__ or fault, OSError) for fault in faults)
    raise (OutputError if may_change else NothingToFetchError)(" ".join(map(str, faults)))


def fetch_finished(directory: Path, url: str, *, disk: Disk) -> bool:
    """Make *directory* from a crawl that has finished, all of whose files are at *url*.

    Return whether there is one; nothing is there under that name otherwise. Its WARC files stay in the
    bucket. Raises OutputError where the bucket cannot be read.
    """
    bucket = open_bucket(url, disk=disk)
    with usable(bucket):
        content = small_object(bucket, FILE_NAME, largest=SIZE_LIMIT)
    if content is None:
        return False
    beginning = directory.with_name(directory.name + _FETCHED)
    with explained(beginning, "made"):
        shutil.rmtree(beginning, ignore_errors=True)
        beginning.mkdir(parents=True)
    replace_file(beginning / FILE_NAME, content, disk=disk)
    try:
        manifest = _manifest(bucket)
    except NothingToFetchError:
        return False
    manifest.bucket = url
    # The machine may have died before it could list the last file.
    digest = hashlib.sha256(content).hexdigest()
    file = SealedFile(FILE_NAME, len(content), 1, digest)
    manifest.files[FILE_NAME] = Uploaded(file, warc_date(datetime.now(UTC)))
    manifest.write(beginning, disk=disk)
    if end_of_finished(beginning) is None:
        return False
    for name, each in manifest.files.items():
        if not name.endswith(SUFFIX) and name != FILE_NAME and "/" not in name:
            _fetch(bucket, each, beginning / name, disk=disk)
    if directory.exists():
        _put_aside(directory, disk=disk)
    rename_durably(beginning, directory, disk=disk)
    # The last step that the machine before may not have come to.
    Uploads(directory, bucket, disk=disk, now=lambda: datetime.now(UTC)).publish()
    return True


def end_of_finished(directory: Path) -> ExitCode | None:
    """Return how the crawl in *directory* ended, whose files are all uploaded; None for any other.

    A crawl that was stopped has not finished: the job is not done.
    """
    try:
        crawl, manifest = read_crawl_json(directory), read_manifest(directory)
    except AmicrawlError:
        return None
    reason = str(crawl.get("finish_reason"))
    is_over = reason == "finished" or reason.startswith("limit-")
    listed, itself = crawl.get("files", []), manifest.files.get(FILE_NAME)
    if crawl.get("state") != "finished" or not is_over or not listed:
        return None
    if itself is None or itself.file.size != (directory / FILE_NAME).stat().st_size:
        return None
    for file in listed:
        there = manifest.files.get(str(file["name"]))
        if there is None or (there.file.size, there.file.sha256) != (file["size"], file["sha256"]):
            return None
    return ExitCode.DONE if reason == "finished" else ExitCode.LIMIT


def _put_aside(directory: Path, *, disk: Disk) -> None:
    """Rename *directory*, an attempt of long ago on this machine: others have gone further since."""
    aside = f"{directory.name}.before-{datetime.now(UTC):%Y%m%d%H%M%S}"
    rename_durably(directory, directory.with_name(aside), disk=disk)


def begin_anew(directory: Path, url: str, *, disk: Disk) -> None:
    """Make *directory* for a crawl that begins although *url* has WARC files of an earlier attempt.

    They stay, and no file of this crawl gets the name of one. Raises OutputError.
    """
    with explained(directory, "made"):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
    bucket = open_bucket(url, disk=disk)
    if bucket.size(MANIFEST_NAME) is not None:
        manifest = _manifest(bucket)
        manifest.bucket = url
        manifest.write(directory, disk=disk)
        _leave_room(directory, manifest, disk=disk)


def _fetch_into(beginning: Path, url: str, source: str, *, disk: Disk) -> None:
    bucket = open_bucket(url, disk=disk)
    manifest = _manifest(bucket)
    if source != url:
        restore_checkpoint(beginning, source, disk=disk)
        _keep_what_lies_there(beginning, manifest, disk=disk)
        _leave_room(beginning, manifest, disk=disk)
    elif not any(name.startswith("frontier/") for name in manifest.files):
        raise OutputError(f"{url} holds no frontier.")
    else:
        for name, each in manifest.files.items():
            if not name.endswith(SUFFIX):
                _fetch(bucket, each, beginning / name, disk=disk)
    manifest.bucket = url
    manifest.write(beginning, disk=disk)


def _keep_what_lies_there(directory: Path, manifest: UploadManifest, *, disk: Disk) -> None:
    """Have the lists in *directory* name those WARC files only that are in the bucket.

    What was sealed and not copied yet has gone with its machine: its pages are fetched again, if it is
    listed nowhere. Raises OutputError where the index counts on such a file.
    """
    path = directory / FILE_NAME
    if path.exists():
        crawl = read_crawl_json(directory)
        listed = crawl.get("files", [])
        files = [file for file in listed if _is_there(file["name"], manifest)]
        if files != listed:
            replace_file(
                path, orjson.dumps({**crawl, "files": files}, option=orjson.OPT_INDENT_2), disk=disk
            )
    table = directory / TABLE_NAME
    if table.exists():
        for name in _named_by(directory):
            if not _is_there(name, manifest):
                raise OutputError(f"{name}, in which captures are, never arrived in the bucket.")


def _named_by(directory: Path) -> Iterator[str]:
    """Yield the WARC files that the index in *directory* counts on, some of them more than once."""
    # Loaded for a job that is taken over: it takes 50 MB, of which a pipeline that waits has no use.
    from amicrawl.record import warc_files_in_table  # noqa: PLC0415

    return warc_files_in_table(directory)


def _leave_room(directory: Path, manifest: UploadManifest, *, disk: Disk) -> None:
    """See to it that no WARC file gets a name that the machine before may have given to another.

    It may have begun to copy files that are listed nowhere, and if it is not dead may still do so. The
    crawl counts on from the highest number that any file of its directory bears.
    """
    numbers = (number_in(name) for name in manifest.files)
    number = max((number for number in numbers if number is not None), default=-1) + ROOM
    output = OutputFile(directory / f"{warc_name(DEFAULT_PREFIX, number)}.elsewhere", disk=disk)
    try:
        output.write(b"Names below this one may be those of files that another machine has made.\n")
        output.seal()
    finally:
        output.close()


def _is_there(name: str, manifest: UploadManifest) -> bool:
    return not name.endswith(SUFFIX) or name in manifest.files


def _manifest(bucket: Bucket) -> UploadManifest:
    with usable(bucket):
        content = small_object(bucket, MANIFEST_NAME, largest=SIZE_LIMIT)
    if content is None:
        raise NothingToFetchError(f"{bucket.url} holds no list of a crawl's files.")
    try:
        return decoded(content)
    except NotAManifestError as error:
        raise NothingToFetchError(f"{bucket.url} holds a list that cannot be read: {error}.") from error


def _fetch(bucket: Bucket, each: Uploaded, path: Path, *, disk: Disk) -> None:
    name, size, sha256 = each.file.name, each.file.size, each.file.sha256
    try:
        if not is_fetched(bucket, name, path, size=size, sha256=sha256, disk=disk):
            raise OutputError(f"{name} in {bucket.url} is not what was shipped.")
    except OSError as error:
        raise OutputError(f"{name} cannot be fetched from {bucket.url}: {error}.") from error
