"""Queries of a table, or to a crawl's capture index, run by DuckDB.

A table is a Parquet file, or a directory of them with or without `crawl=.../subset=...` directories,
whose values are columns then. Its columns show what it is: the table of an index is the relation
`ccindex` (also `eot` and `index`, and `ccindex.ccindex` and `eot.eot`, as published queries name it),
a capture index the relation `captures`. Files of different ages are united by their columns' names.

Once a table is open the engine is locked: nothing but the files below the given path can be read,
nothing can be written there, no extension loaded, nothing fetched. What does not fit in memory is
spilled into a directory that is gone at the end. Rows come in batches: a result may be larger than
memory.
"""

from __future__ import annotations

import glob
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from amicrawl.archive.table.named_queries import (
    CAPTURES,
    TABLE,
    NamedQuery,
    macros,
    macros_used,
    quoted,
    ranking_of_file,
    ranking_of_table,
)
from amicrawl.archive.table.read_only_sql import refuse_writing, statements_of
from amicrawl.disk import is_unfinished, refuse_undecodable
from amicrawl.errors import InputError, OutputError, UsageError
from amicrawl.listing import check_tables
from amicrawl.parquet import ParquetTable
from amicrawl.threads import StoppableCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

_Result = TypeVar("_Result")

BATCH_ROWS = 10_000
"""Rows that a result is read in at a time."""

_CHECKED = 64 << 20
"""Bytes of the largest file whose pages are looked at before the engine reads them."""
_SIGNS = {TABLE: "url_surtkey", CAPTURES: "warc_file"}
"""The column by which each kind of table is known."""

_PARTITION_HINT = "crawl and subset are columns, or directories crawl=.../subset=... above the files. "

_UNKNOWN_TABLE = "Table with name"
"""In what the engine says of a table that is not there."""
_OTHER_NAMES = (
    f"CREATE VIEW eot AS FROM {TABLE}",
    f'CREATE VIEW "index" AS FROM {TABLE}',
    "CREATE SCHEMA ccindex",
    f"CREATE VIEW ccindex.ccindex AS FROM main.{TABLE}",
    "CREATE SCHEMA eot",
    f"CREATE VIEW eot.eot AS FROM main.{TABLE}",
)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What came of a query: its columns, and its rows in batches, read when they are requested."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class QueryTable:
    """A table that can be queried. One query, or one SQL text, to an instance: then it is locked."""

    def __init__(self, path: Path, *, restricted: bool = True) -> None:
        """Open the table at *path*: a file, a directory, or a pattern such as `runs/*/captures.parquet`.

        InputError where there is none, or one that cannot be read.
        """
        self.path = path
        self._restricted = restricted
        self._files = table_files(path)
        for file in self._files:
            _check_name(file)
            _check_size(file)
        self._kept = ExitStack()
        self._call: StoppableCall[Any] | None = None
        try:
            scratch = self._kept.enter_context(tempfile.TemporaryDirectory(prefix="amicrawl-query-"))
            self._engine = _engine(restricted=restricted)
            self._kept.callback(self._engine.close)
            self._stoppable(partial(_set_up, self._engine, scratch))
            with _reading(path):
                self.columns = self._columns_of_files()
            self.relation = _kind(path, self.columns)
        except BaseException:
            self.close()
            raise

    def ask(self, query: NamedQuery, values: Mapping[str, str]) -> QueryResult:
        """Return the result of a shipped *query*.

        UsageError where the query does not fit the table, or *values* do not fit the query.
        """
        sql = query.sql(values)
        preamble = self._preamble(query, values)
        ranking = query.chosen(values)[query.ranking.name] if query.ranking else ""
        *before, last = preamble
        with _reading(self.path):
            for statement in before:
                self._execute(statement)
        with _reading(Path(ranking or self.path)):
            self._execute(last)
        with _reading(self.path):
            self._lock()
        return self._result(sql, _reading)

    def ask_sql(self, sql: str) -> QueryResult:
        """Return the result of the last statement of *sql*.

        UsageError where a statement may not, or cannot, run.
        """
        *before, last = statements_of(sql)
        with _reading(self.path):
            self._execute(self._view(()))
            for statement in (*(_OTHER_NAMES if self.relation == TABLE else ()), *macros().values()):
                self._execute(statement)
            self._lock()
        blamed = partial(_blamed_on_sql, relation=self.relation)
        with blamed(self.path):
            for statement in before:
                self._check(statement)
                self._execute(statement)
            self._check(last)
        return self._result(last, blamed)

    def script(self, query: NamedQuery, values: Mapping[str, str]) -> str:
        """Return the SQL that `ask` would run, whole: it can be pasted into DuckDB."""
        sql = query.sql(values)
        header = query.text.partition("\n\n")[0]
        statements = [*self._preamble(query, values), sql]
        return f"{header}\n\n" + "\n\n".join(f"{statement};" for statement in statements)

    def fits(self, query: NamedQuery) -> bool:
        """Return whether the table has what *query* needs."""
        return query.relation == self.relation and not set(query.columns) - set(self.columns)

    def close(self) -> None:
        """Let go of the engine and of what it spilled."""
        while self._call is not None and not self._call.is_over:
            # Between two of its steps the engine does not take notice.
            self._engine.interrupt()
            self._call.wait(0.1)
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _preamble(self, query: NamedQuery, values: Mapping[str, str]) -> list[str]:
        self._check_columns(query)
        statements = [self._view(query.optional), *macros_used(query.statement)]
        ranking = query.ranking
        if ranking is not None:
            file = query.chosen(values)[ranking.name]
            statements.append(ranking_of_file(Path(file)) if file else ranking_of_table())
        return statements

    def _check_columns(self, query: NamedQuery) -> None:
        if query.relation != self.relation:
            raise UsageError(
                f"{query.name} reads {_called(query.relation)}; {self.path} is "
                f"{_called(self.relation)}. amicrawl query {self.path} --list shows its queries."
            )
        missing = [name for name in query.columns if name not in self.columns]
        if missing:
            raise UsageError(
                f"{query.name} needs the column {', '.join(missing)}, which {self.path} has not. "
                f"{_PARTITION_HINT if {'crawl', 'subset'} & set(missing) else ''}"
                f"amicrawl query {self.path} --list shows its queries."
            )

    def _view(self, optional: tuple[str, ...]) -> str:
        empty = "".join(f", NULL::VARCHAR AS {name}" for name in optional if name not in self.columns)
        return f"CREATE VIEW {self.relation} AS\nSELECT *{empty} FROM {self._source()}"

    def _source(self) -> str:
        files = ",\n  ".join(quoted(str(file)) for file in self._files)
        return f"read_parquet([\n  {files}\n], union_by_name = true, hive_types_autocast = false)"

    def _columns_of_files(self) -> dict[str, str]:
        statement = f"DESCRIBE FROM {self._source()}"
        rows = self._stoppable(lambda: self._engine.execute(statement).fetchall())
        return {row[0]: row[1] for row in rows}

    def _lock(self) -> None:
        if not self._restricted:
            return
        folder = self.path.is_dir()
        allowed = [self.path.absolute()] if folder else self._files
        listed = ", ".join(quoted(str(each)) for each in allowed)
        for statement in (
            f"SET {'allowed_directories' if folder else 'allowed_paths'} = [{listed}]",
            "SET allow_persistent_secrets = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._execute(statement)

    def _check(self, statement: str) -> None:
        if self._restricted:
            self._stoppable(partial(refuse_writing, self._engine, statement))

    def _result(self, sql: str, blamed: _Blame) -> QueryResult:
        with blamed(self.path):
            relation = self._stoppable(partial(self._engine.sql, sql))
            if relation is None:
                raise UsageError("The last statement has no result. End with one that has: SELECT.")
            reader = self._stoppable(partial(relation.to_arrow_reader, BATCH_ROWS))
        return QueryResult(reader.schema, self._read(reader, blamed))

    def _read(self, reader: pa.RecordBatchReader, blamed: _Blame) -> Iterator[pa.RecordBatch]:
        while True:
            with blamed(self.path):
                batch = self._stoppable(partial(next, reader, None))
            if batch is None:
                return
            yield batch

    def _execute(self, statement: str) -> None:
        self._stoppable(partial(self._engine.execute, statement))

    def _stoppable(self, work: Callable[[], _Result]) -> _Result:
        """Return what *work* of the engine returns; Ctrl-C ends it.

        It does so from the thread that waits: in its own, the engine looks for no signals, and in that
        which waits it would make of one a RuntimeError of its own.
        """
        call = StoppableCall(work)
        self._call = call
        return call.result()


def table_files(path: Path) -> list[Path]:
    """Return the Parquet files of the table at *path* in order; InputError where there are none.

    Files and directories whose names begin with `.` or `_` do not count, as Spark and Hive have it, nor
    those whose names end in `.open`: they are being written, or were given up.
    """
    try:
        if path.is_dir():
            found = [each for each in sorted(path.rglob("*.parquet")) if _counts(each.relative_to(path))]
            check_tables(path, (each.relative_to(path).as_posix() for each in found))
        elif path.exists():
            return [path.absolute()]
        else:
            # Path has no pattern that begins at the root.
            found = [Path(each) for each in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path} cannot be read: {reason}. Check the permissions.") from error
    files = [each.absolute() for each in found if each.is_file()]
    if not files:
        raise InputError(
            f"{path} {'holds no Parquet file' if path.is_dir() else 'does not exist'}. Name a table "
            "that amicrawl table wrote, a captures.parquet, or a directory with either."
        )
    return files


def _check_name(file: Path) -> None:
    """Raise InputError where the engine cannot take the name of *file*, or takes it for others', too."""
    refuse_undecodable(file)
    # Written as a pattern of itself alone, it is none of the files that a locked engine may read.
    if {*glob.glob(str(file))} - {str(file)}:  # noqa: PTH207
        raise InputError(
            f"{file} cannot be distinguished from files beside it: an asterisk, a question mark or a "
            "bracket in a name stands for other characters here. Rename it."
        )


def _check_size(file: Path) -> None:
    """Raise InputError where a small *file* stands for so much that the engine would fill memory."""
    with _reading(file):
        if file.stat().st_size <= _CHECKED:
            with ParquetTable(file, str(file)) as table:
                table.check()


def _counts(path: Path) -> bool:
    return not is_unfinished(path) and not any(part.startswith((".", "_")) for part in path.parts)


def _engine(*, restricted: bool) -> duckdb.DuckDBPyConnection:
    configuration: dict[str, str | bool | int | float | list[str]] = {
        "python_enable_replacements": "false"
    }
    if restricted:
        configuration |= {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    return duckdb.connect(":memory:", config=configuration)


def _set_up(engine: duckdb.DuckDBPyConnection, scratch: str) -> None:
    engine.execute(f"SET temp_directory = {quoted(scratch)}")
    engine.execute("SET TimeZone = 'UTC'")
    # It would be drawn among the rows of the result.
    engine.execute("SET enable_progress_bar = false")
    with suppress(duckdb.Error):
        # Published queries write lambdas as w -> ...; an engine that has forgotten how will say so.
        engine.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")


def _kind(path: Path, columns: Mapping[str, str]) -> str:
    kinds = [relation for relation, sign in _SIGNS.items() if sign in columns]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise InputError(
            f"{path} holds both {_called(TABLE)} and {_called(CAPTURES)}. Name one of them."
        )
    raise InputError(
        f"{path} is not a table to query: it has neither the column url_surtkey of an index's "
        f"table nor warc_file of a capture index, but {', '.join(list(columns)[:10])}."
    )


def _called(relation: str) -> str:
    return "a capture index" if relation == CAPTURES else "the table of an index"


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn an error of the engine's into one that says that *path* cannot be read."""
    try:
        yield
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        _blame_on_room(error)
        reason = _first_line(error)
        raise InputError(f"{path} cannot be read as a table: {reason}. Check the file.") from error


@contextmanager
def _blamed_on_sql(path: Path, *, relation: str) -> Iterator[None]:
    """Turn an error of the engine's into one that says what is wrong with the SQL."""
    try:
        yield
    except duckdb.PermissionException as error:
        raise UsageError(
            f"{_first_line(error)}. Only {path} can be read, and the network not at all; "
            "--unrestricted lifts this."
        ) from error
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        _blame_on_room(error)
        # What goes wrong between two batches has lost its class on the way through Arrow.
        if isinstance(error, duckdb.IOException) or str(error).startswith("IO Error"):
            raise InputError(f"{_first_line(error)}. Check path and file.") from error
        known_as = (
            f"\nThe table at {path} is called {relation} in SQL." if _UNKNOWN_TABLE in str(error) else ""
        )
        raise UsageError(f"This SQL cannot be run. {error}{known_as}") from error


def _blame_on_room(error: Exception) -> None:
    """Raise OutputError if *error* says that there was not enough memory."""
    if str(error).startswith("Out of Memory"):
        raise OutputError(
            f"This query needs more memory, or more room in {tempfile.gettempdir()}, than there is: "
            f"{_first_line(error)}. Select less, or set TMPDIR to a directory with more room."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    _Blame = Callable[[Path], AbstractContextManager[None]]
