"""Buckets in an object store, S3 or Google Cloud Storage, by pyarrow.fs.

What is promised of them is in `bucket.py`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from amicrawl.disk import OPEN_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COPY_LIMIT = 5 * 1000**3
"""Bytes above which S3 renames nothing; a larger object is written under its own name."""


class ObjectBucket:
    """A path in an object store."""

    def __init__(self, url: str, filesystem: Any, path: str, *, block: int) -> None:
        """*filesystem* is a `pyarrow.fs.FileSystem`, *path* begins with the name of the bucket.

        *block* bytes are read at a time.
        """
        self.url = url
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._block = block

    def probe(self) -> None:
        """Ask for the bucket, and for the path in it; FileNotFoundError where there is no bucket."""
        bucket = self._path.partition("/")[0]
        with _as_os_errors():
            if self._filesystem.get_file_info(bucket).type == pafs.FileType.NotFound:
                raise FileNotFoundError(f"there is no bucket {bucket!r}")
            self._filesystem.get_file_info(self._path)

    def size(self, name: str) -> int | None:
        """Return how many bytes the object *name* has; None where there is none."""
        with _as_os_errors():
            info = self._filesystem.get_file_info(self._key(name))
        return info.size if info.type == pafs.FileType.File else None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the object *name*."""
        # Without the argument pyarrow inflates what is called `.gz`, and compresses it below.
        with (
            _as_os_errors(),
            self._filesystem.open_input_stream(self._key(name), compression=None) as stream,
        ):
            while block := stream.read(self._block):
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
            if begun != key:
                self._filesystem.move(begun, key)

    def _key(self, name: str) -> str:
        return f"{self._path}/{name}"


def object_bucket(url: str, *, block: int) -> ObjectBucket:
    """Return the bucket at *url*, without asking for it; ValueError for a URL that means none."""
    try:
        filesystem, path = pafs.FileSystem.from_uri(url)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{url!r} is not the URL of a bucket: {error}") from error
    if not path.strip("/"):
        raise ValueError(f"{url!r} names no bucket")
    return ObjectBucket(url, filesystem, path, block=block)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn the library's other errors into OSError."""
    try:
        yield
    except OSError:
        raise
    except (pa.ArrowException, ValueError) as error:
        raise OSError(str(error)) from error
