"""The site: what every request is handed, made once when the dashboard starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.dashboard.board import Board
    from amicrawl.dashboard.hub import Hub
    from amicrawl.dashboard.summaries import Summaries
    from amicrawl.dashboard.visitors import Visitors
    from amicrawl.jobs.connection import JobStore


@dataclass(frozen=True, slots=True)
class Site:
    """What the routes of one dashboard share."""

    store: JobStore
    board: Board
    hub: Hub
    visitors: Visitors
    summaries: Summaries
    jobs_per_user: int = 0
    """Jobs of one user that may wait or run at once, unless an admin's; 0 for any number."""
