"""A real daemon of rsync on the loopback, with one module."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

from loopback import free_port

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "archive"
USER, PASSWORD = "crawler", "hush"


class RsyncDaemon:
    """Serves the directory `root` below *directory* for as long as the context lasts."""

    def __init__(self, directory: Path, *, needs_password: bool = False) -> None:
        self.root = directory / "served"
        self.root.mkdir(parents=True)
        self.port = free_port()
        self._configuration = directory / "rsyncd.conf"
        # A daemon that is started by root would serve as `nobody`.
        who = "uid = 0\ngid = 0\n" if os.geteuid() == 0 else ""
        if needs_password:
            secrets = directory / "secrets"
            secrets.write_text(f"{USER}:{PASSWORD}\n")
            secrets.chmod(0o600)
            who += f"auth users = {USER}\nsecrets file = {secrets}\n"
        self._configuration.write_text(
            f"use chroot = no\n[{MODULE}]\npath = {self.root}\nread only = no\n{who}"
        )

    def __enter__(self) -> Self:
        program = shutil.which("rsync")
        assert program, "the tests need rsync (apt install rsync)"
        where = ["--address=127.0.0.1", f"--port={self.port}", f"--config={self._configuration}"]
        self._process = subprocess.Popen(
            [program, "--daemon", "--no-detach", *where], stdin=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while True:
            assert self._process.poll() is None, "the daemon does not start"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
            except OSError:
                assert time.monotonic() < deadline, "the daemon does not listen"
                time.sleep(0.02)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it; what it has been given stays."""
        self._process.kill()
        self._process.wait()

    def url(self, path: str, *, user: str = "") -> str:
        """Return the URL of *path* in its module."""
        return f"rsync://{user and user + '@'}127.0.0.1:{self.port}/{MODULE}/{path}"
