"""Opening: the frontier of a crawl, in its output directory, made to agree with the index there."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.config import Identity, Rendering
from amicrawl.crawl.output import frontier_directory
from amicrawl.crawl.policy import changes, policy_of, read_policy, requested_again_at, write_policy
from amicrawl.crawl.processes.specification import crawl_directory
from amicrawl.crawl.rebuilding import complete, rebuild
from amicrawl.crawl.reconciling import UNREAD_LINKS, read_again, reconcile
from amicrawl.crawl.resumed import Resumed, resumed
from amicrawl.crawl.watching.control_files import DIRECTORY, ControlFile
from amicrawl.disk import explained, replace_file
from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.frontier import (
    Admission,
    AgeLimits,
    DurableFrontier,
    Revisits,
    grown_old,
    kept_out,
    make_due,
)
from amicrawl.listing import process_directories, read_crawl_json
from amicrawl.meguri import IDENTITY, Cause, LivePartition
from amicrawl.politeness import LONGEST_UNREACHED
from amicrawl.seed import earlier_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.following import Following
    from amicrawl.crawl.pacing import Pacing
    from amicrawl.crawl.policy import Policy
    from amicrawl.crawl.spec import CrawlSpec
    from amicrawl.disk import Disk
    from amicrawl.politeness import HostBreaker, InflightLimit
    from amicrawl.urls import Refused, UrlKey

logger = logging.getLogger(__name__)

_NOTE = "amicrawl-out"
"""The file in `JOBDIR` that names the output directory of its crawl."""


def check_directory(config: CrawlConfig, spec: CrawlSpec) -> None:
    """Raise UsageError where there is a frontier and must be none, InputError where one is missing."""
    directory = frontier_directory(config)
    if "out" not in config.model_fields_set and not (spec.is_guest or spec.continues):
        _check_start(config.directory, spec.asked)
    if spec.fresh and directory.exists():
        raise UsageError(
            f"{config.directory} holds the frontier of a crawl, and fresh=1 allows none. "
            "Name another directory with -a out= or -a run_id=, or leave fresh=1 away to resume."
        )
    found = directory.exists() or earlier_indexes(config.directory)
    if spec.continues and not (found or process_directories(config.directory)):
        raise InputError(f"{config.directory} holds no frontier: nothing was crawled into it.")


def _check_start(directory: Path, asked: Mapping[str, str]) -> None:
    """Raise UsageError where *directory*, which was not named, has crawls that began elsewhere.

    A crawl of a site that began at one of the same URLs is the same crawl, and so is one of a list of
    the same name.
    """
    last = read_crawl_json(directory)
    earlier = [_starts(crawl.get("asked")) for crawl in (*last.get("earlier", []), last)]
    before = set().union(*earlier)
    if before and not _starts(asked) & before:
        first = " ".join(sorted(next(filter(None, reversed(earlier)))))
        raise UsageError(
            f"{directory} has a crawl of {first}. Name another directory for this one with -o DIR, or "
            f"add it to that archive with -o {directory}."
        )


def _starts(asked: Any) -> set[str]:
    """Return the URLs and lists that a crawl began with, by what it was *asked*."""
    asked = asked if isinstance(asked, dict) else {}
    return {*str(asked.get("url") or "").split(), *filter(None, [str(asked.get("file") or "")])}


def opened_partition(
    config: CrawlConfig, spec: CrawlSpec, identity: Identity, *, disk: Disk
) -> LivePartition:
    """Return the partition of a crawl; made anew where it cannot be opened, if *spec* requests that.

    *identity* is that of a new one. Raises as `LivePartition` does.
    """
    directory = frontier_directory(config)
    complete(config.directory, disk=disk)

    def open_it() -> LivePartition:
        return LivePartition(
            directory,
            disk=disk,
            hour=int(time.time() // 3600),
            meta={} if spec.continues else {IDENTITY: identity.value.encode("ascii")},
        )

    is_foreign = spec.continues and not directory.exists()
    if not (spec.rebuilds or is_foreign):
        return open_it()
    if directory.exists():
        try:
            return open_it()
        except DamagedFileError as error:
            logger.warning("%s", error)
    # A list was crawled into the directory of ami: each line of it is a row.
    if is_foreign:
        identity = Identity.EXACT
    made = rebuild(config.directory, disk=disk, identity=identity, ours=spec.takes)
    logger.warning("%s", made.sentence())
    return open_it()


@dataclass(frozen=True)
class Opening:
    """What the frontier of a crawl is opened with: the *partition*, and what the crawl needs of it."""

    partition: LivePartition
    config: CrawlConfig
    spec: CrawlSpec
    pacing: Pacing
    breaker: HostBreaker
    limit: InflightLimit
    disk: Disk
    key_of: Callable[[str], UrlKey | Refused]
    following: Following | None
    obeys: bool
    """Whether robots.txt counts, at whatever host."""
    lost_urls: list[str]
    """URLs whose rows were dropped from the index when it was repaired."""
    rows_added: int
    """Rows that the index got then."""

    def frontier(self, *, now: float) -> tuple[DurableFrontier, Resumed]:
        """Return the frontier, opened at *now* on the clock of the gates, and how it was found."""
        partition, following = self.partition, self.following
        before, policy = read_policy(partition.directory), self._policy()
        changed = changes(before, policy)
        repaired = reconcile(
            partition,
            self.config.directory,
            lost_urls=self.lost_urls,
            rows_added=self.rows_added,
            key_of=self.key_of,
            ours=self.spec.takes,
            following=following,
            reads=(self.spec.reads and following is None) or self._renders,
            requested_again=requested_again_at(before),
        )
        let_in = _let_in(partition, changed)
        requested_again = self._make_old_due(requested_again_at(before)) + let_in
        frontier = self._frontier(now)
        pages = 0 if following is None else self._recall(following, frontier, changed)
        frontier.flush()
        write_policy(
            partition.directory, before, policy, requested_again=requested_again > 0, disk=self.disk
        )
        found = resumed(frontier, repaired, recrawls=self.spec.continues, ages=self._ages)
        names = tuple(name for part in changed.values() for name in part)
        return frontier, replace(found, changed=names, let_in=let_in, read_again=pages)

    @property
    def _ages(self) -> AgeLimits | None:
        """The ages from which captures are due again; None where their rate of change says when."""
        ages = self.config.recrawl_after if self.spec.recrawl_by_age else None
        return AgeLimits(ages) if ages else None

    def _make_old_due(self, requested_again: int) -> int:
        """Make due what a recrawl by age takes; return how many URLs.

        *requested_again* is when that was done last, in Unix milliseconds; 0 for never.
        """
        if self._ages is None:
            return 0
        hour = int(time.time() // 3600)
        rows = grown_old(self.partition, self._ages, hour=hour, since=requested_again // 3_600_000)
        make_due(self.partition, rows, hour=hour)
        return len(rows)

    @property
    def _renders(self) -> bool:
        """Whether links come from pages in a browser, which no record has: they are opened again."""
        return self.config.browser is not Rendering.NEVER

    def _policy(self) -> Policy:
        following = self.following
        return policy_of(
            self.config,
            obeys=self.obeys,
            starts=None if following is None else following.starts,
            depth="" if following is None else following.depth,
            patterns=_patterns_in(crawl_directory(self.config.directory) / DIRECTORY / "ignores"),
        )

    def _frontier(self, now: float) -> DurableFrontier:
        spec, following = self.spec, self.following
        frontier = DurableFrontier(
            self.partition,
            self.pacing.gates,
            self.breaker,
            self.limit,
            wall=time.time,
            now=now,
            recrawl_before=None if self._ages is not None else spec.recrawl_before,
            renews=not spec.resumes and not _is_next_of_jobdir(self.config, spec, disk=self.disk),
            pace=self.pacing.pace,
            longest_wait=_longest_wait(self.config),
            # A callback that reads pages has no use for the news that there is none.
            revisits=Revisits(conditional=spec.resumes),
            admission=None if following is None else Admission(depth_cap=following.deepest_page),
            # Pages that scripts make have one document in common.
            soft404=None if following is None or self._renders else following.detector,
        )
        if frontier.disbelieved:
            logger.warning(
                "%d hosts were to be left alone for longer than any setting says: the clock was wrong "
                "when that was noted, or is now. They are requested again.",
                frontier.disbelieved,
            )
        return frontier

    def _recall(self, following: Following, frontier: DurableFrontier, changed: Collection[str]) -> int:
        """Read archived pages again where other links of them are taken now; return how many."""
        following.follow_in(frontier, ours=self.spec.takes if self.spec.shards > 1 else None)
        following.recall(self.partition)
        is_unread = self.partition.state.meta.pop(UNREAD_LINKS, b"")
        if not is_unread and "selection" not in changed:
            return 0
        return read_again(frontier, self.config.directory, following)


def _patterns_in(path: Path) -> list[str]:
    """Return the patterns of the control file *path*; none where it cannot be read."""
    try:
        return [pattern for _, pattern in ControlFile(path).lines()]
    except InputError:
        return []


def _longest_wait(config: CrawlConfig) -> float:
    """Return the seconds for which a rule may keep a host from being contacted at the most."""
    caps = (config.retry_after_max, config.backoff_max, config.max_crawl_delay, LONGEST_UNREACHED)
    return max(config.delay, *caps)


def _let_in(partition: LivePartition, changed: Collection[str]) -> int:
    """Make the rows due that the parts of the policy which have *changed* kept out; return how many.

    Rows that the network kept from being fetched are due in any case: it may be there by now.
    """
    if partition.opened.is_new:
        return 0
    causes = {Cause.NETWORK}
    if "address" in changed:
        causes.add(Cause.ADDRESS)
    if "selection" in changed:
        causes.add(Cause.RULE)
    rows = kept_out(partition, causes=causes, robots="robots" in changed)
    make_due(partition, rows, hour=int(time.time() // 3600))
    return len(rows)


def _is_next_of_jobdir(config: CrawlConfig, spec: CrawlSpec, *, disk: Disk) -> bool:
    """Tell whether the crawl is the next one with its `JOBDIR`, and leave a note for the one after.

    Such a directory stands for one crawl, however often that is interrupted: what is done is done. A new
    one over an old frontier is a new crawl.
    """
    if not spec.job_directory:
        return False
    note = Path(spec.job_directory) / _NOTE
    directory = os.fsencode(config.directory.resolve())
    with explained(note, "read"):
        note.parent.mkdir(parents=True, exist_ok=True)
        if note.is_file() and note.read_bytes() == directory:
            return True
    replace_file(note, directory, disk=disk)
    return False
