"""Steps of `amicrawl collection`: table and summary, made of the products of all files together.

A step is taken again only if one of these has changed since, or its result is gone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.index import MARKS
from amicrawl.archive.index.collection.collecting import FAILED
from amicrawl.archive.location import Location, all_fetched, reachable
from amicrawl.archive.report import count_on_spark, counts_to_json, files_of, read_counts, text_lines
from amicrawl.archive.table import REJECTS_SUFFIX, REPORT_SUFFIX, NoRowsError, beside, make_table
from amicrawl.disk import OPEN_SUFFIX, Disk, explained, remove_durably, rename_durably, replace_file
from amicrawl.errors import AmicrawlError
from amicrawl.terminal import counted, harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from amicrawl.archive.index import Collected
    from amicrawl.archive.table import TableOptions, TableReport


TABLE, SUMMARY = "table", "summary.json"


class Step(NamedTuple):
    """A step."""

    result: str
    """Its result, a name in the collection's directory."""
    take: Callable[[Sequence[Location], Location, TableOptions, SparkSession | None], dict[str, Any]]
    """Makes the result of files, in order, in the collection; returns what the report says of it."""


def make_table_of(
    files: Sequence[Location], collection: Location, options: TableOptions, spark: SparkSession | None
) -> dict[str, Any]:
    """Make the table of *files* in the *collection*, in place of the one that is there."""
    out = collection.below(TABLE)
    try:
        if spark is not None:
            # An extra.
            from amicrawl.archive.table import make_table_on_spark  # noqa: PLC0415

            out.remove()
            report = make_table_on_spark(spark, files, out, options=options)
        elif out.path is None:
            report = _table_in_store(files, out, options)
        else:
            new = out.path.with_name(out.path.name + OPEN_SUFFIX)
            _remove(new)
            report = make_table([file.as_path for file in files], new, disk=Disk(), options=options)
            _remove(out.path)
            rename_durably(new, out.path, disk=Disk())
    except NoRowsError as error:
        # A collection without captures is one, too.
        report = error.report
        out.remove()
        if out.path is not None:
            _remove(out.path.with_name(out.path.name + OPEN_SUFFIX))
    facts = asdict(report)
    return {
        name: facts[name]
        for name in ("lines", "rows", "rejects", "files", "rejects_by_reason", "damaged")
    }


def _table_in_store(files: Sequence[Location], out: Location, options: TableOptions) -> TableReport:
    """Make the table of *files* on this machine and put it into the store, its report last."""
    with all_fetched(files) as (fetched, scratch):
        made = scratch / TABLE
        report = make_table(fetched, made, disk=Disk(), options=options)
        for suffix in (REPORT_SUFFIX, REJECTS_SUFFIX):
            out.beside(suffix).remove_file()
        out.remove()
        for path in sorted(made.rglob("*.parquet")):
            out.below(path.relative_to(made).as_posix()).put(path)
        for suffix in (REJECTS_SUFFIX, REPORT_SUFFIX):
            if beside(made, suffix).exists():
                out.beside(suffix).put(beside(made, suffix))
        for path, file in zip(fetched, files, strict=True):
            report.damaged = [fault.replace(str(path), str(file)) for fault in report.damaged]
    return report


def _remove(directory: Path) -> None:
    with explained(directory, "removed"):
        if directory.exists():
            shutil.rmtree(directory)


def make_summary_of(
    files: Sequence[Location], out: Location, _options: TableOptions, spark: SparkSession | None
) -> dict[str, Any]:
    """Write the summary of *files* into the collection *out*: as text, and as JSON that adds up."""
    names = [str(file) for file in files]
    if spark is None:
        reading = read_counts(names)
    else:
        reading = count_on_spark(spark, [file for name in names for file in files_of(name)])
    today = datetime.now(tz=UTC).date()
    text = "".join(f"{line}\n" for line in text_lines(reading.counts, today=today, harmless=harmless))
    write(out.below("summary.txt"), text)
    write(out.below(SUMMARY), counts_to_json(reading.counts) + "\n")
    skipped = reading.counts.skipped
    return {
        "captures": reading.counts.captures,
        "skipped": skipped.total(),
        "skipped_by_reason": dict(skipped),
        "damaged": reading.damage,
    }


STEPS: dict[str, Step] = {
    TABLE: Step(TABLE, make_table_of),
    "summary": Step(SUMMARY, make_summary_of),
}
"""The steps, by their names in `--steps`, in the order in which they are taken."""


def source_of(wanted: Collection[str]) -> str:
    """Return the product of each file that steps are taken with, where *wanted* is requested.

    That is the merged index; the bare one where that is requested and the other is not.
    """
    return "cdxj" if "cdxj" in wanted and "merged" not in wanted else "merged"


def take_steps(
    names: Sequence[str],
    out: Location,
    collected: Collected,
    *,
    source: str,
    options: TableOptions,
    master: str | None = None,
) -> None:
    """Take the steps *names* with the products *source*, and add to *collected* what the report says.

    *options* are the table's. With *master*, a Spark cluster takes them.
    """
    with reachable(out), ExitStack() as stack:
        spark = None
        made = [
            outcome.products[source].file
            for _, outcome in sorted(collected.outcomes.items())
            if source in outcome.products
        ]
        files = [out.below(file) for file in made]
        facts: list[Any] = [
            [name, *(file.facts() or (-1, -1))] for name, file in zip(made, files, strict=True)
        ]
        of_table = [options.schema.name, options.schema.columns.names, options.place, options.flat]
        for name in names:
            written = json.dumps([*facts, of_table] if name == TABLE else facts)
            state = hashlib.sha256(written.encode()).hexdigest()
            taken = _taken_before(name, state, out)
            if taken is None and master is not None and spark is None:
                from amicrawl.archive.spark import session  # noqa: PLC0415  # an extra

                spark = stack.enter_context(session(master, shows_tasks=False))
            take = partial(STEPS[name].take, files, out, options, spark)
            collected.steps[name] = taken or _take(take, state, _mark(out, name))


def _taken_before(name: str, state: str, out: Location) -> dict[str, Any] | None:
    try:
        mark = json.loads(_mark(out, name).read() or b"")
        if mark["state"] == state and _is_there(out.below(STEPS[name].result)):
            # What anybody may have changed is read again as what it is, by making it anew if need be.
            return _facts(mark["said"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None


def _is_there(result: Location) -> bool:
    return result.facts() is not None or bool(result.files())


def _facts(said: Any) -> dict[str, Any]:
    """Return what a step *said*: counts, also by reason, and sentences; TypeError for anything else."""
    facts = {str(name): value for name, value in said.items()}
    for name, value in facts.items():
        counts = value.values() if name.endswith("_by_reason") else [value]
        if name != "damaged" and not all(isinstance(count, int) for count in counts):
            raise TypeError
    facts["damaged"] = [str(sentence) for sentence in facts.get("damaged", [])]
    return facts


def _take(take: Callable[[], dict[str, Any]], state: str, mark: Location) -> dict[str, Any]:
    """Take a step; one that fails costs neither those behind it nor what was made of the files."""
    _forget(mark)
    try:
        said = take()
    except AmicrawlError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it costs this step only
        return {FAILED: f"{type(error).__name__}: {error}"}
    write(mark, json.dumps({"state": state, "said": said}))
    return said


def _forget(mark: Location) -> None:
    """Remove *mark*: it speaks of a result that is about to be another, or half of one."""
    if mark.path is None:
        mark.remove_file()
    elif mark.path.exists():
        remove_durably(mark.path, disk=Disk())


def _mark(out: Location, name: str) -> Location:
    # No stem of a file can hold a slash, so a directory of its own keeps the two apart.
    return out.below(f"{MARKS}/steps/{name}.json")


def write(file: Location, text: str) -> None:
    """Write *text* to *file*, in a store or, durably, on this machine."""
    data = text.encode("utf-8", "replace")
    if file.path is None:
        with reachable(file):
            file.write(data)
    else:
        file.path.parent.mkdir(exist_ok=True)
        replace_file(file.path, data, disk=Disk())


_REASONS = {
    "rejects_by_reason": f" in table{REJECTS_SUFFIX}",
    "skipped_by_reason": " not in the summary",
}
"""Why a step left lines out, and where those are."""


def step_lines(name: str, said: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a step says: its counts, why lines were left out, what was damaged."""
    if FAILED in said:
        yield f"  {name}: failed, {said[FAILED]}"
        return
    counts = [_noun_counted(count, what) for what, count in said.items() if isinstance(count, int)]
    yield f"  {name}: {', '.join(counts)}"
    for key, where in _REASONS.items():
        for reason, count in said.get(key, {}).items():
            yield f"    {counted(count, 'line')}{where}: {reason}"
    for sentence in said.get("damaged", ()):
        yield f"    {sentence}"


def _noun_counted(count: int, what: str) -> str:
    """Return *count* with what is counted: a noun in the plural, or an adjective, `skipped`."""
    return counted(count, what.removesuffix("s")) if what.endswith("s") else f"{count:,} {what}"
