"""A real redis-server for tests: on its own port, in its own directory, gone with the test run."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import pytest
import redis
from loopback import free_port

PATIENCE = 60.0
"""How long a server may take to respond, in seconds."""


class RedisServer:
    """One redis-server on loopback; can be killed, frozen, started again, with or without its data."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self.port = free_port()
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The value of `REDIS_URL` for it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> Self:
        """Start it and wait until it responds."""
        command = [
            *(
                "redis-server",
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--dir",
                str(self.directory),
            ),
            *("--save", "", "--appendonly", "no", "--loglevel", "warning", *self._arguments),
        ]
        self._process = subprocess.Popen(  # a command of ours
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with (
                contextlib.suppress(redis.ConnectionError, redis.BusyLoadingError),
                self.client() as client,
            ):
                # Not another one at that port, whose database would be shared with other tests.
                assert client.info("server")["process_id"] == self._process.pid
                return self
            assert self._process.poll() is None, f"redis-server cannot listen on port {self.port}"
            time.sleep(0.02)
        raise AssertionError(f"redis-server on port {self.port} does not respond")

    def client(self) -> redis.Redis:
        """Return a client whose replies are text."""
        return redis.Redis(host="127.0.0.1", port=self.port, decode_responses=True)

    def kill(self) -> None:
        """Kill it, with all that it held."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        """The number of its process, for signals."""
        assert self._process is not None
        return self._process.pid


def started_server(*arguments: str) -> RedisServer:
    """Return a running server; skips the test where redis-server is not installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed; make test installs it where it may")
    return RedisServer(Path(tempfile.mkdtemp(prefix="redis-")), *arguments).start()


def end(server: RedisServer) -> None:
    """Kill *server* and remove its directory."""
    server.kill()
    shutil.rmtree(server.directory, ignore_errors=True)
