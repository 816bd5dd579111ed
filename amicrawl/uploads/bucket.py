"""Buckets: where sealed files are copied to, by URL.

    s3://bucket/path?region=...      an S3 store, by pyarrow.fs
    gs://bucket/path                 Google Cloud Storage, by the same
    file:///path                     a directory of this machine, a network file system perhaps
    rsync://host/module/path         a daemon of rsync, and rsync+ssh://host/path (`rsync.py`)
    ia://IDENTIFIER                  an item of the Internet Archive (`internet_archive.py`)

An object is written under its name with `.open` behind it and renamed when all of it is there: an
object store ends a transfer that was broken off by keeping what had come. Nothing is believed to have
arrived because a call has returned; `upload.py` reads it back. Two crawls never share a bucket, and a
crawl has one: `manifest_for`.

Credentials come from the environment, as the stores' own programs take them, and never from a URL: that
is written into the archive. Every failure is an OSError, whatever the library raises.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from amicrawl.disk import OPEN_SUFFIX, OutputFile
from amicrawl.errors import OutputError, UsageError
from amicrawl.listing import (
    MANIFEST_NAME,
    SIZE_LIMIT,
    SUFFIX,
    NotAManifestError,
    UploadManifest,
    decoded,
    listed_files,
    read_manifest,
)
from amicrawl.uploads.internet_archive import SCHEME as ITEM_SCHEME
from amicrawl.uploads.internet_archive import ItemBucket, check_item_url
from amicrawl.uploads.item_client import ItemClient
from amicrawl.uploads.rsync import SCHEMES as RSYNC_SCHEMES
from amicrawl.uploads.rsync import RsyncBucket, check_rsync_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.disk import Disk

BLOCK = 4 * 1024**2
"""Bytes that are sent and read back at a time."""
COPY_LIMIT = 5 * 1000**3
"""Bytes above which S3 renames nothing; a larger object is written under its own name."""

_SCHEMES = ("s3", "gs", "file", *RSYNC_SCHEMES, ITEM_SCHEME)
_ADVICE = (
    "Write s3://bucket/path, gs://bucket/path, file:///path, rsync://host/module/path, "
    "rsync+ssh://host/path or ia://identifier."
)


class Bucket(Protocol):
    """A place of named objects. Every method raises OSError where the store fails."""

    url: str
    """As it was given."""

    def probe(self) -> None:
        """Do nothing if the place is there and may be looked at."""

    def size(self, name: str) -> int | None:
        """Return how many bytes the object *name* has; None where there is none."""

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the object *name*."""

    def write(self, name: str, blocks: Iterable[bytes], *, size: int) -> None:
        """Put *blocks*, *size* bytes, under *name*, in place of what bears it; all of them or none."""


@contextmanager
def usable(bucket: Bucket) -> Iterator[None]:
    """Turn an OSError of *bucket* into the OutputError that says that it cannot be used."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{bucket.url} cannot be used: {error}. Check the credentials and the network."
        ) from error


class DirectoryBucket:
    """A directory in the place of a bucket; what is written there is forced to its disk."""

    def __init__(self, url: str, path: Path, *, disk: Disk) -> None:
        self.url = url
        self._path = path
        self._disk = disk

    def is_at(self, directory: Path) -> bool:
        """Tell whether it is *directory*, by whatever path."""
        return directory.exists() and self._path.samefile(directory)

    def probe(self) -> None:
        """Make the directory if only its last part is missing; OSError otherwise."""
        # Not the parents: a file system that is not mounted must not be made up for in silence.
        self._path.mkdir(exist_ok=True)

    def size(self, name: str) -> int | None:
        """Return how many bytes the file *name* has; None where there is none."""
        try:
            return self._file(name).stat().st_size
        except FileNotFoundError:
            return None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the file *name*."""
        with self._file(name).open("rb") as stream:
            while block := stream.read(BLOCK):
                yield block

    def write(self, name: str, blocks: Iterable[bytes], *, size: int) -> None:  # noqa: ARG002
        """Put *blocks* under *name*."""
        path = self._file(name)
        if path.parent != self._path:
            path.parent.mkdir(exist_ok=True)
        try:
            output = OutputFile.replacing(path, disk=self._disk)
            try:
                for block in blocks:
                    output.write(block)
                output.seal()
            finally:
                output.close()
        except OutputError as error:
            # Its advice is for the disk of the crawl, and this is another one.
            raise error.__cause__ or error from None

    def _file(self, name: str) -> Path:
        # Names come from lists that others may have written.
        if name.startswith("/") or ".." in name.split("/"):
            raise OSError(f"{name[:200]!a} leads out of the bucket")
        return self._path / name


class ObjectBucket:
    """A path in an object store, by pyarrow.fs."""

    def __init__(self, url: str, filesystem: Any, path: str, *, disk: Disk) -> None:
        """*filesystem* is a `pyarrow.fs.FileSystem`, *path* begins with the name of the bucket.

        An object gets its name only while *disk* permits that.
        """
        self.url = url
        self._disk = disk
        self._filesystem = filesystem
        self._path = path.rstrip("/")

    def probe(self) -> None:
        """Look for the bucket, and for the path in it; FileNotFoundError where there is no bucket."""
        bucket = self._path.partition("/")[0]
        with _as_os_errors():
            if self._filesystem.get_file_info(bucket).type.name == "NotFound":
                raise FileNotFoundError(f"there is no bucket {bucket!r}")
            self._filesystem.get_file_info(self._path)

    def size(self, name: str) -> int | None:
        """Return how many bytes the object *name* has; None where there is none."""
        with _as_os_errors():
            info = self._filesystem.get_file_info(self._key(name))
        return info.size if info.is_file else None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the object *name*."""
        # Without the argument pyarrow inflates what is called `.gz`, and compresses it below.
        with (
            _as_os_errors(),
            self._filesystem.open_input_stream(self._key(name), compression=None) as stream,
        ):
            while block := stream.read(BLOCK):
                yield block

    def write(self, name: str, blocks: Iterable[bytes], *, size: int) -> None:
        """Put *blocks* under *name*."""
        key = self._key(name)
        begun = key + OPEN_SUFFIX if size <= COPY_LIMIT else key
        with _as_os_errors():
            stream = self._filesystem.open_output_stream(begun, compression=None)
            for block in blocks:
                stream.write(block)
            # Not a `with`: leaving it by an error would end the transfer as if all had come.
            stream.close()
            # Once more: a process may have been frozen in the middle of the transfer.
            self._disk.permit()
            if begun != key:
                self._filesystem.move(begun, key)

    def _key(self, name: str) -> str:
        return f"{self._path}/{name}"


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn the library's other errors into OSError."""
    import pyarrow as pa  # noqa: PLC0415  # as in `_bucket`

    try:
        yield
    except OSError:
        raise
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, ValueError) as error:
        raise OSError(str(error)) from error


def small_object(bucket: Bucket, name: str, *, largest: int) -> bytes | None:
    """Return the object *name* of *bucket*, None where there is none.

    Raises OSError where it has more than *largest* bytes, whatever the store says of its size.
    """
    size = bucket.size(name)
    if size is None:
        return None
    content = bytearray()
    if size <= largest:
        for block in bucket.blocks(name):
            content += block
            if len(content) > largest:
                break
    if max(size, len(content)) > largest:
        raise OSError(f"{name} is larger than {largest:,} bytes, which it cannot be")
    return bytes(content)


def open_bucket(url: str, *, disk: Disk) -> Bucket:
    """Return the bucket at *url*, which is there and may be looked at.

    Nothing is put there but while *disk* permits changes: under a lease, that of the crawl.

    Raises UsageError for a URL that means no bucket or holds a secret, and where there is no such
    bucket; OutputError where the store does not let us in, or does not respond.
    """
    bucket = _bucket(url, disk=disk)
    try:
        bucket.probe()
    except FileNotFoundError as error:
        raise UsageError(f"{url} cannot be used: {error}. Make it, or correct the URL.") from error
    except OSError as error:
        raise OutputError(
            f"{url} cannot be reached: {error}. Check the URL, the credentials in the environment and "
            "the network (docs/buckets.md)."
        ) from error
    return bucket


def keeps_state(url: str) -> bool:
    """Tell whether the bucket at *url* can hold what a crawl is resumed from, besides its files.

    An item of the Internet Archive shows what was replaced for minutes, and keeps files for good.
    """
    return urlsplit(url).scheme != ITEM_SCHEME


def check_keeps_state(url: str, what: str) -> None:
    """Raise UsageError where *what*, which needs to replace and read objects, is to be at *url*."""
    if not keeps_state(url):
        raise UsageError(
            f"{what} cannot be in an item of the Internet Archive, which is for finished files. Give "
            "another bucket, and upload the files to the item afterwards: amicrawl upload."
        )


def check_bucket_url(url: str) -> SplitResult:
    """Return the parts of *url*; raises UsageError where it means no bucket or holds a secret.

    Nothing is requested: whether the bucket is there is found out by `open_bucket`.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"{url!r} is not the URL of a bucket: {error}. {_ADVICE}") from error
    if parts.scheme not in _SCHEMES:
        raise UsageError(f"{url!r} is not the URL of a bucket. {_ADVICE}")
    if "\0" in unquote(url):
        raise UsageError(f"A URL of a bucket must not hold a NUL (%00), which no name can. {_ADVICE}")
    if parts.scheme == "file":
        if parts.netloc or not parts.path.strip("/") or parts.query or parts.fragment:
            raise UsageError(f"{url!r} names no directory. {_ADVICE}")
        return parts
    if parts.scheme in RSYNC_SCHEMES and ":" not in parts.netloc.rpartition("@")[0]:
        if not check_rsync_url(parts):
            raise UsageError(f"{url!r} names no directory for rsync. {_ADVICE}")
        return parts
    if parts.scheme == ITEM_SCHEME and "@" not in parts.netloc:
        if not check_item_url(parts):
            raise UsageError(
                f"{url!r} names no item of the Internet Archive, or something of it that is not known "
                f"(docs/buckets.md). {_ADVICE}"
            )
        return parts
    is_anonymous = parts.netloc.partition("@")[0] == "anonymous" and parts.scheme != ITEM_SCHEME
    if "@" in parts.netloc and not is_anonymous:
        # The URL itself must not be repeated here.
        raise UsageError(
            f"A URL of a bucket must hold no credentials ({parts.scheme}://...@...): it is written into "
            "the archive. Give them in the environment (docs/buckets.md)."
        )
    return parts


def _bucket(url: str, *, disk: Disk) -> Bucket:
    parts = check_bucket_url(url)
    if parts.scheme == "file":
        return DirectoryBucket(url, Path(unquote(parts.path)), disk=disk)
    if parts.scheme in RSYNC_SCHEMES:
        return RsyncBucket(url, parts, disk=disk)
    if parts.scheme == ITEM_SCHEME:
        return ItemBucket(url, parts, ItemClient())
    # Loaded for a store only: Arrow takes longer than everything else that a directory needs.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.fs  # noqa: PLC0415

    try:
        filesystem, path = pa.fs.FileSystem.from_uri(url)
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"{url!r} is not the URL of a bucket: {error}. {_ADVICE}") from error
    if not path.strip("/"):
        raise UsageError(f"{url!r} names no bucket. {_ADVICE}")
    return ObjectBucket(url, filesystem, path, disk=disk)


def manifest_for(directory: Path, bucket: Bucket) -> UploadManifest:
    """Return the manifest of *directory*, completed by the one in *bucket*.

    Raises UsageError where the bucket holds the files of another crawl or is the directory itself, or
    the directory was uploaded to another bucket; OutputError where the bucket cannot be read,
    DamagedFileError where a list of files in the directory cannot.
    """
    if isinstance(bucket, DirectoryBucket) and bucket.is_at(directory):
        # Each file would be found there, and removed here as one that has a copy.
        raise UsageError(
            f"{bucket.url} is {directory} itself, where nothing would be a copy. Give another place."
        )
    here, there = read_manifest(directory), _manifest_in(bucket)
    if here.bucket and _place(here.bucket) != _place(bucket.url):
        raise UsageError(
            f"{directory} was uploaded to {here.bucket}, and {bucket.url} is another bucket. Give the "
            f"first, or move {MANIFEST_NAME} away to upload what is still here to the second."
        )
    known = {file.name: file.sha256 for file in listed_files(directory)}
    known |= {name: each.file.sha256 for name, each in here.files.items()}
    strange = [
        name
        for name, each in there.files.items()
        if name.endswith(SUFFIX) and known.get(name) != each.file.sha256
    ]
    if strange:
        raise UsageError(
            f"{bucket.url} holds the files of another crawl ({strange[0]}, for one). Give each "
            "directory a path of its own."
        )
    files = {**there.files, **here.files}
    return UploadManifest(bucket.url, files, here.begun)


def _manifest_in(bucket: Bucket) -> UploadManifest:
    with usable(bucket):
        content = small_object(bucket, MANIFEST_NAME, largest=SIZE_LIMIT)
    try:
        return UploadManifest() if content is None else decoded(content)
    except NotAManifestError as error:
        raise UsageError(
            f"{bucket.url} holds an {MANIFEST_NAME} of something else: {error}. Choose another path."
        ) from error


def _place(url: str) -> tuple[str, ...]:
    """Return what of *url* says where objects are, and not how they are reached."""
    parts = urlsplit(url)
    endpoint = parse_qs(parts.query).get("endpoint_override", [""])[0]
    return parts.scheme, parts.netloc.rpartition("@")[2], parts.path.strip("/"), endpoint
