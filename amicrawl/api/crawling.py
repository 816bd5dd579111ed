"""Crawls started from Python: each in a process of its own, the one of `amicrawl crawl`.

Not in the event loop of the caller: Scrapy's reactor takes one loop for the life of a process, so a
second `asyncio.run`, or a notebook beside a script, could not crawl; a crawl also tunes the garbage
collector, handles signals and uses a whole core, and a fault in it would end the caller. A process costs
half a second of CPU time at its start (`docs/api.md`). Events are read from the journals that a crawl
writes anyway, so that a page costs it nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.api.archive import Archive, Capture, open_archive
from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.errors import AmicrawlError, ExitCode, InputError, OutputError, UsageError
from amicrawl.interpreter import signals_for_later
from amicrawl.listing import FILE_NAME, PROCESSES, TABLE_NAME
from amicrawl.record import capture_batches, row_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator

_ERRORS: dict[int, type[AmicrawlError]] = {
    ExitCode.USAGE: UsageError,
    ExitCode.INPUT: InputError,
    ExitCode.OUTPUT: OutputError,
}
_ENDED_WELL = frozenset(
    {ExitCode.DONE, ExitCode.STOPPED, ExitCode.SEEDS_BAD, ExitCode.LIMIT, ExitCode.UNREACHED}
)
"""Exit codes of crawls that left a sealed archive."""
_WEB = ("http://", "https://")
_MOST_ARGUMENTS = 100_000
"""Bytes of URLs that a command line takes; further ones are for a seed list."""
_PAUSE = 0.2
"""Seconds between two looks at the journals."""
_MARGIN = 3600
"""Seconds by which the clock may be set back before new rows are taken for those of a crawl before."""
_LAST_WORDS = 8192
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
_OURS = frozenset(CrawlConfig.model_fields)


class Crawl:
    """A crawl that was started: finished, where `crawl` was called without an event loop.

    With one, `await` it for its end, or iterate over its captures as they come: `async for capture in
    crawl`. Both raise an `AmicrawlError` where the crawl failed.
    """

    def __init__(
        self, command: list[str], seeds: bytes, out: Path, on_capture: Callable[[Capture], object] | None
    ) -> None:
        self.out = out
        """The output directory, with that of the run where `run_id` names one."""
        self.exit_code: ExitCode | None = None
        """How it ended, as `docs/exit-codes.md` says; None while it runs."""
        self._on_capture = on_capture
        self._ended = threading.Event()
        self._fault: BaseException | None = None
        self._directory = partial(_directory_of_run, out, _listings(out))
        self._since = int((time.time() - _MARGIN) * 1000)
        self._before = _keys_in(_directory_of_run(out, {}), since=self._since)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # until the crawl has ended
        with tempfile.TemporaryFile() as given:
            given.write(seeds)
            given.seek(0)
            self._process = _started(command, given, self._errors)
        threading.Thread(target=self._watch, name=f"amicrawl {out}").start()

    @property
    def archive(self) -> Archive:
        """What it has stored so far. Raises InputError where that is nothing yet."""
        return open_archive(self._directory())

    def stop(self) -> None:
        """Have the crawl finish what is under way, and seal its archive; it can be resumed."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self) -> Self:
        """Wait for its end, without an event loop; an interrupt stops the crawl, and is raised then."""
        try:
            self._ended.wait()
        except KeyboardInterrupt:
            self.stop()
            self._ended.wait()
            raise
        return self._concluded()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._finished().__await__()

    async def __aiter__(self) -> AsyncIterator[Capture]:
        events = _Events(self._directory, self._since, self._before)
        try:
            while True:
                has_ended = self._ended.is_set()
                archive = Archive(self._directory())
                for row in events.rest() if has_ended else events.new():
                    yield Capture(**row, _archive=archive)
                if has_ended:
                    break
                await asyncio.sleep(_PAUSE)
        finally:
            events.close()
        await self._finished()

    async def _finished(self) -> Self:
        try:
            await asyncio.to_thread(self._ended.wait)
        except asyncio.CancelledError:
            self.stop()
            raise
        return self._concluded()

    def _concluded(self) -> Self:
        if self._fault is not None:
            raise self._fault
        return self

    def _watch(self) -> None:
        """Pass captures on until the process has ended."""
        events = _Events(self._directory, self._since, self._before)
        try:
            while self._process.poll() is None:
                if self._on_capture is not None:
                    self._pass_on(events.new(), self._on_capture)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_PAUSE)
            if self._on_capture is not None:
                self._pass_on(events.rest(), self._on_capture)
            self.exit_code, self._fault = _outcome(self._process.returncode, self._errors)
        except BaseException as error:  # noqa: BLE001  # of `on_capture`; the caller gets it
            self.stop()
            self._process.wait()
            self._fault = error
        finally:
            events.close()
            self._errors.close()
            self._ended.set()

    def _pass_on(self, rows: Iterator[dict[str, Any]], receive: Callable[[Capture], object]) -> None:
        archive = Archive(self._directory())
        for row in rows:
            receive(Capture(**row, _archive=archive))


class _Events:
    """The rows that a crawl adds to its journals, of all its processes, each once."""

    def __init__(self, directory: Callable[[], Path], since: int, before: frozenset[int]) -> None:
        """Look into what *directory* returns. Rows before *since*, or with keys in *before*, are old."""
        self._directory = directory
        self._since = since
        self._open: dict[tuple[int, int], tuple[Path, IO[bytes]]] = {}
        self._seen: set[int] = set()
        self._before = before

    def new(self) -> Iterator[dict[str, Any]]:
        """Yield the rows that were added since."""
        directory = self._directory()
        below = (directory / PROCESSES).glob("*/captures-*.open")
        for path in sorted([*directory.glob("captures-*.open"), *below]):
            try:
                facts = path.stat()
                if (facts.st_dev, facts.st_ino) not in self._open:
                    self._open[facts.st_dev, facts.st_ino] = path, path.open("rb")
            except FileNotFoundError:
                continue
        for _, stream in self._open.values():
            yield from self._rows(stream)

    def rest(self) -> Iterator[dict[str, Any]]:
        """Yield what is left in journals, removed ones too, and what came to the table past them."""
        yield from self.new()
        directory = self._directory()
        if (directory / TABLE_NAME).exists():
            for batch in capture_batches(directory):
                for capture in _fetched(batch, since=self._since):
                    yield from self._unseen(capture)

    def close(self) -> None:
        """Close the journals."""
        for _, stream in self._open.values():
            stream.close()

    def _rows(self, stream: IO[bytes]) -> Iterator[dict[str, Any]]:
        while line := stream.readline():
            if not line.endswith(b"\n"):
                stream.seek(-len(line), os.SEEK_CUR)
                return
            row = row_in(line)
            if row is not None:
                yield from self._unseen(row)

    def _unseen(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        key = _key_of(row)
        if row["fetched_at"] >= self._since and key not in self._seen and key not in self._before:
            self._seen.add(key)
            yield row


def crawl(
    seeds: str | os.PathLike[str] | Iterable[str],
    *,
    out: str | os.PathLike[str],
    follow: bool = True,
    on_capture: Callable[[Capture], object] | None = None,
    **settings: object,
) -> Crawl:
    """Crawl *seeds* into the directory *out*: a URL, several, a seed list or a crawl file by its path.

    As `amicrawl crawl`: links below the URLs are followed, unless *follow* is False; seed lists follow
    none. *settings* are those of `docs/settings.md` in lower case, without `AMICRAWL_` (`delay=2`), or
    of Scrapy (`DOWNLOAD_TIMEOUT=30`). *on_capture* receives each capture soon after it was stored, in
    a thread of its own; an error of it ends the crawl, and is raised.

    Without a running event loop, returns when the crawl has ended; Ctrl-C stops it so that it can be
    resumed. With one, as in a notebook, returns at once: `await` what is returned. Any number of crawls
    may run, each in a process of its own and a directory of its own.

    Raises UsageError, InputError, OutputError or another AmicrawlError with the sentence of the command.
    """
    command, given = _command(seeds, Path(out), follow=follow, settings=settings)
    run_id = settings.get("run_id") or settings.get(f"{PREFIX}RUN_ID") or ""
    started = Crawl(command, given, Path(out) / str(run_id), on_capture)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return started.wait()
    return started


def _command(
    seeds: str | os.PathLike[str] | Iterable[str],
    out: Path,
    *,
    follow: bool,
    settings: dict[str, object],
) -> tuple[list[str], bytes]:
    """Return the command line of a crawl of *seeds*, and what is on its standard input."""
    names = [os.fspath(seeds)] if isinstance(seeds, str | os.PathLike) else [str(seed) for seed in seeds]
    if not names:
        raise UsageError("There are no seeds. Give a URL, several, or the path of a seed list.")
    given = b""
    if not follow:
        lines = [" ".join(name.split()) for name in names]
        if not all(line.lower().startswith(_WEB) for line in lines):
            raise UsageError("follow=False is about URLs: a seed list follows no links.")
        # A line with half a surrogate pair is one that cannot be used, as in a file.
        given, names = "".join(f"{line}\n" for line in lines).encode(errors="surrogatepass"), ["-"]
    elif sum(map(len, names)) > _MOST_ARGUMENTS:
        raise UsageError(
            f"{len(names):,} URLs to follow links from are too many. Give follow=False, or a seed list."
        )
    if any(name.startswith("-") and name != "-" for name in names):
        raise UsageError("A seed does not begin with a hyphen. Write ./ before the name of a file.")
    line = [sys.executable, "-P", "-m", "amicrawl", "crawl", *names, "-o", str(out), "-q", "--json"]
    for name, value in settings.items():
        line += _setting(name, value)
    return line, given


def _started(command: list[str], given: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Return the process of *command*; AmicrawlError where the system starts none."""
    try:
        # A session of its own: an interrupt of the caller is passed on once, by `stop`.
        with signals_for_later():
            return subprocess.Popen(  # noqa: S603  # a list, and no shell
                command, stdin=given, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )
    except (ValueError, OSError) as error:
        errors.close()
        raise _unstarted(error) from None


def _unstarted(error: ValueError | OSError) -> AmicrawlError:
    if isinstance(error, ValueError):
        return UsageError(f"A seed, the directory or a setting cannot be passed on: {error}.")
    if error.errno == errno.E2BIG:
        return UsageError(
            "A seed or a setting is too long for a command line. Write it into a crawl file."
        )
    return AmicrawlError(f"No process could be started: {error.strerror}.")


def _setting(name: str, value: object) -> list[str]:
    if not _NAME.fullmatch(name) or (name.islower() and name not in _OURS):
        raise UsageError(f"There is no setting {name!a}. docs/settings.md lists them.")
    full = f"{PREFIX if name.islower() else ''}{name.upper()}"
    return [] if value is None else ["-s", f"{full}={_written(full, value)}"]


def _written(setting: str, value: object) -> str:
    """Return *value* as the command line has it; UsageError for a list that none can have."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Mapping):
        try:
            return json.dumps(dict(value))
        except (TypeError, ValueError) as error:
            raise UsageError(f"Setting {setting} cannot be written as JSON: {error}.") from None
    if not isinstance(value, list | tuple | set | frozenset):
        return str(value)
    words = [str(each) for each in value]
    if not setting.startswith(PREFIX):
        return ",".join(words)
    for word in words:
        if word.split() != [word]:
            raise UsageError(
                f"Setting {setting} has {word!a}: white space divides its words. URLs have none; "
                r"an expression can have \s in its place."
            )
    return " ".join(words)


def _outcome(code: int, errors: IO[bytes]) -> tuple[ExitCode, AmicrawlError | None]:
    """Return how a crawl ended with *code*, and what to raise; its sentence is in *errors*."""
    if code in _ENDED_WELL:
        return ExitCode(code), None
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - _LAST_WORDS))
    said = errors.read().decode("utf-8", "replace").strip()
    sentence = _sentence_in(said)
    known = ExitCode(code) if code in set(ExitCode) else ExitCode.OUR_ERROR
    fault = _ERRORS.get(code, AmicrawlError)(
        sentence or f"The crawl ended with {code}. Call crawl again with the same directory."
    )
    vars(fault)["exit_code"] = known
    return known, fault


def _key_of(row: dict[str, Any]) -> int:
    # Where a record lies may change when the processes of a crawl are joined.
    return hash((row["url"], row["fetched_at"]))


def _directory_of_run(out: Path, before: Mapping[Path, int]) -> Path:
    """Return the directory below *out* of the crawl that began last, where *out* itself is not one.

    A crawl file can name one for each run, after the date. What stands as in *before*, the listings when
    this crawl was started, is another's.
    """
    if (out / FILE_NAME).exists():
        return out
    runs = {path: moment for path, moment in _listings(out).items() if moment != before.get(path)}
    return max(runs, key=runs.__getitem__).parent if runs else out


def _listings(out: Path) -> dict[Path, int]:
    """Return when each `crawl.json` one level below *out* was written."""
    return {path: path.stat().st_mtime_ns for path in out.glob(f"*/{FILE_NAME}") if path.is_file()}


def _keys_in(directory: Path, *, since: int) -> frozenset[int]:
    """Return the keys of the rows in *directory* that were fetched from *since* on."""
    if not directory.is_dir():
        return frozenset()
    batches = capture_batches(directory, columns=["url", "fetched_at"])
    return frozenset(_key_of(row) for batch in batches for row in _fetched(batch, since=since))


def _fetched(batch: pa.RecordBatch, *, since: int) -> list[dict[str, Any]]:
    """Return the rows of *batch* that were fetched from *since* on, in Unix milliseconds."""
    is_new: Any = pc.greater_equal(batch.column("fetched_at"), pa.scalar(since))
    return batch.filter(is_new).to_pylist()


def _sentence_in(said: str) -> str:
    """Return the sentence of a crawl that failed, in what it *said*: an object of JSON, or a line."""
    for line in reversed(said.splitlines()):
        with contextlib.suppress(ValueError):
            fault = json.loads(line)
            if isinstance(fault, dict) and fault.get("event") == "failed":
                return str(fault.get("message"))
    return said.rpartition("amicrawl: ")[2] if "amicrawl: " in said else said[-2000:]
