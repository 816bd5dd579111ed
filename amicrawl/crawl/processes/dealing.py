"""The directory of a crawl in several processes: dealt at the start, gathered at the end.

    DIR/processes/plan.json    {"processes": N, "prefix": ..., "stage": "dealt" or "gathering",
                                "salt": ..., "reason": why the crawl has ended,
                                "replaced": settings of the whole}
    DIR/processes/0 ...        the directory of each child: an ordinary crawl of one shard

`deal` splits the frontier of DIR by host. `gather` moves the WARC files of the children to DIR, with
what a repair has set aside there, joins their rows to `captures.parquet` and their rows of the frontier
to one frontier, and lists everything in `crawl.json`. Both can be interrupted anywhere and repeated:
what they read stays until all that follows from it is in its place.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.capture import Failure
from amicrawl.config import Identity
from amicrawl.crawl.decision import CLASSES, Tally
from amicrawl.crawl.robots_file import FILE as ROBOTS
from amicrawl.crawl.robots_file import joined_text
from amicrawl.disk import OPEN_SUFFIX, OutputFile, explained, replace_file
from amicrawl.errors import AmicrawlError, InputError, OutputError
from amicrawl.listing import (
    EARLIER_TABLE,
    NO_EARLIER_TABLE,
    PLAN_NAME,
    PROCESSES,
    TABLE_NAME,
    CrawlJson,
    SealedFile,
    known_files,
    read_crawl_json,
)
from amicrawl.meguri import deal_frontier, gather_frontiers
from amicrawl.record import joined_unkept
from amicrawl.seed import SeedFormat, open_seed
from amicrawl.urls import Refused, shard_of, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from amicrawl.crawl.processes.specification import Order
    from amicrawl.disk import Disk
    from amicrawl.seed import Seed

_COPY_BLOCK = 1024**2
_FRONTIER = "frontier"
_POLICY = "policy.json"
"""A file of the frontier's directory that every child gets."""
_SEEDS, _HOSTS = 4000, 500
"""Seeds that are looked at, and hosts of theirs, before the processes begin: a tenth of a second."""
_SALTS = 64
_ODD = 0x9E37_79B9_7F4A_7C15
"""Takes consecutive numbers far apart: 2^64 divided by the golden ratio (Knuth, TAOCP 6.4)."""
_MOVED = ("*.warc.gz", "*.warc.gz.tail", "captures-*.damaged", "frontier.damaged-*")
"""What is not made one: the names of the others get those of WARC files of that process before them."""


@dataclass(frozen=True, slots=True)
class DealingPlan:
    """How a directory is dealt."""

    processes: int
    prefix: str
    """What the names of WARC files of this run begin with; `-p0-00000.warc.gz` follows."""
    stage: str
    salt: int = 0
    """By which rule hosts are dealt to them: that of `shard_of`."""
    reason: str = ""
    """Why the crawl has ended that is being gathered."""
    replaced: Mapping[str, Any] = field(default_factory=dict)
    """What the command says of the settings that the children are given in another form."""


class Dealing:
    """The directory *directory* of a crawl, and those of its processes."""

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        self._directory = directory
        self._folder = directory / PROCESSES
        self._disk = disk

    def plan(self) -> DealingPlan | None:
        """Return how the directory is dealt; None where it is not."""
        try:
            said = orjson.loads((self._folder / PLAN_NAME).read_bytes())
            return DealingPlan(
                int(said["processes"]),
                str(said["prefix"]),
                str(said["stage"]),
                salt=int(said.get("salt", 0)),
                reason=str(said.get("reason", "")),
                replaced=dict(said.get("replaced", {})),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self._folder / PLAN_NAME} cannot be read ({error}). If no crawl of "
                f"{self._directory} is of use any more, remove that directory; else restore the file "
                "from a copy."
            ) from error

    def children(self, processes: int) -> list[Path]:
        """Return the directories of *processes* children."""
        return [self._folder / str(number) for number in range(processes)]

    def deal(self, processes: int, *, prefix: str, salt: int) -> DealingPlan:
        """Deal the frontier, if there is one, to *processes* children; nothing may be dealt yet."""
        with explained(self._folder, "made"):
            if self._folder.exists():
                # A crawl that ended before its plan was written has crawled nothing.
                shutil.rmtree(self._folder)
            self._folder.mkdir(parents=True)
            for child in self.children(processes):
                child.mkdir()
        frontier = self._directory / _FRONTIER
        if frontier.exists():
            targets = [child / _FRONTIER for child in self.children(processes)]
            deal_frontier(frontier, targets, salt=salt, disk=self._disk)
            for target in targets:
                self._copy_beside([frontier], target)
        return self._write(DealingPlan(processes, self._unused(prefix), "dealt", salt=salt))

    def follow(self, plan: DealingPlan, replaced: Mapping[str, Any]) -> DealingPlan:
        """Note that the children of *plan* crawl by a command that says *replaced*."""
        return plan if plan.replaced == replaced else self._write(replace(plan, replaced=replaced))

    def gather(self, *, reason: str, finished: datetime) -> Counter[str]:
        """Make the directories of the children one; return the counts of the whole crawl.

        Each child must have ended in order, so that nothing in it waits to be repaired. Of a crawl that
        was being gathered before, its own *reason* is kept.
        """
        plan = self.plan()
        if plan is None:
            raise InputError(f"{self._folder} holds nothing to be gathered.")
        is_again = plan.stage == "gathering"
        if not is_again:
            plan = self._write(replace(plan, stage="gathering", reason=reason))
        children = self.children(plan.processes)
        listings = [read_crawl_json(child) for child in children]
        counts = _counts(listings, children)
        listing = self._listing(listings, plan.replaced, is_again=is_again)
        for each in listings:
            for entry in each.get("files", []):
                if entry["name"] != TABLE_NAME:
                    listing.add_file(SealedFile(**entry))
        self._move_archives(children, prefix=plan.prefix)
        table = self._join_tables(children)
        listing.add_file(table)
        self._join_frontiers(children, index_rows=table.records)
        listing.finish(
            plan.reason or reason,
            finished=finished,
            counts=counts,
            unfinished=any(each.get("unfinished") for each in listings),
            links=_summed(listings, "links"),
            ignored=_summed(listings, "ignored"),
            unkept=joined_unkept(each.get("unkept", {}) for each in listings),
        )
        with explained(self._folder, "removed"):
            self._disk.remove(self._folder / PLAN_NAME)
            shutil.rmtree(self._folder)
        return counts

    def _unused(self, prefix: str) -> str:
        """Return *prefix*, with a number where an earlier crawl here in several processes had it."""
        names = [*known_files(self._directory), *(path.name for path in self._directory.iterdir())]
        number, found = 1, prefix
        while any(name.startswith(f"{found}-p") for name in names):
            number += 1
            found = f"{prefix}-{number}"
        return found

    def _listing(
        self, listings: Sequence[Mapping[str, Any]], replaced: Mapping[str, Any], *, is_again: bool
    ) -> CrawlJson:
        """Begin the `crawl.json` of the whole, from what the first child says of itself."""
        first = next((each for each in listings if each), {})
        settings = {**first.get("settings", {}), **replaced, "out": str(self._directory)}
        # The directory and the shard are those that the parent has given the child.
        whole = {"out": str(self._directory), "shard": "0", "shards": "1"}
        asked = {**first.get("asked", {}), **whole, "processes": str(len(listings))}
        started = min((each["started"] for each in listings if each.get("started")), default="")
        return CrawlJson(
            self._directory,
            started=datetime.fromisoformat(started) if started else datetime.now().astimezone(),
            asked=asked,
            settings=settings,
            versions=first.get("versions", {}),
            disk=self._disk,
            warc_prefix=str(first.get("warc_prefix") or "ami"),
            is_again=is_again,
        )

    def _move_archives(self, children: Iterable[Path], *, prefix: str) -> None:
        """Move WARC files, and what was set aside of damage, to where one process would have it."""
        for number, child in enumerate(children):
            for path in sorted(chain.from_iterable(map(child.glob, _MOVED))):
                own = f"{prefix}-p{number}-"
                name = path.name if path.name.startswith(own) else own + path.name
                target = self._directory / name
                if target.exists():
                    raise OutputError(
                        f"{path} and {target} are both there. Move one of them away and start again."
                    )
                with explained(path, "moved"):
                    self._disk.rename(path, target)
        with explained(self._directory, "forced to disk"):
            self._disk.sync_directory(self._directory)

    def _join_tables(self, children: Iterable[Path]) -> SealedFile:
        # Arrow, which has threads, is loaded when there is nothing left to fork.
        from amicrawl.record import join_tables  # noqa: PLC0415

        whole, before = self._directory / TABLE_NAME, self._folder / EARLIER_TABLE
        # Once only: a second time the rows of the children would be among those of before.
        none = self._folder / NO_EARLIER_TABLE
        if not before.exists() and not none.exists():
            if whole.exists():
                self._keep_beside(whole, before)
            else:
                with explained(none, "written to"):
                    os.close(self._disk.create(none))
        with explained(self._folder, "forced to disk"):
            # What says which table is the earlier one must not be younger than the new one.
            self._disk.sync_directory(self._folder)
        parts = [before, *(child / TABLE_NAME for child in children)]
        return join_tables(self._directory, [part for part in parts if part.exists()], disk=self._disk)

    def _keep_beside(self, source: Path, target: Path) -> None:
        """Have *target* be what *source* is now; it is copied where a file cannot have two names."""
        with suppress(OSError):
            self._disk.link(source, target)
            return
        copy = OutputFile.replacing(target, disk=self._disk)
        try:
            with explained(source, "read"), source.open("rb") as stream:
                while block := stream.read(_COPY_BLOCK):
                    copy.write(block)
            copy.seal()
        finally:
            copy.close()

    def _join_frontiers(self, children: Sequence[Path], *, index_rows: int) -> None:
        sources = [child / _FRONTIER for child in children if (child / _FRONTIER).exists()]
        if not sources:
            return
        new, old = self._folder / _FRONTIER, self._directory / _FRONTIER
        with explained(new, "made"):
            if new.exists():
                shutil.rmtree(new)
            new.mkdir()
        gather_frontiers(sources, new, index_rows=index_rows, disk=self._disk)
        self._copy_beside(sources, new)
        with explained(old, "replaced"):
            if old.exists():
                # Two steps: between them the children still have everything, and this is done again.
                shutil.rmtree(old)
            self._disk.rename(new, old)
            self._disk.sync_directory(self._directory)

    def _copy_beside(self, sources: Sequence[Path], target: Path) -> None:
        """Join the files beside the frontiers in *sources*, by name, and put them into *target*."""
        robots, policy = joined_text(sources), dict[str, Any]()
        if robots is not None:
            replace_file(target / ROBOTS, robots, disk=self._disk)
        for source in sources:
            # One that cannot be read is made anew by the crawl that it is copied for.
            with suppress(OSError, ValueError):
                policy |= orjson.loads((source / _POLICY).read_bytes())
        if policy:
            self._put(target / _POLICY, policy)

    def _write(self, plan: DealingPlan) -> DealingPlan:
        self._put(self._folder / PLAN_NAME, asdict(plan))
        return plan

    def _put(self, path: Path, said: Mapping[str, Any]) -> None:
        replace_file(path, orjson.dumps(said, option=orjson.OPT_INDENT_2), disk=self._disk)


def is_unfinished(directory: Path) -> bool:
    """Tell whether the crawl in *directory* was killed, so that its next start has to repair it."""
    if not directory.exists():
        return False
    if any(path.name.endswith(OPEN_SUFFIX) for path in directory.iterdir()):
        return True
    return read_crawl_json(directory).get("state") == "running"


def _counts(listings: Sequence[Mapping[str, Any]], children: Sequence[Path]) -> Counter[str]:
    """Return the counts of all.

    Classes are counted from the rows, those of attempts that were killed among them. Seeds are what the
    children say; the list itself every child has read.
    """
    counts: Counter[str] = Counter()
    for each in listings:
        counts.update({name: int(value) for name, value in each.get("counts", {}).items()})
    tally = Tally()
    for child in children:
        if (child / TABLE_NAME).exists():
            _add_rows(tally, child / TABLE_NAME)
    counts["seeds_elsewhere"] = 0
    counts["seeds_read"] = max(
        (each.get("counts", {}).get("seeds_read", 0) for each in listings), default=0
    )
    for name in (*CLASSES, "rows"):
        counts[name] = getattr(tally, name)
    return counts


def rows_since(directory: Path, moment: float) -> Tally:
    """Count the rows of the index in *directory*, which is sealed, that are not older than *moment*.

    That is a Unix time.
    """
    tally = Tally()
    if (directory / TABLE_NAME).exists():
        _add_rows(tally, directory / TABLE_NAME, since=int(moment * 1000))
    return tally


def _add_rows(tally: Tally, path: Path, *, since: int = 0) -> None:
    import pyarrow as pa  # noqa: PLC0415  # see `_join_tables`
    import pyarrow.compute as pc  # noqa: PLC0415

    from amicrawl.record import opened_index  # noqa: PLC0415

    said = ["status", "error", "unchanged"]
    with opened_index(path) as table:
        for batch in table.batches([*said, "fetched_at"]):
            these = pa.table(batch).filter(pc.field("fetched_at") >= since)
            grouped = these.group_by(said).aggregate([([], "count_all")])
            for row in grouped.to_pylist():
                word = row["error"].partition(":")[0].partition(" ")[0]
                failure = Failure(word) if word in set(Failure) else None
                unchanged = bool(row["unchanged"])
                tally.add(row["status"], failure, unchanged=unchanged, rows=row["count_all"])


def _summed(listings: Sequence[Mapping[str, Any]], name: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in listings:
        total.update(each.get(name, {}))
    return total


def salt_for(order: Order) -> int:
    """Return by which rule each process of *order* has about as many of the first seeds as any other.

    A list that is a table is dealt by the common rule: Arrow, which would read it, has threads, and is
    loaded when there is nothing left to fork.
    """
    weights: Counter[int] = Counter()
    # What is wrong with a list, the crawl itself says.
    with suppress(AmicrawlError):
        if Path(order.file).is_file():
            with open_seed(order.file, format=order.format, on_fault=lambda _: None) as seeds:
                if seeds.format in {SeedFormat.LINES, SeedFormat.JSONL}:
                    weights.update(filter(None, map(_host_of, islice(seeds, _SEEDS))))
    return even_salt(dict(weights.most_common(_HOSTS)), order.processes)


def _host_of(seed: Seed) -> int:
    key = url_key(seed.url, Identity.EXACT)
    return 0 if isinstance(key, Refused) else key.host


def even_salt(weights: Mapping[int, int], shards: int) -> int:
    """Return the salt with which the largest of *shards* has least of *weights*, numbers by host key.

    0, the rule that others know, where none is better.
    """
    best, least = 0, sum(weights.values()) + 1
    for number in range(_SALTS if shards > 1 else 1):
        salt, sums = number * _ODD % 2**64, [0] * shards
        for host, weight in weights.items():
            sums[shard_of(host, shards, salt)] += weight
        if max(sums) < least:
            best, least = salt, max(sums)
    return best
