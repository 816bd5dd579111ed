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
        JOB_ARGUMENT,
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
    from amicrawl.crawl.decision import REDIRECTS, NotBegun, Ticket, final_url, outcome_of
    from amicrawl.crawl.extensions import CrawlExtension
    from amicrawl.crawl.feeding import offer_seed, on_a_thread
    from amicrawl.crawl.guest.handler import make_wire_of_guest
    from amicrawl.crawl.in_force import SettingSource
    from amicrawl.crawl.links import REQUISITE, SITEMAP, provenance_of
    from amicrawl.crawl.partition.batch import (
        MOST_LINKS,
        OpenedBatch,
        PartitionLink,
        batches_of,
        encoded_link,
        links_in,
    )
    from amicrawl.crawl.partition.member import BATCHES_AT_ONCE, EVERY, PartitionMember
    from amicrawl.crawl.partition.messages import Batch, Standing
    from amicrawl.crawl.partition.outbox import Outbox
    from amicrawl.crawl.policy import read_policy, write_policy
    from amicrawl.crawl.processes import as_process
    from amicrawl.crawl.processes.lone_child import LoneChild
    from amicrawl.crawl.processes.specification import is_child
    from amicrawl.crawl.rebuilding import rebuild
    from amicrawl.crawl.robots import RobotsMiddleware
    from amicrawl.crawl.run import Run, run_of
    from amicrawl.crawl.seedlist import (
        SeedList,
        offer_starts,
        read_starts,
        seeds_come_in_batches,
        site_crawled_in,
    )
    from amicrawl.crawl.standing import Resumed
    from amicrawl.crawl.start import start_crawl
    from amicrawl.crawl.state import ABORTED
    from amicrawl.crawl.visit import Links, Visit
    from amicrawl.crawl.watching.busy_hosts import BusyHosts
    from amicrawl.crawl.watching.control_files import write_control
    from amicrawl.crawl.wiring import make_resolver, make_wire
else:
    __getattr__ = lazy_exports(
        __name__,
        CrawlArguments="arguments",
        JOB_ARGUMENT="arguments",
        ABORTED="state",
        CrawlExtension="extensions",
        Links="visit",
        REDIRECTS="decision",
        NotBegun="decision",
        REQUISITE="links",
        RobotsMiddleware="robots",
        SITEMAP="links",
        Ticket="decision",
        Visit="visit",
        outcome_of="decision",
        BusyHosts="watching.busy_hosts",
        PartitionLink="partition.batch",
        OpenedBatch="partition.batch",
        batches_of="partition.batch",
        BATCHES_AT_ONCE="partition.member",
        EVERY="partition.member",
        PartitionMember="partition.member",
        Batch="partition.messages",
        Standing="partition.messages",
        MOST_LINKS="partition.batch",
        Outbox="partition.outbox",
        RecrawlArguments="arguments",
        Resumed="standing",
        Run="run",
        SeedArguments="arguments",
        SeedList="seedlist",
        SiteArguments="arguments",
        SettingSource="in_force",
        LoneChild="processes.lone_child",
        as_process="processes",
        is_child="processes.specification",
        configured="arguments",
        encoded_link="partition.batch",
        explained="arguments",
        final_url="decision",
        job_argument="arguments",
        known_arguments="arguments",
        links_in="partition.batch",
        make_resolver="wiring",
        make_wire_of_guest="guest.handler",
        make_wire="wiring",
        offer_seed="feeding",
        provenance_of="links",
        offer_starts="seedlist",
        on_a_thread="feeding",
        read_policy="policy",
        read_starts="seedlist",
        rebuild="rebuilding",
        run_of="run",
        seeds_come_in_batches="seedlist",
        site_crawled_in="seedlist",
        start_crawl="start",
        whole_number="arguments",
        write_control="watching.control_files",
        write_policy="policy",
    )


class _Room(ModuleType):
    """The room as a module: a package has one name for a room and for the function `amicrawl.crawl`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return import_module("amicrawl.api").crawl(*arguments, **settings)


sys.modules[__name__].__class__ = _Room

__all__ = [
    "ABORTED",
    "BATCHES_AT_ONCE",
    "EVERY",
    "JOB_ARGUMENT",
    "MOST_LINKS",
    "REDIRECTS",
    "REQUISITE",
    "SITEMAP",
    "Batch",
    "BusyHosts",
    "CrawlArguments",
    "CrawlExtension",
    "Links",
    "LoneChild",
    "NotBegun",
    "OpenedBatch",
    "Outbox",
    "PartitionLink",
    "PartitionMember",
    "RecrawlArguments",
    "Resumed",
    "RobotsMiddleware",
    "Run",
    "SeedArguments",
    "SeedList",
    "SettingSource",
    "SiteArguments",
    "Standing",
    "Ticket",
    "Visit",
    "as_process",
    "batches_of",
    "configured",
    "encoded_link",
    "explained",
    "final_url",
    "is_child",
    "job_argument",
    "known_arguments",
    "links_in",
    "make_resolver",
    "make_wire",
    "make_wire_of_guest",
    "offer_seed",
    "offer_starts",
    "on_a_thread",
    "outcome_of",
    "provenance_of",
    "read_policy",
    "read_starts",
    "rebuild",
    "run_of",
    "seeds_come_in_batches",
    "site_crawled_in",
    "start_crawl",
    "whole_number",
    "write_control",
    "write_policy",
]
