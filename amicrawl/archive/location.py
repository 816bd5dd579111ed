"""Files and directories by a path, or by the URI of an object store or a file system.

`s3://` (also as `s3a://`), `gs://`, `hdfs://` and `file://` are read and written with pyarrow.fs; its
parameters follow a question mark. A file is there when all of it is: a store shows none
before, and beside paths it is written under a name of its own and renamed. So two processes that make
the same file leave a whole one, whichever comes last.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote, unquote
from uuid import uuid4

from amicrawl.disk import OPEN_SUFFIX
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECE = 8 << 20
_SCHEMES = ("s3", "s3a", "gs", "gcs", "hdfs", "file")


def is_uri(name: str) -> bool:
    """Return whether *name* is a URI, and not a path."""
    return "://" in name


class PathFacts(NamedTuple):
    """What is known of a file without reading it."""

    size: int
    """In bytes."""
    changed: int
    """When it was last changed, in nanoseconds since 1970."""


@dataclass(frozen=True)
class Location:
    """A file or a directory. Errors are those of the system, OSError, but where another is named."""

    name: str
    """An absolute path, or a URI."""

    @classmethod
    def of(cls, name: str | Path) -> Self:
        """Return the location that *name* means; UsageError for a URI that is of no use here."""
        if isinstance(name, str) and is_uri(name):
            location = cls(name)
            with _usable(name):
                location._found()
            return location
        return cls(str(Path(name).absolute()))

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path | None:
        """Its path on this machine; None where it is in a store."""
        return None if is_uri(self.name) else Path(self.name)

    @property
    def as_path(self) -> Path:
        """Its path; of a URI, one that begins with the name of the bucket."""
        return self.path or Path(
            "/" + unquote(self.name.partition("://")[2].partition("?")[0]).strip("/")
        )

    @property
    def last_part(self) -> str:
        """The last part of its path."""
        return self.as_path.name

    def below(self, name: str) -> Location:
        """Return the file or directory whose path below it is *name*, as it is, without quoting."""
        quoted = quote(name.encode("utf-8", "surrogateescape")) if is_uri(self.name) else name
        return self._extended(f"/{quoted}")

    def beside(self, ending: str) -> Location:
        """Return what has its name with *ending* behind it."""
        return self._extended(ending)

    def _extended(self, ending: str) -> Location:
        start, mark, parameters = self.name.partition("?") if is_uri(self.name) else (self.name, "", "")
        return Location(f"{start.rstrip('/')}{ending}{mark}{parameters}")

    def facts(self) -> PathFacts | None:
        """Return what is known of the file; None where there is none."""
        filesystem, path = self._found()
        # As bytes, since names of files here need not be UTF-8.
        info = filesystem.get_file_info(os.fsencode(path))
        return PathFacts(info.size, info.mtime_ns or 0) if info.is_file else None

    def files(self) -> dict[str, PathFacts]:
        """Return the files below it, by their paths from here, in order; none where it is not there."""
        import pyarrow.fs as pafs  # noqa: PLC0415  # an index of paths does without

        filesystem, path = self._found()
        selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
        start = f"{path.rstrip('/')}/"
        return {
            info.path.removeprefix(start): PathFacts(info.size, info.mtime_ns or 0)
            for info in sorted(filesystem.get_file_info(selector), key=lambda info: str(info.path))
            if info.is_file
        }

    def fetched(self, directory: Path) -> Path:
        """Return the path of the file, for which it is copied into *directory* if it is in a store."""
        if self.path is not None:
            return self.path
        target = directory / self.last_part
        filesystem, path = self._found()
        # Without the argument pyarrow inflates what is called `.gz`, and compresses it below.
        with filesystem.open_input_stream(path, compression=None) as source, target.open("wb") as file:
            while piece := source.read(_PIECE):
                file.write(piece)
        return target

    def read(self) -> bytes | None:
        """Return the bytes of the file; None where there is none."""
        filesystem, path = self._found()
        try:
            with filesystem.open_input_stream(path, compression=None) as source:
                data: bytes = source.read()
        except FileNotFoundError:
            return None
        return data

    def put(self, source: Path) -> None:
        """Have the file be a copy of *source*, in place of what was there."""
        filesystem, path = self._found()
        is_store = self._is_store
        # A store shows what is written when it is closed; elsewhere an attempt has a name of its own.
        begun = path if is_store else f"{path}.{uuid4().hex[:8]}{OPEN_SUFFIX}"
        if not is_store:
            filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        try:
            with source.open("rb") as file:
                target = filesystem.open_output_stream(begun, compression=None)
                while piece := file.read(_PIECE):
                    target.write(piece)
                # Not a `with`: leaving it by an error would end the transfer as if all had come.
                target.close()
            if not is_store:
                filesystem.move(begun, path)
        except BaseException:
            if not is_store:
                with suppress(OSError):
                    filesystem.delete_file(begun)
            raise

    def write(self, data: bytes) -> None:
        """Have the file hold *data*, in place of what was there."""
        with tempfile.NamedTemporaryFile(prefix="amicrawl-") as file:
            file.write(data)
            file.flush()
            self.put(Path(file.name))

    def move_to(self, target: Location) -> None:
        """Give the file the name *target*, of the same store."""
        filesystem, path = self._found()
        _, goal = target._found()
        if not self._is_store:
            filesystem.create_dir(goal.rpartition("/")[0], recursive=True)
        filesystem.move(path, goal)

    def remove_file(self) -> None:
        """Remove the file, if it is there."""
        filesystem, path = self._found()
        with suppress(FileNotFoundError):
            if filesystem.get_file_info(path).is_file:
                filesystem.delete_file(path)

    def remove(self) -> None:
        """Remove it, and all that is below it."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        filesystem, path = self._found()
        import pyarrow.fs as pafs  # noqa: PLC0415  # an index of paths does without

        # Where it is missing, Google's file system raises an OSError like any other.
        if filesystem.get_file_info(path).type != pafs.FileType.NotFound:
            with suppress(FileNotFoundError):  # its marker, which Google's file system looks for last
                filesystem.delete_dir(path)

    @property
    def _is_store(self) -> bool:
        """Whether it is in an object store, which has neither directories nor half-written objects."""
        return self.name.startswith(("s3:", "s3a:", "gs:", "gcs:"))

    def _found(self) -> tuple[Any, str]:
        return _found(self.name)


@lru_cache(maxsize=64)
def _found(name: str) -> tuple[Any, str]:
    """Return the file system of *name*, and its path there."""
    import pyarrow.fs as pafs  # noqa: PLC0415  # an index of paths does without

    if not is_uri(name):
        return pafs.LocalFileSystem(), name
    scheme = name.partition(":")[0]
    if scheme not in _SCHEMES:
        raise ValueError(f"{scheme}:// is not one of {', '.join(_SCHEMES)}")
    usual = f"s3{name.removeprefix('s3a')}" if scheme == "s3a" else name
    filesystem, path = pafs.FileSystem.from_uri(usual)
    return filesystem, path.rstrip("/")


@contextmanager
def all_fetched(locations: Iterable[Location]) -> Iterator[tuple[list[Path], Path]]:
    """Give the paths of *locations*, copied if they are in a store, and a scratch directory."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-") as name:
        paths = []
        for number, location in enumerate(locations):
            # Two may have one name, in different directories.
            directory = Path(name) / str(number)
            directory.mkdir()
            paths.append(location.fetched(directory))
        yield paths, Path(name)


@contextmanager
def _usable(name: str) -> Iterator[None]:
    import pyarrow as pa  # noqa: PLC0415  # an index of paths does without

    try:
        yield
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be used: {error}. Check the URI.") from error


@contextmanager
def reachable(location: Location) -> Iterator[None]:
    """Turn an error of what holds *location* into one that says what to do."""
    import pyarrow as pa  # noqa: PLC0415  # an index of paths does without

    try:
        yield
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{location} cannot be reached: {error}. Check the name, the credentials and the network."
        ) from error
