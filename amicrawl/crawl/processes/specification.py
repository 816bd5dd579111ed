"""What a crawl in several processes is: the order of the parent, and what each child is given.

Where another process may be begun in the place of a child, on another machine, this one must not outlive
its parent or what that has said, whatever it is doing: opening a large frontier, closing one, waiting
for a bucket. So it has an `Allowance`: a thread that listens to a pipe, and ends the process as a kill
from outside would.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from amicrawl.clock import steady_clock
from amicrawl.errors import AmicrawlError
from amicrawl.listing import PROCESSES

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.config import CrawlConfig

SPECIFICATION = "AMICRAWL_PROCESS"
"""The environment variable in which the parent says which process this is."""
REPLACED = (
    *("run_id", "warc_prefix", "bandwidth", "inflight_max", "inflight_start", "inflight_min"),
    *("stop_pages", "stop_bytes", "stop_time", "stop_errors", "stop_free"),
)
"""The settings that a child is given in the place of those of the command, besides the directory."""
BY_PARENT = "processes"
"""The reason for a pause of all processes."""


@dataclass(frozen=True)
class Order:
    """What the parent is to do."""

    arguments: list[str]
    """The words of the command line behind `crawl`."""
    directory: Path
    processes: int
    prefix: str
    config: CrawlConfig
    """What the command says, of which each child is given other `REPLACED` settings."""
    file: str = ""
    """The seed list, where there is one."""
    format: str | None = None
    """Its format, where it was given."""
    fresh: bool = False
    start: str = ""
    """What is printed first: what is crawled, how politely, into what."""

    @property
    def replaced(self) -> dict[str, object]:
        """What the command says of the settings in `REPLACED`, as `crawl.json` has them."""
        return self.config.model_dump(mode="json", include=set(REPLACED))


@dataclass(frozen=True)
class Specification:
    """Which process of a crawl this is."""

    number: int
    processes: int
    out: str
    """The directory of this process."""
    prefix: str
    """What names of its WARC files begin with."""
    socket: int = -1
    """The descriptor of the socket to the parent, once there is one."""
    file: str = ""
    """The seed list, where it is another than the arguments say."""
    deals: bool = False
    """Whether process 0 reads the seed list, and gives the others their part of it."""
    salt: int = 0
    """By which rule hosts are dealt to the processes."""
    settles: bool = False
    """Whether nothing is fetched: what a killed crawl left is repaired and sealed."""
    names_hosts: bool = False
    """Whether the parent shows busy hosts, so that their names and waits are among the facts."""
    pipe: int = -1
    """The descriptor from which an `Allowance` is read; -1 for a process that needs none.

    With it, the others are on other machines: limits are not divided, and all seeds come in batches.
    """
    until: float = 0.0
    """Until when it may crawl, to begin with."""

    @property
    def is_alone(self) -> bool:
        """Whether the others are on other machines."""
        return self.pipe >= 0

    def environment(self) -> dict[str, str]:
        """Return what has to be in the environment of the child."""
        return {SPECIFICATION: json.dumps(asdict(self))}


def is_child() -> bool:
    """Tell whether this process is one of several of a crawl."""
    return bool(os.environ.get(SPECIFICATION))


def crawl_directory(directory: Path) -> Path:
    """Return the directory of the whole crawl of which this process has *directory*, often the same."""
    is_part = is_child() and directory.parent.name == PROCESSES
    return directory.parent.parent if is_part else directory


def specification() -> Specification:
    """Return which process of a crawl this is; raises AmicrawlError in one that is not a child."""
    try:
        return Specification(**json.loads(os.environ.get(SPECIFICATION, "")))
    except (ValueError, TypeError) as error:
        raise AmicrawlError(f"{SPECIFICATION} cannot be read. It is for amicrawl's own use.") from error


_MOMENT = struct.Struct("d")
_LOOK_AGAIN = 0.5


class Allowance:
    """Listens to the descriptor *pipe*, and ends this process once it may not go on."""

    def __init__(self, pipe: int, until: float) -> None:
        """*until* is the moment, by `steady_clock`, until which it may without a further word."""
        self._pipe = pipe
        self._until = until
        threading.Thread(target=self._listen, name="amicrawl-allowance", daemon=True).start()

    def is_good(self) -> bool:
        """Tell whether this process may crawl now."""
        return steady_clock() < self._until

    def _listen(self) -> None:
        while True:
            # Not for as long as it is good: what waits does not count the sleep of the machine. And what
            # was said while this process began is heard before it is judged.
            if not select.select([self._pipe], [], [], _LOOK_AGAIN if self.is_good() else 0)[0]:
                if self.is_good():
                    continue
                break
            said = os.read(self._pipe, 64 * _MOMENT.size)
            if not said:
                break
            (self._until,) = _MOMENT.unpack(said[-_MOMENT.size :])
        os.kill(os.getpid(), signal.SIGKILL)


def allow(pipe: int, until: float) -> None:
    """Say over *pipe* that its reader may crawl until that moment. Raises OSError where it is gone."""
    os.write(pipe, _MOMENT.pack(until))
