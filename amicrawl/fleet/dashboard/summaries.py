"""Summaries: the report on the captures of an ended job, made when it is requested.

It is made by a process of its own, which runs `main`, one at a time, with a limit on time and on size,
and kept in memory until the index changes or others need the space. The crawl itself reports the
directory of a job, or it is found by the end of its name; a name that leads elsewhere is refused.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.checkpoints import is_base, is_base_of
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.views import reported
from amicrawl.fleet.dashboard.wording import plain, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.fleet.jobs import SeenJob

INDEX = "captures.parquet"
LARGEST = 8 * 1024**2
"""Bytes of the largest page."""
LONGEST = 120.0
"""Seconds that making one may take."""
MEMORY = 2 << 30
"""Bytes of addresses that the process that makes it may have."""
_KEPT = 16
_LISTED_EVERY = 10.0

_Version = tuple[str, int, int]


class Summaries:
    """The reports of the jobs below one directory. For several threads."""

    def __init__(self, archives: Path | None) -> None:
        self._archives = archives
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._listed: dict[str, str] = {}
        self._listed_at = -_LISTED_EVERY
        self._pages: OrderedDict[_Version, bytes] = OrderedDict()

    def has(self, ident: str, seen: SeenJob) -> bool:
        """Tell whether *ident*, as *seen*, has ended and left an index that can be summed up."""
        record = seen.record
        if self._archives is None or not (record.get("finished_at") or record.get("failed")):
            return False
        return self._index(ident, seen) is not None

    def page(self, ident: str, seen: SeenJob) -> bytes:
        """Return the page for *ident*; Problem where there is none, or another one is being made."""
        index = self._index(ident, seen)
        if index is None:
            raise Problem(404, "There is no index of this job here: see --archives.")
        found = index.stat()
        version = str(index), found.st_mtime_ns, found.st_size
        page = self._kept(version)
        if page is not None:
            return page
        if not self._making.acquire(timeout=5):
            raise Problem(
                503, "Another summary is being made. Try again soon.", headers={"retry-after": "10"}
            )
        try:
            page = self._kept(version) or _made(index, plain(seen.record.get("url", "")) or ident)
        finally:
            self._making.release()
        with self._lock:
            self._pages[version] = page
            while len(self._pages) > _KEPT:
                self._pages.popitem(last=False)
        return page

    def _kept(self, version: _Version) -> bytes | None:
        with self._lock:
            if version in self._pages:
                self._pages.move_to_end(version)
            return self._pages.get(version)

    def _index(self, ident: str, seen: SeenJob) -> Path | None:
        directory = self.directory(ident, seen)
        index = None if directory is None else directory / INDEX
        return index if index is not None and index.is_file() and not index.is_symlink() else None

    def directory(self, ident: str, seen: SeenJob) -> Path | None:
        """Return the output directory of a job, where it is here."""
        if self._archives is None:
            return None
        said = text_of(reported(seen.facts.get("now")), "directory").rpartition("/")[2]
        listed = self._names()
        # Five characters are not enough to tell two jobs apart: the slug has to be right, too.
        slug = seen.record.get("slug", "")
        guessed = [listed.get(end, "") for end in (ident, ident[:5])]
        for name in (said, *(name for name in guessed if slug and name.startswith(f"{slug}-"))):
            if is_base_of(name, ident):
                directory = self._archives / name
                if directory.is_dir() and not directory.is_symlink():
                    return directory
        return None

    def _names(self) -> dict[str, str]:
        """Return the directories there are by the end of their names, the latest of each."""
        assert self._archives is not None
        with self._lock:
            now = time.monotonic()
            if now - self._listed_at >= _LISTED_EVERY:
                self._listed_at = now
                try:
                    names = sorted(path.name for path in self._archives.iterdir())
                except OSError:
                    names = []
                self._listed = {name.rpartition("-")[2]: name for name in names if is_base(name)}
            return self._listed


def _made(index: Path, name: str) -> bytes:
    command = [sys.executable, "-m", "amicrawl.fleet.dashboard.summaries", str(index), name]
    try:
        done = subprocess.run(  # noqa: S603  # a command of ours, and no shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Problem(503, f"The summary took longer than {LONGEST:.0f} seconds.") from error
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:500]
        raise Problem(500, f"The summary could not be made: {said or done.returncode}")
    if len(done.stdout) > LARGEST:
        raise Problem(500, "The summary is too large to be shown. Use `amicrawl summary`.")
    return done.stdout


def main() -> int:
    """Print the page for an index, the first argument, titled by the second; return the exit code."""
    # Only the process that makes a page needs them: the dashboard starts without.
    from amicrawl.archive.report import page_of, read_counts  # noqa: PLC0415

    path, name = sys.argv[1:3]
    # The process that waits gives up then, and might be killed before it can end this one.
    for limit, most in ((resource.RLIMIT_CPU, int(LONGEST)), (resource.RLIMIT_AS, MEMORY)):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        reading = read_counts([path], kind="captures")
    except AmicrawlError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    except MemoryError:
        sys.stderr.write(
            f"{path} takes more than {MEMORY >> 20} MiB of memory. Use `amicrawl summary`.\n"
        )
        return ExitCode.OUR_ERROR
    if reading.damage and not reading.counts.captures:
        sys.stderr.write(f"{reading.damage[0]}\n")
        return ExitCode.DAMAGED
    broken = " (its index breaks off)" if reading.damage else ""
    page = page_of(reading.counts, title=f"Summary of {name}{broken}", hosts=50, samples=20)
    sys.stdout.buffer.write(page.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
