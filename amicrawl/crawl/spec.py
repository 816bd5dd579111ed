"""What one kind of crawl does differently from another, as the attributes of its spider say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from amicrawl.urls import shard_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler


def is_guest(spider: object) -> bool:
    """Tell whether *spider*, or its class, is a project's own: ours say what is read of responses."""
    return not hasattr(spider, "reads_responses")


def reads_responses(crawler: Crawler) -> bool:
    """Tell whether the spider of *crawler* looks at responses: all do that do not say otherwise."""
    return bool(getattr(crawler.spidercls, "reads_responses", True))


@dataclass(frozen=True, slots=True)
class CrawlSpec:
    """What a spider says of its crawl. What it does not say is as in any spider of Scrapy."""

    asked: Mapping[str, str] = field(default_factory=dict)
    """The arguments of the crawl, as they were given."""
    resumes: bool = False
    """Whether known URLs are done; otherwise a spider that requests one again gets it."""
    is_guest: bool = False
    """Whether the spider is a project's own, and keeps Scrapy's machinery."""
    reads: bool = False
    """Whether the spider reads what was fetched."""
    job_directory: str = ""
    """Scrapy's `JOBDIR`, where it names one: all runs with it are one crawl."""
    fresh: bool = False
    """Whether a directory that holds a frontier is to be refused."""
    rebuilds: bool = False
    """Whether a frontier that cannot be opened is to be made anew from what was archived."""
    strict: bool = False
    """Whether a seed that could not be read makes the exit code 7."""
    deals_seeds: bool = False
    """Whether this process alone reads the seed list, and gives others their part of it."""
    gets_seeds: bool = False
    """Whether another process reads the seed list, and sends what is ours."""
    recrawl_before: int | None = None
    """The hour since 1970 up to which settled rows are due again; None for a crawl of new ones."""
    recrawl_by_age: bool = False
    """Whether they are due from an age on instead, that of AMICRAWL_RECRAWL_AFTER."""
    shard: int = 0
    shards: int = 1
    """The crawl takes the hosts of the part number *shard* of so many."""
    salt: int = 0
    """By which rule hosts are dealt to them: that of `shard_of`."""

    @property
    def is_job(self) -> bool:
        """Whether a pipeline runs the crawl, for a job in Redis."""
        return "ident" in self.asked

    @classmethod
    def of(cls, spider: Any, *, job_directory: str = "") -> Self:
        """Return what *spider* says of a crawl in *job_directory*, if it has one."""
        arguments = getattr(spider, "arguments", None)
        return cls(
            asked=dict(getattr(spider, "asked", {})),
            resumes=bool(getattr(spider, "resumes", False)),
            is_guest=is_guest(spider),
            reads=bool(getattr(spider, "reads_responses", True)),
            job_directory=job_directory,
            fresh=bool(getattr(spider, "fresh", False)),
            rebuilds=bool(getattr(arguments, "rebuild", False)),
            strict=bool(getattr(arguments, "strict", False)),
            recrawl_before=getattr(spider, "recrawl_before", None),
            recrawl_by_age=bool(getattr(spider, "recrawl_by_age", False)),
            shard=getattr(arguments, "shard", 0),
            shards=getattr(arguments, "shards", 1),
        )

    @property
    def continues(self) -> bool:
        """Whether there must be a frontier to go on with, whatever its identity is."""
        return self.recrawl_before is not None

    def takes(self, host: int) -> bool:
        """Tell whether the host key *host* belongs to this crawl's shard."""
        return self.shards < 2 or self.shard_of(host) == self.shard

    def shard_of(self, host: int) -> int:
        """Return the number of the part that the host key *host* belongs to."""
        return shard_of(host, self.shards, self.salt)
