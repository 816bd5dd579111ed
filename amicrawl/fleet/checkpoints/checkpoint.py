"""Checkpoints: the state of a crawl in a bucket, from which another machine resumes it.

    BUCKET/BASE.checkpoint-0/part-000...        frontier, outbox, index, crawl.json; one object a file
    BUCKET/BASE.checkpoint-0/checkpoint.json    their names, sizes and SHA-256, written last
    BUCKET/BASE.checkpoint-1/                   the same, in turn: one of the two is always whole

What is copied is what a crawl that was killed at that moment would have left, open WARC files apart:
its files only grow, or are replaced by others of other names. So the next owner resumes it as it would
resume a killed one. The same form carries the sealed state of a partition (`sharing/worker.py`).
Pages whose records were not yet in a sealed WARC file are fetched again; sealed
ones are in BUCKET/BASE, where the crawl itself has copied them (`job_bucket.py`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import orjson

from amicrawl.disk import OPEN_SUFFIX, OutputFile, explained
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.jsontext import parsed
from amicrawl.partition import Outbox
from amicrawl.uploads import BLOCK, open_bucket, small_object, usable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.uploads import Bucket

logger = logging.getLogger(__name__)

SLOTS = 2
LIST_NAME = "checkpoint.json"
FORMAT = 1

_TRIES = 5
_LARGEST_LIST = 16 * 1024**2
_NAME = re.compile(r"(?:frontier/)?[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_PART = re.compile(r"part-[0-9]{3,6}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FRONTIER = re.compile(r"super|snap-[0-9]+(?:\.strings-[0-9]+)?\.meguri|log-[0-9]+")
_INDEX = re.compile(r"captures-[0-9]+\.open|captures\.parquet|crawl\.json")


class _Changed(Exception):  # noqa: N818  # not an error: the crawl continues
    """A file went while the copy was made: the crawl has a newer one."""


def path_of(url: str, base: str) -> str:
    """Return the URL of the path that the job *base* has in the bucket at *url*."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{base}"))


def checkpoint_url(url: str, base: str, slot: int) -> str:
    """Return the URL of slot *slot* of the job *base* in the bucket at *url*."""
    return path_of(url, f"{base}.checkpoint-{slot}")


def save(
    directory: Path,
    url: str,
    *,
    disk: Disk,
    stopped: Callable[[], bool],
    serial: int = 0,
    files: Callable[[Path], list[str]] | None = None,
    is_read_back: bool = False,
) -> int:
    """Copy the crawl in *directory*, which may run, to the path at *url*; return how many bytes.

    *serial* orders two checkpoints where nothing else does. *files* lists what is copied; without it,
    frontier, outbox and index. With *is_read_back*, every object is read again and compared.

    Raises AmicrawlError where that fails, or *stopped* says so; then what was there is no longer whole.
    """
    names = files or _crawl_files
    bucket = open_bucket(url, disk=disk)
    with usable(bucket):
        # While it is being replaced, no reader may take it for whole.
        bucket.write(LIST_NAME, iter([b"{}"]), size=2)
        for _ in range(_TRIES):
            try:
                copied = [
                    _copied(bucket, directory, name, f"part-{number:03d}", stopped)
                    for number, name in enumerate(names(directory))
                ]
            except _Changed:
                continue
            if is_read_back:
                _read_back(bucket, copied)
            content = orjson.dumps({"format": FORMAT, "serial": serial, "files": copied})
            bucket.write(LIST_NAME, iter([content]), size=len(content))
            return sum(file["size"] for file in copied)
    raise OutputError(f"{directory} changes too fast to be copied.")


def ship_state(directory: Path, url: str, *, disk: Disk) -> None:
    """Copy the sealed state of the partition in *directory* to *url*, and read it back.

    Raises AmicrawlError where that fails.
    """
    save(directory, url, disk=disk, stopped=lambda: False, files=state_files, is_read_back=True)


def serial_of(url: str, *, disk: Disk) -> int:
    """Return the serial of the whole checkpoint at *url*; -1 where there is none."""
    bucket = open_bucket(url, disk=disk)
    with usable(bucket):
        try:
            serial = _read(bucket).get("serial", 0)
        except OutputError:
            return -1
    return serial if type(serial) is int and serial >= 0 else -1


class NewerCheckpoints(NamedTuple):
    """The checkpoints of a crawl that are newer than what else is known of it."""

    urls: list[str]
    """The newest one first."""
    serial: int
    """What the next one is to have."""
    slot: int
    """Where the next one goes: the newest one stays until that is whole."""


def newer_checkpoints(url: str, base: str, *, than: int, disk: Disk) -> NewerCheckpoints:
    """Return the checkpoints of the job *base* in the bucket at *url* with serials above *than*."""
    places = [checkpoint_url(url, base, slot) for slot in range(SLOTS)]
    serials = {place: serial_of(place, disk=disk) for place in places}
    newer = sorted((each for each in places if serials[each] > than), key=serials.__getitem__)[::-1]
    slot = (places.index(newer[0]) + 1) % SLOTS if newer else 0
    return NewerCheckpoints(newer, max(than, *serials.values()) + 1, slot)


def restore_checkpoint(directory: Path, url: str, *, disk: Disk) -> None:
    """Put the checkpoint at *url* into *directory*; raises AmicrawlError where it is not whole."""
    bucket = open_bucket(url, disk=disk)
    with usable(bucket):
        for file in _listed(bucket):
            path = directory / file["name"]
            with explained(path.parent, "made"):
                path.parent.mkdir(exist_ok=True)
                path.with_name(path.name + OPEN_SUFFIX).unlink(missing_ok=True)
            size, sha256 = file["size"], file["sha256"]
            if not is_fetched(bucket, file["part"], path, size=size, sha256=sha256, disk=disk):
                raise OutputError(f"{file['name']} in {bucket.url} is not what was copied there.")


def state_files(directory: Path) -> list[str]:
    """Return the files of the frontier in *directory*, the superblock first, and those of its outbox.

    In this order, what is read later knows at least as much: a page that is settled has its links in the
    outbox. Raises OutputError.
    """
    with explained(directory, "read"):
        frontier = [path.name for path in (directory / "frontier").iterdir()]
    # The superblock names snapshots that stay until it has been replaced twice.
    kept = sorted(name for name in frontier if _FRONTIER.fullmatch(name))
    kept.sort(key=lambda name: name != "super")
    # The mark before what it marks: it is not behind the end of a shorter copy then.
    outbox = [name for name in reversed(Outbox.FILES) if (directory / name).exists()]
    return [*(f"frontier/{name}" for name in kept), *outbox]


def is_begun(directory: Path) -> bool:
    """Tell whether a crawl has opened *directory*, so that there is something to copy."""
    return (directory / "frontier" / "super").exists()


def _crawl_files(directory: Path) -> list[str]:
    state = state_files(directory)
    with explained(directory, "read"):
        return state + sorted(path.name for path in directory.iterdir() if _INDEX.fullmatch(path.name))


def _read_back(bucket: Bucket, files: list[dict[str, Any]]) -> None:
    for file in files:
        sha256 = hashlib.sha256()
        for block in bucket.blocks(file["part"]):
            sha256.update(block)
        if sha256.hexdigest() != file["sha256"]:
            raise OSError(f"{file['part']} did not arrive as it was sent")


def _copied(
    bucket: Bucket, directory: Path, name: str, part: str, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Copy as much of the file *name* as there is now to *part*, and say how much that was."""
    path, sha256 = directory / name, hashlib.sha256()
    try:
        with path.open("rb") as stream:
            # Of what was opened: by now another file may have taken its name.
            size = os.fstat(stream.fileno()).st_size

            def blocks() -> Iterator[bytes]:
                left = size
                while left:
                    if stopped():
                        raise OutputError("The copy was given up: the crawl has ended.")
                    block = stream.read(min(BLOCK, left))
                    if not block:
                        raise _Changed
                    left -= len(block)
                    sha256.update(block)
                    yield block

            bucket.write(part, blocks(), size=size)
    except FileNotFoundError as error:
        if path.exists():
            raise
        raise _Changed from error
    return {"name": name, "part": part, "size": size, "sha256": sha256.hexdigest()}


def _read(bucket: Bucket) -> dict[str, Any]:
    """Return what the list says, its files checked."""
    content = small_object(bucket, LIST_NAME, largest=_LARGEST_LIST)
    if content is None:
        raise OutputError(f"{bucket.url} holds no checkpoint.")
    try:
        read = parsed(content)
        files = [_checked(file) for file in read["files"]] if read["format"] == FORMAT else []
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{bucket.url} holds no whole checkpoint.") from error
    return {**read, "files": files}


def _listed(bucket: Bucket) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = _read(bucket)["files"]
    if not any(file["name"].startswith("frontier/") for file in files):
        raise OutputError(f"{bucket.url} holds no frontier.")
    return files


def _checked(file: dict[str, Any]) -> dict[str, Any]:
    name, part, size, sha256 = (file[key] for key in ("name", "part", "size", "sha256"))
    if not _NAME.fullmatch(name) or not _PART.fullmatch(part):
        raise ValueError(f"{name!r} in {part!r} cannot be")
    if not _SHA256.fullmatch(sha256) or type(size) is not int or size < 0:
        raise ValueError(f"what it says of {name!r} cannot be")
    return {"name": name, "part": part, "size": size, "sha256": sha256}


def is_fetched(bucket: Bucket, name: str, path: Path, *, size: int, sha256: str, disk: Disk) -> bool:
    """Write the object *name* of *bucket* to the new file *path*, sealed if it is what it should be.

    Tell whether it is: *size* bytes with that SHA-256 in hexadecimal. Raises OSError as the bucket does.
    """
    found, received = hashlib.sha256(), 0
    output = OutputFile(path, disk=disk, digest=found)
    try:
        for block in bucket.blocks(name):
            received += len(block)
            if received > size:
                break
            output.write(block)
        is_whole = received == size and found.hexdigest() == sha256
        if is_whole:
            output.seal()
    finally:
        output.close()
    return is_whole


class Copying:
    """A thread that runs one function, and knows how that ended."""

    def __init__(self, copy: Callable[[Callable[[], bool]], object], *, what: str = "") -> None:
        """Start to run *copy*, which gets a function that returns whether to stop.

        *what* begins the sentence that logs a failure; empty where the caller reports it.
        """
        self.fault = "it has not come to its end"
        """Why it failed; empty once it has succeeded."""
        self.error: Exception | None = None
        """What it raised, if that is known."""
        self.seconds = 0.0
        """How long it took."""
        self._copy = copy
        self._what = what
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="copying", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, successfully or not."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Have it stop; what was copied until then stays."""
        self._stop.set()

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._copy(self._stop.is_set)
        except Exception as error:  # noqa: BLE001  # whatever a store or its contents do: the crawl continues
            self.error = error
            self.fault = str(error) if isinstance(error, AmicrawlError) else repr(error)
            if self._what and not self._stop.is_set():
                logger.warning("%s: %s", self._what, self.fault)
        else:
            self.seconds = time.monotonic() - began
            self.fault = ""


class Checkpoints:
    """The checkpoints of one running crawl, made one after the other, in the two slots in turn."""

    def __init__(self, url: str, *, every: float, now: float, slot: int = 0) -> None:
        """*url* is that of the bucket, *slot* the first one's; *every* in seconds, at least."""
        self._url = url
        self._every = every
        self._begun = now
        self._slot = slot
        self._last: Copying | None = None
        self._is_reported = False

    def is_due(self, now: float) -> bool:
        """Tell whether it is time for the next one, and none is being made."""
        last = self._last
        if last is not None and not last.is_over:
            return False
        # A large crawl is copied less often: that must not be most of what its machine does.
        return now - self._begun >= max(self._every, 20 * last.seconds if last is not None else 0.0)

    def begin(self, directory: Path, now: float, *, disk: Disk, serial: int = 0) -> None:
        """Begin to copy *directory*; *serial* as `save` takes it."""
        # The slot of one that failed is not whole: the other one stays.
        if self._last is not None and not self._last.fault:
            self._slot = (self._slot + 1) % SLOTS
        self._begun, self._is_reported = now, False
        url = checkpoint_url(self._url, directory.name, self._slot)
        self._last = Copying(
            lambda stopped: save(directory, url, disk=disk, stopped=stopped, serial=serial),
            what=f"The checkpoint of {directory.name} failed",
        )

    def made(self) -> int | None:
        """Return the slot of one that was completed since the last call."""
        last = self._last
        if last is None or self._is_reported or not last.is_over or last.fault:
            return None
        self._is_reported = True
        return self._slot

    def stop(self) -> None:
        """Give up the one that is being made; what was copied until then stays."""
        if self._last is not None:
            self._last.stop()
