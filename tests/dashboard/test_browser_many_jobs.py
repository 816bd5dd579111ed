"""Five hundred jobs, two hundred of them running: found, sorted and turned over, with no long task."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from dashboard.browsing import expect, open_page, violations, visit
from dashboard.made_up_jobs import MadeUpJob, made_up_pipeline, pages
from dashboard_serving import serve_in_thread

from amicrawl.fleet.dashboard.job_choice import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playwright.sync_api import Browser, Page
    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

JOBS, RUNNING = 500, 200
NAMES = ("anna", "ben", "chloe")
ROUNDS = 6
"""Times that all running jobs tell of a page and their figures."""
LONGEST_TASK = 100_000
"""Microseconds of processor time that one task of the page may take."""


@pytest.fixture
def jobs(store: JobStore) -> list[MadeUpJob]:
    pipelines = [made_up_pipeline(store, name) for name in ("ams-1", "fra-1")]
    made = []
    for number in range(JOBS):
        job = MadeUpJob.queued(
            store, f"https://site-{number:03d}.example.org/", started_by=NAMES[number % 3],
            settings={"note": "leap year"} if number % 50 == 0 else {},
        )  # fmt: skip
        if number < RUNNING:
            job.start(pipelines[number % 2], ago=3600 - number)
            job.count(items_downloaded=number * 10, items_queued=number * 11, r2xx=number * 9)
        made.append(job)
    return made


@pytest.fixture
def page(browser: Browser, redis_server: RedisServer, jobs: list[MadeUpJob]) -> Iterator[Page]:
    assert len(jobs) == JOBS
    with serve_in_thread(redis_server.url) as dashboard, open_page(browser, width=1440) as page:
        visit(page, dashboard.url)
        page.locator("#job-range", has_text=f"1–{ROWS} of {JOBS} jobs").wait_for()
        yield page


def wait_for_sites(page: Page, numbers: Iterable[int]) -> None:
    """Wait until the page lists the sites of these *numbers*, in this order, and no other."""
    sites = [re.compile(rf"site-{number:03d}\.") for number in numbers]
    expect(page.locator("#jobs tr .name a")).to_have_text(sites)


def wait_for_range(page: Page, text: str) -> None:
    page.locator("#job-range").get_by_text(text, exact=True).wait_for()


def test_jobs_are_found_by_words_state_submitter_and_pipeline(page: Page) -> None:
    wait_for_sites(page, range(ROWS))
    page.keyboard.press("/")
    page.keyboard.type("site-42")
    wait_for_range(page, "10 chosen of 500 jobs")
    expect(page.locator("#jobs tr")).to_have_count(10)
    expect(page.locator("#jobs tr", has_text="site-42")).to_have_count(10)
    page.locator("#job-by").select_option("anna")
    wait_for_range(page, "4 chosen of 500 jobs")
    page.locator("#job-search").fill("LEAP org")
    page.locator("#job-by").select_option("")
    wait_for_range(page, "10 chosen of 500 jobs")
    page.locator("#job-state").select_option("running")
    wait_for_range(page, "4 chosen of 500 jobs")
    page.locator("#job-pipeline").select_option("ams-1")
    wait_for_sites(page, (0, 50, 100, 150))
    assert "state=running" in page.url
    page.reload()
    page.locator("html[data-ready]").wait_for()
    wait_for_range(page, "4 chosen of 500 jobs")
    wait_for_sites(page, (0, 50, 100, 150))
    page.locator("#job-search").fill("nothing like that")
    page.locator("#show-all").click()
    wait_for_range(page, "1–100 of 500 jobs")


def test_jobs_are_sorted_and_turned_over_with_the_keyboard(page: Page) -> None:
    column = page.locator('[data-sort="fetched"]')
    column.focus()
    page.keyboard.press("Enter")
    wait_for_sites(page, range(199, 99, -1))
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#jobs tr", has_text="site-199.")).to_have_count(0)
    page.locator('[data-sort="url"]').click()
    page.keyboard.press("]")
    wait_for_range(page, "101–200 of 500 jobs")
    wait_for_sites(page, range(100, 200))
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#jobs tr").nth(1)).to_be_focused()
    page.keyboard.press("[")
    wait_for_range(page, "1–100 of 500 jobs")


def test_the_page_is_chosen_without_scripts_too(
    browser: Browser, redis_server: RedisServer, jobs: list[MadeUpJob]
) -> None:
    assert jobs
    with (
        serve_in_thread(redis_server.url) as dashboard,
        open_page(browser, width=1440, scripts=False) as page,
    ):
        page.goto(f"{dashboard.url}/?search=leap&sort=-url&by=ben")
        wait_for_sites(page, (400, 250, 100))
        page.goto(f"{dashboard.url}/?page=5&sort=url")
        wait_for_sites(page, range(400, 500))


def test_no_task_of_the_page_is_long_while_two_hundred_jobs_run(
    browser: Browser, page: Page, jobs: list[MadeUpJob]
) -> None:
    def tell() -> None:
        for number in range(ROUNDS):
            for job in jobs[:RUNNING]:
                job.tell(pages(job, number, 1))
                job.count(items_downloaded=5000 + number, items_queued=9000, r2xx=4000 + number)

    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    telling = threading.Thread(target=tell)
    telling.start()
    page.locator('[data-sort="rate"]').click()
    page.keyboard.press("/")
    page.keyboard.type("site-1")
    wait_for_range(page, "100 chosen of 500 jobs")
    page.locator("#job-search").fill("")
    page.locator('[data-sort="fetched"]').click()
    telling.join()
    page.locator("#jobs tr").first.get_by_text(f"{4000 + ROUNDS - 1:,}").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("]")
    wait_for_range(page, "101–200 of 500 jobs")
    tasks = main_thread_tasks(json.loads(browser.stop_tracing()))
    assert len(tasks) > 100, "the trace says nothing"
    assert max(tasks) < LONGEST_TASK
    assert page.evaluate("document.querySelectorAll('*').length") < 9000


def main_thread_tasks(trace: Any) -> list[int]:
    """Return the processor time of each task of the page's main thread, in microseconds."""
    events = trace["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return [
        event["tdur"]
        for event in events
        if "tdur" in event and (event["pid"], event["tid"]) in main and event["name"].endswith("RunTask")
    ]


def test_on_a_phone_a_hundred_jobs_take_a_line_or_two_each_and_wait_in_the_order_of_their_queue(
    browser: Browser, redis_server: RedisServer, store: JobStore, jobs: list[MadeUpJob]
) -> None:
    queue, last = store.keys.queue("pending"), jobs[-1].ident
    store.client.lrem(queue, 0, last)
    store.client.rpush(queue, last)
    with serve_in_thread(redis_server.url) as dashboard, open_page(browser, width=390) as page:
        visit(page, f"{dashboard.url}?state=queued")
        wait_for_range(page, f"1–{ROWS} of {JOBS - RUNNING} chosen of {JOBS} jobs")
        expect(page.locator("#jobs tr .name a").first).to_have_text(jobs[-1].url)
        visit(page, dashboard.url)
        wait_for_range(page, f"1–{ROWS} of {JOBS} jobs")
        height: int = page.evaluate("document.querySelector('#jobs').scrollHeight")
        assert height < 60 * ROWS


def test_forty_jobs_are_seen_at_once_with_what_their_crawls_were_given(
    page: Page, store: JobStore, jobs: list[MadeUpJob]
) -> None:
    store.client.sadd(store.keys.ignores(jobs[0].ident), "/calendar/", "/login/")
    jobs[0].count(error_count=7)
    first = page.locator("#jobs tr").first
    expect(first.locator('[data-f="errors"]')).to_have_text("7")
    ignored = store.client.scard(store.keys.ignores(jobs[0].ident))
    expect(first.locator('[data-f="patterns"]')).to_have_text(str(ignored))
    expect(first.locator('[data-f="ident"]')).to_have_text(jobs[0].ident[:7])
    expect(first.locator('[data-f="delay"]')).to_have_text("250–375")
    expect(first.locator('[data-f="concurrency"]')).to_have_text("3")
    seen: int = page.evaluate(
        """[...document.querySelectorAll("#jobs tr")].filter((row) =>
            row.getBoundingClientRect().bottom <= Math.min(innerHeight,
                document.querySelector("#jobs-scroll").getBoundingClientRect().bottom) + 1).length"""
    )
    assert seen >= 40
    # A hundred rows take seconds, and ten have all that a row may have.
    page.locator("#job-search").fill("site-00")
    wait_for_range(page, "10 chosen of 500 jobs")
    assert violations(page) == []


def test_logs_of_several_jobs_are_side_by_side_and_outlast_a_reload(
    page: Page, jobs: list[MadeUpJob]
) -> None:
    for job in jobs[:2]:
        job.tell(pages(job, 0, 5))
        page.locator(f'#jobs tr[data-ident="{job.ident}"]').focus()
        page.keyboard.press("l")
    page.keyboard.press("a")
    panes = page.locator("#logs > section:not(#log-card)")
    for _ in range(2):
        expect(panes).to_have_count(2)
        for number in range(2):
            lines = panes.nth(number).locator("li")
            expect(lines.filter(has_text=f"site-00{number}.")).to_have_count(5)
            expect(lines).to_have_count(5)
        page.reload()
    expect(panes.nth(1).locator("li")).to_have_count(5)
    assert violations(page, "#logs") == []
    page.get_by_role("button", name="Close the log of site-000").click()
    expect(panes).to_have_count(1)
    assert jobs[1].ident in page.url
    assert jobs[0].ident not in page.url


def test_marked_jobs_are_changed_after_a_preview_of_those_that_can_be(
    page: Page, store: JobStore, jobs: list[MadeUpJob]
) -> None:
    def paused() -> list[str]:
        desired = (store.client.hget(store.keys.desired(job.ident), "paused") for job in jobs)
        return [job.ident for job, one in zip(jobs, desired, strict=True) if one]

    page.locator("#job-search").fill("site-19")
    wait_for_range(page, "10 chosen of 500 jobs")
    page.locator("#mark-all").check()
    page.locator("#job-search").fill("site-20")
    wait_for_range(page, "10 chosen of 500 jobs")
    page.locator("#jobs .mark input").first.check()
    page.locator("#jobs .mark input").nth(2).click(modifiers=["Shift"])
    expect(page.locator("#bulk-count")).to_have_text("13 marked, 10 of them not listed")
    page.locator('[data-bulk="pause"]').click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Pause: 10 jobs")
    expect(dialog.locator(":scope > form > div > ul li")).to_have_count(10)
    expect(dialog.locator("summary")).to_have_text("Not changed for their state: 3 jobs")
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert paused() == []
    page.locator('[data-bulk="pause"]').click()
    page.get_by_role("button", name="Pause: 10 jobs").click()
    page.locator("#notices", has_text="Paused 10 of 10 jobs").wait_for()
    assert paused() == [job.ident for job in jobs[190:200]]


@pytest.mark.parametrize("width", [1280, 400])
def test_a_dialog_is_no_wider_than_its_window_however_long_the_urls_are_that_it_lists(
    browser: Browser, store: JobStore, address: str, width: int
) -> None:
    for number in range(3):
        MadeUpJob.queued(store, f"https://site-{number}.example.org/{'directory/' * 20}")
    with open_page(browser, width=width) as page:
        visit(page, address)
        wait_for_range(page, "3 jobs")
        page.keyboard.press("Shift+M")
        page.locator("#bulk").get_by_role("button", name="Abort").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(".preview li")).to_have_count(3)
        assert dialog.evaluate("(one) => [one.scrollWidth - one.clientWidth, one.scrollLeft]") == [0, 0]
        expect(dialog.get_by_role("heading", name="Abort: 3 jobs")).to_be_in_viewport(ratio=1)
