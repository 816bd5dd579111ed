"""What Python programs call: archives read, crawls run, products made, by the names at the top."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import inspect
import json
import re
import subprocess
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from demo_site.server import DemoSite
from loopback import PROJECT, QUICK, slow_python

import amicrawl
from amicrawl.api import crawling
from amicrawl.archive.report import counts_to_json
from amicrawl.errors import InputError, UsageError
from amicrawl.record import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SETTINGS: dict[str, Any] = {
    name.removeprefix("AMICRAWL_").lower(): value for name, value in QUICK.items()
}


@pytest.fixture(scope="module")
def site() -> Iterator[DemoSite]:
    with DemoSite() as served:
        yield served


@pytest.fixture(scope="module")
def crawled(site: DemoSite, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any]]:
    seen: list[Any] = []
    done = amicrawl.crawl(
        site.url, out=tmp_path_factory.mktemp("api") / "out", on_capture=seen.append, **SETTINGS
    )
    return done, seen


def test_ten_names_at_most_stand_at_the_top() -> None:
    assert dir(amicrawl) == sorted(amicrawl.__all__)
    assert len(amicrawl.__all__) <= 10
    assert all(inspect.getdoc(getattr(amicrawl, name)) for name in amicrawl.__all__)


def test_an_error_names_the_argument_and_not_the_option_of_the_command(tmp_path: Path) -> None:
    files = [tmp_path / name / "a.warc.gz" for name in ("one", "two")]
    for path in files:
        path.parent.mkdir()
        path.write_bytes(b"no archive")
    summed = tmp_path / "summed.json"
    counted = amicrawl.summary(files[0], kind="cdx11", rules="cdx-summary").counts
    summed.write_text(counts_to_json(counted))
    amicrawl.index(files[0], out=tmp_path / "out")
    index = partial(amicrawl.index, out=tmp_path / "indexes")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: index(files), f"root={str(tmp_path)!r}"),
        (lambda: index(files, root=files[0]), "root="),
        (lambda: index(files[1], out=tmp_path / "out"), "another output directory"),
        (lambda: amicrawl.summary(summed, kind="cdx12"), "kind="),
        (lambda: amicrawl.summary(summed, rules="cdx12"), "rules="),
        (lambda: amicrawl.summary([summed, summed], rules="corrected"), "the same rules"),
        (lambda: amicrawl.table(summed, out="/"), "directory of a table"),
    ]
    for call, named in calls:
        with pytest.raises(UsageError, match=re.escape(named)) as raised:
            call()
        assert not re.search(r"(?<!\w)--?[a-z]", str(raised.value))
    assert not (tmp_path / "indexes").exists()
    (sentence,) = amicrawl.summary(files[0], kind="cdx11").without_captures
    assert "no line of it is a capture" in sentence
    assert "--" not in sentence


def test_a_capture_has_each_column_of_the_index() -> None:
    fields = [each.name for each in dataclasses.fields(amicrawl.Capture)]
    assert fields == [*CAPTURES.names, "_archive"]


@pytest.mark.slow
def test_a_script_crawls_and_gets_each_capture_once(crawled: tuple[Any, list[Any]]) -> None:
    done, seen = crawled
    assert done.exit_code == 0
    stored = list(done.archive)
    assert len(stored) == len(done.archive) > 10
    assert sorted(c.url for c in seen) == sorted(c.url for c in stored)


@pytest.mark.slow
def test_a_response_has_its_text_its_bytes_and_its_request(
    crawled: tuple[Any, list[Any]], site: DemoSite
) -> None:
    (page,) = amicrawl.open(str(crawled[0].out)).by_url(site.url.rstrip("/"))
    response = page.response
    assert response is not None
    assert (response.status, response.headers["CONTENT-type"].partition(";")[0]) == (200, "text/html")
    assert "<html" in response.text.lower()
    assert response.raw.startswith(b"HTTP/1.1 200 ")
    assert len(b"".join(response.blocks())) == page.body_length
    assert response.request is not None
    assert (response.request.method, response.request.target) == ("GET", "/")
    assert response.request.headers["host"] in site.url


@pytest.mark.slow
def test_the_index_is_read_once_for_all_revisits_of_an_archive(site: DemoSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    amicrawl.crawl(site.url, out=out, **SETTINGS)
    options = [word for name, value in QUICK.items() for word in ("-s", f"{name}={value}")]
    again = [sys.executable, "-m", "amicrawl", "recrawl", str(out), "--all", *options]
    subprocess.run(again, check=True, capture_output=True, cwd=PROJECT)
    archive = amicrawl.open(out)
    first, *others = [c for c in archive.query() if c.is_revisit]
    assert len(others) > 1
    assert first.response is not None
    (out / "captures.parquet").rename(tmp_path / "elsewhere.parquet")
    for revisit in others:
        (response, original) = (
            capture.response
            for capture in (revisit, _original_of(revisit, tmp_path / "elsewhere.parquet", archive))
        )
        assert response is not None
        assert original is not None
        assert response.content == original.content != b""


def _original_of(revisit: Any, table: Path, archive: Any) -> Any:
    rows = pq.read_table(table, filters=pc.field("url") == revisit.original_url).to_pylist()
    return next(
        amicrawl.Capture(**row, _archive=archive)
        for row in rows
        if row["fetched_at"] - row["duration_ms"] == revisit.original_at
    )


@pytest.mark.slow
def test_captures_are_found_by_a_condition_and_become_frames(crawled: tuple[Any, list[Any]]) -> None:
    archive = crawled[0].archive
    missing = list(archive.query(pc.field("body_length") >= 0, status=404))
    assert missing
    assert {capture.status for capture in missing} == {404}
    assert len(archive.to_pandas(status=404)) == len(archive.to_polars(status=404)) == len(missing)
    assert archive.to_arrow().num_rows == len(archive)
    with pytest.raises(UsageError, match="no column colour"):
        archive.to_arrow(colour="red")
    with pytest.raises(UsageError, match="does not fit"):
        list(archive.query(pc.field("colour") == 1))
    for equal in ({"status": 2**70}, {"url": "http://a/\ud800"}, {"url": object()}):
        with pytest.raises(UsageError, match="cannot be compared"):
            archive.to_arrow(None, **equal)
    assert archive.by_url("http://a/\ud800") == []


@pytest.mark.slow
def test_the_frontier_knows_the_urls_and_their_states(
    crawled: tuple[Any, list[Any]], site: DemoSite
) -> None:
    frontier = amicrawl.open_frontier(crawled[0].out)
    row = frontier.get(site.url)
    assert row is not None
    assert (row.url, row.status, row.http_status) == (site.url, "crawled", 200)
    assert sum(frontier.counts().values()) == len(frontier) == len(list(frontier))
    assert frontier.get("http://example.org/not-here") is None


@pytest.mark.slow
def test_the_products_are_made_of_paths_of_either_kind(
    crawled: tuple[Any, list[Any]], tmp_path: Path
) -> None:
    out = crawled[0].out
    made = amicrawl.index(str(out), out=tmp_path / "cdxj")
    assert made.is_sound
    report = amicrawl.table([tmp_path / "cdxj"], out=str(tmp_path / "table"))
    packed = amicrawl.wacz(out, out=tmp_path / "all.wacz", title="All")
    assert report.rows == packed.lines > 10
    assert amicrawl.summary(tmp_path / "cdxj").counts.captures == report.rows
    assert amicrawl.summary([str(tmp_path / "table")]).counts.captures == report.rows


@pytest.mark.slow
def test_a_running_loop_awaits_any_number_of_crawls_with_events(site: DemoSite, tmp_path: Path) -> None:
    async def crawl_two() -> tuple[list[str], Any]:
        first = amicrawl.crawl(site.url, out=tmp_path / "one", **SETTINGS)
        second = amicrawl.crawl([f"{site.url}style.css"], out=tmp_path / "two", follow=False, **SETTINGS)
        urls = [capture.url async for capture in first]
        return urls, await second

    urls, second = asyncio.run(crawl_two())
    assert sorted(urls) == sorted(capture.url for capture in amicrawl.open(tmp_path / "one"))
    assert [capture.url for capture in second.archive] == [f"{site.url}style.css"]


@pytest.mark.slow
def test_captures_of_another_crawl_below_the_directory_are_not_received(
    site: DemoSite, tmp_path: Path
) -> None:
    began = threading.Event()

    async def crawl_both() -> list[str]:
        below = amicrawl.crawl(
            site.url,
            out=tmp_path / "below",
            on_capture=lambda _: began.set(),
            **{**SETTINGS, "delay": 30},
        )
        assert await asyncio.to_thread(began.wait, 60)
        above = amicrawl.crawl([f" HTTP{site.url[4:]}style.css"], out=tmp_path, follow=False, **SETTINGS)
        urls = [capture.url async for capture in above]
        below.stop()
        await below
        return urls

    assert asyncio.run(crawl_both()) == [f"HTTP{site.url[4:]}style.css"]


def test_rows_of_earlier_crawls_are_not_held_in_memory(crawled: tuple[Any, list[Any]]) -> None:
    """An archive that has grown for years has more rows than memory; their time tells them apart."""
    out, later = crawled[0].out, int((time.time() + 1) * 1000)
    assert len(crawling._keys_in(out, since=0)) > 10
    assert not crawling._keys_in(out, since=later)
    events = crawling._Events(lambda: out, later, frozenset())
    assert not list(events.rest())
    events.close()


def test_a_crawl_that_is_stopped_before_it_began_is_no_error(tmp_path: Path) -> None:
    async def start_and_stop() -> Any:
        started = amicrawl.crawl("http://127.0.0.1:9/", out=tmp_path / "out", **SETTINGS)
        started.stop()
        return await started

    assert asyncio.run(start_and_stop()).exit_code == 6


@pytest.mark.slow
def test_a_crawl_that_is_stopped_while_its_python_starts_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, has_begun = slow_python(tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])

    async def start_and_stop() -> Any:
        started = amicrawl.crawl("http://127.0.0.1:9/", out=tmp_path / "out", **SETTINGS)
        has_begun()
        started.stop()
        return await started

    assert asyncio.run(start_and_stop()).exit_code == 6


@pytest.mark.slow
def test_a_crawl_that_is_cancelled_is_sealed_and_can_be_resumed(site: DemoSite, tmp_path: Path) -> None:
    began = threading.Event()

    async def cancel() -> Any:
        started = amicrawl.crawl(
            site.url, out=tmp_path / "out", on_capture=lambda _: began.set(), **{**SETTINGS, "delay": 30}
        )
        waiting = asyncio.ensure_future(started)
        assert await asyncio.to_thread(began.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await started

    assert asyncio.run(cancel()).exit_code == 6
    assert not list((tmp_path / "out").glob("*.open"))


@pytest.mark.parametrize("is_in_file", [False, True])
@pytest.mark.slow
def test_a_crawl_into_a_directory_of_its_run_is_read_from_there(
    site: DemoSite, tmp_path: Path, *, is_in_file: bool
) -> None:
    (tmp_path / "c.toml").write_text(
        f"public = false\n[seeds]\nurl = ['{site.url}']\n[output]\nrun_id = 'run-%Y'\n"
    )
    seeds: Any = tmp_path / "c.toml" if is_in_file else site.url
    given = SETTINGS if is_in_file else {**SETTINGS, "run_id": "run-1"}
    seen: list[Any] = []
    done = amicrawl.crawl(seeds, out=tmp_path / "out", on_capture=seen.append, **given)
    assert len(done.archive) == len(seen) > 1
    assert all(capture.response.raw for capture in seen if capture.warc_file)


@pytest.mark.slow
def test_settings_are_given_as_the_lists_and_dictionaries_that_they_are(
    site: DemoSite, tmp_path: Path
) -> None:
    networks = ["127.0.0.0/8", "10.0.0.0/8"]
    settings = {**SETTINGS, "allow_private": networks, "exclude": [r"/logs/", "lamp"]}
    done = amicrawl.crawl(
        site.url,
        out=tmp_path / "out",
        max_hops=1,
        host_overrides={"example.org": {"delay": 5}},
        recrawl_after={"*": "7d", "/news/*": "1h"},
        RETRY_HTTP_CODES=[500, 502],
        DEFAULT_REQUEST_HEADERS={"X-From": "a notebook"},
        **settings,
    )
    captures = list(done.archive.query(status=200))
    assert len(captures) > 2
    assert not [capture.url for capture in captures if "lamp" in capture.url or "/logs/" in capture.url]
    response = captures[-1].response
    assert response is not None
    assert response.request is not None
    assert b"X-From: a notebook" in response.request.raw
    kept = json.loads((tmp_path / "out" / "crawl.json").read_text())["settings"]
    assert kept["host_overrides"] == {"example.org": {"delay": 5}}
    assert kept["recrawl_after"] == {"*": "7d", "/news/*": "1h"}


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        ("http://h/\ud800", {}),
        ("http://h/\0", {}),
        ("http://h/", {"exclude": [f"x{number}" for number in range(50_000)]}),
        ("http://h/", {"host_overrides": {"h": {"delay": object()}}}),
    ],
)
def test_what_no_command_line_can_have_is_refused(
    seed: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"cannot be|too long"):
        amicrawl.crawl(seed, out=tmp_path / "out", **settings)


def test_a_word_that_would_become_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_EXCLUDE has 'two words': white space"):
        amicrawl.crawl("http://example.org/", out=tmp_path / "out", exclude=["two words"])


@pytest.mark.slow
def test_what_a_crawl_refuses_is_raised_with_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\ASetting AMICRAWL_DELAY is 'soon': it must be a number\."):
        amicrawl.crawl("http://127.0.0.1:9/", out=tmp_path / "out", delay="soon")


@pytest.mark.slow
def test_a_path_with_a_nul_is_refused(crawled: tuple[Any, list[Any]], tmp_path: Path) -> None:
    """No path can have one: a program that made it of bytes it did not check gets no error of Python."""
    warcs, nul = sorted(crawled[0].out.glob("*.warc.gz")), f"{tmp_path}/a\0b"
    amicrawl.index(warcs, out=tmp_path / "index")
    refused: list[Callable[[], object]] = [
        lambda: amicrawl.summary(nul),
        lambda: amicrawl.index(warcs, out=nul),
        lambda: amicrawl.table(tmp_path / "index", out=nul),
        lambda: amicrawl.wacz(warcs, out=nul),
        lambda: amicrawl.wacz(warcs, out=tmp_path / "x.wacz", pages=nul),
        lambda: amicrawl.index(warcs, out=tmp_path / "named", root=nul),
    ]
    for call in refused:
        with pytest.raises(UsageError, match="NUL"):
            call()


def test_an_error_of_the_receiver_ends_the_crawl(site: DemoSite, tmp_path: Path) -> None:
    def fail(_: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        amicrawl.crawl(site.url, out=tmp_path / "out", on_capture=fail, **{**SETTINGS, "delay": 1})


def test_mistakes_are_of_one_family_of_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not there"):
        amicrawl.open(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"has no captures\.parquet"):
        amicrawl.open(tmp_path)
    with pytest.raises(InputError):
        amicrawl.open_frontier(tmp_path)
    with pytest.raises(UsageError, match="no setting 'colour'"):
        amicrawl.crawl("http://example.org/", out=tmp_path / "out", colour="red")
    with pytest.raises(UsageError, match="no seeds"):
        amicrawl.crawl([], out=tmp_path / "out")
    with pytest.raises(UsageError, match="hyphen"):
        amicrawl.crawl("-h", out=tmp_path / "out")
    for make in (amicrawl.index, amicrawl.wacz, amicrawl.table):
        with pytest.raises(amicrawl.AmicrawlError):
            make(tmp_path / "nothing", out=tmp_path / "made")
        with pytest.raises(InputError, match="no files"):
            make([], out=tmp_path / "made")
    with pytest.raises(UsageError, match="Choose corrected"):
        amicrawl.summary(tmp_path, rules="Corrected")
    with pytest.raises(amicrawl.AmicrawlError):
        amicrawl.summary(tmp_path / "nothing")


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_in_a_running_loop(
    site: DemoSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE", site.url)
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    notebook = json.loads((PROJECT / "examples" / "notebook" / "crawl_and_look.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}

    async def run_cells() -> None:
        for cell in cells:
            code = compile(cell, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)  # as a notebook does
            if inspect.iscoroutine(result):
                await result

    asyncio.run(run_cells())
    assert names["by_type"]["count"].sum() == len(names["archive"])
    assert names["figures"].captures > 5
