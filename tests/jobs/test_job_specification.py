"""What the record of a job requires of a crawl; it may have been written by anybody."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from job_crawling import path_of
from loopback import RawServer, page
from scrapy.settings import Settings

from amicrawl.config import PREFIX, CrawlConfig, Rendering
from amicrawl.crawl import fetched_list
from amicrawl.crawlfile.keys import CONFIG_TABLES
from amicrawl.errors import AmicrawlError, InputError, UsageError
from amicrawl.fleet.checkpoints.data_directory import JobCopy
from amicrawl.fleet.database.connection import connect
from amicrawl.fleet.jobs.crawl.opening import HeldJob
from amicrawl.fleet.jobs.crawl.specification import (
    _AT_MOST,
    _OF_THE_MACHINE,
    JobArguments,
    take_settings,
)
from amicrawl.fleet.leases.lease import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping


def settings_of(
    record: dict[str, str],
    *,
    config: str = "",
    ignores: tuple[str, ...] = (),
    own: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings that a job of *record* leads to."""
    copy = JobCopy("abc", 1, record={"url": "http://a.example/", **record}, config=config)
    copy.ignores = list(ignores)
    store = connect({"REDIS_URL": "redis://127.0.0.1:1/0"})
    settings = Settings(own)
    take_settings(
        HeldJob(store, copy, Claim("abc", 1), timedelta(seconds=9), 0.0, by_hand=False), settings
    )
    store.close()
    return settings


def test_user_agent_and_offsite_links_are_the_records() -> None:
    settings = settings_of({"user_agent": "Mozilla/5.0 (job)", "no_offsite_links": "true"})
    assert settings["USER_AGENT"] == "Mozilla/5.0 (job)"
    assert settings["AMICRAWL_LINKS_OFF_SITE"] is False
    assert settings_of({})["AMICRAWL_LINKS_OFF_SITE"] is True


@pytest.mark.parametrize("agent", ["a\r\nHost: evil", "\x1b[2J", "café"])
def test_a_user_agent_that_cannot_be_sent_is_not(agent: str) -> None:
    assert settings_of({"user_agent": agent})["USER_AGENT"] != agent


def test_a_crawl_file_out_of_redis_need_not_name_an_operator_but_names_one_that_can_be_reached() -> None:
    settings = settings_of({}, config="[politeness]\ndelay = 7\n")
    assert CrawlConfig.from_settings(dict(settings)).delay == 7
    with pytest.raises(AmicrawlError, match="operator has no e-mail address"):
        settings_of({}, config='[request]\noperator = "Anna"\n')


def test_the_ignores_of_the_record_stand_in_the_place_of_the_shipped_sets() -> None:
    assert CrawlConfig.from_settings(dict(settings_of({}, ignores=("x",)))).ignore_sets == ()
    assert CrawlConfig.from_settings(dict(settings_of({}))).ignore_sets == ("global",)


def test_a_crawl_file_out_of_redis_says_how_to_crawl_and_nothing_of_the_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = """
public = false
[politeness]
delay = 7
[scope]
max_hops = 3
[request]
allow_private = ["10.0.0.0/8"]
[output]
out = "/etc"
bucket = "s3://elsewhere/"
warc_prefix = "another-archive"
[browser]
browser = "always"
browser_path = "/tmp/any-program"
browser_behaviours = "/etc/passwd"
browser_sandbox = false
browser_pages = 64
"""
    settings = settings_of({}, config=text)
    assert settings["AMICRAWL_DELAY"] == 7
    assert settings["AMICRAWL_MAX_HOPS"] == 3
    assert "10.0.0.0/8" not in str(settings.get("AMICRAWL_ALLOW_PRIVATE"))
    assert settings.get("AMICRAWL_OUT") != "/etc"
    assert settings.get("AMICRAWL_BUCKET") is None
    assert settings.get("AMICRAWL_WARC_PREFIX") is None
    config = CrawlConfig.from_settings(dict(settings))
    assert config.browser is Rendering.ALWAYS
    for name in ("browser_path", "browser_behaviours", "browser_sandbox", "browser_pages"):
        assert getattr(config, name) == CrawlConfig.model_fields[name].default, name
    assert "Not taken from the crawl file" in caplog.text


def test_every_setting_is_one_that_a_job_may_have_or_is_the_machines() -> None:
    """A new one has to be decided: what names a file, a program or a secret is not a job's."""
    tables = {"scope", "ignores", "politeness", "limits", "seeds", "recrawl"}
    allowed = {name for name, table in CONFIG_TABLES.items() if table in tables}
    allowed |= {"operator", "headers", "tls", "timeout", "connect_timeout", "timeout_floor", "min_rate"}
    allowed |= {"min_rate_time", "host_overrides", "warc_size", "store_unchanged", "warc_metadata"}
    allowed |= {"dedup", "durability", "direct", "progress_every", "browser", "browser_screenshots"}
    allowed |= {"browser_strict_pace", *(name for name in _AT_MOST if name.startswith("browser"))}
    theirs = {PREFIX + name.upper() for name in CrawlConfig.model_fields} - _OF_THE_MACHINE
    assert theirs == {PREFIX + name.upper() for name in allowed - {"pause_free"}}


def test_a_crawl_file_out_of_redis_does_not_lift_the_caps_of_the_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = """
public = false
[limits]
max_body = "1000GB"
spool_above = "100GB"
max_header = 2048
stop_free = 0
[politeness]
inflight_max = 100000
"""
    own = {"AMICRAWL_STOP_FREE": "1GiB", "AMICRAWL_INFLIGHT_MAX": 500}
    config = CrawlConfig.from_settings(dict(settings_of({}, config=text, own=own)))
    assert config.max_body == CrawlConfig().max_body
    assert config.spool_above == CrawlConfig().spool_above
    assert config.stop_free == 1024**3
    assert config.inflight_max == 500
    assert config.max_header == 2048, "what is stricter holds"
    assert "goes beyond what this machine allows" in caplog.text


@pytest.mark.parametrize("text", ['extends = "/etc/passwd"', "[[[", "delay = 'x'", "\x00"])
def test_a_crawl_file_that_cannot_be_followed_is_a_sentence(text: str) -> None:
    with pytest.raises(AmicrawlError):
        settings_of({}, config=text)


def respond(request: bytes) -> bytes:
    path = path_of(request)
    if path == "/loop":
        return page(b"", "Location: /loop2", status="302 Found")
    if path == "/loop2":
        return page(b"", "Location: /loop", status="302 Found")
    if path == "/torn":
        return b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhttp://a"
    if path == "/missing":
        return page(b"", status="404 Not Found")
    return page(b"http://a.example/\n")


@pytest.mark.parametrize(
    ("path", "why"), [("/loop", "redirects"), ("/torn", "broke off"), ("/missing", "status 404")]
)
def test_a_list_that_is_not_whole_is_none(path: str, why: str) -> None:
    config = CrawlConfig.from_settings({"AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8"})
    with RawServer(respond) as server, pytest.raises(InputError, match=why):
        fetched_list(server.url + path, config)


def test_a_list_is_fetched_past_the_guard_only() -> None:
    config = CrawlConfig.from_settings({"AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8"})
    with RawServer(respond) as server:
        assert fetched_list(server.url + "/list", config) == b"http://a.example/\n"
        with pytest.raises(InputError, match="address-refused"):
            fetched_list(server.url + "/list", CrawlConfig())
        assert len(server.requests) == 1
    with pytest.raises(InputError):
        fetched_list("file:///etc/passwd", config)


def test_arguments_of_the_spider_are_checked() -> None:
    assert JobArguments.parse({"ident": "abc", "out": "x", "_job": "1"}) == JobArguments("abc", "x")
    for wrong in ({}, {"ident": "abc", "url": "http://a.example/"}):
        with pytest.raises(UsageError):
            JobArguments.parse(wrong)
