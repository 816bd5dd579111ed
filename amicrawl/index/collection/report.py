"""What is told of a collection: which files failed or lost something, where, why, and what was kept.

`as_object` is what `report.json` holds, `as_lines` what `report.txt` holds and a terminal shows. Names
may be somebody else's, and hold anything: whoever prints the lines makes them harmless. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.index.collection.collecting import Collected
    from amicrawl.index.collection.marks import Outcome

VERSION = 1
NAMES_SHOWN = 5
"""Names shared by several files that the text names; the JSON has them all."""
LOSSES_SHOWN = 20
"""Losses of one file that the text names; the JSON has them all."""


def as_object(collected: Collected) -> dict[str, Any]:
    """Return the report as an object for JSON."""
    outcomes = list(collected.outcomes.values())
    return {
        "version": VERSION,
        "files": len(outcomes) + len(collected.failed),
        "made": len(outcomes) - len(collected.before),
        "made_before": len(collected.before),
        "failed": len(collected.failed),
        "damaged": sum(bool(outcome.lost) for outcome in outcomes),
        "records": sum(outcome.records for outcome in outcomes),
        "bytes": sum(outcome.size for outcome in outcomes),
        "products": _products(outcomes),
        "steps": collected.steps,
        "same_names": collected.same_names,
        "failures": [
            {
                "file": str(failed.source),
                "offset": failed.offset,
                "reason": failed.reason,
                "kept": "nothing",
            }
            for failed in collected.failed
        ],
        "losses": [
            {
                "file": outcome.source,
                "count": outcome.lost,
                "kept": f"{outcome.records} records",
                "listed": [{"offset": loss.offset, "reason": loss.reason} for loss in outcome.losses],
            }
            for outcome in outcomes
            if outcome.lost
        ],
    }


def as_lines(collected: Collected) -> Iterator[str]:
    """Yield the report as lines for people."""
    told = as_object(collected)
    yield (
        f"{told['files']:,} files: {told['made']:,} done, {told['made_before']:,} done before, "
        f"{told['damaged']:,} damaged, {told['failed']:,} failed; {told['records']:,} records"
    )
    for name, product in told["products"].items():
        yield f"  {name}: {product['entries']:,} entries, {product['bytes']:,} bytes"
    for name, said in collected.steps.items():
        counts = [f"{value:,} {what}" for what, value in said.items() if isinstance(value, int)]
        yield f"  {name}: " + (", ".join(counts) or f"failed, {said.get('failed')}")
    for name, count in list(collected.same_names.items())[:NAMES_SHOWN]:
        yield f"{count:,} files are called {name} in the index: --dir-root DIR has their paths there"
    if len(collected.same_names) > NAMES_SHOWN:
        yield f"  and {len(collected.same_names) - NAMES_SHOWN:,} more names of several files each"
    for failed in collected.failed:
        yield f"failed: {failed.source}, byte {failed.offset}: {failed.reason}. Nothing of it was kept."
    for outcome in collected.outcomes.values():
        for loss in outcome.losses[:LOSSES_SHOWN]:
            yield f"damaged: {outcome.source}, byte {loss.offset}: {loss.reason}"
        if outcome.lost > LOSSES_SHOWN:
            yield f"damaged: {outcome.source}: and {outcome.lost - LOSSES_SHOWN:,} more"
        if outcome.lost:
            yield f"  {outcome.records:,} records of it were kept"


def _products(outcomes: list[Outcome]) -> dict[str, dict[str, int]]:
    products: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        for name, made in outcome.products.items():
            total = products.setdefault(name, {"files": 0, "entries": 0, "bytes": 0})
            total["files"] += 1
            total["entries"] += made.entries
            total["bytes"] += made.size
    return dict(sorted(products.items()))
