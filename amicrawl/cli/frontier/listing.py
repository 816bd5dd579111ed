"""`amicrawl frontier inspect`, `stats`, `schedule` and `ls`: what a frontier holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from amicrawl.cli.frontier.rows import (
    CAUSES,
    AnyPath,
    AtHour,
    HostKey,
    Limit,
    as_text_field,
    due_in_crawl,
    host_key_in,
    hour_begins,
    hour_now,
    hour_option,
    hour_text,
    key_text,
    text_of,
)
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.disk import readable
from amicrawl.errors import UsageError
from amicrawl.meguri import (
    STATUSES,
    WAITING,
    LiveSource,
    Status,
    frontier_directory,
    open_rows,
    status_name,
    string_at,
    undisturbed,
)
from amicrawl.meguri.format.footer import RegionId
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import inspect as inspected
from amicrawl.meguri.format.verification import inspection_text
from amicrawl.terminal import harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from amicrawl.meguri import RowSource


def inspect(path: AnyPath, *, as_json: AsJson = False) -> None:
    """Show the structure of the frontier file PATH; of a directory, of its newest snapshot.

    Reads the two ends of a file only: damage in between is for verify to find.
    Example: amicrawl frontier inspect frontier.meguri
    """
    if path.is_dir():
        print_lines(_directory_lines(frontier_directory(path), as_json=as_json))
        return
    found = inspected(path)
    print_lines([json_text({"path": str(path), **found})] if as_json else _file_lines(found))


def _file_lines(found: dict[str, Any]) -> Iterator[str]:
    # Not `splitlines`: a pair of the metadata may hold any of the characters that it splits at.
    yield from inspection_text(_with_harmless_meta(found)).removesuffix("\n").split("\n")
    for name in ("created_hours", "next_due_hours"):
        hours = found[name]
        if hours and isinstance(hours, list):
            yield f"  due            {hour_text(hours[0])} .. {hour_text(hours[1])}"
        elif hours:
            yield f"  made           {hour_text(hours)}"


def _with_harmless_meta(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "meta": {harmless(key): harmless(value) for key, value in found["meta"].items()}}


def _directory_lines(directory: Path, *, as_json: bool) -> Iterator[str]:
    facts: dict[str, Any] = undisturbed(
        directory,
        lambda listing: {
            "path": str(directory),
            "files": _sizes(listing.files()),
            "snapshot": _newest(listing.snapshots),
        },
    )
    if as_json:
        yield json_text(facts)
        return
    yield f"frontier {harmless(str(directory))}"
    for name, size in sorted(facts["files"].items()):
        yield f"  {harmless(name):<24} {human_size(size)}"
    if facts["snapshot"] is not None:
        yield f"{harmless(facts['snapshot']['file'])}:"
        yield from _file_lines(facts["snapshot"])


def _newest(snapshots: Mapping[int, Path]) -> dict[str, Any] | None:
    if not snapshots:
        return None
    newest = snapshots[max(snapshots)]
    return {"file": newest.name, **inspected(newest)}


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    sizes = {}
    for path in paths:
        with readable(path):
            sizes[path.name] = path.stat().st_size
    return sizes


def stats(path: AnyPath, *, at: AtHour = 0, as_json: AsJson = False) -> None:
    """Count the rows of PATH: in all, due, and by state.

    Example: amicrawl frontier stats ami-out
    """
    with open_rows(path) as source:
        facts = (
            _live_facts(source, at or hour_now())
            if isinstance(source, LiveSource)
            else _file_facts(source)
        )
        states = source.url_column("status")
        numbers, counts = np.unique(states, return_counts=True)
        facts["by_status"] = {
            status_name(number): count
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        }
        causes = source.url_column("http_status")[states == Status.WITHHELD]
        facts["withheld"] = {
            word: count for cause, (word, _) in CAUSES.items() if (count := int((causes == cause).sum()))
        }
        if as_json:
            print_lines([json_text({"path": str(path), **facts})])
        else:
            print_lines(
                _live_lines(path, facts) if isinstance(source, LiveSource) else _lines(path, facts)
            )


def _live_facts(source: RowSource, hour: int) -> dict[str, Any]:
    states, due = source.url_column("status"), source.url_column("next_due")
    later = due[(due > hour) & (states != Status.TRAPPED)]
    urls = len(states)
    assert isinstance(source, LiveSource)
    return {
        "urls": urls,
        "hosts": len(source.host_column("host_key")),
        "pending": int(np.isin(states, [*WAITING, Status.IN_FLIGHT]).sum()),
        "due_now": len(due_in_crawl(source, hour)),
        "next_due": int(later.min()) if len(later) else None,
        "seen_keys": urls,
        "seen_bits_per_url": round(8 * len(source.partition.seen_filter) / urls, 2) if urls else 0.0,
    }


def _file_facts(source: RowSource) -> dict[str, Any]:
    assert isinstance(source, FrontierFile)
    regions = {region.id for region in source.regions}
    return {
        "partition_id": source.header.partition_id,
        "urls": source.url_rows,
        "hosts": source.host_rows,
        "host_key_lo": key_text(source.header.host_key_lo),
        "host_key_hi": key_text(source.header.host_key_hi),
        "scheduled": int(np.count_nonzero(source.url_column("next_due"))),
        "due_min": source.stats.due_min,
        "due_max": source.stats.due_max,
        "bytes_per_url": round(source.stats.bytes_per_url, 6),
        "schedule_index": RegionId.SCHEDULE in regions,
        "seen_filter": RegionId.SEEN_SET in regions,
    }


def _labelled(label: str, value: object) -> str:
    return f"  {label:<15}{value}"


def _live_lines(path: Path, facts: dict[str, Any]) -> Iterator[str]:
    yield f"partition {harmless(str(path))} (live)"
    for name in ("urls", "hosts", "pending", "due_now"):
        yield _labelled(name.replace("_", " "), facts[name])
    if facts["next_due"] is not None:
        yield _labelled("next due", hour_begins(facts["next_due"]))
    yield _labelled("seen keys", facts["seen_keys"])
    yield _labelled("seen bits/url", f"{facts['seen_bits_per_url']:.2f}")
    yield from _states(facts)


def _lines(path: Path, facts: dict[str, Any]) -> Iterator[str]:
    yield f"partition {harmless(str(path))} (cold, footer summary)"
    yield _labelled("partition id", facts["partition_id"])
    yield _labelled("urls", facts["urls"])
    yield _labelled("hosts", facts["hosts"])
    yield _labelled("host-key range", f"{facts['host_key_lo']} .. {facts['host_key_hi']}")
    yield _labelled("scheduled", facts["scheduled"])
    dates = (
        f" ({hour_text(facts['due_min'])} .. {hour_text(facts['due_max'])})" if facts["due_max"] else ""
    )
    yield _labelled("due range", f"hour {facts['due_min']} .. {facts['due_max']}{dates}")
    yield _labelled("bytes/url", f"{facts['bytes_per_url']:.2f}")
    has_schedule, has_filter = (str(facts[name]).lower() for name in ("schedule_index", "seen_filter"))
    yield _labelled("schedule index", f"{has_schedule}   seen filter {has_filter}")
    yield from _states(facts)


def _states(facts: dict[str, Any]) -> Iterator[str]:
    if facts["by_status"]:
        yield "  by status"
    for name, count in facts["by_status"].items():
        yield f"    {name:<15} {count}"
    for word, count in facts["withheld"].items():
        yield f"      {word:<13} {count}"


_SHOWN = ("host_key", "path_key", "status", "next_due", "url_ref")
_BATCH = 4096


Before = Annotated[int, hour_option("Due by then")]
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

    Example: amicrawl frontier schedule ami-out --before 2027-01-31
    """
    hour = before or hour_now()
    with open_rows(path) as source:
        if isinstance(source, LiveSource):
            due = _of_host(source, due_in_crawl(source, hour), host)
            shown = min(len(due), limit or len(due))
            head = f"(live) due by {hour_begins(hour)}: {shown} of {len(due)} shown"
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


def _of_host(source: RowSource, rows: np.ndarray, host: str | None) -> np.ndarray:
    if host is None:
        return rows
    keys = source.url_column("host_key")
    chosen: np.ndarray = rows[keys[rows] == np.uint64(host_key_in(host))]
    return chosen


def _scheduled_lines(source: RowSource, rows: np.ndarray, limit: int) -> Iterator[str]:
    is_live = isinstance(source, LiveSource)
    for facts in _facts(source, rows, limit):
        url = _url_in(facts)
        if is_live:
            due = hour_begins(facts["next_due"]) if facts["next_due"] else "at once"
            yield f"  {due:<20}  {url}"
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
    with open_rows(path) as source:
        states = source.url_column("status")
        rows = np.arange(len(states)) if status is None else np.flatnonzero(states == _number_of(status))
        rows = _of_host(source, rows, host)
        if as_json:
            print_lines(map(json_text, _facts(source, rows, limit)))
        else:
            print_lines(_listed_lines(source, rows, limit))


def _listed_lines(source: RowSource, rows: np.ndarray, limit: int) -> Iterator[str]:
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
    if name.isdecimal() and len(name) <= 3 and int(name) < 256:
        return int(name)
    raise UsageError(
        f"{status!r} is not a state of a row. Choose one of {', '.join(STATUSES)}, or a number."
    )


def _facts(source: RowSource, rows: np.ndarray, limit: int) -> Iterator[dict[str, Any]]:
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
