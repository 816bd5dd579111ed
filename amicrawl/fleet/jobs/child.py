"""Child: one crawl as a process, and what it prints.

It runs in its own process group, so that a signal for the pipeline does not reach it and all that it
has started can be killed with it. Its output is kept in a file, and passed on line by line, for the log
of the job: whole lines only, so many a second and no more. Both are bounded; a line that is dropped from
the log is still in the file.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections import deque
from typing import IO, TYPE_CHECKING

from amicrawl.interpreter import signals_for_later

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from amicrawl.disk import Disk

logger = logging.getLogger(__name__)

LINES_A_SECOND = 100
"""Lines of output a second that go into the log of the job."""
CONSOLE_SIZE = 16 * 1024**2
"""Bytes of `console.log`; then it becomes `console.log.1`, and a new one begins."""
LONGEST_LINE = 8192
"""Bytes of a line; a longer one is cut in two."""

_BLOCK = 65536
_LAST_WAIT = 2.0
_REMEMBERED = 5


class Child:
    """A running crawl."""

    def __init__(
        self,
        line: Sequence[str],
        *,
        environment: Mapping[str, str],
        console: Path,
        tell: Callable[[str], object],
        disk: Disk,
    ) -> None:
        """Start the command *line*; *tell* gets what it prints. Raises OSError where that fails."""
        self._console = console
        self._told = tell
        self._disk = disk
        self.last_lines: deque[str] = deque(maxlen=_REMEMBERED)
        """The end of what it printed."""
        with signals_for_later():
            self._process = subprocess.Popen(  # noqa: S603  # a list, and no shell
                list(line),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        assert self._process.stdout is not None
        self._pump = threading.Thread(
            target=self._read, args=(self._process.stdout,), name=f"console-{self.pid}", daemon=True
        )
        self._pump.start()

    @property
    def pid(self) -> int:
        """Its process, which is that of its group."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return how it ended: the exit code, minus the signal, or None while it runs."""
        code = self._process.poll()
        if code is not None:
            # Processes that it has started must not continue to write, nor keep its output open.
            self._kill_group()
            self._pump.join(_LAST_WAIT)
        return code

    def interrupt(self) -> None:
        """Have it drain; the second time, seal at once."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it with all that it has started."""
        self._kill_group()
        self._process.wait()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _read(self, stream: IO[bytes]) -> None:
        rest, file = b"", self._opened()
        counted = _Second()
        with contextlib.suppress(ValueError), stream:
            while block := os.read(stream.fileno(), _BLOCK):
                file = self._kept(file, block)
                lines = (rest + block).replace(b"\r", b"\n").split(b"\n")
                rest = lines.pop()
                if len(rest) > LONGEST_LINE:
                    lines.append(rest)
                    rest = b""
                for line in lines:
                    self._tell(line, counted)
        self._tell(rest, counted)
        counted.close(self._told)
        if file is not None:
            file.close()

    def _tell(self, line: bytes, counted: _Second) -> None:
        text = line[:LONGEST_LINE].decode("utf-8", "replace").rstrip()
        for said in messages(text):
            # JSON may spell half a surrogate pair, which nothing that this is written to can say.
            sentence = said.encode("utf-8", "replace").decode()
            self.last_lines.append(sentence)
            if counted.has_room(self._told):
                self._told(sentence)

    def _opened(self) -> IO[bytes] | None:
        try:
            return self._console.open("ab", buffering=0)
        except OSError as error:
            logger.warning("%s cannot be written: %s", self._console, error)
            return None

    def _kept(self, file: IO[bytes] | None, block: bytes) -> IO[bytes] | None:
        """Write *block* to the console's file; None from the first failure on."""
        if file is None:
            return None
        try:
            file.write(block)
            if file.tell() < CONSOLE_SIZE:
                return file
            file.close()
            self._disk.rename(self._console, self._console.with_name(self._console.name + ".1"))
        except OSError as error:
            logger.warning("%s cannot be written: %s", self._console, error)
            return None
        return self._opened()


def messages(line: str) -> list[str]:
    """Return what *line*, as a crawl prints it, says to people; none for a report of figures.

    Of JSON lines that is the message with its level, or the notes at the end; any other line is itself.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return [line] if line else []
    if not isinstance(found, dict):
        return [line]
    if "message" in found:
        level = f"{found['level']}: " if "level" in found else ""
        return f"{level}{found['message']}".splitlines()
    if "event" not in found:
        return [line]
    notes = found.get("notes")
    return [str(note) for note in notes] if isinstance(notes, list) else []


class _Second:
    """Counts the lines of each second, and says how many were too many."""

    def __init__(self) -> None:
        self._second = -1
        self._lines = 0
        self._dropped = 0

    def has_room(self, tell: Callable[[str], object]) -> bool:
        """Return whether one more line may be passed on in this second."""
        second = int(time.monotonic())
        if second != self._second:
            self.close(tell)
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= LINES_A_SECOND:
            return True
        self._dropped += 1
        return False

    def close(self, tell: Callable[[str], object]) -> None:
        """Say what was dropped."""
        if self._dropped:
            tell(f"{self._dropped} more lines are in console.log only.")
            self._dropped = 0
