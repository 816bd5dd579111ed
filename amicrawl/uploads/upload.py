"""Uploads: the sealed files of one directory into one bucket, each verified there before it counts.

    1  what the bucket has under the name is looked at: the same bytes count as uploaded, other
       bytes are never written over, unless they are an earlier state of the same file of this crawl,
       or came from an earlier owner of the job whose path it is and are in no WARC file
    2  the name is noted as begun, here
    3  the file is sent, and summed up on its way: it must be the one that was sealed
    4  the object's size is requested, and all of it read back and summed up, again after some seconds
       where the store shows what was there before
    5  it is listed in `uploaded.json`, here and then in the bucket
    6  where that is requested, a WARC file is removed here

A failure at any step leaves everything as it was, and the next attempt begins again at 1. Only WARC
files are ever removed: the index, `crawl.json` and the frontier are what a crawl goes on from, and
their sizes and names in `crawl.json` and `uploaded.json` stand for the removed ones. The rows of a
WARC file are on disk before it is sealed, so none of them needs it any more.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from amicrawl.clock import warc_date
from amicrawl.disk import explained, remove_durably
from amicrawl.errors import AmicrawlError, InputError, OutputError, UsageError
from amicrawl.listing import (
    FILE_NAME,
    MANIFEST_NAME,
    SUFFIX,
    TABLE_NAME,
    SealedFile,
    Uploaded,
    described,
    described_warc,
    is_plain,
    listed_files,
)
from amicrawl.uploads.bucket import BLOCK, manifest_for
from amicrawl.uploads.internet_archive import ItemBucket, Reported
from amicrawl.uploads.item_client import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.uploads.bucket import Bucket


_PATIENCE = (0.25, 0.5, 1.0, 2.0)
"""Seconds between two looks at an object that the store does not show yet."""
_ITEM_PATIENCE = (*_PATIENCE, 4.0, 8.0, *[15.0] * 60)
"""The same for a file that is to appear in an item: a quarter of an hour."""
_BUSY_PATIENCE = (5.0, 10.0, 20.0, 40.0, *[60.0] * 9)
"""Seconds between two attempts at a store that takes nothing now: ten minutes."""


class ConflictError(UsageError):
    """The bucket has something else under that name, which stays: trying again is of no use."""


class NotAsSealedError(InputError):
    """A file is no longer what was sealed: trying again is of no use."""


class StoppedError(AmicrawlError):
    """The upload was stopped; nothing has come of it."""


class NotShownError(OutputError):
    """An item does not show a file that was taken for it: it may do so later."""


class Uploads:
    """What *bucket* has of *directory*, and what is still to go there. For one thread."""

    def __init__(
        self,
        directory: Path,
        bucket: Bucket,
        *,
        disk: Disk,
        now: Callable[[], datetime],
        remove: bool = False,
        is_jobs_own: bool = False,
        stopped: Callable[[], bool] = lambda: False,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """*remove* removes WARC files here once they are uploaded; *stopped* is called while bytes flow.

        *is_jobs_own*: the bucket's path is that of a job which is ours now. What an earlier owner of it
        has put there, late perhaps, is replaced, and only its WARC files stay.
        Nothing is sent or changed yet, but the bucket is looked at. Raises UsageError where it holds the
        files of another crawl, or this directory was uploaded to another bucket; OutputError where the
        bucket cannot be read, DamagedFileError where a list of files in the directory cannot.
        """
        self._directory = directory
        self._bucket = bucket
        self._disk = disk
        self._now = now
        self._remove = remove
        self._is_jobs_own = is_jobs_own
        self._stopped = stopped
        self._pause = pause
        self.on_moved: Callable[[int], object] = lambda _: None
        """Called with the number of bytes of a file that were just sent, or read back."""
        self._item = bucket if isinstance(bucket, ItemBucket) else None
        self._taken: dict[str, tuple[str, Reported | None]] = {}
        """MD5 of each file that the item has taken and not shown, and what it showed in its place."""
        self._manifest = manifest_for(directory, bucket)
        self._published = b""
        """What is known to be the manifest in the bucket."""
        self._gone: set[str] = set()
        """Files of the manifest that the bucket does not have any more."""
        self._verified: set[str] = set()
        """Files that this object has seen whole in the bucket."""

    @property
    def uploaded(self) -> dict[str, SealedFile]:
        """The files that lie in the bucket, by name."""
        return {name: each.file for name, each in self._manifest.files.items()}

    def begin(self) -> None:
        """Find out whether writing is permitted, by the list of files. Raises OutputError.

        An item would show it minutes later; its keys were looked at.
        """
        if self._item is None:
            self.publish()

    def publish(self) -> None:
        """Bring the list of its files into the bucket. Raises OutputError."""
        content = self._manifest.encoded(for_bucket=True)
        if content == self._published:
            return
        sha256 = hashlib.sha256(content).hexdigest()
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        with self._explained(MANIFEST_NAME):
            if self._item is not None:
                self._see_it_in(
                    self._item, MANIFEST_NAME, lambda: iter([content]), Reported(len(content), md5)
                )
            else:
                self._bucket.write(MANIFEST_NAME, iter([content]), size=len(content))
                if not self._has_arrived(MANIFEST_NAME, len(content), sha256):
                    raise self._damaged_on_its_way(MANIFEST_NAME)
        self._published = content

    def warc_files(self) -> list[SealedFile]:
        """Return the sealed WARC files that are here, listed or not, those uploaded before included."""
        listed = {file.name: file for file in listed_files(self._directory) if is_plain(file.name)}
        with explained(self._directory, "read"):
            paths = sorted(self._directory.glob(f"*{SUFFIX}"))
            return [
                listed.get(path.name) or described_warc(path) for path in paths if is_plain(path.name)
            ]

    def missing(self) -> list[str]:
        """Return the names of WARC files that are neither here nor in the bucket."""
        return [
            file.name
            for file in listed_files(self._directory)
            if file.name.endswith(SUFFIX)
            and file.name not in self._manifest.files
            and not (self._directory / file.name).exists()
        ]

    def find_gone(self) -> list[str]:
        """Return the names of files that are listed and not in the bucket, or not with their size.

        `upload` sends them again. Those of an item are not looked for: that would take long. Raises
        OutputError where the bucket does not respond.
        """
        for name, file in self.uploaded.items() if self._item is None else ():
            with self._explained(name):
                if self._bucket.size(name) != file.size:
                    self._gone.add(name)
        return sorted(self._gone)

    def closing_files(self, *, frontier: bool = False) -> list[SealedFile]:
        """Return what goes up at the end: the index, the frontier if requested, `crawl.json`."""
        names = [TABLE_NAME, FILE_NAME]
        with explained(self._directory, "read"):
            if frontier:
                inside = sorted((self._directory / "frontier").glob("*"))
                names[1:1] = [f"frontier/{path.name}" for path in inside if path.is_file()]
            paths = [(name, self._directory / name) for name in names if is_plain(name)]
            files = [(name, described(path, records=0)) for name, path in paths if path.exists()]
        return [SealedFile(name, file.size, file.records, file.sha256) for name, file in files]

    def drop_frontier_but(self, files: Iterable[SealedFile]) -> None:
        """Have the list name only those files of the frontier that are among *files*.

        Those of earlier states would be fetched by every later owner. Raises OutputError.
        """
        kept = {file.name for file in files}
        old = [name for name in self.uploaded if name.startswith("frontier/") and name not in kept]
        for name in old:
            del self._manifest.files[name]
        if old:
            self._manifest.write(self._directory, disk=self._disk)

    def upload(self, file: SealedFile) -> None:
        """Have *file* in the bucket, listed there, and if requested removed here.

        Raises OutputError where it may be tried again, ConflictError and NotAsSealedError where that is
        of no use, StoppedError where it was stopped.
        """
        entry = self._manifest.files.get(file.name)
        is_listed = (
            entry is not None and entry.file.sha256 == file.sha256 and file.name not in self._gone
        )
        if not is_listed or (self._removes(file) and file.name not in self._verified):
            self._see_it_there(file)
            self._manifest.files[file.name] = Uploaded(file, warc_date(self._now()))
            self._manifest.begun.discard(file.name)
            self._manifest.write(self._directory, disk=self._disk)
            self._gone.discard(file.name)
            self._verified.add(file.name)
        # An item takes long over each file: its list is there for what is removed, and at the end.
        if self._item is None or self._removes(file) or not file.name.endswith(SUFFIX):
            self.publish()
        if self._removes(file):
            self._remove_here(file)

    def _removes(self, file: SealedFile) -> bool:
        return self._remove and file.name.endswith(SUFFIX) and (self._directory / file.name).exists()

    def _remove_here(self, file: SealedFile) -> None:
        path = self._directory / file.name
        if path.stat().st_size != file.size:
            raise self._not_as_sealed(file)
        remove_durably(path, disk=self._disk)

    def _see_it_there(self, file: SealedFile) -> None:
        """Return when *file* is in the bucket, whole; send it where it is not."""
        expected = self._reported_of(file) if self._item is not None else None
        with self._explained(file.name):
            if self._item is not None and self._item.reported(file.name) == expected:
                return
            size = self._bucket.size(file.name)
            # What an item has of a file that was begun is not needed: it is another, and ours.
            is_begun = self._item is not None and file.name in self._manifest.begun
            there = None if size is None or is_begun else self._digest_there(file.name, size)
        if there == file.sha256:
            return
        if there is not None and not self._is_ours(file.name, there):
            raise ConflictError(
                f"{self._bucket.url} holds another {file.name} (its SHA-256 is {there}, ours is "
                f"{file.sha256}), which is not written over. Upload to another path, or move it away."
            )
        self._manifest.begun.add(file.name)
        self._manifest.write(self._directory, disk=self._disk)
        with self._explained(file.name):
            if self._item is not None and expected is not None:
                self._see_it_in(self._item, file.name, lambda: self._blocks_here(file), expected)
                return
            self._bucket.write(file.name, self._blocks_here(file), size=file.size)
            if not self._has_arrived(file.name, file.size, file.sha256):
                raise self._damaged_on_its_way(file.name)

    def _reported_of(self, file: SealedFile) -> Reported:
        """Return what an item would show of *file*; NotAsSealedError where it is not what was sealed."""
        md5 = hashlib.md5(usedforsecurity=False)
        for block in self._blocks_here(file):
            md5.update(block)
        return Reported(file.size, md5.hexdigest())

    def _see_it_in(
        self, item: ItemBucket, name: str, blocks: Callable[[], Iterator[bytes]], expected: Reported
    ) -> None:
        """Send *blocks* to *item* and return once it shows that it has them.

        What it has taken before is not sent again unless it shows something else under that name.
        """
        before = item.reported(name)
        if self._taken.get(name) != (expected.md5, before):
            self._send(item, name, blocks, expected)
            self._taken[name] = (expected.md5, before)
            for seconds in _ITEM_PATIENCE:
                self._wait(seconds)
                with suppress(BusyError):
                    if item.reported(name) == expected:
                        return
        elif before == expected:
            return
        raise NotShownError(
            f"{item.url} has taken {name} and does not show it yet, so it does not count as uploaded. "
            "It is looked for again by the next upload."
        )

    def _send(
        self, item: ItemBucket, name: str, blocks: Callable[[], Iterator[bytes]], expected: Reported
    ) -> None:
        """Have *item* take *blocks*, again after growing pauses where it takes nothing now."""
        for seconds in _BUSY_PATIENCE:
            try:
                item.write(name, blocks(), size=expected.size, md5=expected.md5)
            except BusyError as error:
                self._wait(seconds if error.after is None else error.after)
            else:
                return
        item.write(name, blocks(), size=expected.size, md5=expected.md5)

    def _is_ours(self, name: str, sha256: str) -> bool:
        """Tell whether an object may be replaced: this crawl has put it there, whole or not."""
        if self._is_jobs_own and not name.endswith(SUFFIX):
            return True
        entry = self._manifest.files.get(name)
        return name in self._manifest.begun or (entry is not None and entry.file.sha256 == sha256)

    def _blocks_here(self, file: SealedFile) -> Iterator[bytes]:
        """Yield the bytes of *file*; NotAsSealedError behind the last where they are not its own."""
        sha256 = hashlib.sha256()
        path = self._directory / file.name
        try:
            with path.open("rb") as stream:
                while block := stream.read(BLOCK):
                    self._go_on()
                    sha256.update(block)
                    self.on_moved(len(block))
                    yield block
        except FileNotFoundError as error:
            raise NotAsSealedError(f"{path} is gone and was not uploaded. Bring it back.") from error
        if sha256.hexdigest() != file.sha256:
            raise self._not_as_sealed(file)

    def _digest_there(self, name: str, size: int) -> str:
        """Read the object *name* back and return its SHA-256; empty where it has not *size* bytes."""
        if self._bucket.size(name) != size:
            return ""
        sha256, seen = hashlib.sha256(), 0
        for block in self._bucket.blocks(name):
            self._go_on()
            sha256.update(block)
            seen += len(block)
            self.on_moved(len(block))
        return sha256.hexdigest() if seen == size else ""

    def _has_arrived(self, name: str, size: int, sha256: str) -> bool:
        """Read the object *name* back; some stores show for a while what was there before."""
        for seconds in (0.0, *_PATIENCE):
            self._wait(seconds)
            if self._digest_there(name, size) == sha256:
                return True
        return False

    def _wait(self, seconds: float) -> None:
        while seconds > 0:
            self._go_on()
            self._pause(min(seconds, 1.0))
            seconds -= 1.0

    def _go_on(self) -> None:
        if self._stopped():
            raise StoppedError("The upload was stopped.")

    def _not_as_sealed(self, file: SealedFile) -> NotAsSealedError:
        return NotAsSealedError(
            f"{self._directory / file.name} is not the file that was sealed ({file.size} bytes, SHA-256 "
            f"{file.sha256}) and was neither uploaded nor removed. Restore it from a copy."
        )

    def _damaged_on_its_way(self, name: str) -> OutputError:
        return OutputError(f"{name} did not arrive whole in {self._bucket.url}; nothing was removed.")

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        """Turn an OSError of the store into the OutputError that says that *name* was not uploaded."""
        try:
            yield
        except OSError as error:
            raise OutputError(f"{name} could not be uploaded to {self._bucket.url}: {error}") from error
