"""Buckets by rsync: a real daemon, and a program in the place of ssh that runs the other side here."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import warm_processes
from loopback import environment
from rsync_daemon import PASSWORD, USER, RsyncDaemon
from uploads.test_bucket import contents, crawl, send_all, uploads

from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, OutputError, UsageError
from amicrawl.uploads.bucket import open_bucket
from amicrawl.uploads.upload import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RsyncDaemon]:
    with RsyncDaemon(tmp_path / "far") as served:
        yield served


def command(out: Path, url: str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", "upload", str(out), "--to", url, *options],
        env={**environment(), **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_uploads_to_a_daemon_and_removes_what_it_has_read_back(
    tmp_path: Path, daemon: RsyncDaemon
) -> None:
    out = crawl(tmp_path / "out")
    original = contents(out)
    done = command(out, daemon.url("run"), "--remove", "--frontier")
    assert done.returncode == ExitCode.DONE, done.stderr
    there = contents(daemon.root / "run")
    assert there.pop("uploaded.json")
    assert there == original
    assert not list(out.glob("*.warc.gz"))
    again = command(out, daemon.url("run"))
    assert again.returncode == ExitCode.DONE, again.stderr


def test_an_object_below_a_folder_of_the_name_arrives(daemon: RsyncDaemon) -> None:
    bucket = open_bucket(daemon.url("run"), disk=Disk())
    assert bucket.size("frontier/p.meguri") is None
    for content in (b"one", b"two"):
        bucket.write("frontier/p.meguri", iter([content]), size=3)
        assert bucket.size("frontier/p.meguri") == 3
        assert b"".join(bucket.blocks("frontier/p.meguri")) == content


def test_what_was_spoiled_there_is_seen_and_what_is_of_others_stays(
    tmp_path: Path, daemon: RsyncDaemon
) -> None:
    out = crawl(tmp_path / "out")
    (daemon.root / "run").mkdir()
    strange = daemon.root / "run" / "ami-00000.warc.gz"
    strange.write_bytes(b"of somebody else")
    sending = uploads(out, open_bucket(daemon.url("run"), disk=Disk()), remove=True)
    with pytest.raises(ConflictError):
        send_all(sending)
    assert strange.read_bytes() == b"of somebody else"
    strange.unlink()
    send_all(uploads(out, open_bucket(daemon.url("run"), disk=Disk())))
    content = bytearray(strange.read_bytes())
    content[40] ^= 1
    strange.write_bytes(content)
    with pytest.raises(ConflictError):
        send_all(uploads(out, open_bucket(daemon.url("run"), disk=Disk()), remove=True))
    assert (out / "ami-00000.warc.gz").exists()


def test_a_daemon_that_stops_leaves_the_files_here_and_the_next_upload_goes_on(
    tmp_path: Path, daemon: RsyncDaemon
) -> None:
    out = crawl(tmp_path / "out")
    sending = uploads(out, open_bucket(daemon.url("run"), disk=Disk()), remove=True)
    first, *_ = sending.warc_files()
    sending.upload(first)
    daemon.stop()
    with pytest.raises(OutputError, match="rsync ended with code"):
        send_all(sending)
    assert not (out / first.name).exists()
    assert (out / "captures.parquet").exists()
    with daemon:
        done = command(out, daemon.url("run"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert (daemon.root / "run" / "crawl.json").exists()


def test_the_password_of_a_daemon_comes_from_the_environment_only(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    with RsyncDaemon(tmp_path / "far", needs_password=True) as daemon:
        refused = command(out, daemon.url("run", user=USER))
        done = command(out, daemon.url("run", user=USER), RSYNC_PASSWORD=PASSWORD)
        secret = command(out, daemon.url("run", user=f"{USER}:{PASSWORD}"))
    assert refused.returncode == ExitCode.OUTPUT
    assert "credentials" in refused.stderr
    assert done.returncode == ExitCode.DONE, done.stderr
    assert secret.returncode == ExitCode.USAGE
    assert PASSWORD not in secret.stderr


def test_modules_and_directories_that_are_not_there_are_a_mistake(daemon: RsyncDaemon) -> None:
    for url in (daemon.url("x").replace("archive", "elsewhere"), daemon.url("no/such")):
        with pytest.raises(UsageError, match="Make it, or correct the URL"):
            open_bucket(url, disk=Disk())


def test_a_machine_without_rsync_is_a_sentence(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    refused = command(out, "rsync://127.0.0.1/archive/run", PATH=str(tmp_path))
    assert refused.returncode == ExitCode.USAGE
    assert "needs the program rsync" in refused.stderr


@pytest.mark.parametrize(
    "url",
    [
        "rsync://host",
        "rsync:///module",
        "rsync://-oProxyCommand=x/module",
        "rsync://host/mo dule",
        "rsync://host/module/../x",
        "rsync://host/-e",
        "rsync://host/m?x=1",
        "rsync://host:0/m",
        "rsync://host:99999/m",
        "rsync+ssh://host/$(id)",
        "rsync+ssh://-p/x",
        "rsync+ssh://us er@host/x",
    ],
)
def test_a_url_that_a_shell_or_rsync_could_read_otherwise_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="rsync"):
        open_bucket(url, disk=Disk())


def test_a_directory_is_reached_over_ssh(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    (programs := tmp_path / "programs").mkdir()
    # What ssh does: options, the host, then a command for the shell of the other side.
    (programs / "ssh").write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/arguments\n'
        'while [ "$1" != far.example ]; do shift; done; shift; exec sh -c "$*"\n'
    )
    (programs / "ssh").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "far").mkdir()
    url = f"rsync+ssh://crawler@far.example:2222{tmp_path}/far/run"
    done = command(out, url, PATH=path)
    assert done.returncode == ExitCode.DONE, done.stderr
    there = contents(tmp_path / "far" / "run")
    assert there.pop("uploaded.json")
    assert there == {name: text for name, text in contents(out).items() if name != "uploaded.json"}
    assert "BatchMode=yes" in (tmp_path / "arguments").read_text()
    assert "-p 2222" in (tmp_path / "arguments").read_text()


def test_an_ssh_that_fails_is_not_taken_for_a_place_without_files(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    (programs := tmp_path / "programs").mkdir()
    # What ssh writes, and its exit code, where the program of its `ProxyCommand` is not there.
    (programs / "ssh").write_text(
        '#!/bin/sh\necho "/bin/sh: line 1: /opt/hop: No such file or directory" >&2\nexit 255\n'
    )
    (programs / "ssh").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    failed = command(out, "rsync+ssh://far.example/data/run", PATH=path)
    assert failed.returncode == ExitCode.OUTPUT, failed.stderr
    assert "cannot be reached" in failed.stderr


def test_a_full_directory_for_temporary_files_is_not_taken_for_a_full_bucket(
    tmp_path: Path, daemon: RsyncDaemon
) -> None:
    out = crawl(tmp_path / "out")
    done = subprocess.run(  # not of a warm process: the limit would stay
        [
            "prlimit",
            "--fsize=10",
            sys.executable,
            "-m",
            "amicrawl",
            "upload",
            out,
            "--to",
            daemon.url("run"),
        ],
        env={**environment(), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.OUTPUT, done.stderr
    assert f"no copy can be made in {tmp_path} of this machine" in done.stderr


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_stays(
    daemon: RsyncDaemon, tmp_path: Path
) -> None:
    out, place = crawl(tmp_path / "out"), tmp_path / "tmp"
    place.mkdir()
    left, used, young, other = (
        place / f"amicrawl-{name}" for name in ("rsync-a", "rsync-b", "rsync-c", "x")
    )
    for path in (left, used, young, other):
        path.mkdir()
        (path / "part").write_bytes(b"x")
    for path in (left, used, other):
        os.utime(path, (1, 1))
    holder = os.open(used, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        done = command(out, daemon.url("run"), TMPDIR=str(place))
    finally:
        os.close(holder)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert {path.name for path in place.iterdir()} == {used.name, young.name, other.name}
