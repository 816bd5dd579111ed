"""The report of a collection in lines for people: what `report.txt` holds and a terminal shows.

`report.json` holds the same, and all that is too long for people. Names and reasons may be somebody
else's, and hold anything: whoever prints the lines makes them harmless. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amicrawl.index.collection.collecting import FAILED
from amicrawl.index.collection.report import as_object
from amicrawl.table.making import REJECTS_SUFFIX
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amicrawl.index.collection.collecting import Collected
    from amicrawl.index.collection.marks import Outcome

NAMES_SHOWN = 5
"""Names shared by several files that are named."""
LOSSES_SHOWN = 20
"""Losses of one file that are named."""

_REASONS = {
    "rejects_by_reason": f" in table{REJECTS_SUFFIX}",
    "skipped_by_reason": " not in the summary",
}
"""What tells why a step left lines out, and where those are."""


def report_lines(collected: Collected) -> Iterator[str]:
    """Yield the report, a line at a time."""
    told = as_object(collected)
    yield (
        f"{counted(told['files'], 'file')}: {told['made']:,} done, {told['made_before']:,} done before, "
        f"{told['damaged']:,} damaged, {told['failed']:,} failed; {counted(told['records'], 'record')}"
    )
    for name, product in told["products"].items():
        entries = "1 entry" if product["entries"] == 1 else f"{product['entries']:,} entries"
        yield f"  {name}: {entries}, {counted(product['bytes'], 'byte')}"
    for name, said in collected.steps.items():
        yield from _step_lines(name, said)
    if collected.not_named:
        yield (
            f"{counted(collected.not_named, 'file')} of earlier runs not named in this one: what came "
            "of them is still there; the table and the summary are without them"
        )
    yield from _same_name_lines(collected.same_names)
    for failed in collected.failed:
        reason = failed.reason.removesuffix(".")
        yield f"failed: {failed.source}, byte {failed.offset}: {reason}. Nothing of it was kept."
    for outcome in collected.outcomes.values():
        yield from _loss_lines(outcome)


def _step_lines(name: str, said: Mapping[str, Any]) -> Iterator[str]:
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


def _same_name_lines(names: Mapping[str, int]) -> Iterator[str]:
    for name, count in list(names.items())[:NAMES_SHOWN]:
        yield f"{count:,} files are called {name} in the index: --dir-root DIR has their paths there"
    if len(names) > NAMES_SHOWN:
        yield f"  and {counted(len(names) - NAMES_SHOWN, 'more name')} of several files each"


def _loss_lines(outcome: Outcome) -> Iterator[str]:
    for loss in outcome.losses[:LOSSES_SHOWN]:
        yield f"damaged: {outcome.source}, byte {loss.offset}: {loss.reason}"
    if outcome.lost > LOSSES_SHOWN:
        yield f"damaged: {outcome.source}: and {outcome.lost - LOSSES_SHOWN:,} more"
    if outcome.lost:
        kept = "was" if outcome.records == 1 else "were"
        yield f"  {counted(outcome.records, 'record')} of it {kept} kept"
