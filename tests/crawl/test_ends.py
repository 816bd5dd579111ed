"""How a crawl ends: with the code that fits, and without a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from loopback import RawServer, crawl, crawl_site, free_port, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode()


@pytest.mark.parametrize("robots", ["obey", "ignore"])
def test_a_site_that_cannot_be_reached_ends_with_10(tmp_path: Path, robots: str) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    done = crawl_site(url, tmp_path / "out", settings={"AMICRAWL_ROBOTS": robots})
    assert done.returncode == ExitCode.UNREACHED, done.stderr
    assert "nothing was reached" in done.stderr
    assert "connection-refused" in done.stderr


def test_a_start_that_the_address_guard_refuses_ends_with_10(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"here")) as server:
        done = crawl_site(server.url, tmp_path / "out", settings={"AMICRAWL_ALLOW_PRIVATE": ""})
    assert done.returncode == ExitCode.UNREACHED
    assert "AMICRAWL_ALLOW_PRIVATE" in done.stderr


def test_an_error_page_is_a_response_and_ends_with_0(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"no", status="404 Not Found")) as server:
        assert crawl_site(server.url, tmp_path / "out").returncode == ExitCode.DONE


def test_one_response_of_many_fetches_is_enough(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"here")) as server:
        urls = [server.url, f"http://127.0.0.1:{free_port()}/"]
        done = crawl(write_lines(tmp_path / "seeds.txt", urls), tmp_path / "out")
    assert done.returncode == ExitCode.DONE
    assert "nothing was reached" not in done.stderr


def test_a_list_of_which_no_seed_is_for_the_shard_ends_with_10(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"here")) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [server.url])
        codes = {
            shard: crawl(seeds, tmp_path / str(shard), arguments=[f"shard={shard}", "shards=2"])
            for shard in range(2)
        }
    assert sorted(done.returncode for done in codes.values()) == [ExitCode.DONE, ExitCode.UNREACHED]
    other = next(done for done in codes.values() if done.returncode)
    assert "1 seed read, and none belongs to this shard" in other.stderr


def test_a_limit_that_is_reached_while_the_list_is_being_read_ends_with_8_and_the_rest_is_read_next(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"here"), keep_open=True) as server:
        urls = [f"{server.url}/{number}" for number in range(60_000)]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        for _ in range(2):
            done = crawl(seeds, out, settings={"AMICRAWL_STOP_PAGES": "5"})
            assert done.returncode == ExitCode.LIMIT, done.stderr
            assert "Traceback" not in done.stderr
            assert "the rest of the seed list not read" in done.stderr
            assert json.loads((out / "crawl.json").read_bytes())["unfinished"] is True
    assert len({path_of(head) for head in server.requests}) == len(server.requests) >= 10


def test_a_name_that_a_default_set_ignores_is_crawled_where_the_operator_starts_there(
    tmp_path: Path,
) -> None:
    def respond(head: bytes) -> bytes:
        links = [f'<a href="/{n}">x</a>' for n in range(3)]
        links += [f'<a href="/page/undefined?{n}">x</a>' for n in range(9)]
        return page("".join(links if path_of(head) == "/" else []).encode(), "Content-Type: text/html")

    with RawServer(respond) as server:
        done = crawl_site(f"http://localhost:{server.port}/", tmp_path / "out")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert sorted(path_of(head) for head in server.requests) == ["/", "/0", "/1", "/2"]
    assert "ignored: 9 links by the set `global`" in done.stderr
    assert "AMICRAWL_IGNORE_SETS" in done.stderr


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("delay", "AMICRAWL_DELAY"),
        ("DELAY", "AMICRAWL_DELAY"),
        ("ALLOW_PRIVATE", "AMICRAWL_ALLOW_PRIVATE"),
        ("amicrawl_max_hops", "AMICRAWL_MAX_HOPS"),
        ("MAX-HOPS", "AMICRAWL_MAX_HOPS"),
        ("IGNORE_SET", "AMICRAWL_IGNORE_SETS"),
        ("DOWNLOAD_TIMEOT", "DOWNLOAD_TIMEOUT"),
        ("user-agent", "USER_AGENT"),
    ],
)
def test_a_setting_that_is_almost_one_of_ours_or_scrapys_is_refused_with_the_right_name(
    tmp_path: Path, given: str, meant: str
) -> None:
    out = tmp_path / "out"
    done = crawl_site("http://127.0.0.1:1/", out, settings={given: "1"})
    assert done.returncode == ExitCode.USAGE
    assert f"Unknown setting {given}. Did you mean {meant}?" in done.stderr
    assert not out.exists()


def test_settings_of_scrapy_and_of_others_are_let_through(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"here")) as server:
        others = {"DOWNLOAD_TIMEOUT": "5", "RETRY_ENABLED": "0", "MYPROJECT_TOKEN": "x"}
        assert crawl_site(server.url, tmp_path / "out", settings=others).returncode == ExitCode.DONE


@pytest.mark.parametrize("handlers", ["{}", '{"http": "tests.guests.spiders.late.LateHandler"}'])
def test_what_a_pipeline_requests_when_it_is_closed_holds_up_no_end(
    tmp_path: Path, handlers: str
) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/in-time"])
        late = '{"tests.guests.spiders.late.LatePipeline": 300}'
        settings = {"ITEM_PIPELINES": late, "LATE": f"{server.url}/late", "DOWNLOAD_HANDLERS": handlers}
        done = crawl(seeds, tmp_path / "out", settings=settings)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "/late" not in {path_of(head) for _, head in server.arrivals}
