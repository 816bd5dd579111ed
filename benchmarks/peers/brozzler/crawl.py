"""Have brozzler open the pages of a site in Chromium, through warcprox: a process each.

    python crawl.py URL PAGES CHROMIUM DIRECTORY

`brozzle-page` is what works without a RethinkDB; two at once would use the same Chromium. Its Chromium
gets two further arguments by a script: root has no sandbox, and loopback addresses go through the proxy
as others do.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = Path(sys.executable).parent


def main(url: str, pages: int, chromium: str, directory: Path) -> None:
    """Archive the *pages* pages of the site at *url* into *directory*."""
    directory.mkdir()
    browser = directory / "chromium"
    browser.write_text(
        f"#!/bin/sh\nexec {chromium} --no-sandbox '--proxy-bypass-list=<-loopback>' \"$@\"\n"
    )
    browser.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [PROGRAMS / "warcprox", "-b", "127.0.0.1", "-p", str(port), "-z", "-d", directory]
    line += ["-c", directory / "ca.pem", "--certs-dir", directory / "certs"]
    line += ["--stats-db-file", "/dev/null", "--dedup-db-file", directory / "dedup.db"]
    proxy = subprocess.Popen(line, cwd=directory)
    try:
        _wait_for(port)
        for number in range(pages):
            line = [PROGRAMS / "brozzle-page", "-e", browser, "--proxy", f"127.0.0.1:{port}"]
            line += ["--skip-youtube-dl", f"{url}{number or ''}"]
            subprocess.run(line, cwd=directory, check=True)
    finally:
        proxy.terminate()
        proxy.wait()


def _wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    raise TimeoutError(port)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
