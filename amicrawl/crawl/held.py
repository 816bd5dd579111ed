"""Archives that are open in this process: several crawls may write into one.

A script that starts two spiders of a project gives both the same directory. The first opens its archive,
the others join it, and the last one seals it. Another process finds the directory taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.crawl.output import Output
    from amicrawl.crawl.recorder import Recorder

_HELD: dict[Path, HeldArchive] = {}


class HeldArchive:
    """The archive in one directory, with the crawls that write into it."""

    def __init__(self, directory: Path, output: Output, recorder: Recorder) -> None:
        self.output = output
        self.recorder = recorder
        self._directory = directory
        self._writing: set[int] = set()
        self._unfinished: set[int] = set()
        self._counts: dict[str, int] = {}

    @classmethod
    def join(
        cls, directory: Path, crawl: object, *, recorder: Recorder, opened: Callable[[], Output]
    ) -> HeldArchive:
        """Return the archive in *directory* for one more *crawl*; the first one has it *opened*."""
        held = _HELD.get(directory.absolute())
        if held is None:
            held = _HELD[directory.absolute()] = cls(directory.absolute(), opened(), recorder)
        held._writing.add(id(crawl))
        held._unfinished.add(id(crawl))
        return held

    def leave(self, crawl: object) -> bool:
        """Note that *crawl* writes nothing more; return whether none does, so that it may be sealed."""
        self._writing.discard(id(crawl))
        if not self._writing and _HELD.get(self._directory) is self:
            del _HELD[self._directory]
        return not self._writing

    def finish(self, crawl: object, reason: str, counts: dict[str, int]) -> None:
        """Add up the *counts* of *crawl*; write down how it ended if it was the last."""
        self.leave(crawl)
        self._unfinished.discard(id(crawl))
        for name, count in counts.items():
            self._counts[name] = self._counts.get(name, 0) + count
        if not self._unfinished:
            # What waits in Scrapy's queues is not counted: one that was not stopped leaves nothing.
            self.output.finish(reason, self._counts, unfinished=reason != "finished")
