"""`amicrawl frontier schedule` and `ls`: rows, those that are due and those that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from amicrawl.cli.frontier.output import (
    STATUSES,
    AnyPath,
    HostKey,
    Limit,
    as_text_field,
    host_key_in,
    hour_now,
    hour_text,
    key_text,
    status_name,
    text_of,
)
from amicrawl.cli.frontier.source import LiveSource, due_in_crawl, opened
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.errors import UsageError
from amicrawl.frontier.format.footer import RegionId
from amicrawl.frontier.format.reader import FrontierFile
from amicrawl.frontier.format.strings import string_at
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.cli.frontier.source import Source

_SHOWN = ("host_key", "path_key", "status", "next_due", "url_ref")
_BATCH = 4096


Before = Annotated[
    int,
    typer.Option(min=0, metavar="HOUR", help="Due at this hour since 1970 at the latest; 0: now."),
]
State = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only rows in this state, by name or number.")
]


def schedule(
    path: AnyPath,
    *,
    before: Before = 0,
    host: HostKey = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """Show which rows of PATH are due: of a file all with a time, of a directory what a crawl takes.

    Example: amicrawl frontier schedule ami-out --before 500000
    """
    hour = before or hour_now()
    with opened(path) as source:
        if isinstance(source, LiveSource):
            due = _of_host(source, due_in_crawl(source, hour), host)
            head = f"(live) due at or before hour {hour}: {min(len(due), limit or len(due))} shown"
        else:
            assert isinstance(source, FrontierFile)
            due = _of_host(source, source.due(hour), host)
            head = f"(cold, {_way(source)}) due at or before hour {hour}: {len(due)}"
        if as_json:
            print_lines(map(json_text, _facts(source, due, limit)))
        else:
            print_lines([f"schedule {harmless(str(path))} {head}"])
            print_lines(_scheduled_lines(source, due, limit))


def _way(source: FrontierFile) -> str:
    has_schedule = any(region.id == RegionId.SCHEDULE for region in source.regions)
    return "durable schedule wheel (near buckets only)" if has_schedule else "next_due column scan"


def _of_host(source: Source, rows: np.ndarray, host: str | None) -> np.ndarray:
    if host is None:
        return rows
    keys = source.url_column("host_key")
    chosen: np.ndarray = rows[keys[rows] == np.uint64(host_key_in(host))]
    return chosen


def _scheduled_lines(source: Source, rows: np.ndarray, limit: int) -> Iterator[str]:
    is_live = isinstance(source, LiveSource)
    for facts in _facts(source, rows, limit):
        url = _url_in(facts)
        if is_live:
            yield f"  hour {facts['next_due']:<8}  {url}"
        else:
            yield (
                f"  {facts['host_key']}:{facts['path_key']}  hour {facts['next_due']}  "
                f"{facts['next_due_at']}  {facts['status_name']}  {url}"
            )
    yield from _rest(rows, limit)


def ls(
    path: AnyPath,
    *,
    host: HostKey = None,
    status: State = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the URL rows of PATH in the order of their keys: state, when due next, URL.

    Example: amicrawl frontier ls ami-out --status gone
    """
    with opened(path) as source:
        states = source.url_column("status")
        rows = np.arange(len(states)) if status is None else np.flatnonzero(states == _number_of(status))
        rows = _of_host(source, rows, host)
        if as_json:
            print_lines(map(json_text, _facts(source, rows, limit)))
        else:
            print_lines(_listed_lines(source, rows, limit))


def _listed_lines(source: Source, rows: np.ndarray, limit: int) -> Iterator[str]:
    for facts in _facts(source, rows, limit):
        yield f"{facts['status_name']:<15}  {facts['next_due_at'] or 'no time':<20}  {_url_in(facts)}"
    yield from _rest(rows, limit)


def _rest(rows: np.ndarray, limit: int) -> Iterator[str]:
    if limit and len(rows) > limit:
        yield f"... and {len(rows) - limit:,} more; --limit says how many are shown"


def _number_of(status: str) -> int:
    name = status.lower()
    if name in STATUSES:
        return STATUSES.index(name)
    if name.isdecimal() and int(name) < 256:
        return int(name)
    raise UsageError(
        f"{status!r} is not a state of a row. Choose one of {', '.join(STATUSES)}, or a number."
    )


def _facts(source: Source, rows: np.ndarray, limit: int) -> Iterator[dict[str, Any]]:
    """Yield what the lists show of *rows*, of no more than *limit* of them."""
    arena = source.arena()
    shown = rows[:limit] if limit else rows
    for first in range(0, len(shown), _BATCH):
        found = source.rows(shown[first : first + _BATCH], _SHOWN)
        for host, path, status, due, ref in zip(*(found[name].tolist() for name in _SHOWN), strict=True):
            yield {
                "host_key": key_text(host),
                "path_key": key_text(path),
                "status": status,
                "status_name": status_name(status),
                "next_due": due,
                "next_due_at": hour_text(due),
                **as_text_field("url", string_at(arena, ref)),
            }


def _url_in(facts: dict[str, Any]) -> str:
    if "url_hex" in facts:
        return harmless(text_of(bytes.fromhex(facts["url_hex"])))
    return "(no URL is stored)" if facts["url"] is None else harmless(facts["url"])
