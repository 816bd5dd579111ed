"""Statements of a user's SQL that may run: those that read.

The engine's own lock keeps a statement from files beyond the table and from the network. What it cannot
forbid is writing where it may read: `COPY ... TO` beside the table's files, also inside of a WITH clause
of what its parser calls a SELECT. So each statement is judged by its kind, and by the plan that the
engine makes of it: a plan with an operator that writes does not run. Nothing is run here but EXPLAIN.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import duckdb

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_READING = {"SELECT", "EXPLAIN"}
_CREATING = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*create\s+(?:or\s+replace\s+)?(?:temp\s+|temporary\s+)?"
    r"(?P<what>view|macro|function|table|schema)\b",
    re.IGNORECASE | re.DOTALL,
)
_WRITING = re.compile("COPY|EXPORT|ATTACH|LOAD|WRITE|INSERT|UPDATE|DELETE|MERGE")
_ONLY_READ = (
    "Only what reads is run: SELECT, WITH, FROM, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN, and before them "
    "CREATE VIEW, MACRO or TABLE, which live as long as the command. --unrestricted lifts this."
)
_VALUES_UNNAMED = (
    "PIVOT without values runs statements of its own to find them. Name the values: "
    "PIVOT ccindex ON fetch_status IN (200, 404) USING count(*). --unrestricted lifts this."
)


def statements_of(sql: str) -> list[str]:
    """Return the statements of *sql*; UsageError if there is none, or the last has no result."""
    try:
        found = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(f"This SQL cannot be read: {error}") from error
    if not found:
        raise UsageError("There is no statement in this SQL. Write one: SELECT count(*) FROM ccindex.")
    if found[-1].type.name == "CREATE":
        raise UsageError("The last statement has no result. End with one that has: SELECT.")
    return [each.query for each in found]


def refuse_writing(engine: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Raise UsageError if the single *statement* would do anything but read.

    Raises duckdb.Error where the engine cannot make a plan of it.
    """
    (parsed,) = duckdb.extract_statements(statement)
    kind = parsed.type.name
    if kind == "CREATE":
        made = _CREATING.match(statement)
        if made is None:
            raise UsageError(f"This statement makes something that may not be made. {_ONLY_READ}")
        if made["what"].lower() != "table":
            return  # they hold a statement whose plan is seen when it is used
    elif kind == "MULTI":
        raise UsageError(_VALUES_UNNAMED)
    elif kind not in _READING:
        raise UsageError(f"This statement is of the kind {kind}. {_ONLY_READ}")
    if kind == "EXPLAIN":
        # The plan of a plan cannot be had. Without ANALYZE nothing runs.
        if re.search(r"analy[sz]e", _without_texts(statement), re.IGNORECASE):
            raise UsageError(f"EXPLAIN ANALYZE would run the statement. {_ONLY_READ}")
        return
    for operator in _operators(engine, statement):
        if _WRITING.search(operator):
            raise UsageError(f"This statement would write ({operator}). {_ONLY_READ}")


def _without_texts(statement: str) -> str:
    """Return *statement* without its string constants and comments, as the engine finds them."""
    octets = statement.encode()
    tokens = duckdb.tokenize(statement)
    ends = [*(start for start, _ in tokens[1:]), len(octets)]
    kept = (
        octets[start:end]
        for (start, kind), end in zip(tokens, ends, strict=True)
        if kind not in {duckdb.token_type.string_const, duckdb.token_type.comment}
    )
    return b"".join(kept).decode()


def _operators(engine: duckdb.DuckDBPyConnection, statement: str) -> Iterator[str]:
    try:
        rows = engine.execute(f"EXPLAIN (FORMAT JSON)\n{statement}").fetchall()
    except duckdb.Error as error:
        # The line that it names is one of ours further down than its author knows it.
        message = re.sub(r"^LINE (\d+):", _line_above, str(error), flags=re.MULTILINE)
        raise type(error)(message) from error
    waiting: list[dict[str, Any]] = [node for row in rows for node in json.loads(row[1])]
    while waiting:
        node = waiting.pop()
        yield str(node.get("name", "")).upper()
        waiting.extend(node.get("children", ()))


def _line_above(found: re.Match[str]) -> str:
    return f"LINE {int(found[1]) - 1}:"
