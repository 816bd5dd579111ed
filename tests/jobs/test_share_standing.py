"""What a partition says of the batches it has taken in: nothing that is not in its journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from amicrawl.crawl.partition_member import PartitionMember
from amicrawl.errors import AmicrawlError, OutputError

if TYPE_CHECKING:
    from amicrawl.crawl.run import Run
    from amicrawl.partition.batch import OpenedBatch, PartitionLink
    from amicrawl.partition.outbox import Outbox


class StandInRun:
    """A run whose lease and whose disk are as the test wants them."""

    def __init__(self) -> None:
        self.is_held = True
        self.is_full = False
        self.flushed = 0
        self.has_frontier = True
        self.fault: AmicrawlError | None = None

    @property
    def frontier(self) -> StandInRun:
        return self

    def may_write(self) -> bool:
        return self.is_held

    def fail(self, fault: AmicrawlError) -> None:
        self.fault = fault

    def flush(self) -> None:
        if self.is_full:
            raise OutputError(f"{Path('journal')} cannot be written to: no space.")
        self.flushed += 1


class MemberWithoutACarrier(PartitionMember):
    """A member that sends nothing and refuses nothing."""

    def _opened_outbox(self) -> Outbox:
        raise AssertionError

    def _facts(self) -> dict[str, Any]:
        return {}

    async def _refuse(self, batch: OpenedBatch, link: PartitionLink, why: str) -> None:
        raise AssertionError(why)


def member_of(run: StandInRun, *batches: str) -> PartitionMember:
    """Return the member of *run*, which has offered the links of *batches*, and nothing else of it."""
    member = object.__new__(MemberWithoutACarrier)
    member._run, member._kept = cast("Run", run), list(batches)
    return member


def test_batches_are_told_once_they_are_written_down() -> None:
    run = StandInRun()
    member = member_of(run, "1-0", "2-0")
    assert member._written_down() == ("1-0", "2-0")
    assert member._written_down() == ()
    assert run.flushed == 1


def test_they_wait_while_the_lease_may_have_run_out() -> None:
    """A journal that is written to then counts as failed, which ends the crawl."""
    run = StandInRun()
    member = member_of(run, "1-0")
    run.is_held = False
    assert (member._written_down(), run.flushed) == ((), 0)
    run.is_held = True
    assert (member._written_down(), run.flushed) == (("1-0",), 1)


def test_a_disk_that_fails_ends_the_crawl_and_acknowledges_nothing() -> None:
    run = StandInRun()
    run.is_full = True
    assert member_of(run, "1-0")._written_down() == ()
    assert isinstance(run.fault, AmicrawlError)
