"""Manners of the pages in a real browser: narrow, dark, without scripts, with faults, cut off."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from dashboard.browsing import expect, open_page, sideways, violations, visit
from dashboard.made_up_jobs import MadeUpJob, made_up_pipeline, pages, running_job
from dashboard_serving import serve_in_thread
from redis_server import end, started_server
from report.test_summary_page import charts_without

from amicrawl.fleet.dashboard import wording

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route
    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore


def test_a_form_says_what_is_wrong_and_leads_to_the_job_that_is_there(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    with open_page(browser, expected="409 (Conflict)") as page:
        visit(page, f"{address}/submit")
        page.get_by_label("URL", exact=True).fill("example.org")
        page.keyboard.press("Enter")
        page.locator("#url-fault", has_text="begins with http").wait_for()
        page.get_by_label("URL", exact=True).fill(job.url)
        # What is no number has no value in the DOM, and the job was submitted without the setting.
        concurrency = page.locator('#submit-form input[type="number"]').last
        concurrency.press_sequentially("5-")
        page.keyboard.press("Enter")
        page.locator("#submit-fault", has_text="this is not a number").wait_for()
        concurrency.fill("5")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Open it").click()
        page.wait_for_url(re.compile(f"/jobs/{job.ident}"))


def test_a_dashboard_or_redis_that_goes_is_told_and_found_again(browser: Browser) -> None:
    server = started_server()
    try:
        with open_page(browser, expected="net::ERR") as page:
            with serve_in_thread(server.url) as dashboard:
                visit(page, dashboard.url)
                page.locator("#link", has_text="live").wait_for()
                server.kill()
                page.locator("#away", has_text="Redis cannot be reached").wait_for()
                server.start()
                page.locator("#away").wait_for(state="hidden")
            page.locator("#link", has_text="not connected").wait_for()
            expect(page.locator("#spoken")).to_have_text("The connection is lost; trying again.")
    finally:
        end(server)


def test_a_new_connection_leaves_the_lines_that_a_page_has(
    browser: Browser, store: JobStore, redis_server: RedisServer
) -> None:
    job = running_job(store)
    other = running_job(store, "https://example.net/")
    other.tell(pages(other, 0, 3))
    with open_page(browser, expected="net::ERR") as page:
        with serve_in_thread(redis_server.url) as dashboard:
            visit(page, dashboard.url)
            for first in (0, 150):
                job.tell(pages(job, first, 150))
                expect(page.locator("#log-count")).to_have_text(f"{first + 153} lines kept")
            page.locator(f'tr[data-ident="{job.ident}"] .fixed').first.click()
            page.locator("#log-title", has_text="Log of example.org").wait_for()
            job.tell(pages(job, 300, 1))
            expect(page.locator("#log-count")).to_have_text("304 lines kept")
            expect(page.locator("#log li a").last).to_contain_text("article/300/")
            port = int(dashboard.url.rpartition(":")[2])
        page.locator("#link", has_text="not connected").wait_for()
        job.tell(pages(job, 301, 250))
        with serve_in_thread(redis_server.url, port=port):
            # 200 lines are sent again: of those that came meanwhile, 50 are missing.
            expect(page.locator("#log-count")).to_have_text("504 lines kept · 50 skipped")
            expect(page.locator("#log li a").last).to_contain_text("article/550/")
            store.client.delete(store.keys.log(job.ident))
            store.client.hset(store.keys.job(job.ident), "log_score", "0")
            page.wait_for_timeout(1500)
            job.tell(pages(job, 900, 2))
            expect(page.locator("#log li a").last).to_contain_text("article/901/")


def test_a_list_that_is_not_read_any_more_says_so(browser: Browser) -> None:
    """The queues and the pipelines stood as they were, without a word."""
    server = started_server()
    try:
        with open_page(browser, expected="503") as page, serve_in_thread(server.url) as dashboard:
            for path in ("/pending", "/pipelines"):
                visit(page, dashboard.url + path)
                page.locator("#link", has_text="live").wait_for()
                server.kill()
                page.locator("#link", has_text="not connected").wait_for()
                server.start()
                page.locator("#link", has_text="live").wait_for()
    finally:
        end(server)


def test_a_change_whose_response_was_lost_is_not_said_to_have_failed(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)

    def lose(route: Route) -> None:
        assert route.fetch().ok
        route.abort()

    with open_page(browser, expected="net::ERR") as page:
        page.route("**/pause", lose)
        visit(page, f"{address}/jobs/{job.ident}")
        page.locator('#job-verbs [data-verb="pause"]').click()
        expect(page.locator(".notices .bad")).to_contain_text("see whether it was done")


def test_a_slow_dashboard_is_sent_one_poll_at_a_time(browser: Browser, address: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    with open_page(browser) as page:
        page.route("**/api/v1/pipelines", hold)
        visit(page, f"{address}/pipelines")
        page.wait_for_timeout(5000)
        assert len(held) == 1


def test_scripts_word_figures_as_the_templates_do(browser: Browser, address: str) -> None:
    values = [
        0,
        0.04,
        0.25,
        2.5,
        576_000,
        9.96,
        99.94,
        99.95,
        999,
        1000,
        1234.7,
        9950,
        99_949,
        999_500,
        12_800_000_000,
        4e15,
    ]
    test_values = """async (values) => {
      const { number, rate, short, size, span, moment } = await import("/static/format.js");
      const words = (one) => [size(one), rate(one), span(one), moment(one), short(Math.floor(one))];
      return values.map(words);
    }"""
    with open_page(browser) as page:
        visit(page, address)
        for value, told in zip(values, page.evaluate(test_values, values), strict=True):
            whole = wording.short(int(value))
            here = [
                wording.size(value),
                wording.rate(value),
                wording.span(value),
                wording.moment(value),
                whole,
            ]
            assert told == here, value


def test_no_page_is_wider_than_a_phone(browser: Browser, store: JobStore, address: str) -> None:
    job = running_job(
        store, "https://example.org/" + "very-long-path/" * 20, settings={"note": "word" * 80}
    )
    job.facts(hosts=[{"host": "x" * 200 + ".example.org", "in_flight": 1, "pages": 2, "waiting": 3}])
    job.facts(files=[{"name": "f" * 200 + ".warc.gz", "bytes": 1, "sealed": True}])
    job.facts(history=[{"ts": 1e9 + 60 * n, "downloaded": n * n, "bytes": n} for n in range(200)])
    ended = running_job(store, "https://example.net/")
    ended.end()
    MadeUpJob.queued(store, "https://example.com/" + "p" * 300, settings={"note": "n" * 300})
    made_up_pipeline(store, "a-pipeline-with-quite-some-name")
    job.tell(pages(job, 0, 30))
    paths = ["/", f"/jobs/{job.ident}", "/pending", "/pipelines", "/finished", "/submit", "/nowhere"]
    with open_page(browser, width=390, scheme="dark") as page:
        for path in paths[:-1]:
            visit(page, address + path)
            assert sideways(page) <= 0, path
            assert violations(page) == [], path
        visit(page, f"{address}/")
        page.locator("#log li").first.wait_for()
        assert sideways(page) <= 0


def test_pages_are_read_without_scripts(browser: Browser, store: JobStore, address: str) -> None:
    job = running_job(store, settings={"note": "closing"})
    job.tell(pages(job, 0, 5))
    with open_page(browser, scripts=False) as page:
        page.goto(address)
        row = page.locator(f'tr[data-ident="{job.ident}"]')
        expect(row.locator('[data-f="downloaded"]')).to_have_text("120")
        row.locator("th a").click()
        page.wait_for_url(re.compile(f"/jobs/{job.ident}"))
        expect(page.locator("#log li")).to_have_count(5)
        expect(page.locator("#job-verbs button, [data-verb]:visible")).to_have_count(0)


def test_without_scripts_a_choice_is_kept_and_ages_are_shown(
    browser: Browser, store: JobStore, address: str
) -> None:
    for number in range(102):
        running_job(store, f"https://a-{number}.example/")
    job = running_job(store, "https://b.example/").start(ago=7200)
    with open_page(browser, scripts=False) as page:
        page.goto(f"{address}/jobs/{job.ident}")
        expect(page.locator('[data-t="age"]')).to_have_text("2 h 00 min")
        page.goto(f"{address}/?search=a-&state=running")
        expect(page.locator('#jobs [data-f="age"]').first).to_contain_text("10 min")
        page.get_by_role("link", name="Job", exact=True).click()
        page.get_by_role("link", name="Next").click()
        expect(page.locator("#jobs th a")).to_have_text(
            ["https://a-98.example/", "https://a-99.example/"]
        )
        page.get_by_role("link", name="Previous").click()
        expect(page.locator("#jobs th a").first).to_have_text("https://a-0.example/")
        page.goto(f"{address}/finished?page=9")
        expect(page.get_by_role("link", name="Previous")).to_have_count(0)


def test_the_history_is_drawn_by_the_server_and_again_when_there_is_more(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    points = [
        {"ts": 1e9 + 60 * n, "downloaded": 1000 * n, "bytes": 9000 * n, "errors": n} for n in range(201)
    ]
    job.facts(history=points[:200])
    where = f"{address}/jobs/{job.ident}"
    with open_page(browser, scripts=False) as page:
        page.goto(where)
        expect(page.locator("#history figure:visible")).to_have_count(5)
        assert page.content().count('class="chart"') == 5
        assert charts_without(page.content()) == []
        page.locator("#history summary").nth(2).click()
        rows = page.locator("#history figure").nth(2).locator("tbody tr")
        expect(rows).to_have_count(67)
        expect(rows.nth(1)).to_have_text("2001-09-09 01:50:4035.2 KiB")
    with open_page(browser) as page:
        visit(page, where)
        shown = page.locator("#history figure:visible")
        expect(shown.locator("figcaption")).to_have_text("Pages a minute")
        expect(shown.locator("title").last).to_have_text("2001-09-09 05:05:40: 1,000")
        page.locator('#chart-choice [data-series="errors"]').click()
        shown.locator("summary").click()
        page.locator("h1").click()
        job.facts(history=points, now={"ts": time.time(), "rev": {"history": 2}})
        job.count(items_downloaded=121)
        expect(shown.locator("title").last).to_have_text("2001-09-09 05:06:40: 200")
        expect(shown.locator("tbody tr").last).to_have_text("2001-09-09 05:06:40200")
        expect(shown.locator("tbody tr").last).to_be_visible()
        assert sideways(page) <= 0
        assert violations(page) == []


def test_the_scheme_follows_the_system_until_it_is_chosen(
    browser: Browser, store: JobStore, address: str
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with open_page(browser, scheme="dark") as page:
        visit(page, address)
        dark = page.evaluate(ground)
        page.locator("#scheme").click()
        light = page.evaluate(ground)
        assert light != dark
        page.reload()
        assert page.evaluate(ground) == light


def test_a_long_note_does_not_cover_the_word_before_it(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store, settings={"note": "why this site matters to so many people " * 4})
    with open_page(browser) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        setting = page.locator(".setting", has=page.locator('[data-setting="note"]'))
        covered = "(word) => word.scrollWidth - Math.ceil(word.getBoundingClientRect().width)"
        assert setting.locator(":scope > :first-child").evaluate(covered) <= 0


def test_no_name_reaches_over_the_figures_beside_it(
    browser: Browser, store: JobStore, address: str
) -> None:
    name = "a-submitter-with-the-name-of-its-whole-department-and-of-its-house"
    running_job(store, "https://a.example/", started_by=name, settings={"note": "why " * 40})
    running_job(store, "https://b.example/", started_by=name).end()
    with open_page(browser, width=1400) as page:
        for path in ("/", "/finished"):
            visit(page, f"{address}{path}")
            beyond = """(rows) => rows.map((row) => Math.max(...[...row.children].map((part) =>
              part.getBoundingClientRect().right)) - row.parentElement.getBoundingClientRect().right)"""
            found = page.locator("tbody .about").evaluate_all(beyond)
            assert found
            assert max(found) <= 0, path


@pytest.mark.parametrize("width", [400, 870, 1024, 1250, 1440])
@pytest.mark.parametrize("jobs", [1, 26], ids=["roomy", "dense"])
def test_names_are_read_and_no_figure_reaches_over_another(
    browser: Browser, store: JobStore, address: str, jobs: int, width: int
) -> None:
    pipeline = made_up_pipeline(store, "crawler-of-the-map-room")
    for number in range(jobs):
        job = running_job(store, f"https://site-{number}.example.org/", settings={"delay_max": 1500})
        job.start(pipeline, ago=86_000)
        job.count(items_downloaded=12_345_678, items_queued=24_000_000, error_count=123_456)
        job.count(**dict.fromkeys(("r1xx", "r2xx", "r3xx", "r4xx", "r5xx", "runk"), 1_200_000))
        job.facts(now={"ts": time.time(), "rates": {"items": 44.4, "bytes": 150 * 1024**2}})
    running_job(store, "https://ended.example.org/").end()
    MadeUpJob.queued(store, "https://queued.example.org/")
    names = """(names) => Math.min(...names.map((name) => name.clientWidth))"""
    over = """(parts) => parts.filter((part) => part.scrollWidth > part.clientWidth + 1)
        .map((part) => part.innerText)"""
    with open_page(browser, width=width) as page:
        for path in ("/", "/finished", "/pending", "/pipelines"):
            visit(page, f"{address}{path}")
            assert page.locator("tbody .name > .clip").evaluate_all(names) >= 100, path
            assert page.locator("td:not(.small), .figures > div").evaluate_all(over) == [], path
            assert sideways(page) <= 0


def test_a_job_that_no_one_is_said_to_have_submitted_has_no_word_for_it(
    browser: Browser, store: JobStore, address: str
) -> None:
    MadeUpJob.queued(store, "https://a.example/")
    MadeUpJob.queued(store, "https://b.example/", started_by="mira")
    with open_page(browser, width=400) as page:
        visit(page, f"{address}/pending")
        by = page.locator('[data-label="by"]')
        expect(by.nth(1)).to_be_visible()
        expect(by.nth(0)).to_be_hidden()


@pytest.mark.parametrize("width", [400, 1280])
def test_a_long_url_and_note_leave_room_for_the_job_itself(
    browser: Browser, store: JobStore, address: str, width: int
) -> None:
    long = f"https://example.org/{'part/' * 400}"
    job = running_job(store, long, settings={"note": "why " * 200 + "now"})
    with open_page(browser, width=width) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        heading = page.get_by_role("heading", level=1)
        assert heading.get_attribute("title") == heading.inner_text() == long
        figures = page.locator(".figures").bounding_box()
        assert figures is not None
        assert figures["y"] < 450


def test_a_full_disk_is_said_in_one_line(browser: Browser, store: JobStore, address: str) -> None:
    made_up_pipeline(store, "full", disk_usage="100", mem_usage="100")
    with open_page(browser, width=1920) as page:
        visit(page, f"{address}/pipelines")
        for shown in page.locator(".gauge > span").all():
            box = shown.bounding_box()
            assert box is not None
            assert box["height"] < 25


def test_of_one_thing_one_is_told(browser: Browser, store: JobStore, address: str) -> None:
    job = running_job(store, settings={"note": ""})
    job.tell(pages(job, 20, 1))
    for scripts in (True, False):
        with open_page(browser, scripts=scripts) as page:
            page.goto(address)
            expect(page.locator("#job-range")).to_have_text(re.compile(r"(^|of )1 job$"))
    with open_page(browser) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        expect(page.locator("#log-count")).to_have_text("1 line kept")


def test_the_name_and_the_version_of_a_machine_are_shown_whole(
    browser: Browser, store: JobStore, address: str
) -> None:
    made_up_pipeline(store, "crawler-of-the-map-room")
    with open_page(browser, width=1400) as page:
        visit(page, f"{address}/pipelines")
        cut = "(parts) => parts.filter((part) => part.scrollWidth > part.clientWidth + 1).length"
        assert page.locator("#pipelines .about > span").evaluate_all(cut) == 0
