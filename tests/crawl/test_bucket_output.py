"""A crawl whose output is a bucket: files go up while it runs, and nothing is lost where they cannot."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import rows
from loopback import PROJECT, QUICK, RawServer, command, environment, page, write_lines
from object_store import CREDENTIALS, ObjectStore

from amicrawl.crawl.uploading import LAST_TRIES, Uploader
from amicrawl.errors import AmicrawlError, ExitCode, OutputError
from amicrawl.listing import SealedFile
from amicrawl.uploads.upload import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BODY = os.urandom(3000)


def respond(_: bytes) -> bytes:
    return page(BODY)


def start(
    seeds: Path, out: Path, bucket: str, *, settings: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    wanted = {"AMICRAWL_BUCKET": bucket, "AMICRAWL_WARC_SIZE": "40000", **(settings or {})}
    return warm_processes.Popen(
        command(seeds, out, settings=wanted),
        cwd=PROJECT,
        env={**environment(), **CREDENTIALS},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def crawl(
    seeds: Path, out: Path, bucket: str, *, settings: dict[str, str] | None = None
) -> tuple[int, str]:
    child = start(seeds, out, bucket, settings=settings)
    _, stderr = child.communicate(timeout=100)
    return child.returncode, stderr


def seeds_of(directory: Path, server: RawServer, numbers: Sequence[int]) -> Path:
    return write_lines(directory / "seeds.txt", [f"{server.url}/{number}" for number in numbers])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def captured(index: Path, warcs: Path) -> set[str]:
    """Return the paths whose rows in *index* point into files that are in *warcs*."""
    paths = set()
    for row in rows(index):
        assert row["warc_offset"] + row["warc_length"] <= (warcs / row["warc_file"]).stat().st_size
        paths.add("/" + row["url"].split("/", 3)[3])
    return paths


REMOVE = {"AMICRAWL_REMOVE_UPLOADED": "1"}


def test_a_crawl_leaves_its_warc_files_in_s3(tmp_path: Path) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    copy.mkdir()
    with ObjectStore() as store, RawServer(respond) as server:
        seeds = seeds_of(tmp_path, server, range(30))
        code, stderr = crawl(seeds, out, store.url("c"), settings=REMOVE)
        assert code == ExitCode.DONE, stderr
        assert "Traceback" not in stderr
        there = store.contents("c")
    assert not list(out.glob("*.warc.gz"))
    for name, block in there.items():
        (copy / name).write_bytes(block)
    assert captured(out, copy) == {f"/{number}" for number in range(30)}
    assert there["captures.parquet"] == (out / "captures.parquet").read_bytes()
    assert there["crawl.json"] == (out / "crawl.json").read_bytes()
    listed = json.loads(there["crawl.json"])["files"]
    assert {entry["name"] for entry in listed} == {
        name for name in there if name not in ("crawl.json", "uploaded.json")
    }
    assert not any(name.startswith("frontier") for name in there)


def test_a_bucket_that_fails_during_the_crawl_loses_nothing_and_the_command_does_the_rest(
    tmp_path: Path,
) -> None:
    out, bucket, away = tmp_path / "out", tmp_path / "bucket", tmp_path / "unmounted"

    def respond_without_a_bucket(head: bytes) -> bytes:
        if bucket.exists():
            bucket.rename(away)
        return respond(head)

    with RawServer(respond_without_a_bucket) as server:
        seeds = seeds_of(tmp_path, server, range(30))
        code, stderr = crawl(seeds, out, bucket.as_uri(), settings={**REMOVE, "AMICRAWL_PER_HOST": "1"})
    assert code == ExitCode.OUTPUT, stderr
    assert "They are all still there" in stderr
    assert captured(out, out) == {f"/{number}" for number in range(30)}
    away.rename(bucket)
    said = re.search(r"To upload them: (amicrawl [^\"\n]*)", stderr)
    assert said is not None
    line = [sys.executable, "-m", "amicrawl", *shlex.split(said[1])[1:]]
    warm_processes.run(line, env=environment(), check=True, timeout=60)
    assert captured(out, bucket) == {f"/{number}" for number in range(30)}
    assert not list(out.glob("*.warc.gz"))


def test_a_bucket_that_cannot_be_used_is_found_before_anything_is_fetched(tmp_path: Path) -> None:
    with RawServer(respond) as server:
        seeds = seeds_of(tmp_path, server, range(3))
        code, stderr = crawl(seeds, tmp_path / "out", f"file://{tmp_path}/not/mounted")
        assert code == ExitCode.USAGE
        assert "cannot be used" in stderr
        assert "Traceback" not in stderr
        assert server.requests == []
    assert not (tmp_path / "out").exists()


def test_a_killed_crawl_that_had_removed_files_goes_on_and_has_them_all(tmp_path: Path) -> None:
    out, bucket = tmp_path / "out", tmp_path / "bucket"
    with RawServer(respond, pause=0.01) as server:
        seeds = seeds_of(tmp_path, server, range(1000))
        child = start(seeds, out, bucket.as_uri(), settings={**REMOVE, "AMICRAWL_PER_HOST": "2"})
        wait_until(lambda: len(list(bucket.glob("*.warc.gz"))) >= 3)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        seeds = seeds_of(tmp_path, server, range(30))
        code, stderr = crawl(
            seeds, out, bucket.as_uri(), settings={**REMOVE, "AMICRAWL_STOP_PAGES": "1", **QUICK}
        )
    assert code in (ExitCode.DONE, ExitCode.LIMIT), stderr
    assert '"lost": 0' in stderr
    assert len(captured(out, bucket)) >= 20
    assert not list(out.glob("*.warc.gz"))


class Sender:
    """Takes files, but for those that it was told to fail at."""

    def __init__(self, *faults: Exception, only: str | tuple[str, ...] = "") -> None:
        """Fail at the first attempts, or at those at the file or files *only*."""
        self._faults = list(faults)
        self._only = (only,) if isinstance(only, str) else only
        self.took: list[str] = []
        self.requested = 0

    def upload(self, file: SealedFile) -> None:
        self.requested += 1
        if self._faults and {"", file.name} & {*self._only}:
            raise self._faults.pop(0)
        self.took.append(file.name)


def file(name: str) -> SealedFile:
    return SealedFile(name, 1, 1, "0" * 64)


def uploader(sender: Sender) -> Uploader:
    return Uploader(sender, stop=threading.Event(), settling=0.0, first_pause=0.01)


def test_a_failure_is_tried_again_while_the_crawl_goes_on() -> None:
    sender = Sender(OutputError("no response"), ValueError("not foreseen"))
    sending = uploader(sender)
    sending.start()
    sending.add(file("a"))
    wait_until(lambda: sender.took == ["a"])
    sending.end([file("crawl.json"), file("b")])
    assert sender.took == ["a", "b", "crawl.json"]
    assert sending.failed == 2
    assert sending.fault(Path("out"), "s3://b/p", remove=False) is None


def test_a_file_that_cannot_be_uploaded_holds_up_no_other_and_is_told_at_the_end() -> None:
    sender = Sender(ConflictError("another a"))
    sending = uploader(sender)
    sending.start()
    sending.end([file("a"), file("b")])
    assert sender.took == ["b"]
    fault = sending.fault(Path("an out"), "s3://b/p?x=1&y=2", remove=True)
    assert fault is not None
    assert "1 files of an out were not uploaded (another a)" in str(fault)
    assert "amicrawl upload 'an out' --to 's3://b/p?x=1&y=2' --remove" in str(fault)


def test_a_file_that_fails_again_and_again_holds_up_no_other() -> None:
    bad = ("bad-1", "bad-2", "bad-3")
    sender = Sender(*[OutputError("an unreadable file")] * 1000, only=bad)
    sending = uploader(sender)
    sending.start()
    for name in (*bad, "a"):
        sending.add(file(name))
    wait_until(lambda: sender.took == ["a"])
    sending.end([file("b"), file("crawl.json")])
    assert sender.took == ["a", "b"]


@pytest.mark.parametrize("error", [ConflictError("another"), OutputError("no response")])
def test_the_account_goes_up_only_when_all_that_it_lists_is_there(error: AmicrawlError) -> None:
    sender = Sender(*[error] * LAST_TRIES, only="captures.parquet")
    sending = uploader(sender)
    sending.start()
    sending.end([file("ami-00000.warc.gz"), file("captures.parquet"), file("crawl.json")])
    assert sender.took == ["ami-00000.warc.gz"]
    fault = sending.fault(Path("out"), "s3://b/p", remove=False)
    assert "2 files of out were not uploaded" in str(fault)
    assert isinstance(fault, type(error))


def test_a_bucket_that_stays_away_is_given_up_at_the_end() -> None:
    sender = Sender(*[OutputError("no response")] * 1000)
    sending = uploader(sender)
    sending.start()
    sending.end([file(str(number)) for number in range(100)])
    # One may be under way before the end has begun.
    assert sender.requested <= 3 * LAST_TRIES + 1
    assert sending.fault(Path("out"), "s3://b/p", remove=False) is not None


def test_a_second_signal_ends_it_at_once() -> None:
    sender = Sender(*[OutputError("no response")] * 1000)
    sending = Uploader(sender, stop=threading.Event(), settling=0.0, first_pause=3600.0)
    sending.start()
    sending.add(file("a"))
    wait_until(lambda: sender.requested == 1)
    sending.stop()
    sending.join(30)
    assert not sending._thread.is_alive()


class SlowSender:
    """Takes a file when it is allowed to."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.took: list[str] = []

    def upload(self, file: SealedFile) -> None:
        self.begun.set()
        assert self.may_end.wait(60)
        self.took.append(file.name)


def test_a_signal_lets_the_file_under_way_arrive_and_begins_no_other() -> None:
    sender = SlowSender()
    sending = Uploader(sender, stop=threading.Event(), settling=0.0)
    sending.start()
    ending = threading.Thread(target=sending.end, args=([file("a"), file("b")],))
    ending.start()
    assert sender.begun.wait(60)
    threading.Timer(0.2, sender.may_end.set).start()
    sending.stop(within=60)
    ending.join(60)
    assert sender.took == ["a"]
    assert sending.fault(Path("out"), "s3://b/p", remove=False) is not None


class Gatekeeper:
    """Passes connections on to a store, and holds back the first that would write a given name."""

    def __init__(self, port: int, name: bytes) -> None:
        self.reached, self.may_pass = threading.Event(), threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._to, self._name = port, name
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, watched: bool) -> None:
        with contextlib.suppress(OSError), source:
            while block := source.recv(65536):
                if watched and block.startswith((b"PUT", b"POST")) and self._name in block[:400]:
                    self.reached.set()
                    self.may_pass.wait(60)
                target.sendall(block)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.may_pass.set()
        self._listening.close()


def test_a_signal_while_a_finished_crawl_uploads_never_makes_it_look_done(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ObjectStore() as store, RawServer(respond) as server:
        slow = Gatekeeper(store.port, b"captures.parquet")
        url = store.url("c").replace(str(store.port), str(slow.port))
        seeds = seeds_of(tmp_path, server, range(5))
        child = start(seeds, out, url, settings=QUICK)
        assert slow.reached.wait(60)
        child.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        slow.may_pass.set()
        _, stderr = child.communicate(timeout=100)
        assert child.returncode == ExitCode.STOPPED, stderr
        assert "crawl.json" not in store.contents("c")
        code, stderr = crawl(seeds, out, url)
        slow.close()
        assert code == ExitCode.DONE, stderr
        there = store.contents("c")
    assert there["captures.parquet"] == (out / "captures.parquet").read_bytes()
    assert json.loads(there["crawl.json"])["state"] == "finished"
