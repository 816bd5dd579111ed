"""The steps of a collection that are taken with all its files together: the table, the summary.

A step is taken again only if one of the files it is made of has changed since, or its result is gone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.disk import OPEN_SUFFIX, Disk, explained, rename_durably
from amicrawl.errors import AmicrawlError
from amicrawl.index.collection.collecting import FAILED
from amicrawl.index.collection.file import MARKS
from amicrawl.index.collection.marks import write_whole
from amicrawl.report.counts_json import counts_to_json
from amicrawl.report.reading import read_counts
from amicrawl.report.text import text_lines
from amicrawl.table.builder import make_table
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from amicrawl.index.collection.collecting import Collected
    from amicrawl.table import TableOptions


TABLE = "table"


class Step(NamedTuple):
    """A step."""

    result: str
    """Its result, a name in the collection's directory."""
    take: Callable[[Sequence[Path], Path, TableOptions], dict[str, Any]]
    """Makes the result of files, in order; returns what is to be said of it."""


def make_table_of(files: Sequence[Path], out: Path, options: TableOptions) -> dict[str, Any]:
    """Make the table of *files* in the directory *out*, in place of the one that is there."""
    new = out.with_name(out.name + OPEN_SUFFIX)
    _remove(new)
    report = make_table(files, new, disk=Disk(), options=options)
    _remove(out)
    rename_durably(new, out, disk=Disk())
    said = asdict(report)
    return {
        name: said[name]
        for name in ("lines", "rows", "rejects", "files", "rejects_by_reason", "damaged")
    }


def _remove(directory: Path) -> None:
    with explained(directory, "removed"):
        if directory.exists():
            shutil.rmtree(directory)


def make_summary_of(files: Sequence[Path], out: Path, _options: TableOptions) -> dict[str, Any]:
    """Write the summary of *files* to *out*, so that it adds up with others; and as text beside it."""
    reading = read_counts([str(path) for path in files])
    today = datetime.now(tz=UTC).date()
    text = "".join(f"{line}\n" for line in text_lines(reading.counts, today=today, harmless=harmless))
    write_whole(out.with_suffix(".txt"), text.encode("utf-8", "replace"), disk=Disk())
    write_whole(out, counts_to_json(reading.counts).encode("utf-8", "replace") + b"\n", disk=Disk())
    skipped = reading.counts.skipped
    return {
        "captures": reading.counts.captures,
        "skipped": skipped.total(),
        "skipped_by_reason": dict(skipped),
        "damaged": reading.damage,
    }


STEPS: dict[str, Step] = {
    TABLE: Step("table", make_table_of),
    "summary": Step("summary.json", make_summary_of),
}
"""The steps, by the name that they are asked for by, in the order in which they are taken."""


def source_of(wanted: Collection[str]) -> str:
    """Return the product of each file that steps are taken with, where *wanted* is asked for.

    That is the merged index; the bare one where that is asked for and the other is not.
    """
    return "cdxj" if "cdxj" in wanted and "merged" not in wanted else "merged"


def take_steps(
    names: Sequence[str],
    out: Path,
    collected: Collected,
    *,
    source: str,
    options: TableOptions,
) -> None:
    """Take the steps *names* with the products *source*, and add to *collected* what is to be said.

    *options* are the table's.
    """
    for name in names:
        made = [
            outcome.products[source]
            for _, outcome in sorted(collected.outcomes.items())
            if source in outcome.products
        ]
        facts: list[Any] = [[one.file, one.size, (out / one.file).stat().st_mtime_ns] for one in made]
        if name == TABLE:
            facts.append([options.schema.name, options.place, options.flat])
        state = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        collected.steps[name] = _taken_before(name, state, out) or _take(
            name, [out / one.file for one in made], state, out, options
        )


def _taken_before(name: str, state: str, out: Path) -> dict[str, Any] | None:
    try:
        mark = json.loads(_mark(out, name).read_bytes())
        if mark["state"] == state and (out / STEPS[name].result).exists():
            # What anybody may have changed is read again as what it is, by making it anew if need be.
            return _facts(mark["said"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _facts(said: Any) -> dict[str, Any]:
    """Return what a step *said*: counts, also by reason, and sentences; TypeError for anything else."""
    facts = {str(name): value for name, value in said.items()}
    for name, value in facts.items():
        counts = value.values() if name.endswith("_by_reason") else [value]
        if name != "damaged" and not all(isinstance(count, int) for count in counts):
            raise TypeError
    facts["damaged"] = [str(sentence) for sentence in facts.get("damaged", [])]
    return facts


def _take(
    name: str, files: Sequence[Path], state: str, out: Path, options: TableOptions
) -> dict[str, Any]:
    """Take a step; one that fails costs neither those behind it nor what was made of the files."""
    try:
        said = STEPS[name].take(files, out / STEPS[name].result, options)
    except AmicrawlError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it costs this step only
        return {FAILED: f"{type(error).__name__}: {error}"}
    write_whole(_mark(out, name), json.dumps({"state": state, "said": said}).encode(), disk=Disk())
    return said


def _mark(out: Path, name: str) -> Path:
    # No stem of a file can hold a slash, so a directory of its own keeps the two apart.
    directory = out / MARKS / "steps"
    directory.mkdir(exist_ok=True)
    return directory / f"{name}.json"
