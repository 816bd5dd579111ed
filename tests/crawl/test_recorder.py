"""The recorder: order of stages and commits, acknowledgement last, and what a failing disk does."""

from __future__ import annotations

import asyncio

import pytest

from amicrawl.capture import Capture
from amicrawl.crawl.recorder import Recorder
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed

Event = tuple[str, str, object]


class Noting:
    """A stage and a keeper that note what they are called with, and fail where they are told to."""

    def __init__(
        self,
        events: list[Event],
        *,
        name: str = "archive",
        fail_at: str = "",
        error: Exception | None = None,
    ) -> None:
        self.name, self.events, self.fail_at, self.error = name, events, fail_at, error

    def _note(self, what: str, detail: object) -> None:
        self.events.append((self.name, what, detail))
        if self.fail_at == what and self.error is not None:
            raise self.error

    def add(self, *items: CaptureItem) -> None:
        for each in items:
            self._note("add", each.capture.url)

    def commit(self) -> None:
        self._note("commit", None)

    def seal(self) -> None:
        self._note("seal", None)


def item(url: str = "http://example.com/") -> CaptureItem:
    return CaptureItem(
        capture=Capture(url=url, started_ms=1_767_225_600_000, duration_ms=1), seed=Seed(url)
    )


def recorder_with(keeper: Noting, *stages: Noting) -> Recorder:
    recorder = Recorder()
    recorder.keep_in(keeper)
    for stage in stages or (keeper,):
        recorder.attach(stage)
    return recorder


def test_stages_add_in_their_order_before_the_commit() -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events), Noting(events, name="warc"), Noting(events, name="rows"))

    async def record() -> None:
        await recorder.record(item())
        await recorder.seal()

    asyncio.run(record())
    assert events[:3] == [
        ("warc", "add", "http://example.com/"),
        ("rows", "add", "http://example.com/"),
        ("archive", "commit", None),
    ]
    assert events[-1] == ("archive", "seal", None)


def test_record_returns_only_after_the_commit() -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events))

    async def record() -> list[str]:
        await recorder.record(item())
        seen = [what for _, what, _ in events]
        await recorder.seal()
        return seen

    assert asyncio.run(record()) == ["add", "commit"]


def test_captures_that_wait_together_are_committed_together() -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events))

    async def record() -> None:
        await asyncio.gather(*(recorder.record(item(f"http://example.com/{n}")) for n in range(50)))
        await recorder.seal()

    asyncio.run(record())
    added = [detail for _, what, detail in events if what == "add"]
    assert added == [f"http://example.com/{n}" for n in range(50)]
    assert sum(what == "commit" for _, what, _ in events) < 50


def test_a_lull_is_used_for_one_more_commit_and_no_more() -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events))

    def commits() -> int:
        return sum(what == "commit" for _, what, _ in events)

    async def record() -> int:
        await recorder.record(item())
        async with asyncio.timeout(60):
            while commits() < 2:  # noqa: ASYNC110 - what is waited for happens in a thread
                await asyncio.sleep(0.02)
        await asyncio.sleep(1.5)
        counted = commits()
        await recorder.seal()
        return counted

    assert asyncio.run(record()) == 2


def test_sealing_twice_seals_once() -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events))

    async def seal() -> None:
        await asyncio.gather(recorder.seal(), recorder.seal())
        await recorder.seal()

    asyncio.run(seal())
    assert [what for _, what, _ in events].count("seal") == 1


def test_sealing_without_a_loop_that_turns_writes_what_was_queued() -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events))

    async def leave_one_waiting() -> None:
        await recorder.record(item("http://example.com/first"))
        waiting = asyncio.ensure_future(recorder.record(item("http://example.com/second")))
        await asyncio.sleep(0)
        recorder.seal_now()
        waiting.cancel()

    asyncio.run(leave_one_waiting())
    assert [what for _, what, _ in events][-1] == "seal"
    assert ("archive", "add", "http://example.com/second") in events


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), OutputError),
        (ImportError("libparquet.so: failed to map segment from shared object"), OutputError),
        (RuntimeError("can't start new thread"), OutputError),
        (RuntimeError("a slip of ours"), AmicrawlError),
        (OutputError("ami-00000.warc.gz: disk full"), OutputError),
        (OSError(28, "No space left on device"), OutputError),
        (ValueError("a slip of ours"), AmicrawlError),
    ],
)
def test_a_failing_archive_fails_this_and_every_later_record(
    error: Exception, expected: type[AmicrawlError]
) -> None:
    events: list[Event] = []
    recorder = recorder_with(Noting(events, fail_at="commit", error=error))

    async def record() -> None:
        for _ in range(2):
            with pytest.raises(expected):
                await recorder.record(item())
        with pytest.raises(expected):
            await recorder.seal()

    asyncio.run(record())
    assert isinstance(recorder.fault, expected)
    assert [what for _, what, _ in events] == ["add", "commit"], "nothing is written after the failure"
