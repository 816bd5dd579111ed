"""Admission: whether a discovered URL is scheduled, or parked (TRAPPED) as one of too many.

    depth     more links from a seed than the crawl, or the record of the host, allows
    budget    the host has as many URLs as its record allows: `url_budget`, which other software of
              the format notes; 0 is none
    traps     the URL looks like those that made its host suspect

A seed, or a URL added by the operator, is never parked; it counts like any other, so that a host of many
seeds has less room for discovered URLs. Parked URLs do not count against a budget. They stay parked when
a budget grows, and are released one by one only (`DurableFrontier.due_again`).

In memory are the patterns of traps, bounded by `TrapDetector`, and one number for each host that has
parked rows. The patterns are forgotten with the process; that a host is suspect is kept in its row,
and then every pattern is refused there. The numbers are found again in the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amicrawl.frontier.row import Source
from amicrawl.frontier.traps import DEFAULTS, Refusal, TrapDetector, TrapLimits, admit, classify
from amicrawl.urls import Refused, canonical_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.frontier.hosts import HostTally
    from amicrawl.frontier.row import Offer
    from amicrawl.frontier.url_row import HostRow

BY_NAME = frozenset({Source.SEED, Source.MANUAL})
"""Sources of URLs that were asked for by name."""
TRAP_SUSPECT = 1
"""The flag of a host row that says that the host is suspected of traps."""


class Verdict(NamedTuple):
    """What became of an offer."""

    refusal: Refusal | None
    """Why it is parked; None where it is admitted."""
    is_suspect: bool
    """Whether its host is suspected of traps, by its record or since this offer."""


class Admission:
    """Which URLs one frontier admits. *depth_cap*: links from a seed at most; 0 for any."""

    __slots__ = ("_depth_cap", "_detector", "_limits", "_parked")

    def __init__(
        self,
        *,
        depth_cap: int = 0,
        limits: TrapLimits = DEFAULTS,
        detector: TrapDetector | None = None,
    ) -> None:
        self._depth_cap = depth_cap
        self._limits = limits
        self._detector = detector or TrapDetector(limits)
        self._parked: dict[int, int] = {}

    def recall(self, parked: Mapping[int, int]) -> None:
        """Take over how many rows of each host are *parked*."""
        self._parked.update(parked)

    def admits(self, offer: Offer, hosts: HostTally, *, hour: int) -> bool:
        """Return whether *offer*, new and counted among those of its host in *hosts*, is let in.

        That its host is suspect is noted there. *hour* is now, in hours since 1970.
        """
        host = hosts.row(offer.key.host)
        assert host is not None
        verdict = self.weigh(offer, host, urls=hosts.urls(offer.key.host) - 1, hour=hour)
        if verdict.is_suspect and not is_suspect(host):
            hosts.put(host._replace(flags=host.flags | TRAP_SUSPECT))
        return verdict.refusal is None

    def weigh(self, offer: Offer, host: HostRow, *, urls: int, hour: int) -> Verdict:
        """Return the decision on *offer*, of *host*, which has so many *urls*, parked ones included.

        *hour* is now, in hours since 1970. An offer that is parked is counted as such.
        """
        if offer.source in BY_NAME:
            return Verdict(None, is_suspect(host))
        form = canonical_form(offer.seed.url)
        url = offer.seed.url if isinstance(form, Refused) else form.url
        trap = classify(url, hour, limits=self._limits)
        key, detector = offer.key, self._detector
        suspect = detector.observe(key.host, url, path=key.path, trap=trap) or is_suspect(host)
        refusal = admit(
            offer.hops,
            depth_cap=_least(self._depth_cap, host.depth_cap),
            url_count=urls - self._parked.get(key.host, 0),
            url_budget=host.url_budget,
            suspect=suspect,
            passes=detector.passes(key.host, trap, suspect=suspect),
        )
        if refusal is not None:
            self._parked[key.host] = self._parked.get(key.host, 0) + 1
        return Verdict(refusal, suspect)

    def released(self, host: int) -> None:
        """Note that a parked row of *host* was taken out."""
        self._parked[host] = max(self._parked.get(host, 0) - 1, 0)


def is_suspect(host: HostRow) -> bool:
    """Return whether *host* is flagged as suspected of traps."""
    return bool(host.flags & TRAP_SUSPECT)


def _least(one: int, other: int) -> int:
    """Return the lesser of two caps, of which 0 is none."""
    return min(one, other) if one and other else one or other
