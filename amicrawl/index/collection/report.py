"""The report of a collection: which files failed or lost something, where, why, and what was kept.

`as_object` is what `report.json` holds. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amicrawl.index.collection.collecting import Collected
    from amicrawl.index.collection.marks import Outcome

VERSION = 1


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
        "not_named": collected.not_named,
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


def _products(outcomes: list[Outcome]) -> dict[str, dict[str, int]]:
    products: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        for name, made in outcome.products.items():
            total = products.setdefault(name, {"files": 0, "entries": 0, "bytes": 0})
            total["files"] += 1
            total["entries"] += made.entries
            total["bytes"] += made.size
    return dict(sorted(products.items()))
