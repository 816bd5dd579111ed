"""What of a collection is done: one mark a source file, written when all its products are sealed.

    done/STEM.json   the source's name, size and time of change; the settings; what came of it

A product is done if the mark names the size and time that the source has now and the settings of now,
and the product is there, as large as it was. Anything else is made again. A mark is read as what it is,
a file that anybody may have changed: one that cannot be read counts as none.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amicrawl.disk import Disk, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERSION = 1
MOST_LOSSES = 1000
"""Losses of one file that are listed; the others are counted."""


@dataclass(frozen=True)
class Made:
    """A product of one file."""

    file: str
    """Its path within the collection."""
    size: int
    """In bytes."""
    entries: int
    """Lines or records in it."""


@dataclass(frozen=True)
class Loss:
    """Something of a file that is not in its products, or that a strict reader would refuse."""

    offset: int
    """Byte of the source."""
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What came of one source file."""

    source: str
    """Its path, as it was given."""
    size: int
    changed: int
    """When it was last changed, in nanoseconds since 1970."""
    records: int
    """Records that were read."""
    lost: int
    """Losses, those that are not listed too."""
    losses: list[Loss] = field(default_factory=list)
    products: dict[str, Made] = field(default_factory=dict)


def write_mark(path: Path, outcome: Outcome, *, settings: Mapping[str, str], disk: Disk) -> None:
    """Write that *outcome* is what came of a source under *settings*."""
    mark = {"version": VERSION, "settings": dict(settings), **asdict(outcome)}
    write_whole(path, json.dumps(mark, indent=1).encode() + b"\n", disk=disk)


def write_whole(path: Path, data: bytes, *, disk: Disk) -> None:
    """Write *data* to *path*, which has its name only once it is whole."""
    replace_file(path, data, disk=disk)


def read_mark(path: Path, *, source: Path, settings: Mapping[str, str], out: Path) -> Outcome | None:
    """Return what came of *source*, as it is now, under *settings*; None if that is not known.

    Of the products, those are named that are still there, below *out*.
    """
    try:
        now = source.stat()
        outcome = mark_of(path.read_bytes(), now.st_size, now.st_mtime_ns, settings=settings)
    except OSError:
        return None
    if outcome is None:
        return None
    there = {
        name: made for name, made in outcome.products.items() if _is_there(out / made.file, made.size)
    }
    # The file may have been moved since; reports name it by its path now.
    return replace(outcome, source=str(source), products=there)


def mark_of(data: bytes, size: int, changed: int, *, settings: Mapping[str, str]) -> Outcome | None:
    """Return what the mark *data* says came of a source of *size* that was *changed* then; else None."""
    try:
        mark = json.loads(data)
        outcome = outcome_of(mark)
        is_current = (
            mark["version"] == VERSION
            and mark["settings"] == settings
            and (outcome.size, outcome.changed) == (size, changed)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return outcome if is_current else None


def with_earlier(outcome: Outcome, earlier: Outcome) -> Outcome:
    """Return *outcome* with products, and losses, of an *earlier* reading of the same source.

    What was lost then of a product that is still there is not found again by making others.
    """
    known = {*outcome.losses}
    added = [loss for loss in earlier.losses if loss not in known]
    return replace(
        outcome,
        lost=max(outcome.lost + len(added), earlier.lost),
        losses=[*outcome.losses, *added][:MOST_LOSSES],
        products={**earlier.products, **outcome.products},
    )


def _is_there(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except (OSError, ValueError):
        return False


def outcome_of(mark: dict[str, Any]) -> Outcome:
    """Return what *mark*, its fields by name, says; one of several errors where it says nothing."""
    losses = [Loss(int(loss["offset"]), str(loss["reason"])) for loss in mark["losses"]]
    products = {
        str(name): Made(str(made["file"]), int(made["size"]), int(made["entries"]))
        for name, made in mark["products"].items()
    }
    return Outcome(
        source=str(mark["source"]),
        size=int(mark["size"]),
        changed=int(mark["changed"]),
        records=int(mark["records"]),
        lost=int(mark["lost"]),
        losses=losses,
        products=products,
    )
