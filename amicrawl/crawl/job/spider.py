"""What the spider `job` does before it is one: its arguments, and the job made a crawl of a site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from amicrawl.config import CrawlConfig
from amicrawl.crawl.arguments import SiteArguments
from amicrawl.crawl.job.asking import arguments_of, take_settings
from amicrawl.crawl.job.opening import Job, open_job
from amicrawl.crawl.startlist import read_starts
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler

    from amicrawl.seed import Seed


@dataclass(frozen=True, slots=True)
class JobArguments:
    """The arguments of the spider `job`."""

    ident: str
    """The job."""
    out: str | None = None
    """Directory for the output."""
    run_id: str | None = None
    """Sub-directory of `out` for this run."""

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Self:
        """Check *given*. Raises UsageError for an argument that there is none of."""
        values = {name: str(value) for name, value in given.items() if not name.startswith("_")}
        unknown = sorted(values.keys() - cls.__dataclass_fields__.keys())
        if unknown:
            raise UsageError(
                f"Unknown argument {unknown[0]} for the spider `job`. Known are ident, out and run_id; "
                "everything else is in the job's record."
            )
        if not values.get("ident"):
            raise UsageError(
                "The spider `job` needs the job: -a ident=IDENT, as `amicrawl job ls` shows it."
            )
        return cls(
            ident=values["ident"], out=values.get("out") or None, run_id=values.get("run_id") or None
        )


def opened(crawler: Crawler, arguments: JobArguments) -> tuple[Job, SiteArguments, tuple[Seed, ...]]:
    """Claim the job, set what it asks for in the settings of *crawler*, and read its start URLs.

    Raises as `open_job`, `take_settings`, `arguments_of` and `read_starts` do.
    """
    for name, value in (("AMICRAWL_OUT", arguments.out), ("AMICRAWL_RUN_ID", arguments.run_id)):
        if value is not None:
            crawler.settings.set(name, value, "cmdline")
    directory = CrawlConfig.from_settings(dict(crawler.settings)).directory
    job = open_job(arguments.ident, crawler.settings, directory=directory)
    take_settings(job, crawler.settings)
    config = CrawlConfig.from_settings(dict(crawler.settings))
    site = SiteArguments.parse(arguments_of(job, config))
    return job, site, read_starts(site)
