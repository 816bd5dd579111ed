"""The wings: parts of amicrawl that a crawl works without, and what each registers for the crawl.

`amicrawl.archive` makes indexes, tables and reports of archives, `amicrawl.fleet` runs many crawls on
many machines. The crawl imports neither. What it needs of a wing is registered here by name, and
imported when a crawl needs it; without that wing, the error says so.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

WINGS: Mapping[str, str] = {
    "archive": "indexes, tables, packages and reports of archives",
    "fleet": "jobs, shared crawls, Spark and the dashboard",
}
"""What each wing, a package in `amicrawl`, is for."""

REGISTERED: Mapping[str, str] = {
    "job": "amicrawl.fleet.jobs.crawl.specification:open_job_of",
    "job extension": "amicrawl.fleet.jobs.crawl.joblink:JobLink",
    "share extension": "amicrawl.fleet.sharing.partition:Sharing",
    "seed queue": "amicrawl.fleet.jobs.crawl.queued:open_queue",
}
"""Module and object of what a wing gives to a crawl, by name."""


def registered(name: str) -> Any:
    """Return the object that a wing registers as *name*. Raises UsageError without that wing."""
    module, _, attribute = REGISTERED[name].partition(":")
    return getattr(import_of_wing(module), attribute)


def import_of_wing(module: str) -> Any:
    """Import *module*, which is in a wing or imports one. Raises UsageError without that wing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        wing = (error.name or "").removeprefix("amicrawl.").partition(".")[0]
        if wing not in WINGS or not (error.name or "").startswith("amicrawl."):
            raise
        raise UsageError(
            f"This needs the package amicrawl.{wing} ({WINGS[wing]}), which is not installed. "
            "Install amicrawl as a whole."
        ) from error
