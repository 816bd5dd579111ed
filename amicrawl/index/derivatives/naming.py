"""What files are called that are made of archive files, so that no two share a name. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def derived_name(stem: str, product: str) -> str:
    """Return the name of the *product* (`wat`, `wet`) of the source that `stem_of` calls *stem*."""
    return f"{stem}.{product}.gz"


def stem_of(path: Path) -> str:
    """Return the name of an archive file without the ending of its compression: `X.warc`, `X.arc`."""
    name = path.name
    for ending in (".gz", ".zst", ".lz4"):
        name = name.removesuffix(ending)
    return name


def named_apart(sources: Iterable[Path]) -> dict[Path, str]:
    """Return a stem for each of *sources* that no other has.

    It is `stem_of` the source where that is its alone, then its name, then its path. UsageError where
    even those are the same.
    """
    found: dict[Path, str] = {}
    given = list(dict.fromkeys(sources))
    ways = [
        [way(source) for source in given] for way in (stem_of, lambda path: path.name, _path_as_name)
    ]
    counts = [Counter(names) for names in ways]
    for place, source in enumerate(given):
        free = (
            names[place] for names, count in zip(ways, counts, strict=True) if count[names[place]] == 1
        )
        found[source] = next(free, "")
    if len(set(found.values())) < len(given) or "" in found.values():
        raise UsageError(
            "Some of the files have names that cannot be told apart. Give them in two runs."
        )
    return found


def _path_as_name(path: Path) -> str:
    return "~".join(part.replace("~", "~~") for part in path.absolute().parts[1:])[-200:]
