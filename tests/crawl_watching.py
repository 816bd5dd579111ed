"""A crawl as a child process that a test looks at and steers while it runs."""

from __future__ import annotations

import contextlib
import gzip
import json
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

import warm_processes
from loopback import PROJECT, command, environment, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loopback import RawServer


class RunningCrawl:
    """A crawl of *urls* pages of *server* into *directory*/out, ten a second unless told else."""

    def __init__(
        self, server: RawServer, directory: Path, *, urls: int, settings: Mapping[str, str],
        is_cut: bool = False,
    ) -> None:  # fmt: skip
        """Have the list packed, and its second half missing, where *is_cut*."""
        self.out = directory / "out"
        self._log = directory / "stderr"
        seeds = write_lines(directory / "seeds.txt", [f"{server.url}/{n}" for n in range(urls)])
        if is_cut:
            packed = gzip.compress(seeds.read_bytes())
            seeds.write_bytes(packed[: len(packed) // 2])
        pace = {"AMICRAWL_DELAY": "0.1", "AMICRAWL_PROGRESS_EVERY": "0.5", "LOG_LEVEL": "INFO"}
        with self._log.open("wb") as log:
            self.process = warm_processes.Popen(
                command(seeds, self.out, settings={**pace, **settings}),
                cwd=PROJECT,
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return self._log.read_text()

    def status(self) -> dict[str, Any]:
        """Return what its status file says; empty while there is none."""
        with contextlib.suppress(FileNotFoundError):
            told: dict[str, Any] = json.loads((self.out / "control" / "status.json").read_text())
            return told
        return {}

    def control(self, name: str, content: str = "") -> None:
        """Write a control file in one step."""
        path = self.out / "control" / name
        new = path.with_suffix(".new")
        new.write_text(content)
        new.replace(path)

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for *condition*, not for ever."""
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain: {self.stderr}"
            assert self.process.poll() is None or condition(), f"ended too soon: {self.stderr}"
            time.sleep(0.02)

    def ended(self) -> int:
        """Wait for its end and return the exit code."""
        return self.process.wait(120)
