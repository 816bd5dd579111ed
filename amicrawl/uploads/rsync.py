"""Buckets that are reached by rsync: a daemon's module, or a directory of a machine over ssh.

    rsync://[user@]host[:port]/module/path       a daemon
    rsync+ssh://[user@]host[:port]/path          a directory, by the system's ssh

The system's program `rsync` does the transfer. It writes an object under another name and renames it
when all of it is there, keeps what has arrived of one that was interrupted, and goes on from that. What
is read back passes through a temporary file of this machine, as does what is sent: rsync transfers
files only.

A host or a path has characters only that no shell and no rsync reads as anything else, and none
begins with `-`: a URL may come from a crawl file.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from urllib.parse import SplitResult

    from amicrawl.disk import Disk

SCHEMES = ("rsync", "rsync+ssh")
BLOCK = 4 * 1024**2
"""Bytes that are read at a time."""
SILENCE = 120
"""Seconds without a byte after which a transfer has failed."""
CONNECTING = 30
"""Seconds that a connection may take."""

_PREFIX = "amicrawl-rsync-"
_LEFT = 60.0
"""Seconds from which on a directory without a lock was left by a process that was killed."""
_USER = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?"
_NETLOC = re.compile(_USER + r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")
_PATH = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9._+=-]*)+/?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_ENTRY = re.compile(r"-\S{9,}\s+([0-9,]+) ")
_MISSING = ("No such file or directory", "Unknown module")
_MISSING_CODES = {3, 5, 11, 23}
"""How rsync ends where a file, module or parent is missing there; where ssh fails it ends otherwise."""
_MOST_TEXT = 2000


def check_rsync_url(parts: SplitResult) -> bool:
    """Tell whether *parts* of a URL name a place for rsync."""
    try:
        port = parts.port
    except ValueError:
        return False
    is_plain = _NETLOC.fullmatch(parts.netloc) is not None and _PATH.fullmatch(parts.path) is not None
    return is_plain and port != 0 and not parts.query and not parts.fragment


class RsyncBucket:
    """A directory of another machine, by rsync."""

    def __init__(self, url: str, parts: SplitResult, *, disk: Disk) -> None:
        """*parts* are those of *url*, and checked. Raises UsageError where no rsync is installed.

        Nothing is sent but while *disk* permits changes.
        """
        self.url = url
        self._disk = disk
        program = shutil.which("rsync")
        if program is None:
            raise UsageError(
                f"{url} needs the program rsync, which is not installed here. Install it (apt install "
                "rsync), or give another bucket."
            )
        self._program = program
        self._path = parts.path.rstrip("/")
        self._is_daemon = parts.scheme == "rsync"
        if self._is_daemon:
            self._base = f"rsync://{parts.netloc}{self._path}"
            self._way = [f"--contimeout={CONNECTING}"]
        else:
            host = parts.netloc.removesuffix(f":{parts.port}")
            shell = f"ssh -o BatchMode=yes -o ConnectTimeout={CONNECTING} -o ServerAliveInterval=30"
            self._base = f"{host}:{self._path}"
            self._way = ["-e", f"{shell} -p {parts.port}" if parts.port else shell]

    def probe(self) -> None:
        """Make the directory if only its last part is missing; OSError otherwise."""
        _sweep()
        with _place() as empty:
            # Not the parents, which may be a file system that is not mounted: rsync makes one directory.
            self._run("--dirs", f"{empty}/", f"{self._base}/")

    def size(self, name: str) -> int | None:
        """Return how many bytes the object *name* has; None where there is none."""
        try:
            listed = self._run("--list-only", "--no-motd", f"{self._base}/{_checked(name)}")
        except FileNotFoundError:
            return None
        for line in reversed(listed.splitlines()):
            if found := _ENTRY.match(line):
                return int(found[1].replace(",", ""))
        return None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of the object *name*, which is fetched as a whole first."""
        with _room(name) as path:
            self._run("--whole-file", "--inplace", f"{self._base}/{_checked(name)}", str(path))
            with path.open("rb") as stream:
                while block := stream.read(BLOCK):
                    yield block

    def write(self, name: str, blocks: Iterable[bytes], *, size: int) -> None:
        """Put *blocks*, *size* bytes, under *name*; goes on from an interrupted attempt."""
        with _room(_checked(name)) as path:
            _write(path, blocks)
            if path.stat().st_size != size:
                raise OSError(f"{name} has {path.stat().st_size} bytes, not {size}")
            root = path.parents[name.count("/")]
            # Never by size and time alone; with --relative the folders of the name are made, too.
            options = ("--ignore-times", "--relative", "--partial-dir=.amicrawl-partial", "--fsync")
            self._disk.permit()
            self._run(*options, f"{root}/./{name}", f"{self._base}/")

    def _run(self, *words: str) -> str:
        """Run rsync and return what it wrote; FileNotFoundError where something there is missing."""
        # With its progress in a pipe, it ends by itself when this process is killed. The arguments are
        # protected by the name that rsync before 3.2.6 has for that, too.
        command = [self._program, f"--timeout={SILENCE}", "--protect-args"]
        command += ["--info=progress2", "--outbuf=N"]
        try:
            done = subprocess.run(  # noqa: S603  # words that were checked, and no shell
                [*command, *self._way, *words],
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                # No terminal that it could ask for a password at, and no signal that is meant for the
                # crawl.
                start_new_session=True,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise OSError(f"rsync cannot be run: {error}") from error
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace")
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:_MOST_TEXT]
        fault = f"rsync ended with code {done.returncode}: {said or 'it gave no reason'}"
        # The words alone may be of a program that is not here: ssh, or that of its `ProxyCommand`.
        is_missing = done.returncode in _MISSING_CODES and any(words in said for words in _MISSING)
        raise (FileNotFoundError if is_missing else OSError)(fault)


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise OSError(f"{name[:200]!a} leads out of the bucket")
    return name


def _write(path: Path, blocks: Iterable[bytes]) -> None:
    """Write *blocks* to the new file *path*; what its disk raises does not read as if the bucket did."""
    with path.open("wb", buffering=0) as stream:
        for block in blocks:
            rest = memoryview(block)
            try:
                while rest:
                    rest = rest[stream.write(rest) :]
            except OSError as error:
                raise OSError(
                    f"no copy can be made in {tempfile.gettempdir()} of this machine (TMPDIR): {error}"
                ) from error


@contextmanager
def _room(name: str) -> Iterator[Path]:
    """Give a path that ends with *name*, in a directory that is removed."""
    with _place() as directory:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path


@contextmanager
def _place() -> Iterator[Path]:
    """Give a directory that is removed afterwards; it is locked, so that others know it is in use."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as directory, _locked(directory):
        yield Path(directory)


@contextmanager
def _locked(directory: str | Path) -> Iterator[None]:
    """Hold the lock of *directory*; BlockingIOError where another process does."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)


def _sweep() -> None:
    """Remove what processes have left that were killed, of this user, after a minute."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = path.stat(follow_symlinks=False)
            # One that is being made has no lock yet.
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > _LEFT:
                with _locked(path):
                    shutil.rmtree(path)
