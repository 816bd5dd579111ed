"""The Scrapy side of a crawl: add-on, scheduler, dispatcher, handlers and pipelines.

Called, as `amicrawl.crawl(...)`, the room is the function of the Python interface: its arguments are
those that `help(amicrawl.api.crawl)` shows (docs/api.md).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.crawl.arguments import (
        CrawlArguments,
        RecrawlArguments,
        SeedArguments,
        SiteArguments,
        configured,
        default_headers,
        ends_with_sentence,
        job_argument,
        known_arguments,
        whole_number,
    )
    from amicrawl.crawl.decision import Ticket, outcome_of, provenance_of
    from amicrawl.crawl.extensions import CrawlExtension
    from amicrawl.crawl.feeding import offer_seed
    from amicrawl.crawl.guest.handler import make_wire_of_guest
    from amicrawl.crawl.host_overrides import HostOverrides
    from amicrawl.crawl.links import is_of_a_page
    from amicrawl.crawl.partition_member import PartitionMember
    from amicrawl.crawl.processes import as_process
    from amicrawl.crawl.processes.lone_child import LoneChild
    from amicrawl.crawl.rebuilding import rebuild
    from amicrawl.crawl.retrying import request_again
    from amicrawl.crawl.robots_file import read_robots
    from amicrawl.crawl.run import Run, run_of
    from amicrawl.crawl.seedlist import (
        SeedList,
        fetched_list,
        offer_starts,
        read_starts,
        site_crawled_in,
    )
    from amicrawl.crawl.start import start_crawl
    from amicrawl.crawl.visit import Links, Visit
    from amicrawl.crawl.watching.busy_hosts import BusyHosts
    from amicrawl.crawl.watching.control_files import write_control
else:
    __getattr__, __all__ = lazy_exports(__spec__)


class _Room(ModuleType):
    """The room as a module: a package has one name for a room and for the function `amicrawl.crawl`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Crawl, as `amicrawl.api.crawl` does: `help` of that shows what it takes."""
        return import_module("amicrawl.api").crawl(*arguments, **settings)


sys.modules[__name__].__class__ = _Room
