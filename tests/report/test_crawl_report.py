"""The report of a crawl: every figure is that of its index, and the page is whole in one file."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dashboard.browsing import chromium, open_page, violations
from hypothesis import given
from hypothesis import strategies as st
from report.summary_lines import cdx11, counts_of
from report.test_summary_page import HOSTILE, Page, charts_without
from typer.testing import CliRunner

from amicrawl.archive.report import LiveFigures, figures_of, overlap_of, page_of, page_of_crawl
from amicrawl.archive.report.charts import Leaf, TimeColumn, _squarified, stacked_timeline, treemap
from amicrawl.archive.report.document import chart_styles
from amicrawl.cli import app
from amicrawl.config import CrawlConfig
from amicrawl.errors import DamagedFileError, ExitCode, InputError
from amicrawl.record import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEGIN, LATER = 1_790_000_000_000, 1_790_000_005_000
EMPTY: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "bool": False}


def row(url: str, status: int = 200, **values: Any) -> dict[str, Any]:
    empty = {field.name: EMPTY[str(field.type)] for field in CAPTURES}
    return (
        empty | {"url": url, "host": url.split("/")[2], "status": status, "fetched_at": BEGIN} | values
    )


def crawl(directory: Path, rows: list[dict[str, Any]], **facts: Any) -> Path:
    directory.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTURES), directory / "captures.parquet")
    (directory / "crawl.json").write_text(json.dumps({"format": 1, "files": [], **facts}))
    return directory


ROWS = [
    row("http://a.example/", content_type="text/html; charset=utf-8", body_length=100, digest="1"),
    row(
        "http://a.example/x/y/z", 404, content_type="TEXT/HTML", body_length=10, fetched_at=BEGIN + 5000
    ),
    row("http://b.example/i.png", content_type="image/png", body_length=1000, truncated="length"),
    row("http://b.example/gone", 0, error="connection-refused: Connection refused"),
    row("http://b.example/no", 0, error="robots-denied: robots.txt disallows it"),
    row("http://b.example/same", unchanged=True, digest="1", original_url="http://a.example/"),
]


def test_every_row_is_in_one_class_and_figures_add_up(tmp_path: Path) -> None:
    figures = figures_of(crawl(tmp_path / "c", ROWS))
    assert figures.rows == figures.classes.total() == len(ROWS)
    assert figures.classes == Counter({"2XX": 3, "4XX": 1, "no response": 1, "not requested": 1})
    assert figures.bytes == 1110
    assert figures.types == {"text/html": (2, 110), "image/png": (1, 1000), "(not stated)": (1, 0)}
    assert figures.truncated == Counter({"length": 1})
    assert (figures.unchanged, figures.revisits) == (1, 1)
    assert sum(host.rows for host in figures.hosts.values()) == len(ROWS)
    assert figures.hosts["b.example"].failed == 1
    assert figures.failures["connection-refused"].examples == ["http://b.example/gone"]
    assert figures.withheld["robots-denied"].rows == 1
    assert sum(counts.total() for counts in figures.bins.values()) == len(ROWS)
    assert (figures.first, figures.last) == (BEGIN, BEGIN + 5000)
    assert figures.directories["a.example", "/x/y/"] == (1, 10)


def test_two_crawls_are_compared_by_urls_and_payloads(tmp_path: Path) -> None:
    older = [
        row("http://a.example/1", digest="a"),
        row("http://a.example/2", digest="b"),
        row("http://a.example/3", digest="c"),
        row("http://a.example/failed", 0, error="connection-reset:"),
    ]
    newer = [
        row("http://a.example/1", digest="a"),
        row("http://a.example/2", digest="old"),
        row("http://a.example/2", digest="B"),
        row("http://a.example/elsewhere", digest="c"),
        row("http://a.example/4", digest="d"),
    ]
    change = figures_of(crawl(tmp_path / "new", newer), older=crawl(tmp_path / "old", older)).change
    assert change is not None
    assert change._asdict() == {"both_same": 1, "changed": 1, "new": 2, "gone": 1, "moved": 1}


@pytest.mark.parametrize("without", ["new", "old"])
def test_a_crawl_without_a_response_can_be_compared(without: str, tmp_path: Path) -> None:
    failed, fine = [row("http://a.example/1", 0, error="no-route:")], [row("http://a.example/1")]
    made = {name: crawl(tmp_path / name, failed if name == without else fine) for name in ("new", "old")}
    change = figures_of(made["new"], older=made["old"]).change
    assert change is not None
    assert (change.new, change.gone) == ((0, 1) if without == "new" else (1, 0))


def test_a_new_url_without_a_payload_is_not_one_that_moved(tmp_path: Path) -> None:
    empty = hashlib.sha1(b"", usedforsecurity=False).hexdigest()
    older = crawl(tmp_path / "old", [row("http://a.example/gone", 301, digest=empty)])
    newer = crawl(tmp_path / "new", [row("http://a.example/new", 302, digest=empty)])
    change = figures_of(newer, older=older).change
    assert change is not None
    assert (change.new, change.gone, change.moved) == (1, 1, 0)


def damaged(path: Path) -> None:
    """Damage the pages of the first column of *path*, whose headers stay as they are."""
    block = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    middle = (
        column.dictionary_page_offset or column.data_page_offset
    ) + column.total_compressed_size // 2
    block[middle : middle + 40] = bytes(40)
    path.write_bytes(block)


def without_utf8(path: Path) -> None:
    table = pq.read_table(path)
    hosts = pa.array([b"\xff\xfe"] * len(table), pa.binary()).view(pa.string())
    pq.write_table(table.set_column(1, CAPTURES.field("host"), hosts), path)


@pytest.mark.parametrize("harm", [damaged, without_utf8])
def test_an_index_that_is_damaged_within_is_named(harm: Callable[[Path], None], tmp_path: Path) -> None:
    rows = [row(f"http://a.example/{hashlib.sha256(bytes([n])).hexdigest()}") for n in range(200)]
    directory = crawl(tmp_path / "c", rows)
    harm(directory / "captures.parquet")
    with pytest.raises(DamagedFileError, match=r"captures\.parquet"):
        figures_of(directory)
    with pytest.raises(DamagedFileError, match=r"captures\.parquet"):
        LiveFigures(directory).update()


def tiles(page: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))


def test_what_was_not_requested_makes_no_crawl_faster(tmp_path: Path) -> None:
    asked = [row(f"http://a.example/{n}", fetched_at=BEGIN + n * 1000) for n in range(11)]
    denied = [row("http://a.example/no", 0, error="robots-denied: x")] * 500
    figures = figures_of(crawl(tmp_path / "c", [*asked, *denied]))
    shown = tiles(page_of_crawl(figures, title="c"))
    assert (shown["Requests"], shown["Requests per second"]) == ("11", "1.1")


def test_a_crawl_of_few_requests_a_day_made_some(tmp_path: Path) -> None:
    asked = [row(f"http://a.example/{n}", fetched_at=BEGIN + n * 10**7) for n in range(3)]
    text = page_of_crawl(figures_of(crawl(tmp_path / "c", asked)), title="c")
    assert tiles(text)["Requests per second"] == "below 0.1"
    assert "<td>10,000.00 s</td>" in text
    text = page_of_crawl(figures_of(crawl(tmp_path / "none", [])), title="none")
    assert tiles(text)["Requests per second"] == "0.0"


def test_what_to_run_is_shown_as_code(tmp_path: Path) -> None:
    given_up = [row("http://a.example/", 0, error="host-skipped: x")]
    text = page_of_crawl(figures_of(crawl(tmp_path / "c", given_up)), title="c")
    assert "often: <code>amicrawl frontier retry DIR</code> queues" in text
    assert "`" not in text


def test_a_line_that_is_not_a_url_is_of_no_host(tmp_path: Path) -> None:
    line = row("http://x/", 0, error="unfetchable-url: line 3") | {"url": "not a url", "host": ""}
    figures = figures_of(crawl(tmp_path / "c", [row("http://a.example/"), line]))
    assert list(figures.hosts) == ["a.example"]


@pytest.mark.parametrize("unknown", [0, -(2**63), 2**63 - 1])
def test_a_time_that_is_unknown_is_not_in_the_pace_of_a_host(unknown: int, tmp_path: Path) -> None:
    rows = [row("http://a.example/", fetched_at=at) for at in (unknown, BEGIN, BEGIN + 5000)]
    host = figures_of(crawl(tmp_path / "c", rows)).hosts["a.example"]
    assert (host.first, host.last) == (BEGIN, BEGIN + 5000)
    page = page_of_crawl(figures_of(crawl(tmp_path / "d", rows[:1] * 2)), title="c")
    assert "At unknown times" in page
    assert " s</td>" not in page


def test_a_crawl_of_years_has_few_bins(tmp_path: Path) -> None:
    rows = [row("http://a.example/", fetched_at=BEGIN + n * 7_200_000) for n in range(9000)]
    figures = figures_of(crawl(tmp_path / "c", rows))
    assert len(figures.bins) <= 4096
    assert sum(counts.total() for counts in figures.bins.values()) == 9000


@pytest.mark.parametrize("wrong", [5000, 2**62, -(2**62), 300_000_000_000_000])
def test_a_clock_that_was_wrong_costs_neither_the_page_nor_a_row(wrong: int, tmp_path: Path) -> None:
    """Machines without a clock of their own begin in 1970; between there and now are many seconds."""
    rows = [*ROWS, row("http://a.example/", fetched_at=wrong)]
    figures = figures_of(crawl(tmp_path / "c", rows, started="9999-12-31T23:59:59-12:00"))
    page = page_of_crawl(figures, title="x")
    assert figures.rows == len(rows)
    assert "Requests over time" in page
    assert figures.last == BEGIN + 5000
    assert figures.first == (5000 if wrong == 5000 else BEGIN)


def test_starts_before_the_first_row_and_ends_behind_the_last_are_marked(tmp_path: Path) -> None:
    directory = crawl(tmp_path / "c", ROWS, started="2026-09-21T13:46:30Z", state="finished")
    lines = [{"at": BEGIN / 1000 - 10, "started": "x"}, {"at": BEGIN / 1000 + 60, "ended": "all done"}]
    (directory / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    page = page_of_crawl(figures_of(directory), title="x")
    assert "2026-09-21 13:46:30: started" in page
    assert "2026-09-21 14:14:20: ended: all done" in page


def test_a_server_that_makes_up_a_type_for_each_response_costs_no_memory(tmp_path: Path) -> None:
    rows = [row(f"http://a.example/{n}", content_type=f"x/{n}", body_length=2) for n in range(11_000)]
    rows += [row("http://a.example/", 0, error=f"made up {n}: x") for n in range(11_000)]
    figures = figures_of(crawl(tmp_path / "c", rows))
    assert len(figures.types) == len(figures.failures) == 10_001
    assert figures.types["(other)"] == (1000, 2000)
    assert sum(reason.rows for reason in figures.failures.values()) == 11_000


def test_nothing_of_a_crawl_becomes_an_element(tmp_path: Path) -> None:
    hostile = HOSTILE.replace("\ud800", "")
    rows = [
        row(f"http://{hostile}/", host=hostile, content_type=hostile, truncated=hostile),
        row(f"http://a.example/{hostile}", 0, host="a.example", error=f"{hostile}: x"),
    ]
    facts = {"asked": {hostile: hostile}, "settings": {"operator": hostile}, "links": {hostile: 2}}
    figures = figures_of(crawl(tmp_path / "c", rows, **facts, started=hostile))
    page = Page(page_of_crawl(figures, title=hostile))
    assert not {name for name, _ in page.elements} & {"script", "img", "iframe", "object"}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_boxes_of_a_treemap_are_as_large_as_their_values(values: list[int]) -> None:
    values.sort(reverse=True)
    boxes = _squarified(values, (0.0, 0.0, 1000.0, 340.0))
    assert len(boxes) == len(values)
    for value, (x, y, width, height) in zip(values, boxes, strict=True):
        assert width * height == pytest.approx(340_000 * value / sum(values), rel=1e-6)
        assert -1e-6 <= x <= x + width <= 1000 + 1e-6
        assert -1e-6 <= y <= y + height <= 340 + 1e-6


def test_a_treemap_names_a_group_once_and_its_leaves_below() -> None:
    groups = {
        "a.example": [Leaf("/news/", "", 60), Leaf("/maps/", "", 40)],
        "b.example": [Leaf("b.example", "", 90)],
    }
    texts = re.findall(r"<div[^>]*>([^<]*)</div>", treemap(groups, "x"))
    assert sorted(texts) == ["/maps/", "/news/", "a.example", "b.example"]


def test_a_treemap_says_in_titles_what_has_no_room_for_a_name() -> None:
    drawn = treemap({"a": [Leaf("large", "large: 1", 10**6), Leaf("tiny", "tiny: 1", 1)]}, "x")
    assert "tiny: 1" in drawn
    assert ">tiny<" not in drawn


def test_the_command_writes_a_page_of_a_running_crawl_too(tmp_path: Path) -> None:
    directory = crawl(tmp_path / "c", ROWS, state="running", asked={"url": "http://a.example/"})
    done = CliRunner().invoke(app, ["report", str(directory), "-o", str(tmp_path / "r.html")])
    assert done.exit_code == 0, done.output
    page = Page((tmp_path / "r.html").read_text())
    assert "Crawl of http://a.example/" in page.texts
    assert "running, or killed" in " ".join(page.texts)


def test_a_directory_without_a_crawl_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the output directory of a crawl"):
        figures_of(tmp_path)
    done = CliRunner().invoke(app, ["report", str(tmp_path), "-o", str(tmp_path / "r.html")])
    assert isinstance(done.exception, InputError)
    assert done.exception.exit_code == ExitCode.INPUT
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("name", ["a-file", "nothing"])
@pytest.mark.parametrize("option", [[], ["--compare"]], ids=["crawl", "older crawl"])
def test_what_is_no_directory_is_wrong_input_and_no_damage(
    name: str, option: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a-file").write_text("hello\n")
    before = [str(tmp_path)] if option else []
    done = CliRunner().invoke(app, ["report", *before, *option, str(tmp_path / name)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == (
        f"{tmp_path / name} is not a directory. Give the output directory of a crawl."
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_breaks_no_rule_of_accessibility_and_prints_on_four_pages(
    tmp_path: Path, scheme: str
) -> None:
    rows = [
        row(f"http://h{n % 40}.example/d{n % 30}/{n}", 200 + n % 5 * 100, fetched_at=BEGIN + n * 977)
        for n in range(2000)
    ]
    older = crawl(tmp_path / "older", rows[:900])
    figures = figures_of(crawl(tmp_path / "now", rows + ROWS), older=older)
    page = tmp_path / "report.html"
    page.write_text(page_of_crawl(figures, title="A crawl"), "utf-8")
    with chromium() as browser, open_page(browser, scheme=scheme) as shown:
        shown.goto(page.as_uri())
        assert violations(shown) == []
        assert len(re.findall(rb"/Type\s*/Page[^s]", shown.pdf(format="A4"))) <= 4


@pytest.mark.slow
def test_on_a_phone_no_column_is_missing_but_bars_and_no_word_is_wider_than_the_page(
    tmp_path: Path,
) -> None:
    directory = crawl(tmp_path / "c", ROWS, state="finished", finish_reason="x" * 300)
    text = page_of_crawl(figures_of(directory), title="c")
    counts = counts_of(cdx11())
    both = page_of(counts, title="c", overlap=overlap_of(counts, counts))
    for name, whole in (("report", text), ("summary", both)):
        (tmp_path / f"{name}.html").write_text(whole, "utf-8")
    with chromium() as browser, open_page(browser) as shown:
        shown.set_viewport_size({"width": 400, "height": 800})
        for name, column in (("report", "No response"), ("summary", "Other")):
            shown.goto((tmp_path / f"{name}.html").as_uri())
            heads = shown.locator("section > .scroll .names thead th")
            hidden = [each.text_content() for each in heads.all() if not each.is_visible()]
            assert set(hidden) == {"Share"}
            assert column in heads.all_text_contents()
            assert shown.evaluate("document.documentElement.scrollWidth") <= 400


def test_settings_of_a_crawl_are_told_in_words(tmp_path: Path) -> None:
    settings = CrawlConfig(delay=2.5, operator="a@b.example", inflight_max=1_250_000).model_dump(
        mode="json"
    )
    asked = {
        "out": "o",
        "shard": "0",
        "shards": "1",
        "fresh": "False",
        "depth": "inf",
        "max_age": "9",
        "url": "http://a.example/",
    }
    directory = crawl(tmp_path / "c", ROWS, settings=settings, asked=asked)
    text = page_of_crawl(figures_of(directory), title="c")
    (table,) = re.findall("<caption>Settings in force</caption>.*?</table>", text, re.DOTALL)
    cells = re.findall("<t[hd][^>]*>([^<]*)</t[hd]>", table)[2:]
    assert dict(zip(cells[::2], cells[1::2], strict=True)) == {
        "Started at": "http://a.example/",
        "Depth": "whole site",
        "max_age": "9",
        "Delay between requests to a host": "2.5 s",
        "Requests at once to a host": "1",
        "Requests at once, at most": "1,250,000",
        "robots.txt": "obey",
        "Operator": "a@b.example",
        "Longest exchange": "120 s",
        "Largest body": "64.0 MiB",
    }


@pytest.mark.parametrize("width", [400, 1280])
def test_names_of_settings_are_whole_and_each_heading_is_above_its_column(
    tmp_path: Path, width: int
) -> None:
    settings = {"inflight_max": 2000, "max_body": 1}
    rows = [row(f"http://{'long.' * 12}example/", body_length=1)]
    asked = {"url": f"http://a.example/{'path/' * 60}"}
    directory = crawl(tmp_path / "c", rows, settings=settings, asked=asked)
    page = tmp_path / "page.html"
    page.write_text(page_of_crawl(figures_of(directory), title="c"), "utf-8")
    with chromium() as browser, open_page(browser, width=width) as shown:
        shown.goto(page.as_uri())
        for name in ("Requests at once, at most", "Largest body"):
            box = shown.get_by_role("rowheader", name=name, exact=True).bounding_box()
            assert box is not None
            assert box["height"] < 35, name
        for caption in shown.locator("section > .scroll caption").all():
            right = "(one) => one.getBoundingClientRect().right"
            holder = caption.locator("xpath=../..")
            assert caption.evaluate(right) <= holder.evaluate(right) + 1
        if width > 600:
            bar, head = shown.locator(".share").first, shown.get_by_text("Share").first
            left = "(one) => { const range = document.createRange(); range.selectNodeContents(one);"
            left += " return range.getBoundingClientRect().left; }"
            begins = bar.evaluate("(one) => one.getBoundingClientRect().left")
            assert abs(begins - head.evaluate(left)) < 2


def test_every_chart_of_a_report_has_its_unit_and_its_numbers_as_a_table(tmp_path: Path) -> None:
    older = crawl(tmp_path / "older", ROWS[:2])
    text = page_of_crawl(figures_of(crawl(tmp_path / "c", ROWS), older=older), title="c")
    assert text.count('class="chart"') == 3
    assert charts_without(text) == []
    many = [row(f"http://{number}.example/a/b{number}/x") for number in range(20_500)]
    text = page_of_crawl(figures_of(crawl(tmp_path / "many", many)), title="many")
    assert "largest of 20,500 hosts" in text
    assert charts_without(text) == []


def test_no_time_below_a_chart_meets_another_on_a_phone() -> None:
    with chromium() as browser, open_page(browser, width=346) as page:
        for count in (1, 2, 6, 7, 36, 38, 96):
            columns = [TimeColumn(f"11:50:{n:02}", "", {"ok": 1}) for n in range(count)]
            chart = stacked_timeline(columns, {"ok": "s2"}, "Columns")
            page.set_content(
                f"<!doctype html><style>body {{ margin: 0 }}{chart_styles()}</style>{chart}"
            )
            texts = page.locator("svg.chart text").filter(has_text="11:50")
            boxes = texts.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().toJSON())")
            assert boxes
            ends = [box["right"] for box in boxes]
            assert all(box["left"] > end for box, end in zip(boxes[1:], ends, strict=False)), count
            assert ends[-1] <= 347, count


def test_what_became_of_links_is_told_in_words(tmp_path: Path) -> None:
    links = {"kept_out/scope": 3, "offered": 2, "other_shard": 0}
    text = page_of_crawl(figures_of(crawl(tmp_path / "c", ROWS, links=links)), title="x")
    assert "kept out: scope" in text
    assert "new: added to the frontier" in text
    assert "kept_out" not in text
    assert "of another shard" not in text
