"""`amicrawl query`: shipped queries, or one's own SQL, to a table or a crawl's capture index."""

from __future__ import annotations

import glob
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.archive.table import (
    RECORDS_PER_FILE,
    ExportOptions,
    NamedQuery,
    export_records,
    named_query,
)
from amicrawl.archive.table.named_queries import GROUPS, named_queries
from amicrawl.cli.archive_files import check_output_file
from amicrawl.cli.options import AsJson, check_installed, grouped, json_text, pairs
from amicrawl.cli.query_output import FORMATS, write_result
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, OutputError, UsageError
from amicrawl.terminal import counted, harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.archive.table import QueryResult, QueryTable

_MISSES_SHOWN = 20


TablePath = Annotated[
    Path | None,
    typer.Argument(help="A table, a captures.parquet, or a directory of either.", show_default=False),
]


def _complete_query(incomplete: str) -> list[str]:
    """Return the names of queries that begin so, for a shell."""
    return [name for name in named_queries() if name.startswith(incomplete)]


QueryName = Annotated[
    str | None,
    typer.Argument(
        autocompletion=_complete_query, help="Name of a query; --list shows all.", show_default=False
    ),
]
Sql = Annotated[
    str | None,
    typer.Option("--sql", metavar="SQL", help="Run this SQL instead; - reads standard input."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--param", "-p", metavar="K=V", help="Set a parameter of the query.")
]
Listed = Annotated[bool, typer.Option("--list", help="List the queries, or those that PATH supports.")]
Show = Annotated[bool, typer.Option("--show", help="Show the SQL instead of running it.")]
Unrestricted = Annotated[
    bool, typer.Option("--unrestricted", help="Allow --sql to read and write any file.")
]


@dataclass(frozen=True)
class OutputOptions:
    """What becomes of the rows."""

    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="Output format; by default that of FILE's suffix, else table.",
        ),
    ] = None
    as_json: AsJson = False
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write to this file.")
    ] = None
    warc: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the records found to WARC files in DIR.")
    ] = None
    archives: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory of the indexed WARC files, for --warc.")
    ] = Path()
    per_file: Annotated[
        int, typer.Option(min=0, metavar="N", help="Records per file of --warc; 0: all in one.")
    ] = RECORDS_PER_FILE

    def check(self, table: Path, *, show: bool) -> str:
        """Return the format of the rows. UsageError or OutputError for what cannot be done."""
        named = self.format_name is not None or self.as_json
        if self.format_name is not None and self.as_json:
            raise UsageError("--json is --format jsonl. Leave one of the two out.")
        chosen = "jsonl" if self.as_json else _format(self.format_name, self.out)
        if self.warc is not None and (self.out is not None or named or show):
            raise UsageError(
                "--warc writes records, not rows. Leave -o, --format, --json and --show out."
            )
        if self.out is not None:
            check_output_file(self.out, option="-o")
            _check_elsewhere(self.out, table)
        return chosen


@grouped
def query(
    path: TablePath = None,
    name: QueryName = None,
    *,
    sql: Sql = None,
    param: Parameters = None,
    output: OutputOptions,
    listed: Listed = False,
    show: Show = False,
    unrestricted: Unrestricted = False,
) -> None:
    """Run a named query, or SQL of your own, on the table at PATH.

    Examples: amicrawl query --list; amicrawl query table/ count_domains_of_tld --param tld=gov;
    amicrawl query table/ --sql "SELECT count(*) FROM ccindex"
    """
    if listed:
        _list(path, as_json=output.as_json)
        return
    if show and name is None and path is not None:
        typer.echo(named_query(str(path)).text, nl=False)
        return
    if path is None or (name is None) == (sql is None):
        raise UsageError(
            "Say which table, and either the name of a query or --sql: amicrawl query table/ "
            "count_by_month. amicrawl query --list shows the queries."
        )
    values = pairs(param or (), option="--param")
    for text in values.values():
        _check_text(text, "A value of --param")
    if sql is not None and (values or show):
        raise UsageError("--param and --show belong to shipped queries. Leave them out, or --sql.")
    chosen = output.check(path, show=show)
    named = None if name is None else named_query(name)
    with _opened(path, restricted=not unrestricted) as table:
        if named is not None and show:
            typer.echo(table.script(named, values))
            return
        result = table.ask_sql(_text_of(sql)) if named is None else table.ask(named, values)
        if output.warc is None:
            write_result(result, chosen, output.out)
        else:
            _export(result, output.archives, output.warc, per_file=output.per_file)


def _opened(path: Path, *, restricted: bool = True) -> QueryTable:
    check_installed("query", "duckdb")
    from amicrawl.archive.table import QueryTable  # noqa: PLC0415  # an extra

    return QueryTable(path, restricted=restricted)


def _check_elsewhere(out: Path, table: Path) -> None:
    if table.is_dir() and out.absolute().resolve().is_relative_to(table.resolve()):
        raise UsageError(f"{out} would become a part of the table {table}. Choose a file elsewhere.")
    named = [table] if table.exists() else map(Path, glob.glob(str(table), recursive=True))  # noqa: PTH207
    if out.exists() and any(out.samefile(file) for file in named):
        raise UsageError(f"{out} is what is queried, and would be written over. Choose another file.")


def _text_of(sql: str | None) -> str:
    text = sys.stdin.read() if sql == "-" else sql or ""
    _check_text(text, "This SQL")
    return text


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} is not UTF-8. Convert it first, as iconv does.") from error


def _export(result: QueryResult, archives: Path, out: Path, *, per_file: int) -> None:
    exported = export_records(
        result, archives, out, disk=Disk(), options=ExportOptions(records_per_file=per_file)
    )
    typer.echo(
        f"{counted(exported.records, 'record')} in {counted(len(exported.files), 'file')} in {out}; "
        f"{exported.missed:,} missed."
    )
    for miss in exported.misses[:_MISSES_SHOWN]:
        shown = miss._replace(file=harmless(miss.file), reason=harmless(miss.reason))
        typer.echo(str(shown), err=True)
    if exported.missed > _MISSES_SHOWN:
        typer.echo(f"... and {exported.missed - _MISSES_SHOWN:,} more", err=True)
    if exported.missed:
        raise typer.Exit(ExitCode.DAMAGED)


def _list(path: Path | None, *, as_json: bool) -> None:
    known = list(named_queries().values())
    if path is not None:
        with _opened(path) as table:
            known = [each for each in known if table.fits(each)]
    for group, heading in GROUPS.items():
        of_group = [each for each in known if each.group == group]
        if of_group and not as_json:
            typer.echo(f"\n{heading}\n")
        for each in of_group:
            typer.echo(_facts_as_json(each) if as_json else "\n    ".join([each.name, *_facts(each)]))


def _facts_as_json(each: NamedQuery) -> str:
    parameters = {one.name: one.default for one in each.parameters}
    facts = {"name": each.name, "group": each.group, "query": each.sentence, "parameters": parameters}
    return json_text(facts)


def _facts(each: NamedQuery) -> Sequence[str]:
    chosen = [
        f"--param {parameter.name}={parameter.default}  {parameter.meaning}"
        for parameter in each.parameters
    ]
    return [each.sentence, *chosen]


def _format(name: str | None, out: Path | None) -> str:
    if name is None:
        ending = "" if out is None else out.suffix.removeprefix(".").lower()
        name = ending if ending in FORMATS else "table"
    if name not in FORMATS:
        raise UsageError(f"There is no format {name}. Choose one of {', '.join(FORMATS)}.")
    if name == "parquet" and out is None and sys.stdout.isatty():
        raise OutputError("Parquet is nothing for a terminal. Name a file with -o.")
    return name
