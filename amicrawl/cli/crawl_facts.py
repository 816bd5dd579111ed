"""Crawl facts: what a crawl's output says of it, read without starting, stopping or changing anything.

The crawl may be finished, running or killed. Rows are those of `captures.parquet`, of the journals that
it has not taken in, and of the numbered indexes that ami 0.2 and 0.3 left there. Only the columns that
are counted are read through, and of the others the first rows; never more than a batch of either is in
memory.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from amicrawl.capture import Failure
from amicrawl.directory_lock import is_locked
from amicrawl.disk import OPEN_SUFFIX, refuse_pipe
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.listing import FILE_NAME, PROCESSES, TABLE_NAME, process_directories, read_crawl_json
from amicrawl.parquet import NotWholeError, ParquetTable
from amicrawl.record import NAMES, index_files, rows_in
from amicrawl.seed import earlier_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SHOWN = ("status", "body_length", "host", "url", "error")
"""Columns of the capture index that are shown of a row."""

_COUNTED = ("status", "body_length", "unchanged", "error")
_SKIPPED = frozenset({"skipped", *(str(failure) for failure in Failure if failure.never_requested)})
"""Words of `error` for what was not requested; the first is that of ami 0.3."""
_BATCH = 64 * 1024
_SHOWN_BATCH = 256
_MAGIC = b"PAR1"
_TRIES = 10


@dataclass(frozen=True, slots=True)
class FileFact:
    """One file of a crawl."""

    name: str
    """Relative to the directory of the crawl."""
    size: int
    """Bytes."""
    state: str
    """`sealed`, `being written`, `set aside` (by repair), `not as listed` (in `crawl.json`) or empty."""
    records: int | None = None
    """Records or rows in it, as `crawl.json` says; None where it does not."""


@dataclass(slots=True)
class CrawlFacts:
    """What is known of a crawl, or of one capture index."""

    rows: int = 0
    bytes: int = 0
    """Of payload, over all rows."""
    unchanged: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    """Rows by HTTP status; 0: there was no response."""
    skipped: int = 0
    """Rows of URLs that were not requested: robots.txt, the crawl's own rules, a host given up."""
    captures: list[dict[str, Any]] = field(default_factory=list)
    """The first rows, by column: those in `SHOWN`."""
    files: list[FileFact] = field(default_factory=list)
    crawl: dict[str, Any] | None = None
    """What `crawl.json` says; None where there is none."""
    is_held: bool | None = None
    """Whether a process holds the directory of a crawl that says it is running; None for any other."""
    notes: list[str] = field(default_factory=list)
    """What is amiss, a sentence each."""

    @property
    def failed(self) -> int:
        """Rows of fetches that brought no response."""
        return self.statuses[0] - self.skipped


def facts_of(path: Path, *, rows: int) -> CrawlFacts:
    """Return the facts of a crawl's directory, of a capture index or of a journal of one.

    Raises InputError where *path* is none of them, DamagedFileError where it cannot be read.
    """
    if path.is_dir():
        return _facts_of_directory(path, rows=rows)
    refuse_pipe(path)
    facts = CrawlFacts()
    (_add_journal if path.suffix == OPEN_SUFFIX else _add_table)(facts, path, rows=rows)
    return facts


def _facts_of_directory(directory: Path, *, rows: int) -> CrawlFacts:
    """Return the facts of the crawl in *directory*, with its first *rows* captures.

    Raises InputError where there is no crawl, or its files change whenever they are read;
    DamagedFileError where `captures.parquet` cannot be read.
    """
    for _ in range(_TRIES):
        # A file is gone between being listed and being read where the crawl has just sealed it.
        with suppress(FileNotFoundError):
            listed = index_files(directory)
            facts = _read_directory(directory, *listed, rows=rows)
            if index_files(directory) == listed:
                return facts
    raise InputError(f"{directory} changed whenever it was read. Try again when its crawl has ended.")


def _read_directory(
    directory: Path, tables: Sequence[Path], unread: Sequence[Path], *, rows: int
) -> CrawlFacts:
    facts = CrawlFacts()
    facts.crawl = _crawl_said(directory, facts.notes)
    if facts.crawl is not None and facts.crawl.get("state") == "running":
        facts.is_held = is_locked(directory)
    facts.files = _files(directory, facts.crawl or {})
    tables = [*tables, *earlier_indexes(directory)]
    warcs = any(".warc.gz" in file.name for file in facts.files)
    if not (tables or unread or warcs or facts.crawl):
        raise InputError(f"{directory} holds no crawl. {_advice(directory)}")
    for table in tables:
        _add_table(facts, table, rows=rows)
    for journal in unread:
        _add_journal(facts, journal, rows=rows)
    return facts


def _add_table(facts: CrawlFacts, path: Path, *, rows: int) -> None:
    """Add the capture index *path* to *facts*, with rows up to *rows* in all.

    Raises InputError where it is none, DamagedFileError where it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise InputError(
                f"{path} is not a Parquet file. Give a capture index, a WARC file or a directory."
            )
    try:
        with ParquetTable(path, str(path)) as table:
            missing = _missing(table.schema)
            if missing:
                raise InputError(f"{path} is not a capture index: it lacks {missing}. Give one.")
            facts.rows += table.rows
            _add_counts(facts, table)
            _add_captures(facts, table, rows)
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, NotWholeError) as error:
        reason = f"not a whole Parquet file ({error}); restore a copy of it"
        raise DamagedFileError(path, path.stat().st_size, reason) from error


def _add_journal(facts: CrawlFacts, path: Path, *, rows: int) -> None:
    """Add the rows of the journal *path* to *facts*; damaged lines are noted, a torn last one is not."""
    damaged: list[object] = []
    status, length, unchanged, error = (NAMES.index(name) for name in _COUNTED)
    with path.open("rb") as stream:
        for values in rows_in(stream, on_damage=damaged.append):
            facts.rows += 1
            facts.statuses[values[status]] += 1
            facts.bytes += values[length]
            facts.unchanged += values[unchanged]
            facts.skipped += not values[status] and _is_skipped(values[error])
            if len(facts.captures) < rows:
                facts.captures.append({name: values[NAMES.index(name)] for name in SHOWN})
    if damaged:
        facts.notes.append(f"{path.name} has {len(damaged)} damaged lines, the first: {damaged[0]}.")


def _is_skipped(error: str) -> bool:
    return error.partition(":")[0] in _SKIPPED


def _missing(schema: pa.Schema) -> str:
    """Return which columns that are needed are not in *schema*, or not of their type."""
    fits: dict[str, Callable[[pa.DataType], bool]] = {
        "status": pa.types.is_integer,
        "body_length": pa.types.is_integer,
        "unchanged": pa.types.is_boolean,
        **dict.fromkeys(("host", "url", "error"), pa.types.is_string),
    }
    found = dict(zip(schema.names, schema.types, strict=True))
    return ", ".join(
        sorted(name for name, fit in fits.items() if name not in found or not fit(found[name]))
    )


def _add_counts(facts: CrawlFacts, table: ParquetTable) -> None:
    for batch in table.batches(_COUNTED, rows=_BATCH):
        counts: Any = pc.value_counts(batch.column("status").fill_null(0))
        for each in counts.to_pylist():
            facts.statuses[each["values"]] += each["counts"]
        facts.bytes += pc.sum(batch.column("body_length")).as_py() or 0
        facts.unchanged += pc.sum(batch.column("unchanged")).as_py() or 0
        responded: Any = pc.cast(batch.column("status").fill_null(0), pa.bool_())
        errors = batch.filter(pc.invert(responded)).column("error").to_pylist()
        facts.skipped += sum(_is_skipped(error or "") for error in errors)


def _add_captures(facts: CrawlFacts, table: ParquetTable, rows: int) -> None:
    if not rows:
        return
    for batch in table.batches(SHOWN, rows=min(rows, _SHOWN_BATCH)):
        facts.captures += batch.slice(0, rows - len(facts.captures)).to_pylist()
        if len(facts.captures) >= rows:
            return


def _crawl_said(directory: Path, notes: list[str]) -> dict[str, Any] | None:
    """Return what `crawl.json` says; while several processes crawl, when they began."""
    parts = process_directories(directory)
    if not parts:
        return _crawl_json(directory, notes)
    notes.append(
        f"The crawl in {len(parts)} processes has not ended: its files are in {PROCESSES} until then."
    )
    said = _crawl_json(parts[0], notes) or {}
    return {"state": "running"} | {name: said[name] for name in ("started", "software") if name in said}


def _crawl_json(directory: Path, notes: list[str]) -> dict[str, Any] | None:
    try:
        return read_crawl_json(directory) or None
    except DamagedFileError as error:
        notes.append(f"{FILE_NAME} is {error.reason}.")
        return None


def _files(directory: Path, crawl: dict[str, Any]) -> list[FileFact]:
    """Return the files of the crawl in *directory*, those of its frontier included, by name."""
    listed = {entry["name"]: entry for entry in crawl.get("files", ())}
    parts = (directory, *process_directories(directory))
    paths = [path for part in parts for each in ("*", "frontier/*") for path in part.glob(each)]
    return [_file(path, directory, listed) for path in sorted(paths) if path.is_file()]


def _file(path: Path, directory: Path, listed: dict[str, dict[str, Any]]) -> FileFact:
    name, size = path.relative_to(directory).as_posix(), path.stat().st_size
    entry = listed.get(name, {})
    state = _state(name)
    if state == "sealed" and entry.get("size", size) != size:
        state = "not as listed"
    return FileFact(name, size, state, entry.get("records"))


def _state(name: str) -> str:
    if name.endswith(".open"):
        return "being written"
    if name.endswith((".tail", ".damaged")):
        return "set aside"
    return "sealed" if name.endswith((".warc.gz", ".parquet")) else ""


def _advice(directory: Path) -> str:
    runs = sorted(path.parent for path in directory.glob(f"*/{TABLE_NAME}"))
    return f"Give one of the runs in it: {runs[0]}." if runs else "Give the output directory of one."
