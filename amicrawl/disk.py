"""The disk, as every room uses it: files that are sealed or not there, errors that say what to do.

A file is written under a name that ends in `.open`, forced to disk, and renamed; then its directory is
forced to disk too. Every OSError becomes an OutputError. After one the file is never trusted again: it
keeps its `.open` name, and `repair` decides what of it counts. (A failed fsync may have dropped the very
pages it was given to write, and a second one would report success.)

What is not a regular file is never replaced: a device or a FIFO is written to as it is, a symbolic link
is followed, anything else is refused. `OutputFile` is the one place where that is decided.

`Disk` is the list of calls that change anything; tests hand in one whose calls fail or stop coming.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from amicrawl.errors import OUT_OF_MEMORY, InputError, OutputError

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

OPEN_SUFFIX = ".open"
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})
_OTHER_KIND = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})
"""A file is where a directory is wanted, or a directory where a file is; or it is no name of a file."""

# For more at a time Linux looks for larger stretches of memory to hold it, and those are what a virtual
# machine gives back to its host while they are free: having them back takes longer than writing.
_PIECE = 1 << 16


class Disk:
    """The operating system's calls, one a method; each raises OSError."""

    is_leased = False
    """Whether it is written to under a lease, so that another process may be the owner later."""

    def permit(self) -> None:
        """Return while something may be changed: for what is changed elsewhere, as in a bucket."""

    def create(self, path: Path) -> int:
        """Open the new file *path* for writing and return its descriptor."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def open_special(self, path: Path) -> int:
        """Open the device or FIFO *path* for writing and return its descriptor."""
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        """Write some of *block* and return how much."""
        return os.write(descriptor, memoryview(block)[:_PIECE])

    def write_at(self, descriptor: int, block: bytes | memoryview, offset: int) -> int:
        """Write some of *block* over what lies at *offset* and return how much."""
        return os.pwrite(descriptor, memoryview(block)[:_PIECE], offset)

    def sync(self, descriptor: int) -> None:
        """Force what was written to disk."""
        os.fsync(descriptor)

    def truncate(self, path: Path, size: int) -> None:
        """Cut *path* to *size* bytes and force that to disk."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give *source* the name *target*, replacing what bears it."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Give the file *source* the name *target* as well."""
        os.link(source, target)

    def remove(self, path: Path) -> None:
        """Remove the file *path*."""
        path.unlink()

    def sync_directory(self, directory: Path) -> None:
        """Force the names in *directory* to disk."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def reserve(self, descriptor: int, at: int, length: int) -> None:
        """See to it that *length* bytes from *at* on can be written without running out of space."""
        os.posix_fallocate(descriptor, at, length)

    def temporary(self, directory: Path) -> IO[bytes]:
        """Return a file in *directory* that has no name and is gone once it is closed."""
        return tempfile.TemporaryFile(dir=directory)


def discard(file: IO[bytes]) -> None:
    """Close *file*, a temporary one that is no longer needed: what it still holds is not written.

    To close a file writes that first, and on a full disk the sentence that says so would be replaced by
    the same error without its words.
    """
    with suppress(OSError):
        file.close()


def pieces(octets: bytes | memoryview) -> Iterator[memoryview]:
    """Yield *octets* in pieces, for a temporary file to be given one by one; an `OutputFile` does so."""
    view = memoryview(octets)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]


def is_special(path: Path) -> bool:
    """Return whether *path*, links followed, is a device or a FIFO, which is written to in place.

    OSError where that cannot be found out, or where it is neither that nor a place for a regular file.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        kinds = {stat.S_IFDIR: "directory", stat.S_IFSOCK: "socket", stat.S_IFBLK: "block device"}
        raise OSError(errno.EINVAL, f"it is a {kinds[stat.S_IFMT(mode)]}")
    return not stat.S_ISREG(mode)


def refuse_pipe(path: Path) -> None:
    """Raise InputError where *path* is a FIFO: opening it waits for a writer; OSError as `Path.stat`."""
    if stat.S_ISFIFO(path.stat().st_mode):
        raise InputError(f"{path} is a pipe, and may be read more than once. Write it to a file first.")


def refuse_undecodable(path: Path | str) -> None:
    """Raise InputError where *path* is not UTF-8: neither JSON nor DuckDB can name such a file."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path} is not UTF-8, and neither JSON nor SQL can hold such a name. Rename it."
        ) from error


def _target(path: Path) -> Path:
    """Return the name that is given to what is written to *path*; OSError as `is_special` has it."""
    return path if is_special(path) or not path.is_symlink() else path.resolve()


def is_unfinished(path: str | os.PathLike[str]) -> bool:
    """Return whether *path* is being written, or was given up: a part of it ends in `.open`."""
    return any(part.endswith(OPEN_SUFFIX) for part in os.fspath(path).split("/"))


class OutputFile:
    """A file being written, under its name with `.open` behind it, until `seal` gives it its own.

    A symbolic link is followed, so what is written is beside its target. A device or a FIFO is written
    to at once: there is no `.open`, and sealing it closes it.
    """

    def __init__(self, path: Path, *, disk: Disk, digest: hashlib._Hash | None = None) -> None:
        """Create `path`.open; OutputError where that fails, or where there is one.

        *digest* is given every byte that is written.
        """
        self._digest = digest
        self._disk = disk
        self._size = 0
        self._name_is_durable = False
        with explained(path, "created"):
            self._is_special = is_special(path)
            self.path = _target(path)
        self.open_path = self.path.with_name(self.path.name + OPEN_SUFFIX)
        with explained(path if self._is_special else self.open_path, "created"):
            self._descriptor = (
                disk.open_special(path) if self._is_special else disk.create(self.open_path)
            )

    @classmethod
    def replacing(cls, path: Path, *, disk: Disk, digest: hashlib._Hash | None = None) -> Self:
        """Begin the next version of *path*, in place of one that was begun and given up."""
        with explained(path, "created"):
            target = _target(path)
        open_path = target.with_name(target.name + OPEN_SUFFIX)
        # Another process may remove it first, or give it its name.
        with explained(open_path, "removed"), suppress(FileNotFoundError):
            if open_path.is_file() and not open_path.is_symlink():
                disk.remove(open_path)
        return cls(path, disk=disk, digest=digest)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._size

    def write(self, block: bytes | memoryview) -> int:
        """Write the whole of *block*."""
        rest = memoryview(block)
        try:
            while rest:
                written = self._disk.write(self._descriptor, rest)
                self._size += written
                rest = rest[written:]
        except OSError as error:
            raise explanation(error, self.open_path, "written to") from error
        if self._digest is not None:
            self._digest.update(block)
        return len(block)

    def write_at(self, offset: int, block: bytes) -> None:
        """Write *block* over what was written at *offset*; ValueError where a digest is being taken."""
        if self._digest is not None or offset + len(block) > self._size:
            raise ValueError("only what was written, and not summed up, can be written over")
        rest = memoryview(block)
        with explained(self.open_path, "written to"):
            while rest:
                written = self._disk.write_at(self._descriptor, rest, offset)
                offset += written
                rest = rest[written:]

    def sync(self) -> None:
        """Force what was written to disk, and the first time the file's name too."""
        if self._is_special:
            return
        with explained(self.open_path, "forced to disk"):
            self._disk.sync(self._descriptor)
            if not self._name_is_durable:
                self._disk.sync_directory(self.path.parent)
                self._name_is_durable = True

    def seal(self) -> None:
        """Force it to disk, close it and give it its name, replacing the file that bears it."""
        if self._is_special:
            self.close()
            return
        with explained(self.open_path, "forced to disk"):
            self._disk.sync(self._descriptor)
        self.check_name()
        self.close()
        rename_durably(self.open_path, self.path, disk=self._disk)

    def check_name(self) -> None:
        """Raise OutputError where its name is by now that of another file, which is half written."""
        if self._is_special:
            return
        try:
            is_own = os.path.samestat(self.open_path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError as error:
            if not self.path.parent.exists():
                raise OutputError(
                    f"{self.path.parent} is not there any more: it was moved or removed while "
                    f"{self.path.name} was being written. Put it back where it was, then start the same "
                    "command again."
                ) from error
            is_own = False
        if not is_own:
            raise OutputError(
                f"{self.path} is being written by another process, too. Wait until that has ended, then "
                "start the same command again, or have it write elsewhere."
            )

    def close(self) -> None:
        """Close it as it is; its name keeps the `.open`."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def replace_file(path: Path, content: bytes, *, disk: Disk) -> None:
    """Have *path* hold *content*, durably and whole or not at all; raises OutputError."""
    output = OutputFile.replacing(path, disk=disk)
    try:
        output.write(content)
        output.seal()
    finally:
        output.close()


def rename_durably(source: Path, target: Path, *, disk: Disk) -> None:
    """Give *source* the name *target* in the same directory, and force that to disk."""
    with explained(source, f"renamed to {target.name}"):
        disk.rename(source, target)
        disk.sync_directory(target.parent)


def remove_durably(path: Path, *, disk: Disk) -> None:
    """Remove *path* and force that to disk."""
    with explained(path, "removed"):
        disk.remove(path)
        disk.sync_directory(path.parent)


_REMEDIES = {
    **dict.fromkeys(_FORBIDDEN, "Permit writing there"),
    **dict.fromkeys(_TOO_MANY, "Permit more open files (ulimit -n 4096)"),
    **dict.fromkeys(_OTHER_KIND, "Name another place"),
    errno.EFBIG: "Permit larger files (ulimit -f unlimited), or lower AMICRAWL_WARC_SIZE",
    errno.ENOMEM: OUT_OF_MEMORY,
}


def _remedy(error: OSError, path: Path) -> str:
    """Return what to do about *error*, which *path* met with, before the command is started again."""
    if error.errno == errno.ENOENT:
        return f"Put {path.parent} back where it was"
    return _REMEDIES.get(error.errno or 0, "Free disk space, or repair the disk")


@contextmanager
def explained(path: Path, action: str) -> Iterator[None]:
    """Turn an OSError into the OutputError that says what happened to *path* and what to do."""
    try:
        yield
    except OSError as error:
        raise explanation(error, path, action) from error


@contextmanager
def made_directory(path: Path) -> Iterator[None]:
    """Make the directory *path* and those above it, OutputError where that fails.

    After an error within, those of them that were made here and are empty are removed.
    """
    made: list[Path] = []
    with explained(path, "created"):
        for each in [each for each in (path, *path.parents) if not each.exists()][::-1]:
            with suppress(FileExistsError):
                each.mkdir()
                made.append(each)
        path.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for each in reversed(made):
                each.rmdir()
        raise


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn an OSError into the InputError that says that *path* cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}. Check path and permissions."
        ) from error


def explanation(error: OSError, path: Path, action: str) -> OutputError:
    """Return what `explained` raises, for what is written many times a second: a block costs nothing."""
    return OutputError(
        f"{path} cannot be {action}: {error.strerror or error}. {_remedy(error, path)}, then run the "
        "same command again: a crawl repairs the directory and resumes, any other command redoes what "
        "it had not finished."
    )


class Trust:
    """Whether what was written to a directory may still be added to: until the first failure."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.failure: OutputError | None = None
        """The first failure; to be raised by each later call."""

    def check(self) -> None:
        """Raise the failure again, if there was one."""
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def at_stake(self) -> Iterator[None]:
        """Check; an error that leaves the block ends the trust: it is not known how much was written."""
        if self.failure is not None:
            raise self.failure
        try:
            yield
        except BaseException as error:
            self.end(error)
            raise

    def end(self, error: BaseException) -> None:
        """End the trust for *error*."""
        self.failure = (
            error
            if isinstance(error, OutputError)
            else OutputError(
                f"Writing to {self._directory} was interrupted by {type(error).__name__}. Start the "
                "crawl again with the same output directory: it repairs what is there and resumes."
            )
        )
