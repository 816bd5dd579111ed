"""Steering: what the control files of a crawl say, done to its `Run`. Reads files, knows no event loop.

What cannot be followed is said in the log once, and what was in force stays so.
"""

from __future__ import annotations

import logging
import os
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any

from amicrawl.crawl.in_force import Source
from amicrawl.crawl.policy import add_patterns
from amicrawl.crawl.state import STOP_FILE
from amicrawl.crawl.watching.control_files import DIRECTORY, ControlFile, count_in, seconds_in
from amicrawl.crawl.watching.log_lines import visible
from amicrawl.errors import AmicrawlError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.crawl.in_force import InForce
    from amicrawl.crawl.run import Run
    from amicrawl.discovery import IgnoreSet
    from amicrawl.disk import Disk

logger = logging.getLogger(__name__)

BY_FILE = "file"
"""The reason for a pause by file."""
STATUS = "status.json"
"""The file in that directory which the crawl itself writes."""
_SOURCE = "control/ignores"
_MOST_PER_HOST = 1000
_MOST_PATTERNS = 1000
_MOST_NAMES = 1000


class Steering:
    """Applies the control files of one crawl to its `Run`; knows no event loop."""

    def __init__(self, run: Run, *, disk: Disk) -> None:
        config = run.config
        self._run = run
        self._disk = disk
        self.directory = config.directory / DIRECTORY
        self._layer = run.in_force.layers[Source.FILES]
        self._values: dict[str, Callable[[ControlFile], None]] = {
            "delay": self._take_delay,
            "concurrency": self._take_concurrency,
            "per_host": self._take_per_host,
            "ignores": self._take_ignores,
        }
        names = [*self._values, "pause", "stop"]
        self._files = {name: ControlFile(self.directory / name) for name in names}
        self._told_of = {STATUS}
        """Names that are not those of control files and need no warning, or have had theirs."""

    def look(self) -> None:
        """Look at every file and follow those that have changed."""
        for name, follow in self._values.items():
            file = self._files[name]
            if file.has_changed():
                try:
                    follow(file)
                except AmicrawlError as fault:
                    logger.warning("%s What was in force stays so.", fault)
        pause = self._files["pause"]
        if pause.has_changed():
            self._pause(there=pause.is_there)
        self._say_strangers()

    def _say_strangers(self) -> None:
        """Warn of a file by another name, once: it has no effect."""
        try:
            names = {path.name for path in islice(self.directory.iterdir(), _MOST_NAMES)}
        except OSError:
            return
        for name in sorted(names - self._files.keys() - self._told_of):
            self._told_of.add(name)
            # What editors and copying leave for a moment.
            if name.startswith(".") or name.endswith(("~", ".open", ".swp", ".tmp")):
                continue
            meant = get_close_matches(name, self._files, n=1, cutoff=0.75)
            logger.warning(
                "%s is not a control file and has no effect. %s",
                visible(str(self.directory / name)),
                f"Did you mean {meant[0]}?" if meant else f"There are {', '.join(sorted(self._files))}.",
            )

    def look_for_stop(self) -> None:
        """End the crawl if the file `stop` is there, and take it away, for the next crawl to go on."""
        stop = self._files["stop"]
        stop.has_changed()
        if not stop.is_there or self._run.stopping:
            return
        try:
            self._disk.remove(stop.path)
        except OSError as error:
            logger.warning(
                "%s cannot be removed (%s): do that before you go on", stop.path, error.strerror
            )
        logger.info("Stopped by control/stop")
        self._run.end(STOP_FILE)

    def status(self) -> dict[str, Any]:
        """Return what is in force, with counts, for `status.json`."""
        run = self._run
        return {
            "state": run.state,
            "paused_by": sorted(run.paused),
            "finish_reason": run.finish_reason or None,
            "pid": os.getpid(),
            "delay": run.in_force.delay,
            "delay_max": run.in_force.delay_max,
            "per_host": run.in_force.per_host,
            "concurrency": run.in_force.concurrency,
            "inflight_limit": run.limit.limit,
            "ignores": run.in_force.ignores,
            "metrics": run.metrics_url or None,
            "waiting": run.waiting,
            "counts": run.tally.as_dict(),
        }

    def _take_delay(self, file: ControlFile) -> None:
        self._layer.delay = seconds_in(file.path, file.lines()) if file.is_there else None
        self._run.follow_in_force()
        logger.info("control/delay: %g s in force", self._run.in_force.delay)

    def _take_per_host(self, file: ControlFile) -> None:
        most = max(_MOST_PER_HOST, self._run.config.per_host)
        self._layer.per_host = count_in(file.path, file.lines(), most=most) if file.is_there else None
        self._run.follow_in_force()
        logger.info("control/per_host: %d in force", self._run.in_force.per_host)

    def _take_concurrency(self, file: ControlFile) -> None:
        # The process has been made ready for so many connections, and no more.
        most = self._run.config.inflight_max
        self._layer.concurrency = count_in(file.path, file.lines(), most=most) if file.is_there else None
        self._run.follow_in_force()
        logger.info("control/concurrency: %d in force", self._run.in_force.concurrency)

    def _take_ignores(self, file: ControlFile) -> None:
        """Have the crawl ignore what *file* says; nothing new of it where one line is not a pattern."""
        following = self._run.following
        if following is None:
            if file.is_there:
                raise InputError(f"{file.path} says nothing to this crawl: it follows no links.")
            return
        ignores = following.selection.ignores
        lines = file.lines() if file.is_there else []
        if len(lines) > _MOST_PATTERNS:
            number = lines[_MOST_PATTERNS][0]
            raise InputError(f"{file.path}, line {number}: more than {_MOST_PATTERNS} patterns.")
        in_force, before, added = self._run.in_force, set(self._layer.ignores), set[str]()
        try:
            for number, pattern in lines:
                if pattern not in before | added:
                    _want(in_force, pattern, ignores, where=f"{file.path}, line {number}")
                    added.add(pattern)
        except InputError:
            in_force.drop(Source.FILES, added, ignores)
            raise
        if added and self._run.has_frontier:
            # Before they keep a URL out: a later crawl without them lets it in.
            add_patterns(self._run.frontier.partition.directory, added, disk=self._disk)
        in_force.drop(Source.FILES, before - {pattern for _, pattern in lines}, ignores)
        logger.info("control/ignores: %d patterns", len(self._layer.ignores))

    def _pause(self, *, there: bool) -> None:
        if there and BY_FILE not in self._run.paused:
            logger.info("Paused by control/pause")
            self._run.pause(BY_FILE)
        elif not there and BY_FILE in self._run.paused:
            logger.info("control/pause is gone")
            self._run.resume(BY_FILE)


def _want(in_force: InForce, pattern: str, ignores: IgnoreSet, *, where: str) -> None:
    try:
        in_force.want(Source.FILES, pattern, ignores, named=_SOURCE)
    except UsageError as fault:
        raise InputError(f"{where}: {fault}") from fault
