"""Shipping: what the next owner of a partition needs, brought to a place that both reach, and back.

    PLACE/NAME-part-NNN-VERSION/frontier-...    the frontier, sealed
    PLACE/NAME-part-NNN-VERSION/outbox, outbox.mark
    PLACE/NAME-part-NNN/shipped.json            which version is whole: names, sizes, SHA-256; and where
                                                the captures are, which stay where they were made

A version is complete before `shipped.json` names it, and nothing of it is used before every byte was
read back and summed up. On the receiving side the frontier is put together beside the old one, and
exchanged for it in one step.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.disk import explained
from amicrawl.errors import InputError, OutputError
from amicrawl.jobs.checkpoint import is_fetched
from amicrawl.jobs.sharing.outbox import FILE_NAME, MARK_NAME
from amicrawl.jobs.sharing.share_record import directory_of
from amicrawl.jsontext import parsed
from amicrawl.record.bucket import BLOCK, open_bucket, small_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.record.bucket import Bucket

MANIFEST = "shipped.json"
_LARGEST_MANIFEST = 16 << 20
_NAME = re.compile(r"(?:frontier/)?[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_VERSION = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Shipper:
    """Ships partitions of the crawl *name* to the bucket at *url*, and fetches them from there."""

    def __init__(self, url: str, name: str, *, disk: Disk, machine: str) -> None:
        """*machine* is who ships. Raises UsageError or OutputError where the bucket cannot be used."""
        self.url = url
        self._name = name
        self._disk = disk
        self._machine = machine
        self._bucket: Bucket = open_bucket(url, disk=disk)

    def ship(self, number: int, directory: Path) -> None:
        """Bring the sealed state of partition *number* to the bucket. Raises OutputError."""
        version = uuid.uuid4().hex
        files = []
        with self._explained(f"{directory_of(number)}"):
            for name in _state_of(directory):
                path = directory / name
                size, digest = _summed(_blocks(path))
                key = f"{self._prefix(number)}-{version}/{name.replace('/', '-')}"
                self._bucket.write(key, _blocks(path), size=size)
                if _summed(self._bucket.blocks(key)) != (size, digest):
                    raise OSError(f"{key} did not arrive as it was sent")
                files.append({"name": name, "key": key, "size": size, "sha256": digest})
            manifest = orjson.dumps(
                {
                    "version": version,
                    "machine": self._machine,
                    "directory": str(directory),
                    "captures": _captures_of(directory),
                    "files": files,
                },
                option=orjson.OPT_INDENT_2,
            )
            key = f"{self._prefix(number)}/{MANIFEST}"
            self._bucket.write(key, iter([manifest]), size=len(manifest))

    def fetch(self, number: int, directory: Path) -> None:
        """Put the state of partition *number* that was shipped last into *directory*.

        Raises InputError where what lies in the bucket is not whole, OutputError as the disk does.
        """
        with self._explained(directory_of(number)):
            said = self._manifest(number)
            incoming = directory / "frontier.incoming"
            with explained(incoming, "made"):
                shutil.rmtree(incoming, ignore_errors=True)
                incoming.mkdir(parents=True)
            for file in said["files"]:
                self._fetch_file(file, incoming)
        self._exchange(directory, incoming)

    def _manifest(self, number: int) -> dict[str, Any]:
        prefix = self._prefix(number)
        content = small_object(self._bucket, f"{prefix}/{MANIFEST}", largest=_LARGEST_MANIFEST)
        if content is None:
            raise OSError(f"there is no {prefix}/{MANIFEST}")
        said = _manifest_of(content)
        for file in said["files"]:
            # Anything else could be any file of the machine, where the bucket is a directory.
            if file["key"] != f"{prefix}-{said['version']}/{file['name'].replace('/', '-')}":
                raise InputError(
                    f"{MANIFEST} at {self.url} names {file['key'][:200]!a}, which is not of it."
                )
        return said

    def _fetch_file(self, file: dict[str, Any], incoming: Path) -> None:
        path, size, sha256 = incoming / file["name"].rpartition("/")[2], file["size"], file["sha256"]
        if not is_fetched(self._bucket, file["key"], path, size=size, sha256=sha256, disk=self._disk):
            raise InputError(
                f"{file['key']} at {self.url} is not what was shipped: its size or SHA-256 differs. "
                "The machine that shipped it still has the partition."
            )

    def _exchange(self, directory: Path, incoming: Path) -> None:
        """Have what came take the place of what is there."""
        disk = self._disk
        with explained(directory, "exchanged for what was shipped"):
            old = directory / f"frontier.before-{uuid.uuid4().hex[:8]}"
            if (directory / "frontier").exists():
                disk.rename(directory / "frontier", old)
            for name in (FILE_NAME, MARK_NAME):
                if (incoming / name).exists():
                    disk.rename(incoming / name, directory / name)
            # Last of all: without a frontier, what is here is not taken for the partition.
            disk.rename(incoming, directory / "frontier")
            disk.sync_directory(directory)
            for left in directory.glob("frontier.before-*"):
                shutil.rmtree(left, ignore_errors=True)

    def _prefix(self, number: int) -> str:
        # One level deep: a directory that stands in for a bucket makes no more.
        return f"{self._name}-{directory_of(number)}"

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"{what} cannot travel by way of {self.url}: {error}. Check the place and the network."
            ) from error


def _state_of(directory: Path) -> list[str]:
    """Return the names of the files that make the state of the partition in *directory*."""
    names = [
        f"frontier/{path.name}" for path in sorted((directory / "frontier").iterdir()) if path.is_file()
    ]
    return [*names, *(name for name in (FILE_NAME, MARK_NAME) if (directory / name).exists())]


def _captures_of(directory: Path) -> list[dict[str, object]]:
    """Return names and sizes of the sealed files that stay in *directory*."""
    found = sorted([*directory.glob("*.warc.gz"), *directory.glob("captures.parquet")])
    return [{"name": path.name, "size": path.stat().st_size} for path in found]


def _manifest_of(content: bytes) -> dict[str, Any]:
    """Return what `shipped.json` says, checked: its names become paths."""
    try:
        said = parsed(content)
        whole = (
            _VERSION.fullmatch(said["version"])
            and all(
                _NAME.fullmatch(file["name"])
                and _DIGEST.fullmatch(file["sha256"])
                and type(file["size"]) is int
                and isinstance(file["key"], str)
                for file in said["files"]
            )
            and len({file["name"].rpartition("/")[2] for file in said["files"]}) == len(said["files"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{MANIFEST} cannot be read: {error}. Ship the partition again.") from error
    if not whole:
        raise InputError(f"{MANIFEST} does not say what was shipped. Ship the partition again.")
    result: dict[str, Any] = said
    return result


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            yield block


def _summed(blocks: Iterator[bytes]) -> tuple[int, str]:
    sha256, size = hashlib.sha256(), 0
    for block in blocks:
        sha256.update(block)
        size += len(block)
    return size, sha256.hexdigest()
