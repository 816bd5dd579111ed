"""Draw docs/screenshots/crawl.svg: what a crawl of made-up hosts shows on a terminal.

PYTHONPATH=tests python tests/terminal_picture.py [FILE]
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from fetch.name_server import A, NameServer, record, reply_to, requests_of
from loopback import RawServer
from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 92, 14
SECONDS = 25
HOSTS = ("coastal-archive", "old-radios", "maps-and-plans", "observatory", "tram-lines", "town-council")
BUSY = "old-radios"
ERASE_DOWN = "\x1b[J"
CURSOR_UP = re.compile(r"\x1b\[\d+A")
FONT_FACE = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def respond(head: bytes) -> bytes:
    """Return a page; of one host, sometimes a 429 with Retry-After."""
    if BUSY.encode() in head and b"page-1" in head:
        return b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n"
    if b"page-7" in head or b"/robots.txt" in head:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    body = b"<p>" + b"word " * 3000
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def loopback_for_all(requested: bytes) -> list[bytes]:
    """Return the reply that every name has the address 127.0.0.1."""
    known = requests_of(A, requested)
    return [reply_to(requested, records=record(A, b"\x7f\0\0\1") if known else b"", count=int(known))]


def last_frame(command: list[str], directory: Path) -> str:
    """Run *command* on a terminal for a while, end it, and return the last screen that it drew."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
    # The picture is one of text.
    environment["NO_COLOR"] = "1"
    child = subprocess.Popen(command, cwd=directory, stdout=end, stderr=end, env=environment)
    os.close(end)
    timer = time.monotonic() + SECONDS
    drawn = b""
    with contextlib.suppress(OSError):
        while time.monotonic() < timer:
            drawn += os.read(terminal, 65_536)
    child.send_signal(signal.SIGKILL)
    child.wait()
    os.close(terminal)
    text = CURSOR_UP.sub("", drawn.decode(errors="replace").replace("\r", ""))
    frames = text.split(ERASE_DOWN)
    return "\n".join([frames[0].splitlines()[0], frames[-2].rstrip("\n")])


def main() -> None:
    """Crawl, and write the picture."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/screenshots/crawl.svg").resolve()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(RawServer(respond, pause=0.05))
        names = stack.enter_context(NameServer(loopback_for_all))
        pages = ((host, number) for number in range(90) for host in HOSTS)
        urls = [f"http://www.{host}.example:{server.port}/page-{number}" for host, number in pages]
        (directory / "seeds.txt").write_text("\n".join(urls))
        settings = {
            "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
            "AMICRAWL_OPERATOR": "archive@library.example",
            "AMICRAWL_DNS_SERVERS": ":".join(map(str, names.server)),
        }
        command = ["amicrawl", "crawl", "seeds.txt", "-o", "archive"]
        options = [part for pair in settings.items() for part in ("-s", "=".join(pair))]
        program = [str(Path(sys.executable).with_name(command[0])), *command[1:], *options]
        shown = last_frame(program, directory)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text("$ " + " ".join(command), style="bold"))
    console.print(Text.from_ansi(shown))
    # A picture that loads fonts from another server would tell it who reads the page.
    out.write_text(FONT_FACE.sub("", console.export_svg(title="amicrawl")))
    print(shown)


if __name__ == "__main__":
    main()
