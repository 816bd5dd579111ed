"""The journal of the index: rows onto disk while a crawl runs, and read from there, checked.

A journal is `captures-00000.open`: one row a line, a JSON object with the columns of the index, so that
any tool can look at a running crawl. A Parquet file is worth nothing before its last byte; a journal
loses no more than the line that was being written. Its number is higher than that of every journal
which the table has taken in, and the table names the last of those: no row is taken in twice.

A line that does not hold a row is reported with its offset and skipped. The last line may be torn: where
the file does not end in a newline and the rest is not a row, a crawl was killed there, and the rest is
dropped without a word.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import orjson

from amicrawl.disk import OutputFile, Trust, explained, remove_durably
from amicrawl.errors import AmicrawlError, InputError
from amicrawl.listing import EARLIER_TABLE, NO_EARLIER_TABLE, PROCESSES, TABLE_NAME, process_directories
from amicrawl.record.captures import COLUMNS, EMPTY, NULLABLE, row_of
from amicrawl.record.deduplication import digests_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amicrawl.disk import Disk
    from amicrawl.listing import SealedFile
    from amicrawl.record.captures import CaptureItem, Row
    from amicrawl.record.table import CaptureIndex


JOURNAL_NAME = "captures-{:05d}"
LAST_JOURNAL = b"amicrawl.last_journal"
"""The key in the metadata of `captures.parquet` that names the last journal which it holds."""

IndexFiles = tuple[list[Path], list[Path]]
"""Tables and journals that hold the rows of a crawl."""

_JOURNAL = re.compile(r"captures-(\d{5,12})\.open")
_TRIES = 10


def journals(directory: Path) -> list[Path]:
    """Return the journals in *directory* that `captures.parquet` has not taken in, oldest first."""
    found = _numbered_journals(directory)
    last = _last_taken_in(directory) if found else -1
    return [path for number, path in found if number > last]


def own_index_files(directory: Path) -> IndexFiles:
    """Return the tables and the journals of *directory* alone, whatever its processes have."""
    return [path for path in (directory / TABLE_NAME,) if path.exists()], journals(directory)


def index_files(directory: Path) -> IndexFiles:
    """Return the tables and the journals that hold the rows of the crawl in *directory*.

    Those of its processes, too, where it has several and has not ended.
    """
    table, folder = directory / TABLE_NAME, directory / PROCESSES
    if (folder / NO_EARLIER_TABLE).exists():
        tables = []
    else:
        earlier = folder / EARLIER_TABLE
        # Once there, the table itself may hold the rows of the processes.
        tables = [earlier if earlier.exists() else table]
    parts = process_directories(directory)
    tables += [part / TABLE_NAME for part in parts]
    unread = [journal for part in (directory, *parts) for journal in journals(part)]
    return [path for path in tables if path.exists()], unread


@contextmanager
def opened_index_files(
    directory: Path, *, listed: Callable[[Path], IndexFiles] = index_files
) -> Iterator[tuple[list[CaptureIndex], list[BinaryIO]]]:
    """Open what *listed* returns of *directory*: the files of one moment, which hold each row once.

    A crawl may seal, replace or remove them while they are read: they are read to their ends as they
    were. Raises as `opened_index`, and InputError where they change whenever they are opened.
    """
    for _ in range(_TRIES):
        with ExitStack() as opened:
            files = _opened(directory, listed, opened)
            if files is not None:
                yield files
                return
    raise InputError(f"{directory} changed whenever it was read. Try again when its crawl has ended.")


def _opened(
    directory: Path, listed: Callable[[Path], IndexFiles], opened: ExitStack
) -> tuple[list[CaptureIndex], list[BinaryIO]] | None:
    """Return the files of *directory*, added to *opened*; None where they changed meanwhile."""
    from amicrawl.record.table import opened_index  # noqa: PLC0415  # see `_last_taken_in`

    try:
        tables, unread = listed(directory)
        indexes = [opened.enter_context(opened_index(path)) for path in tables]
        streams: list[BinaryIO] = [opened.enter_context(path.open("rb")) for path in unread]
        # A table that was renamed meanwhile may hold the rows of journals that were opened before.
        return (indexes, streams) if listed(directory) == (tables, unread) else None
    except (FileNotFoundError, AmicrawlError) as error:
        if directory.is_dir() and isinstance(error.__cause__ or error, FileNotFoundError):
            return None
        raise


def next_journal(directory: Path) -> int:
    """Return the number of the next journal in *directory*."""
    numbers = [number for number, _ in _numbered_journals(directory)]
    return 1 + max(numbers, default=_last_taken_in(directory))


def remove_taken_in(directory: Path, *, disk: Disk) -> None:
    """Remove the journals that `captures.parquet` holds."""
    last = _last_taken_in(directory)
    for number, path in _numbered_journals(directory):
        if number <= last:
            remove_durably(path, disk=disk)


def _numbered_journals(directory: Path) -> list[tuple[int, Path]]:
    with explained(directory, "read"):
        matches = [(_JOURNAL.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted((int(match[1]), path) for match, path in matches if match)


def _last_taken_in(directory: Path) -> int:
    """Return the number of the last journal that `captures.parquet` holds; -1 where there is none."""
    path = directory / TABLE_NAME
    if not path.exists():
        return -1
    # Arrow takes longer to load than a new crawl to open, and a new crawl has no table.
    from amicrawl.record.table import opened_index  # noqa: PLC0415

    with opened_index(path) as table:
        value = table.metadata.get(LAST_JOURNAL, b"-1")
    return int(value) if re.fullmatch(rb"-?\d{1,12}", value) else -1


LINE_LIMIT = 64 * 1024**2
"""Bytes of the longest line that is read; a seed's 8 MiB of metadata take at most 48 when escaped."""

RowTuple = tuple[Any, ...]
"""The values of a row in the order of `COLUMNS`."""

NAMES = tuple(name for name, _ in COLUMNS)
_ADDED = {name: EMPTY[kind] for name, kind in COLUMNS[26:]}
"""Columns that journals of earlier versions do not have."""
_values_of: Callable[[dict[str, Any]], RowTuple] = itemgetter(*NAMES)
_PYTHON_TYPES = {"string": str, "int32": int, "int64": int, "bool": bool}
_TYPES = tuple(_PYTHON_TYPES[kind] for _, kind in COLUMNS)
_TYPES_WITHOUT_TTFB = tuple(
    type(None) if name in NULLABLE else _PYTHON_TYPES[kind] for name, kind in COLUMNS
)
_int32_of: Callable[[RowTuple], tuple[int, ...]] = itemgetter(
    *(i for i, (name, kind) in enumerate(COLUMNS) if kind == "int32" and name not in NULLABLE)
)
_int64_of: Callable[[RowTuple], tuple[int, ...]] = itemgetter(
    *(i for i, (_, kind) in enumerate(COLUMNS) if kind == "int64")
)
_TTFB = NAMES.index("ttfb_ms")


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line of a journal that holds no row."""

    path: Path
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, byte {self.offset}: {self.reason}"


def read_rows(
    path: Path, *, on_damage: Callable[[DamagedLine], None], limit: int = LINE_LIMIT
) -> Iterator[RowTuple]:
    """Yield the rows of the journal *path* in order; what holds none goes to *on_damage*.

    A line of more than *limit* bytes is not read into memory; it counts as damaged.
    """
    with path.open("rb") as stream:
        yield from rows_in(stream, on_damage=on_damage, limit=limit)


def rows_in(
    stream: BinaryIO,
    *,
    on_damage: Callable[[DamagedLine], None],
    limit: int = LINE_LIMIT,
    start: int = 0,
) -> Iterator[RowTuple]:
    """Yield the rows of a journal that is open as *stream*, from *start* on, as `read_rows` does."""
    offset = stream.seek(start)
    while line := stream.readline(limit):
        size = len(line)
        reason = f"a line of more than {limit} bytes"
        values: RowTuple | None = None
        if line.endswith(b"\n") or size < limit:
            values, reason = _row_in(line)
        else:
            size += _pass_over_line(stream)
        if values is not None:
            yield values
        elif line.endswith(b"\n") or size >= limit:
            on_damage(DamagedLine(Path(stream.name), offset, reason))
        offset += size


_line_of: Callable[[Row], bytes] = partial(orjson.dumps, option=orjson.OPT_APPEND_NEWLINE)


def encode_row(row: Row) -> bytes:
    """Return *row* as a journal line. A lone surrogate, which UTF-8 cannot say, becomes U+FFFD."""
    try:
        return _line_of(row)
    except orjson.JSONEncodeError:
        return _line_of({name: _without_surrogates(value) for name, value in row.items()})


def _without_surrogates(value: str | int | None) -> str | int | None:
    if not isinstance(value, str):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def row_in(line: bytes) -> dict[str, Any] | None:
    """Return the row in the journal *line* by column; None where it holds none."""
    values, _ = _row_in(line)
    return None if values is None else dict(zip(NAMES, values, strict=True))


def _row_in(line: bytes) -> tuple[RowTuple | None, str]:
    """Return the row that *line* holds, or None and why it holds none."""
    try:
        said = orjson.loads(line)
        values = _values_of(said if len(said) >= len(NAMES) else {**_ADDED, **said})
    except orjson.JSONDecodeError as error:
        return None, f"not JSON ({error.msg})"
    except (KeyError, TypeError):
        return None, "not an object with the columns of the index"
    kinds = tuple(map(type, values))
    if kinds not in (_TYPES, _TYPES_WITHOUT_TTFB):
        return None, "a value of the wrong type"
    small, large = (*_int32_of(values), values[_TTFB] or 0), _int64_of(values)
    if min(small) < -(2**31) or max(small) >= 2**31 or min(large) < -(2**63) or max(large) >= 2**63:
        return None, "a number out of range"
    return values, ""


def _pass_over_line(stream: IO[bytes]) -> int:
    """Read up to the end of the line and return how many bytes that were."""
    passed = 0
    while part := stream.readline(1024**2):
        passed += len(part)
        if part.endswith(b"\n"):
            break
    return passed


class CapturesJournal:
    """Keeps the rows of one run in one directory.

    After the first OutputError every call raises it again. Synchronous, for one thread.
    """

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        self.pending_bytes = 0
        """Bytes of memory that what was added and not yet written takes."""
        self._directory = directory
        self._disk = disk
        self._pending: list[bytes] = []
        self._file: OutputFile | None = None
        self._trust = Trust(directory)

    def add(self, *items: CaptureItem) -> None:
        """Take the rows of *items*.

        An item that no WARC stage has seen is measured here; its row points nowhere.
        """
        if self._trust.failure is not None:
            raise self._trust.failure
        for item in items:
            if item.location is None and item.capture.status and not item.digest:
                digests = digests_of(item.capture)
                item.digest, item.body_length = digests.payload, digests.payload_length
                item.unchanged = digests.payload == item.seed.digest
        rows = list(map(row_of, items))
        try:
            lines = list(map(_line_of, rows))
        except orjson.JSONEncodeError:
            lines = list(map(encode_row, rows))
        self._pending += lines
        self.pending_bytes += sum(map(len, lines))

    def commit(self, *, sync: bool) -> None:
        """Write the rows that were added, and with *sync* force them to disk."""
        if self._trust.failure is not None:
            raise self._trust.failure
        try:
            if self._pending:
                file = self._file or self._begun()
                file.write(b"".join(self._pending))
                self._pending.clear()
                self.pending_bytes = 0
            if sync and self._file is not None:
                self._file.sync()
        except BaseException as error:
            self._trust.end(error)
            raise

    def seal(self) -> SealedFile:
        """Write what was added, and turn the journals of the directory into `captures.parquet`.

        Rows of an earlier `captures.parquet` come first. Raises DamagedFileError, and leaves the journal
        as it is, where a line does not read back.
        """
        # Arrow is loaded when the first table is written: a crawl sends its first request before.
        from amicrawl.record.table import take_in_journals  # noqa: PLC0415

        self.commit(sync=True)
        with self._trust.at_stake():
            if self._file is not None:
                self._file.close()
                self._file = None
            return take_in_journals(self._directory, disk=self._disk)

    def close(self) -> None:
        """Let go of everything as it is: for a crawl that cannot go on. The journal stays."""
        self._pending.clear()
        if self._file is not None:
            self._file.close()

    def _begun(self) -> OutputFile:
        name = JOURNAL_NAME.format(next_journal(self._directory))
        self._file = OutputFile(self._directory / name, disk=self._disk)
        return self._file
