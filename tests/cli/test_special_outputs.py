"""Outputs that are no regular files: devices, FIFOs and symbolic links stay what they are."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from index.archive_files import gzip_member, http, warc
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import ExitCode, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable

LINE = b'org,a)/ 20240101000000 {"url": "http://a.org/", "status": "200", "filename": "x"}\n'

COMMANDS: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "index --merge": lambda at, out: ["index", at / "x.warc.gz", "--merge", out],
    "index -c": lambda at, out: ["index", at / "x.warc.gz", "-c", out],
    "summary --html": lambda at, out: ["summary", at / "x.cdxj", "--html", out],
    "query -o": lambda at, out: [
        "query",
        at / "table",
        "count_by_partition",
        "-o",
        out,
        "--format",
        "csv",
    ],
}


@pytest.fixture
def at(tmp_path: Path) -> Path:
    (tmp_path / "x.warc.gz").write_bytes(gzip_member(warc("response", block=http())))
    (tmp_path / "x.cdxj").write_bytes(LINE)
    run("table", tmp_path / "x.cdxj", "-o", tmp_path / "table")
    return tmp_path


def run(*arguments: str | Path) -> None:
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def expected(at: Path, command: str) -> bytes:
    """Return what *command* writes to a regular file."""
    out = at / "regular"
    run(*COMMANDS[command](at, out))
    return out.read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_fifo_is_written_to(at: Path, command: str) -> None:
    fifo = at / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    run(*COMMANDS[command](at, fifo))
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    reader.join(60)
    assert len(read[0]) == len(expected(at, command)) > 0
    assert not list(at.glob("*.open"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_device_stays_a_device(at: Path, command: str) -> None:
    """The device is made for the test, with the numbers of the one that takes everything."""
    device = at / "device"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_bytes(b"x")
    except PermissionError:
        pytest.skip("devices cannot be made here")
    run(*COMMANDS[command](at, device))
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert device.lstat().st_rdev == os.makedev(1, 3)
    assert sorted(path.name for path in at.glob("device*")) in (["device"], ["device", "device.idx"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("target_exists", [True, False])
def test_a_symbolic_link_is_followed(at: Path, command: str, target_exists: bool) -> None:
    (at / "elsewhere").mkdir()
    target, link = at / "elsewhere" / "target", at / "link"
    if target_exists:
        target.write_bytes(b"before")
    link.symlink_to(Path("elsewhere", "target"))
    run(*COMMANDS[command](at, link))
    assert link.readlink() == Path("elsewhere", "target")
    assert len(target.read_bytes()) == len(expected(at, command)) > 0
    assert not target.is_symlink()
    assert list(at.rglob("*.open")) == []


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OutputError, match="cannot be created"):
        OutputFile.replacing(tmp_path / "a", disk=Disk())
    assert (tmp_path / "a").is_symlink()


def test_sockets_and_directories_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "socket", directory):
            with pytest.raises(OutputError, match=r"is a (socket|directory)"):
                OutputFile.replacing(path, disk=Disk())
    assert stat.S_ISSOCK((tmp_path / "socket").lstat().st_mode)
    assert directory.is_dir()


def test_what_is_called_like_an_unfinished_output_is_removed_only_as_a_file(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "x.open")
    with pytest.raises(OutputError, match="File exists"):
        OutputFile.replacing(tmp_path / "x", disk=Disk())
    assert stat.S_ISFIFO((tmp_path / "x.open").lstat().st_mode)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["url", "http://a.example/"]], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_said(words: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "amicrawl", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == ExitCode.OUTPUT
    assert done.stderr.startswith(
        "amicrawl: Standard output cannot be written: No space left on device."
    )
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_keep_no_command_from_its_end(at: Path, closed: str) -> None:
    """As a service that detaches itself leaves them; in a process that has loaded nothing yet."""
    line = f'exec "{sys.executable}" -m amicrawl index x.warc.gz -o made {closed}'
    done = subprocess.run(["bash", "-c", line], cwd=at, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (ExitCode.DONE, b"")
    assert b"Traceback" not in done.stderr
    assert (at / "made" / "x.warc.cdxj").read_bytes() == expected(at, "index --merge")
