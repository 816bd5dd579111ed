"""What a partition says of the batches it has taken in: nothing that is not in its journal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from amicrawl.crawl.partition_member import PartitionMember
from amicrawl.crawl.processes.child import Process
from amicrawl.crawl.state import CrawlState
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.partition import Arrived, End, OpenedBatch, Outbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.crawl.run import Run
    from amicrawl.frontier import Offer
    from amicrawl.partition.batch import PartitionLink


class StandInRun:
    """A run whose lease and whose disk are as the test wants them."""

    def __init__(self) -> None:
        self.is_held = True
        self.is_full = False
        self.flushed = 0
        self.has_frontier = True
        self.fault: AmicrawlError | None = None
        self.ended = ""

    @property
    def frontier(self) -> StandInRun:
        return self

    def may_write(self) -> bool:
        return self.is_held

    def fail(self, fault: AmicrawlError) -> None:
        self.fault = fault

    following = None

    def fail_if_raised(self, task: asyncio.Task[Any], what: str) -> None:
        CrawlState.fail_if_raised(cast("CrawlState", self), task, what)

    def offer_all(self, offers: Sequence[Offer]) -> None:
        if self.is_full:
            raise OutputError(f"{len(offers)} rows cannot be written: no space.")

    def end(self, reason: str) -> None:
        self.ended = reason

    def wake(self) -> None:
        """Do nothing: there is no scheduler."""

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
    member._run, member._kept, member._taking = cast("Run", run), list(batches), set()
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


def test_a_batch_that_the_disk_does_not_take_ends_the_crawl() -> None:
    """Its sender would wait for ever for the word that it has arrived."""

    async def bring(run: StandInRun) -> PartitionMember:
        member = member_of(run)
        member._bring(OpenedBatch("1-0", ()))
        while member._taking:
            await asyncio.wait(member._taking)
        return member

    run = StandInRun()
    assert (asyncio.run(bring(run))._kept, run.fault) == (["1-0"], None)
    run.is_full = True
    assert asyncio.run(bring(run))._kept == []
    assert "no space" in str(run.fault)


def test_a_process_that_cannot_note_what_was_sent_still_hears_its_parent(tmp_path: Path) -> None:
    """What is not noted is sent once more; one that hears nothing would never end."""
    run, child = StandInRun(), object.__new__(Process)
    child._run, child._under_way, child._is_leaving = cast("Run", run), {}, False
    child._outbox = Outbox(tmp_path, disk=Disk())
    child._outbox.begin_epoch("processes")
    (tmp_path / "outbox.mark").unlink()
    (tmp_path / "outbox.mark" / "in the way").mkdir(parents=True)

    async def hear() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(Arrived((1,)).line() + End("finished").line())
        reader.feed_eof()
        await child._read(reader)

    asyncio.run(hear())
    child._outbox.abandon()
    assert (run.ended, run.fault) == ("finished", None)
