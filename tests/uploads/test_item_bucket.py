"""Items of the Internet Archive: a server that shows late what it takes, refuses, moves and spoils."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import ssl
import sys
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import trustme
import warm_processes
from item_store import KEYS, ItemStore
from loopback import RawServer, environment, page
from uploads.test_bucket import crawl, send_all, uploads

from amicrawl.errors import ExitCode, OutputError, UsageError
from amicrawl.uploads.bucket import check_bucket_url
from amicrawl.uploads.internet_archive import ItemBucket, identifier_of
from amicrawl.uploads.item_client import BusyError, ItemClient
from amicrawl.uploads.upload import ConflictError, NotShownError, StoppedError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

SECRETS = list(KEYS.values())


@pytest.fixture
def store() -> Iterator[ItemStore]:
    with ItemStore() as served:
        yield served


def item(store: ItemStore, name: str = "crawls/run", **more: str) -> ItemBucket:
    url = store.url(name)
    return ItemBucket(url, urlsplit(url), ItemClient(environment={**store.environment, **more}))


def command(out: Path, url: str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", "upload", str(out), "--to", url, *options],
        env={**environment(), **more},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def shown(store: ItemStore, identifier: str = "crawls-run") -> dict[str, bytes]:
    start = f"{identifier}/"
    return {k.removeprefix(start): v for k, v in store.objects().items() if k.startswith(start)}


def files_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name != "uploaded.json"}


def test_the_command_fills_an_item_and_removes_what_its_metadata_shows(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    original = files_of(out)
    with ItemStore(lag=0.1) as store:
        done = command(out, store.url("crawls/run"), "--remove", **store.environment)
        assert done.returncode == ExitCode.DONE, done.stderr
        there = shown(store)
        listed = json.loads(there.pop("uploaded.json"))
        assert there == original
        assert {file["name"] for file in listed["files"]} == set(original)
        assert not list(out.glob("*.warc.gz"))
        sent = store.sent.copy()
        again = command(out, store.url("crawls/run"), **store.environment)
        assert again.returncode == ExitCode.DONE, again.stderr
        assert {name for name in store.sent if store.sent[name] != sent[name]} <= {
            "crawls-run/uploaded.json"
        }
    assert not any(secret in done.stderr + done.stdout for secret in SECRETS)


def test_an_item_is_described_and_its_files_are_not_derived_from(
    tmp_path: Path, store: ItemStore
) -> None:
    bucket = ItemBucket(
        "ia://x",
        urlsplit(
            "ia://crawls/run?title=Caf%C3%A9+1&collection=a&subject=b&subject=c&size_hint=99999&date=1999"
        ),
        ItemClient(environment=store.environment),
    )
    content = b"of the file"
    bucket.write("a.warc.gz", iter([content]), size=len(content), md5=hashlib.md5(content).hexdigest())
    head = {k.lower(): v for k, v in store.heads["crawls-run/a.warc.gz"].items()}
    described = [(k[17:], v) for k, v in head.items() if k.startswith("x-archive-meta")]
    assert ("title", "uri(Caf%C3%A9%201)") in described
    assert ("mediatype", "web") in described
    assert [value for name, value in described if name == "subject"] == ["b", "c"]
    assert ("date", "1999") in described
    assert {"scanner", "collection"} <= {name for name, _ in described}
    assert head["x-archive-queue-derive"] == "0"
    assert head["x-archive-auto-make-bucket"] == "1"
    assert head["x-archive-size-hint"] == "99999"
    assert bucket.size("a.warc.gz") == len(content)
    assert b"".join(bucket.blocks("a.warc.gz")) == content
    assert bucket.size("none") is None
    assert item(store, "crawls/of-which-there-is-none").size("a") is None


def test_a_busy_archive_is_tried_again_after_growing_pauses_and_not_for_ever(
    tmp_path: Path, store: ItemStore
) -> None:
    out, pauses = crawl(tmp_path / "out"), list[float]()
    sending = uploads(out, item(store), pause=pauses.append)
    store.busy = 3
    sending.upload(sending.warc_files()[0])
    assert sum(pauses) == 5 + 10 + 20 + 0.25
    store.busy = 10**6
    with pytest.raises(OutputError, match=r"503.*SlowDown") as caught:
        sending.upload(sending.warc_files()[1])
    assert 600 <= sum(pauses) <= 700
    assert not any(secret in str(caught.value) for secret in SECRETS)


def test_a_file_that_was_taken_and_is_not_shown_does_not_count_and_is_not_sent_again(
    tmp_path: Path,
) -> None:
    out, pauses = crawl(tmp_path / "out"), list[float]()
    with ItemStore(lag=1e9) as store:
        sending = uploads(out, item(store), pause=pauses.append, remove=True)
        first = sending.warc_files()[0]
        for _ in range(2):
            with pytest.raises(NotShownError, match="does not show it yet"):
                sending.upload(first)
        assert sum(pauses) > 900
        assert store.sent == {f"crawls-run/{first.name}": 1}
        assert first.name not in sending.uploaded
        assert (out / first.name).exists()
        store.lag = 0
        send_all(sending)
        assert store.sent[f"crawls-run/{first.name}"] == 1
        assert shown(store).keys() == {*files_of(out), "uploaded.json", "ami-00000.warc.gz"} | {
            file.name for file in sending.uploaded.values()
        }


def test_another_upload_finds_what_arrived_after_the_first_had_given_up(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    with ItemStore(lag=1e9) as store:
        with pytest.raises(NotShownError):
            send_all(uploads(out, item(store), pause=lambda _: None))
        store.lag = 0
        send_all(uploads(out, item(store), pause=lambda _: None))
        assert set(store.sent.values()) == {1} or store.sent["crawls-run/uploaded.json"] == 2
        assert max(n for name, n in store.sent.items() if "uploaded" not in name) == 1


def test_a_file_that_is_kept_otherwise_than_it_was_sent_is_not_uploaded(
    tmp_path: Path, store: ItemStore
) -> None:
    out = crawl(tmp_path / "out")
    store.spoils.add("ami-00000.warc.gz")
    sending = uploads(out, item(store), pause=lambda _: None, remove=True)
    with pytest.raises(NotShownError):
        sending.upload(sending.warc_files()[0])
    assert (out / "ami-00000.warc.gz").exists()
    store.spoils.clear()
    send_all(sending)
    assert store.sent["crawls-run/ami-00000.warc.gz"] == 2
    assert not (out / "ami-00000.warc.gz").exists()


def test_a_wrong_md5_is_refused_where_it_arrives(store: ItemStore) -> None:
    with pytest.raises(OSError, match=r"400.*BadDigest"):
        item(store).write("a.warc.gz", iter([b"one"]), size=3, md5="0" * 32)
    assert not store.objects()


def test_what_is_of_others_in_an_item_is_never_written_over(tmp_path: Path, store: ItemStore) -> None:
    out = crawl(tmp_path / "out")
    store.write("crawls-run/ami-00000.warc.gz", b"of somebody else")
    with pytest.raises(ConflictError):
        send_all(uploads(out, item(store), pause=lambda _: None))
    assert shown(store)["ami-00000.warc.gz"] == b"of somebody else"


def test_a_later_state_of_the_index_replaces_the_earlier_one(tmp_path: Path, store: ItemStore) -> None:
    out = crawl(tmp_path / "out")
    send_all(uploads(out, item(store), pause=lambda _: None))
    crawl(out, first=100)
    send_all(uploads(out, item(store), pause=lambda _: None))
    there = shown(store)
    assert there.pop("uploaded.json")
    assert there == files_of(out)


def test_a_file_follows_the_archive_to_another_of_its_hosts_and_the_keys_to_no_other(
    store: ItemStore,
) -> None:
    store.moves = True
    item(store).write("a.warc.gz", iter([b"one"]), size=3)
    assert shown(store) == {"a.warc.gz": b"one"}
    with ItemStore() as strange:
        store.leads_to = f"http://127.0.0.1:{strange.port}"
        with pytest.raises(OSError, match="not an address of it"):
            item(store).write("b.warc.gz", iter([b"two"]), size=3)
        assert not strange.heads


@pytest.mark.parametrize(
    "location",
    [
        "http://archive.org.example",
        "http://s3.us.archive.org",
        "https://[x",
        "https://archive.org:99999",
        "https://archive.org:x",
        "https://..archive.org",
        "https://user@archive.org",
        f"https://{'a' * 70}.archive.org",
        "https://\xe9.archive.org",
        "https://s3.archive.org/\xe9",
        "https://s3.archive.org/a b",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_redirect_to_what_is_no_host_of_the_archive_is_an_error_of_the_store(
    location: str, method: str
) -> None:
    head = f"HTTP/1.1 307 x\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
    with RawServer(lambda _: head) as web:
        keys = {**KEYS, "IA_ENDPOINT_URL": web.url}
        bucket = ItemBucket("ia://crawls", urlsplit("ia://crawls"), ItemClient(environment=keys))

        def look() -> None:
            if method == "GET":
                bucket.size("b.warc.gz")
            else:
                bucket.write("b.warc.gz", iter([b"two"]), size=3)

        with pytest.raises(OSError, match="Internet Archive"):
            look()


def test_a_signal_ends_the_wait_for_a_file_within_a_second_of_it(tmp_path: Path) -> None:
    out, stop = crawl(tmp_path / "out"), threading.Event()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            stop.set()

    with ItemStore(lag=1e9) as store:
        sending = uploads(out, item(store), pause=pause, stopped=stop.is_set)
        with pytest.raises(StoppedError):
            sending.upload(sending.warc_files()[0])
    assert len(pauses) == 3
    assert max(pauses) <= 1.0


def test_an_upload_that_was_killed_goes_on_without_what_has_arrived(tmp_path: Path) -> None:
    out = crawl(tmp_path / "out")
    with ItemStore() as store:
        reached = threading.Event()

        def hold(method: str, key: str) -> None:
            if method == "PUT" and key.endswith("captures.parquet") and not reached.is_set():
                reached.set()
                threading.Event().wait(3.0)

        store.before = hold
        line = [sys.executable, "-m", "amicrawl", "upload", str(out), "--to", store.url("crawls/run")]
        child = warm_processes.Popen(line, env={**environment(), **store.environment})
        assert reached.wait(60)
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        before = store.sent.copy()
        assert before["crawls-run/ami-00000.warc.gz"] == 1
        done = command(out, store.url("crawls/run"), **store.environment)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert {name: n for name, n in store.sent.items() if name.endswith(".gz")} == {
            name: 1 for name in store.sent if name.endswith(".gz")
        }
        there = shown(store)
        assert there.pop("uploaded.json")
        assert there == files_of(out)


def test_the_keys_come_from_the_environment_or_from_the_file_of_its_program(
    tmp_path: Path, store: ItemStore
) -> None:
    out = crawl(tmp_path / "out")
    endpoint = {"IA_ENDPOINT_URL": store.environment["IA_ENDPOINT_URL"], "HOME": str(tmp_path)}
    none = command(out, "ia://crawls/run", **endpoint)
    assert none.returncode == ExitCode.USAGE
    assert "IA_ACCESS_KEY_ID" in none.stderr
    (tmp_path / ".config" / "internetarchive").mkdir(parents=True)
    ini = tmp_path / ".config" / "internetarchive" / "ia.ini"
    ini.write_text("[s3]\naccess = anAccessKey\nsecret = aSecretKey\n[cookies]\nx = 100%\n")
    done = command(out, "ia://crawls/run", **endpoint)
    assert done.returncode == ExitCode.DONE, done.stderr
    ini.write_text("[s3]\naccess = anAccessKey\nsecret = anotherSecret\n")
    refused = command(out, "ia://crawls/run", **endpoint)
    assert refused.returncode == ExitCode.OUTPUT
    assert "InvalidAccessKeyId" in refused.stderr
    assert "anotherSecret" not in refused.stderr
    ini.write_text("a line that holds aSecretKey")
    unreadable = command(out, "ia://crawls/run", **endpoint)
    assert unreadable.returncode == ExitCode.USAGE
    assert "aSecretKey" not in unreadable.stderr


@pytest.mark.parametrize("keys", [("a b", "c"), ("a", "c\r\nX: y"), ("a", ""), ("a:b", "c")])
def test_keys_that_no_header_can_hold_are_refused_and_not_repeated(keys: tuple[str, str]) -> None:
    given = dict(zip(KEYS, keys, strict=True))
    with pytest.raises(UsageError, match="two keys") as caught:
        ItemClient(environment=given)
    assert keys[1] == "" or "X: y" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    ["http://gate.example", "ftp://x", "https://u:p@x", "https://x/y", "https://", "x", "https://[x"],
)
def test_an_endpoint_to_which_the_keys_would_go_in_the_clear_is_refused(endpoint: str) -> None:
    with pytest.raises(UsageError, match="IA_ENDPOINT_URL"):
        ItemClient(environment={**KEYS, "IA_ENDPOINT_URL": endpoint})


@pytest.mark.parametrize(
    "url",
    [
        "ia://",
        "ia://ab",
        "ia:///crawls",
        "ia://cra wls",
        "ia://crawls/../x",
        "ia://crawls//x",
        "ia://-crawls",
        "ia://crawls#x",
        "ia://crawls?collectoin=x",
        "ia://crawls?collection",
        "ia://crawls?size_hint=5GB",
        "ia://crawls?size_hint=%C2%B2",
        "ia://crawls?size_hint=" + "9" * 19,
        "ia://crawls/a%20b",
        "ia://user:hush@crawls",
        "ia://anonymous@crawls",
    ],
)
def test_a_url_that_names_no_item_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"names no item|must hold no credentials") as caught:
        check_bucket_url(url)
    assert "hush" not in str(caught.value)


def test_a_long_name_is_cut_to_what_an_item_may_bear_and_stays_its_own() -> None:
    long = "a" * 90 + ".example-inf-20261124-120000-abcde"
    one, two = (identifier_of(urlsplit(f"ia://crawls/{long}{n}")) for n in (1, 2))
    assert one != two
    assert len(one) == len(two) == 100
    assert identifier_of(urlsplit("ia://crawls/short")) == "crawls-short"


def test_what_crawls_are_resumed_from_is_refused_in_an_item(tmp_path: Path, store: ItemStore) -> None:
    out = crawl(tmp_path / "out")
    refused = command(out, store.url("crawls/run"), "--frontier", **store.environment)
    assert refused.returncode == ExitCode.USAGE
    assert "is for finished files" in refused.stderr


@pytest.mark.parametrize(
    "metadata",
    [b"", b"[", b"[]", b'{"files": 5}', b'{"is_dark": true}', b'{"files": ' + b"[" * 5000],
)
def test_metadata_that_cannot_be_read_are_an_error_of_the_store(metadata: bytes) -> None:
    with RawServer(lambda _: page(metadata)) as web:
        keys = {**KEYS, "IA_ENDPOINT_URL": web.url}
        bucket = ItemBucket("ia://crawls", urlsplit("ia://crawls"), ItemClient(environment=keys))
        with pytest.raises(OSError, match=r"metadata|dark"):
            bucket.size("a")


@pytest.mark.parametrize(
    "file",
    [
        b"5",
        b'{"name": "b", "size": "1"}',
        b'{"name": "a"}',
        b'{"name": "a", "size": "-1", "md5": "00000000000000000000000000000000"}',
        b'{"name": "a", "size": "1", "md5": null}',
        b'{"name": ["a"], "size": "1", "md5": "x"}',
    ],
)
def test_a_file_of_which_the_metadata_say_too_little_is_not_there(file: bytes) -> None:
    with RawServer(lambda _: page(b'{"files": [' + file + b"]}")) as web:
        keys = {**KEYS, "IA_ENDPOINT_URL": web.url}
        bucket = ItemBucket("ia://crawls", urlsplit("ia://crawls"), ItemClient(environment=keys))
        assert bucket.reported("a") is None


@pytest.mark.parametrize(
    "response",
    [b"", b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"],
)
def test_a_response_that_is_not_http_is_an_error_of_the_store(response: bytes) -> None:
    with RawServer(lambda _: response) as web:
        keys = {**KEYS, "IA_ENDPOINT_URL": web.url}
        bucket = ItemBucket("ia://crawls", urlsplit("ia://crawls"), ItemClient(environment=keys))
        with pytest.raises(OSError, match=r"Internet Archive|reset") as caught:
            bucket.size("a")
        assert not any(secret in str(caught.value) for secret in SECRETS)


@pytest.mark.parametrize("response", [b"", b"no HTTP\r\n\r\n"])
def test_a_file_without_a_response_was_not_taken(response: bytes) -> None:
    with RawServer(lambda _: response) as web:
        keys = {**KEYS, "IA_ENDPOINT_URL": web.url}
        bucket = ItemBucket("ia://crawls", urlsplit("ia://crawls"), ItemClient(environment=keys))
        with pytest.raises(OSError, match=r"Internet Archive|reset|pipe"):
            bucket.write("a", iter([b"x"]), size=1)


def test_a_file_that_has_another_size_than_it_was_to_have_was_not_taken(store: ItemStore) -> None:
    for size in (2, 4):
        with pytest.raises(OSError, match="not"):
            item(store).write("a.warc.gz", iter([b"one"]), size=size)
    assert not store.objects()


def test_a_large_file_is_refused_before_its_bytes_are_sent(store: ItemStore) -> None:
    store.busy, handed = 1, 0

    def blocks() -> Iterator[bytes]:
        nonlocal handed
        for _ in range(8):
            handed += 1
            yield b"x" * 1024**2

    with pytest.raises(BusyError, match="SlowDown"):
        item(store).write("a.warc.gz", blocks(), size=8 * 1024**2)
    assert handed == 0
    item(store).write("a.warc.gz", blocks(), size=8 * 1024**2)
    assert len(shown(store)["a.warc.gz"]) == 8 * 1024**2


def test_the_keys_go_over_tls_to_a_host_that_can_prove_who_it_is(
    store: ItemStore, tmp_path: Path
) -> None:
    out, authority = crawl(tmp_path / "out"), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    store.serve_by(context)
    there = {**store.environment, "IA_ENDPOINT_URL": f"https://localhost:{store.port}"}
    refused = command(out, store.url("crawls/run"), **there)
    assert refused.returncode == ExitCode.OUTPUT
    assert "CERTIFICATE_VERIFY_FAILED" in refused.stderr
    done = command(out, store.url("crawls/run"), **there, SSL_CERT_FILE=str(tmp_path / "ca.pem"))
    assert done.returncode == ExitCode.DONE, done.stderr
    assert shown(store).keys() == {*files_of(out), "uploaded.json"}


def test_keys_below_a_directory_of_another_user_are_none(tmp_path: Path) -> None:
    """A container that runs as another user often has the home of root."""
    settings = tmp_path / ".config"
    settings.mkdir()
    (settings / "ia.ini").touch()
    settings.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        with pytest.raises(UsageError, match="needs the keys of an account"):
            ItemClient(environment={"HOME": str(tmp_path)})
    finally:
        if is_root:
            os.seteuid(0)
        settings.chmod(0o700)
