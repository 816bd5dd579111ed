"""The Scrapy side of a crawl: add-on, scheduler, dispatcher, handlers and pipelines.

Called, as `amicrawl.crawl(...)`, the room is the function of the Python interface (docs/api.md).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.crawl.arguments import (
        CrawlArguments,
        RecrawlArguments,
        SeedArguments,
        SiteArguments,
        configured,
        explained,
        job_argument,
        known_arguments,
        whole_number,
    )
    from amicrawl.crawl.decision import NotBegun, Ticket, outcome_of
    from amicrawl.crawl.extensions import CrawlExtension
    from amicrawl.crawl.feeding import offer_seed, on_a_thread
    from amicrawl.crawl.guest.handler import make_wire_of_guest
    from amicrawl.crawl.in_force import SettingSource
    from amicrawl.crawl.links import REQUISITE, SITEMAP, provenance_of
    from amicrawl.crawl.list_fetching import fetched_list
    from amicrawl.crawl.partition_member import PartitionMember
    from amicrawl.crawl.processes import as_process
    from amicrawl.crawl.processes.lone_child import LoneChild
    from amicrawl.crawl.processes.specification import is_child
    from amicrawl.crawl.rebuilding import rebuild
    from amicrawl.crawl.retrying import request_again
    from amicrawl.crawl.robots import RobotsMiddleware
    from amicrawl.crawl.run import Run, run_of
    from amicrawl.crawl.seedlist import SeedList, offer_starts, read_starts, site_crawled_in
    from amicrawl.crawl.start import start_crawl
    from amicrawl.crawl.state import ABORTED
    from amicrawl.crawl.visit import Links, Visit
    from amicrawl.crawl.watching.busy_hosts import BusyHosts
    from amicrawl.crawl.watching.control_files import write_control
else:
    __getattr__ = lazy_exports(
        __name__,
        CrawlArguments="arguments",
        RecrawlArguments="arguments",
        SeedArguments="arguments",
        SiteArguments="arguments",
        configured="arguments",
        explained="arguments",
        job_argument="arguments",
        known_arguments="arguments",
        whole_number="arguments",
        NotBegun="decision",
        Ticket="decision",
        outcome_of="decision",
        CrawlExtension="extensions",
        offer_seed="feeding",
        on_a_thread="feeding",
        make_wire_of_guest="guest.handler",
        SettingSource="in_force",
        REQUISITE="links",
        SITEMAP="links",
        provenance_of="links",
        fetched_list="list_fetching",
        PartitionMember="partition_member",
        as_process="processes",
        LoneChild="processes.lone_child",
        is_child="processes.specification",
        rebuild="rebuilding",
        request_again="retrying",
        RobotsMiddleware="robots",
        Run="run",
        run_of="run",
        SeedList="seedlist",
        offer_starts="seedlist",
        read_starts="seedlist",
        site_crawled_in="seedlist",
        start_crawl="start",
        ABORTED="state",
        Links="visit",
        Visit="visit",
        BusyHosts="watching.busy_hosts",
        write_control="watching.control_files",
    )


class _Room(ModuleType):
    """The room as a module: a package has one name for a room and for the function `amicrawl.crawl`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return import_module("amicrawl.api").crawl(*arguments, **settings)


sys.modules[__name__].__class__ = _Room

__all__ = [
    "ABORTED",
    "REQUISITE",
    "SITEMAP",
    "BusyHosts",
    "CrawlArguments",
    "CrawlExtension",
    "Links",
    "LoneChild",
    "NotBegun",
    "PartitionMember",
    "RecrawlArguments",
    "RobotsMiddleware",
    "Run",
    "SeedArguments",
    "SeedList",
    "SettingSource",
    "SiteArguments",
    "Ticket",
    "Visit",
    "as_process",
    "configured",
    "explained",
    "fetched_list",
    "is_child",
    "job_argument",
    "known_arguments",
    "make_wire_of_guest",
    "offer_seed",
    "offer_starts",
    "on_a_thread",
    "outcome_of",
    "provenance_of",
    "read_starts",
    "rebuild",
    "request_again",
    "run_of",
    "site_crawled_in",
    "start_crawl",
    "whole_number",
    "write_control",
]
