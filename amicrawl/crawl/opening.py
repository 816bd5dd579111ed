"""Opening: the frontier of a run, in its output directory, made to agree with the index there."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.config import Identity
from amicrawl.crawl.output import frontier_directory
from amicrawl.crawl.policy import asked_again_at, changes, policy_of, read_policy, write_policy
from amicrawl.crawl.rebuilding import complete, rebuild
from amicrawl.crawl.resuming import UNREAD_LINKS, Resumed, read_again, reconcile, resumed
from amicrawl.crawl.watching.control_files import DIRECTORY, ControlFile
from amicrawl.disk import OutputFile, explained
from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.frontier import Cause, DurableFrontier, LivePartition
from amicrawl.frontier.admission import Admission
from amicrawl.frontier.again import kept_out, make_due
from amicrawl.frontier.revisits import Revisits
from amicrawl.frontier.state import IDENTITY
from amicrawl.politeness.robots_policy import LONGEST_UNREACHED
from amicrawl.seed.source import earlier_indexes

if TYPE_CHECKING:
    from collections.abc import Collection

    from amicrawl.crawl.run import Run

logger = logging.getLogger(__name__)

_NOTE = "amicrawl-out"
"""The file in `JOBDIR` that names the output directory of its crawl."""


def check_directory(run: Run) -> None:
    """Raise UsageError where a frontier is there that should not be, InputError the other way round."""
    directory = frontier_directory(run.config)
    if run.spec.fresh and directory.exists():
        raise UsageError(
            f"{run.config.directory} holds the frontier of a crawl, and fresh=1 asks for none. "
            "Name another directory with -a out= or -a run_id=, or leave fresh=1 away to resume."
        )
    if run.spec.continues and not (directory.exists() or earlier_indexes(run.config.directory)):
        raise InputError(f"{run.config.directory} holds no frontier: nothing was crawled into it.")


def opened_frontier(run: Run) -> tuple[DurableFrontier, Resumed]:
    """Return the frontier of *run*, and how it was found. The identity of what is there is the run's.

    Raises as `Output` and `LivePartition` do.
    """
    output = run.output
    partition = _opened_partition(run)
    run.identity = Identity(partition.state.meta[IDENTITY].decode("ascii"))
    following = run.following
    before = read_policy(partition.directory)
    policy = policy_of(
        run.config,
        obeys=run.obeys,
        starts=None if following is None else following.starts,
        depth="" if following is None else following.depth,
        patterns=_patterns_in(run.config.directory / DIRECTORY / "ignores"),
    )
    changed = changes(before, policy)
    mended = reconcile(
        partition,
        run.config.directory,
        lost_urls=output.archive.repaired.lost_urls,
        key_of=run.key_of,
        ours=run.is_ours,
        following=following,
        reads=run.reads,
        asked_again=asked_again_at(before),
    )
    let_in = _let_in(partition, changed)
    frontier = DurableFrontier(
        partition,
        run.gates,
        run.breaker,
        run.limit,
        wall=time.time,
        now=run.clock(),
        recrawl_before=run.spec.recrawl_before,
        renews=not run.spec.resumes and not _goes_on(run),
        pace=run.pace,
        longest_wait=_longest_wait(run),
        # A callback that reads pages has no use for the news that there is none.
        revisits=Revisits(conditional=run.spec.resumes),
        admission=None if following is None else Admission(depth_cap=following.deepest_page),
        soft404=None if following is None else following.detector,
    )
    if frontier.disbelieved:
        logger.warning(
            "%d hosts were to be left alone for longer than any setting says: the clock was wrong when "
            "that was noted, or is now. They are asked again.",
            frontier.disbelieved,
        )
    pages = 0
    if following is not None:
        following.recall(partition)
        if "selection" in changed or partition.state.meta.pop(UNREAD_LINKS, b""):
            pages = read_again(frontier, run.config.directory, following, ours=run.is_ours)
    frontier.flush()
    write_policy(partition.directory, before, policy, asked_again=let_in > 0, disk=run.disk)
    found = resumed(frontier, mended, recrawls=run.spec.recrawl_before is not None)
    names = tuple(name for part in changed.values() for name in part)
    return frontier, replace(found, changed=names, let_in=let_in, read_again=pages)


def _patterns_in(path: Path) -> list[str]:
    """Return the patterns of the control file *path*; none where it cannot be read."""
    try:
        return [pattern for _, pattern in ControlFile(path).lines()]
    except InputError:
        return []


def _longest_wait(run: Run) -> float:
    """Return the seconds for which a rule may keep a host from being asked at the most."""
    config = run.config
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


def _opened_partition(run: Run) -> LivePartition:
    """Return the partition of *run*; made anew where it cannot be opened, if the crawl asks for that."""
    directory, spec = frontier_directory(run.config), run.spec
    complete(run.config.directory, disk=run.disk)

    def open_it() -> LivePartition:
        return LivePartition(
            directory,
            disk=run.disk,
            hour=int(time.time() // 3600),
            meta={} if spec.continues else {IDENTITY: run.identity.value.encode("ascii")},
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
    identity = Identity.EXACT if is_foreign else run.identity
    made = rebuild(run.config.directory, disk=run.disk, identity=identity, ours=run.is_ours)
    logger.warning("%s", made.sentence())
    return open_it()


def _goes_on(run: Run) -> bool:
    """Tell whether *run* is the next one with its `JOBDIR`, and leave a note there for the one after.

    Such a directory stands for one crawl, however often that is interrupted: what is done is done. A new
    one over an old frontier is a new crawl.
    """
    if not run.spec.job_directory:
        return False
    note = Path(run.spec.job_directory) / _NOTE
    said = os.fsencode(run.config.directory.resolve())
    with explained(note, "read"):
        note.parent.mkdir(parents=True, exist_ok=True)
        if note.is_file() and note.read_bytes() == said:
            return True
    file = OutputFile.replacing(note, disk=run.disk)
    file.write(said)
    file.seal()
    return False
