"""The parts of one dashboard, which all of its routes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.dashboard.board import Board
from amicrawl.dashboard.hub import Hub
from amicrawl.dashboard.summaries import Summaries
from amicrawl.dashboard.visitors import Visitors

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.dashboard.users import Users
    from amicrawl.jobs.connection import JobStore


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of one dashboard."""

    store: JobStore
    board: Board
    hub: Hub
    visitors: Visitors
    summaries: Summaries
    jobs_per_user: int = 0
    """Jobs of one user that may wait or run at once, unless an admin's; 0 for any number."""


def site_of(
    store: JobStore, *, users: Users | None, archives: Path | None, jobs_per_user: int = 0
) -> Site:
    """Return the site over the jobs of *store*; its hub is not started yet."""
    summaries = Summaries(archives)
    return Site(
        store=store,
        board=Board(store, has_summary=summaries.has),
        hub=Hub(store, has_summary=summaries.has),
        visitors=Visitors(users),
        summaries=summaries,
        jobs_per_user=jobs_per_user,
    )
