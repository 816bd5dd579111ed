"""The crawl file of a shared crawl says nothing of what a machine runs, whoever wrote it to Redis."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import warm_processes
from loopback import PROJECT, environment, write_lines

from amicrawl.crawlfile import read_crawl_file
from amicrawl.errors import ExitCode
from amicrawl.fleet.database.connection import connect
from amicrawl.fleet.sharing import Share

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from redis_server import RedisServer

SCOPE = 'spider = "site"\n[request]\noperator = "a@b.example"\n[scope]\nhosts = ["a.example"]\n'
PROGRAM = '[browser]\nbrowser = "always"\nbrowser_path = "/bin/touch"\n'


def share(server: RedisServer, *words: str) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", "share", *words],
        cwd=PROJECT,
        env=environment() | {"REDIS_URL": server.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_program_is_refused_when_the_crawl_is_created_and_when_it_comes_out_of_redis(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", ["http://a.example/"])
    file = tmp_path / "a.toml"
    file.write_text(SCOPE + PROGRAM)
    created = share(redis_server, "create", "a", "--seeds", str(seeds), "--config", str(file))
    assert created.returncode == ExitCode.USAGE
    assert "sets browser_path" in created.stderr, created.stderr
    file.write_text(SCOPE)
    created = share(redis_server, "create", "a", "--seeds", str(seeds), "--config", str(file))
    assert created.returncode == ExitCode.DONE, created.stderr
    client = connect({"REDIS_URL": redis_server.url}).client
    names = [key for key in client.scan_iter("*") if client.type(key) in {b"hash", "hash"}]
    (record,) = [name for name in names if client.hexists(name, "config")]
    client.hset(record, "config", SCOPE + PROGRAM)
    worked = share(redis_server, "work", "a", "--data", str(tmp_path / "data"))
    assert worked.returncode == ExitCode.USAGE, worked.stderr
    assert "The crawl file of the shared crawl a sets browser_path" in worked.stderr


def test_a_crawl_file_carries_what_it_extends_to_machines_that_have_not_the_other_file(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", ["http://a.example/"])
    common = '[request]\noperator = "a@b.example"\n[politeness]\ndelay = 7\n'
    (tmp_path / "common.toml").write_text(common)
    file = tmp_path / "a.toml"
    file.write_text('"extends" = "common.toml"\nspider = "site"\n[scope]\nhosts = ["a.example"]\n')
    created = share(redis_server, "create", "a", "--seeds", str(seeds), "--config", str(file))
    assert created.returncode == ExitCode.DONE, created.stderr
    kept = tmp_path / "elsewhere.toml"
    kept.write_text(Share.open(connect({"REDIS_URL": redis_server.url}), "a").record.config)
    settings = read_crawl_file(kept).settings
    assert (settings["AMICRAWL_OPERATOR"], settings["AMICRAWL_DELAY"]) == ("a@b.example", 7)
    assert settings["AMICRAWL_HOSTS"] == ["a.example"], settings
