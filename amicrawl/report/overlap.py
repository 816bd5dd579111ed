"""What two collections share: hosts exactly, URLs and payloads exactly while they are few. Pure.

The number of URLs in both is that of each less that of both together; sketches estimate all three. Their
errors are of the size of the whole, so a small overlap of large collections is only bounded from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import UsageError
from amicrawl.report.figures import Figure, different_urls, sketch_error
from amicrawl.report.sketch import Sketch

if TYPE_CHECKING:
    from amicrawl.report.counts import Counts


class Overlap(NamedTuple):
    """What is in both of two collections, or in one of them only."""

    hosts: tuple[int, int, int]
    """In the first only, in both, in the second only."""
    captures_of_shared_hosts: tuple[int, int]
    urls: tuple[Figure, Figure, Figure]
    """In the first, in both, in the second."""
    digests: tuple[Figure, Figure, Figure]


def overlap_of(first: Counts, second: Counts) -> Overlap:
    """Return what *first* and *second* share; UsageError where they were counted by different rules."""
    if first.rules != second.rules:
        raise UsageError("Collections that were counted by different rules cannot be compared.")
    shared = first.by_host.keys() & second.by_host.keys()
    return Overlap(
        hosts=(len(first.by_host) - len(shared), len(shared), len(second.by_host) - len(shared)),
        captures_of_shared_hosts=(
            sum(first.by_host[host][0] for host in shared),
            sum(second.by_host[host][0] for host in shared),
        ),
        urls=(
            different_urls(first),
            _shared(first.different_urls, second.different_urls),
            different_urls(second),
        ),
        digests=(
            _counted(first.different_digests),
            _shared(first.different_digests, second.different_digests),
            _counted(second.different_digests),
        ),
    )


def overlap_rows(overlap: Overlap) -> list[list[str]]:
    """Return *overlap* as rows of a table: what, in the first, in both, in the second."""
    only_first, both, only_second = overlap.hosts
    first, second = overlap.captures_of_shared_hosts
    return [
        ["Hosts", f"{only_first + both:,}", f"{both:,}", f"{only_second + both:,}"],
        ["Captures of Shared Hosts", f"{first:,}", "", f"{second:,}"],
        ["Different URLs", *map(str, overlap.urls)],
        ["Different Digests", *map(str, overlap.digests)],
    ]


def overlap_to_json(overlap: Overlap) -> dict[str, object]:
    """Return *overlap* for JSON; each figure with its error."""

    def figures(three: tuple[Figure, Figure, Figure]) -> dict[str, dict[str, int]]:
        names = ("first", "both", "second")
        return {
            name: {"value": one.value, "error": one.error}
            for name, one in zip(names, three, strict=True)
        }

    only_first, both, only_second = overlap.hosts
    return {
        "hosts": {"first": only_first + both, "both": both, "second": only_second + both},
        "captures_of_shared_hosts": dict(
            zip(("first", "second"), overlap.captures_of_shared_hosts, strict=True)
        ),
        "urls": figures(overlap.urls),
        "digests": figures(overlap.digests),
    }


def _counted(sketch: Sketch) -> Figure:
    return Figure(sketch.count(), sketch_error(sketch))


def _shared(first: Sketch, second: Sketch) -> Figure:
    union = Sketch()
    union.absorb(first)
    union.absorb(second)
    if first.is_exact and second.is_exact:
        return Figure(first.shared_with(second))
    most = min(first.count(), second.count())
    shared = min(max(first.count() + second.count() - union.count(), 0), most)
    errors = (sketch_error(first), sketch_error(second), sketch_error(union))
    return Figure(shared, min(round(sum(error**2 for error in errors) ** 0.5), most))
