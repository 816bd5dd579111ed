"""Redis is reached by scrapy-redis's settings, with TLS and as a user; its refusals are sentences."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
import redis
import trustme
from redis_server import RedisServer, end, started_server

from amicrawl.errors import ExitCode, UsageError
from amicrawl.fleet.database import redis_values
from amicrawl.fleet.database.connection import (
    JobStore,
    RedisRefused,
    RedisSettings,
    RedisUnavailable,
    connect,
    script_source,
)
from amicrawl.fleet.jobs.submission import Submission, submit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer as Server


def test_the_url_or_its_parts_say_where(redis_server: Server) -> None:
    by_parts = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis_server.port), "REDIS_DB": "1"}
    for settings in ({"REDIS_URL": redis_server.url[:-1] + "1"}, by_parts):
        store = connect(settings)
        store.client.set("where", "here")
        store.close()
    with redis_server.client() as client:
        assert client.get("where") is None
        client.select(1)
        assert client.get("where") == "here"
        client.flushdb()


def test_the_prefix_stands_in_front_of_every_key(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url, "AMICRAWL_REDIS_PREFIX": "crawl:"})
    keys = store.keys
    assert (keys.working, keys.job_channel("x")) == ("crawl:working", "crawl:archivebot:job:x")
    assert keys.queue_name(keys.queue("pending:a")) == "pending:a"
    store.close()


def test_octets_that_are_not_utf_8_come_back_as_they_were(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    with redis.Redis(port=redis_server.port) as raw:
        raw.set("odd", b"\xff\xfe")
        text = store.client.get("odd")
        assert text == "\udcff\udcfe"
        store.client.set("again", str(text))
        assert raw.get("again") == b"\xff\xfe"
    store.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"REDIS_URL": "http://127.0.0.1"},
        {"REDIS_URL": "redis://127.0.0.1:port/0"},
        {"REDIS_PORT": "six"},
        {"REDIS_PARAMS": "{"},
        {"REDIS_PARAMS": "5"},
        {"REDIS_PARAMS": {"no_such_keyword": 1}},
        {"REDIS_URL": "redis://127.0.0.1/0", "REDIS_PARAMS": {"no_such_keyword": 1}},
        {"REDIS_URL": "redis://127.0.0.1/0?no_such_keyword=1"},
        {"REDIS_URL": "redis://127.0.0.1/first"},
        {"AMICRAWL_REDIS_PREFIX": "two words"},
        {"AMICRAWL_REDIS_PREFIX": "a\n"},
    ],
)
def test_a_setting_that_cannot_be_followed_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        connect(settings)


def test_a_server_that_is_away_is_told_by_a_code_of_its_own() -> None:
    store = connect({"REDIS_URL": "redis://127.0.0.1:1/0"})
    with (
        pytest.raises(RedisUnavailable, match=r"127\.0\.0\.1:1 does not respond") as told,
        store.responding(),
    ):
        store.client.ping()
    assert told.value.exit_code is ExitCode.UNAVAILABLE
    store.close()


def test_a_command_is_not_sent_twice_by_itself(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url}, socket_timeout=0.2)
    with redis_server.client() as other:
        other.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        with pytest.raises(RedisUnavailable), store.responding():
            store.client.incr("count")
        other.execute_command("CLIENT", "UNPAUSE")
        assert int(other.get("count") or 0) <= 1
    store.close()


@pytest.mark.parametrize(
    "given",
    [
        {"REDIS_HOST": "h", "REDIS_PORT": 7, "REDIS_DB": 2, "AMICRAWL_REDIS_PREFIX": "p:"},
        {"REDIS_HOST": "::1"},
        {"REDIS_HOST": "h", "REDIS_PARAMS": {"username": "u", "socket_timeout": 3, "ssl": True}},
        {"REDIS_PARAMS": {"unix_socket_path": "/run/redis.sock"}},
        {"REDIS_PARAMS": {"host": "h", "port": 7, "db": 3}},
        {"REDIS_URL": "redis://h/", "REDIS_PARAMS": {"db": 3}},
    ],
)
def test_a_child_process_finds_the_same_server(given: dict[str, Any]) -> None:
    """Its environment is that of this process, in which there may be another server."""
    other = {"REDIS_URL": "redis://other:1/5", "REDIS_PARAMS": '{"password": "of another"}'}
    stores = [
        connect(RedisSettings.from_mapping(settings))
        for settings in (given, other | RedisSettings.from_mapping(given).environment())
    ]
    ours, theirs = (store.client.connection_pool for store in stores)
    assert theirs.connection_class is ours.connection_class
    plain = [
        {name: value for name, value in pool.connection_kwargs.items() if isinstance(value, (str, int))}
        for pool in (ours, theirs)
    ]
    assert plain[1] == plain[0]
    assert stores[1].keys == stores[0].keys


def test_redis_params_may_say_where_the_server_is_as_those_of_scrapy_redis() -> None:
    settings = RedisSettings.from_mapping({"REDIS_PARAMS": {"host": "h", "port": 7, "db": 3}})
    assert (settings.host, settings.port, settings.db) == ("h", 7, 3)
    settings = RedisSettings.from_mapping({"REDIS_HOST": "i", "REDIS_PARAMS": '{"host": "h", "db": 3}'})
    assert (settings.host, settings.db) == ("i", 3)
    assert connect(settings).client.connection_pool.connection_kwargs["host"] == "i"


def test_a_password_is_never_in_a_sentence() -> None:
    settings = RedisSettings.from_mapping({"REDIS_URL": "redis://user:secret@127.0.0.1:1/0"})
    store = connect(settings)
    with pytest.raises(RedisUnavailable) as told, store.responding():
        store.client.ping()
    assert "secret" not in str(told.value)
    store.close()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisServer, int, Path]]:
    """A server with TLS on a second port, the port, and the certificate of its authority."""
    directory = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    trust, chain, key = (directory / name for name in ("ca.pem", "chain.pem", "key.pem"))
    authority.cert_pem.write_to_path(str(trust))
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    tls = RedisServer(directory).port
    server = started_server(
        *("--tls-port", str(tls), "--tls-cert-file", str(chain), "--tls-key-file", str(key)),
        *("--tls-ca-cert-file", str(trust), "--tls-auth-clients", "no"),
    )
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "crawler", "on", ">geheim", "~*", "&*", "+@all", "-get")
    yield server, tls, trust
    end(server)


def test_tls_checks_the_certificate_and_the_name(secured: tuple[RedisServer, int, Path]) -> None:
    _, port, trust = secured
    url = f"rediss://127.0.0.1:{port}/0"
    for settings in (
        {"REDIS_URL": url, "REDIS_PARAMS": {"ssl_ca_certs": str(trust)}},
        {"REDIS_URL": f"{url}?ssl_ca_certs={trust}"},
    ):
        store = connect(settings)
        assert store.client.ping()
        store.close()
    # The certificate is for the address and for localhost, and not for this other name of the loopback.
    for bad in (
        {"REDIS_URL": url},
        {"REDIS_URL": f"rediss://127.0.0.2:{port}/0", "REDIS_PARAMS": {"ssl_ca_certs": str(trust)}},
    ):
        with pytest.raises(RedisUnavailable):
            pinged(connect(bad))


def test_a_user_is_let_in_by_password_and_kept_to_its_rights(
    secured: tuple[RedisServer, int, Path],
) -> None:
    server = secured[0]
    store = connect({"REDIS_URL": f"redis://crawler:geheim@127.0.0.1:{server.port}/0"})
    assert store.client.ping()
    with pytest.raises(RedisRefused, match="does not permit"), store.responding():
        store.client.get("x")
    store.close()
    by_params = {"REDIS_URL": server.url, "REDIS_PARAMS": {"username": "crawler", "password": "wrong"}}
    with pytest.raises(RedisRefused, match="does not let us in"):
        pinged(connect(by_params))


def pinged(store: JobStore) -> None:
    try:
        with store.responding():
            store.client.ping()
    finally:
        store.close()


def test_a_full_server_is_away_for_now_and_nothing_is_half_written(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    store.client.config_set("maxmemory", "1")
    try:
        for act in (
            lambda: submit(store, Submission(url="http://a.example/"), now=1.0),
            lambda: store.client.set("x", "y"),
        ):
            with pytest.raises(RedisUnavailable, match="for now"), store.responding():
                act()
    finally:
        store.client.config_set("maxmemory", "0")
    assert store.client.dbsize() == 0
    store.close()


def test_a_replica_that_takes_no_writes_is_away_for_now(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    # Of nobody: there is no master behind it, and what it has can be read.
    store.client.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(RedisUnavailable, match="for now"), store.responding():
            store.client.set("x", "y")
        with pytest.raises(RedisUnavailable, match="for now"), store.responding():
            submit(store, Submission(url="http://a.example/"), now=1.0)
    finally:
        store.client.replicaof("NO", "ONE")
    store.close()


def test_every_script_is_one_that_redis_understands(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    files = (resources.files("amicrawl.fleet.database") / "scripts").iterdir()
    names = {file.name.removesuffix(".lua") for file in files if not file.name.startswith("_")}
    assert {"submit", "change", "abort", "read", "trim", "move"} <= names
    for name in names:
        assert store.client.script_load(script_source(name))
    store.close()


def test_a_server_that_has_lost_its_scripts_is_sent_them_again(redis_server: Server) -> None:
    store = connect({"REDIS_URL": redis_server.url})
    store.client.rpush("working", "x")
    for _ in range(2):
        assert redis_values.list_at(store, "working") == ["x"]
        assert redis_values.hashes_at(store, ["a", "b"]) == [{}, {}]
        store.client.script_flush()
    store.close()
