"""The live pages in a real browser: what is shown, what is pressed, what is typed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from dashboard.browsing import expect, open_page, visit
from dashboard.made_up_jobs import MadeUpJob, made_up_pipeline, pages, running_job

from amicrawl.fleet.logs.job_log import Download, Entry, Ignore, Stdout

if TYPE_CHECKING:
    from playwright.sync_api import APIResponse, Browser, Route

    from amicrawl.fleet.database.connection import JobStore

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def test_the_figures_of_a_job_move_while_it_runs(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store, settings={"note": "closing in December"})
    with open_page(browser) as page:
        visit(page, address)
        row = page.locator(f'tr[data-ident="{job.ident}"]')
        row.get_by_text("closing in December").wait_for()
        expect(row.locator('[data-f="downloaded"]')).to_have_text("120")
        job.count(items_downloaded=1500, items_queued=2000, r2xx=1400)
        # 1,400 of class 2xx and 20 of 4xx; a rule kept out the other 80, which were never requested.
        row.locator('[data-f="downloaded"]', has_text="1,420").wait_for()
        expect(row.locator('[data-f="todo"]')).to_have_text("500")
        expect(row.locator('[data-f="r2"]')).to_have_text("1.4k")
        expect(page.locator("#link")).to_have_text("live")
        job.end()
        row.wait_for(state="detached")
        page.get_by_text("No job is running or queued").wait_for()


def test_markup_from_the_web_stays_text_on_every_page(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store, f"https://example.org/{HOSTILE}", settings={"note": HOSTILE})
    waiting = MadeUpJob.queued(store, "https://example.net/", settings={"note": HOSTILE})
    store.client.hset(store.keys.job(job.ident), "started_by", HOSTILE)
    store.client.hset(store.keys.job(job.ident), "delay_min", HOSTILE)
    made_up_pipeline(store, HOSTILE)
    now = time.time()
    bad_link = "javascript:alert(3)//"
    told: list[Entry] = [
        Download(now, f"https://example.org/{HOSTILE}", 0, HOSTILE),
        Ignore(now + 1, bad_link, HOSTILE),
        Stdout(now + 2, HOSTILE + "\n\u202eevil"),
    ]
    with open_page(browser) as page:
        visit(page, address)
        job.tell(told)
        page.locator("#log li", has_text="javascript:alert(3)").wait_for()
        paths = ("/", f"/jobs/{job.ident}", f"/jobs/{waiting.ident}", "/pending", "/pipelines")
        for path in paths:
            visit(page, address + path)
            page.locator("main", has_text="<img src=x").first.wait_for()
            markup = page.locator("main img, main script:not([type='application/json'])")
            expect(markup).to_have_count(0)
            for link in page.locator("a[href]").evaluate_all("all => all.map(one => one.href)"):
                assert link.startswith(("http://", "https://"))


def test_the_log_is_filtered_by_expression_by_kind_and_by_job(
    browser: Browser, store: JobStore, address: str
) -> None:
    first, second = running_job(store), running_job(store, "https://example.net/")
    with open_page(browser) as page:
        visit(page, address)
        page.locator(f'tr[data-ident="{second.ident}"]').wait_for()
        first.tell([Download(1e9, "https://example.org/apple", 200)])
        second.tell(
            [
                Download(2e9, "https://example.net/pear", 404),
                Ignore(2e9 + 1, "https://example.net/plum", "plum"),
            ]
        )
        shown = page.locator("#log li")
        for fruit in ("apple", "pear", "plum"):
            page.locator("#log li", has_text=fruit).first.wait_for()
        page.keyboard.press("f")
        page.keyboard.type("PEAR|plum$")
        page.locator("#log li", has_text="apple").wait_for(state="detached")
        expect(shown).to_have_count(2)
        page.get_by_role("button", name="ignored").click()
        page.locator("#log li", has_text="plum").wait_for(state="detached")
        page.locator("#log-filter").fill("(")
        page.locator("#log-fault").wait_for()
        expect(page.locator("#log-filter")).to_have_attribute("aria-invalid", "true")
        page.locator("#log-filter").fill("")
        page.select_option("#log-job", first.ident)
        page.locator("#log li", has_text="pear").wait_for(state="detached")
        page.locator("#log li", has_text="apple").wait_for()


def test_the_log_stands_still_under_the_pointer_and_at_a_key(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    with open_page(browser) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        job.tell(pages(job, 0, 50))
        page.locator("#log li", has_text="article/49/").wait_for()
        page.locator("#log").hover()
        job.tell(pages(job, 50, 10))
        page.locator("#log-held", has_text="10 new").wait_for()
        assert page.locator("#log li", has_text="article/59/").count() == 0
        page.mouse.move(5, 5)
        page.locator("#log li", has_text="article/59/").wait_for()
        page.keyboard.press("p")
        job.tell(pages(job, 60, 3))
        page.locator("#log-held", has_text="3 new").wait_for()
        page.keyboard.press("p")
        page.locator("#log li", has_text="article/62/").wait_for()


def test_a_click_chooses_a_job_and_a_second_lets_it_go(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    running_job(store, "https://example.net/")
    with open_page(browser) as page:
        visit(page, address)
        page.locator("#link", has_text="live").wait_for()
        row = page.locator(f'tr[data-ident="{job.ident}"]')
        verbs = page.locator("#job-verbs")
        row.locator('[data-f="todo"]').click()
        verbs.get_by_role("button", name="Abort").wait_for()
        expect(row).to_have_attribute("aria-selected", "true")
        expect(page.locator("#log-title")).to_have_text("Log of example.org")
        row.locator('[data-f="todo"]').click()
        verbs.wait_for(state="hidden")
        expect(row).to_have_attribute("aria-selected", "false")
        # As when the window loses the focus and gets it again, and with it the row.
        row.evaluate("row => { row.blur(); row.focus(); }")
        expect(row).to_have_attribute("aria-selected", "false")


def test_a_job_that_was_deselected_stays_so_when_its_row_moves(
    browser: Browser, store: JobStore, address: str
) -> None:
    running_job(store)
    job = MadeUpJob.queued(store, "https://example.net/")
    with open_page(browser) as page:
        visit(page, address)
        page.bring_to_front()  # without it, the focus may be another page's
        page.locator("#link", has_text="live").wait_for()
        row = page.locator(f'tr[data-ident="{job.ident}"]')
        row.locator('[data-f="todo"]').click()
        expect(row).to_have_attribute("aria-selected", "true")
        row.locator('[data-f="todo"]').click()
        expect(row).to_have_attribute("aria-selected", "false")
        job.start(ago=1200)
        expect(page.locator("#jobs tr").first).to_have_attribute("data-ident", job.ident)
        expect(row).to_be_focused()
        expect(row).to_have_attribute("aria-selected", "false")


def test_everything_is_reached_by_keys(browser: Browser, store: JobStore, address: str) -> None:
    jobs = [running_job(store, f"https://{name}.example.org/") for name in ("a", "b")]
    with open_page(browser) as page:
        visit(page, address)
        page.locator('#jobs tr[aria-selected="false"]').nth(1).wait_for()
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("j")
        page.keyboard.press("j")
        chosen = page.locator('tr[aria-selected="true"]')
        expect(chosen).to_have_attribute("data-ident", jobs[1].ident)
        page.keyboard.press("k")
        expect(chosen).to_have_attribute("data-ident", jobs[0].ident)
        expect(page.locator(":focus")).to_have_css("outline-style", "solid")
        page.keyboard.press("?")
        page.locator("dialog[open]", has_text="filter the log").wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        page.locator("dialog[open]", has_text="Abort this job?").wait_for()
        # Enter alone, out of habit, aborts nothing.
        page.keyboard.press("Enter")
        page.locator("dialog").wait_for(state="detached")
        assert store.client.hget(store.keys.job(jobs[0].ident), "abort_requested") is None
        page.keyboard.press("a")
        expect(chosen).to_have_count(0)
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/jobs/"))


def test_verbs_ask_first_and_change_the_record(browser: Browser, store: JobStore, address: str) -> None:
    job = running_job(store)
    key = store.keys.job(job.ident)
    with open_page(browser) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        page.locator('.setting [data-verb="delay"]').click()
        page.locator("dialog [name=min]").fill("900")
        page.locator("dialog [name=max]").fill("100")
        page.get_by_role("button", name="Set the delay").click()
        page.locator("dialog", has_text="greater than the greatest").wait_for()
        page.locator("dialog [name=max]").fill("1900")
        page.get_by_role("button", name="Set the delay").click()
        page.locator('[data-setting="delay"]', has_text="900 to 1,900 ms").wait_for()
        assert store.client.hmget(key, "delay_min", "delay_max") == ["900", "1900"]
        page.locator("#pattern").fill(r"/calendar/\d+")
        page.locator("#tester").get_by_role("button", name="Add").click()
        page.get_by_role("button", name="Ignore", exact=True).click()
        page.locator("#ignores", has_text=r"/calendar/\d+").wait_for()
        page.get_by_role("button", name=r"Remove /calendar/\d+").click()
        page.locator("dialog").get_by_role("button", name="Remove").click()
        page.locator("#ignores tr", has_text=r"/calendar/\d+").wait_for(state="detached")
        page.locator("#job-verbs").get_by_role("button", name="Pause").click()
        page.locator("#notices", has_text="Paused").wait_for()
        job.facts(now={"state": "running", "faults": ["delay_min is <b>12x</b>"]})
        page.locator("#faults", has_text="delay_min is <b>12x</b>").wait_for()
        job.facts(now={"state": "paused", "paused_by": ["disk", "operator"]})
        page.locator("#why", has_text="by disk, operator").wait_for()
        page.locator("#faults").wait_for(state="hidden")
        page.locator("#job-verbs").get_by_role("button", name="Abort").click()
        page.get_by_role("button", name="Abort the job").click()
        page.locator("#notices", has_text="Abort requested").wait_for()
        assert store.client.hget(key, "abort_requested") == "true"


def test_a_pattern_is_tried_against_the_log_before_it_is_added(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    job.tell(
        [
            Download(1e9 + n, f"https://example.org/{'calendar' if n % 2 else 'page'}/{n}", 200)
            for n in range(10)
        ]
    )
    with open_page(browser) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        page.locator("#link", has_text="live").wait_for()
        page.locator("#pattern").fill("/calendar/")
        page.locator("#tested", has_text="Found in 5 of the last 10 URLs").wait_for()
        expect(page.locator("#matches li")).to_have_count(5)
        page.locator("#pattern").fill("(")
        page.locator("#tested", has_text="Not a pattern").wait_for()


def test_what_an_earlier_pattern_matched_is_not_shown_for_the_next(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if '"first"' in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    with open_page(browser) as page:
        page.route("**/test-pattern", hold)
        visit(page, f"{address}/jobs/{job.ident}")
        page.locator("#link", has_text="live").wait_for()
        page.locator("#tester").wait_for()
        page.locator("#pattern").fill("first")
        page.locator("#try-pattern").click()
        page.locator("#pattern").fill("second")
        page.locator("#try-pattern").click()
        page.locator("#tested", has_text="Found in 0").wait_for()
        held[0].fulfill(json={"valid": False, "why": "late", "urls": []})
        page.wait_for_timeout(300)
        expect(page.locator("#tested")).not_to_contain_text("late")
        page.locator("#pattern").fill("")
        expect(page.locator("#tested")).to_have_text("")


def test_a_line_that_is_open_holds_the_log_only_while_it_is_shown(
    browser: Browser, store: JobStore, address: str
) -> None:
    first, second = running_job(store), running_job(store, "https://example.net/")
    store.client.hdel(store.keys.job(second.ident), "started_at", "queued_at")
    with open_page(browser) as page:
        visit(page, address)
        row = page.locator(f'tr[data-ident="{second.ident}"]')
        expect(row.locator('[data-f="age"]')).to_have_text("–")
        first.tell([Download(1e9, "https://example.org/apple", 200)])
        page.locator("#log li .code").first.click()
        page.mouse.move(0, 0)
        page.locator("#log-held", has_text="a line is open").wait_for()
        row.click()
        expect(page.locator("#log-held")).to_be_hidden()


def test_the_pending_queue_is_reordered_by_buttons_keys_and_dragging(
    browser: Browser, store: JobStore, address: str
) -> None:
    idents = [MadeUpJob.queued(store, f"https://{name}.example.org/").ident for name in "abc"]
    first, second, third = idents

    def order() -> list[str]:
        waiting = store.client.lrange(store.keys.queue("pending"), 0, -1)
        return [str(ident) for ident in waiting][::-1]

    with open_page(browser) as page:
        visit(page, f"{address}/pending")
        row = {ident: page.locator(f'tr[data-ident="{ident}"]') for ident in idents}
        assert order() == [first, second, third]
        row[third].locator('[data-move="top"]').click()
        page.locator("tbody tr:first-child", has_text="c.example.org").wait_for()
        assert order() == [third, first, second]
        row[third].focus()
        page.keyboard.press("Shift+J")
        page.locator("tbody tr:nth-child(2)", has_text="c.example.org").wait_for()
        assert order() == [first, third, second]
        from_box, to_box = row[second].locator(".grip").bounding_box(), row[first].bounding_box()
        assert from_box is not None
        assert to_box is not None
        page.mouse.move(from_box["x"] + 5, from_box["y"] + 5)
        page.mouse.down()
        page.mouse.move(from_box["x"] + 8, to_box["y"] + 30, steps=4)
        page.mouse.move(from_box["x"] + 8, to_box["y"] + 3, steps=4)
        page.mouse.up()
        page.locator("tbody tr:first-child", has_text="b.example.org").wait_for()
        assert order() == [second, first, third]
        row[first].locator('[data-move="remove"]').click()
        page.locator("dialog").get_by_role("button", name="Remove").click()
        row[first].wait_for(state="detached")
        assert order() == [second, third]


def test_an_order_that_was_read_before_a_move_is_not_shown_after_it(
    browser: Browser, store: JobStore, address: str
) -> None:
    idents = [MadeUpJob.queued(store, f"https://{name}.example.org/").ident for name in "ab"]
    late: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        late.append((route, route.fetch()))

    with open_page(browser) as page:
        page.route("**/api/v1/pending", hold, times=1)
        visit(page, f"{address}/pending")
        while not late:
            page.wait_for_timeout(20)
        page.locator(f'tr[data-ident="{idents[1]}"] [data-move="top"]').click()
        page.locator("tbody tr:first-child", has_text="b.example.org").wait_for()
        (route, reply), *_ = late
        with page.expect_event("requestfinished"):
            route.fulfill(response=reply)
        page.wait_for_timeout(200)
        assert "b.example.org" in page.locator("tbody tr:first-child").inner_text()


def test_what_jobs_said_before_the_page_was_opened_is_in_the_order_of_its_times(
    browser: Browser, store: JobStore, address: str
) -> None:
    for first in (0, 1):
        job = running_job(store, f"https://{first}.example/")
        job.tell([Download(1e9 + 2 * n + first, f"{job.url}{n}", 200) for n in range(5)])
    with open_page(browser) as page:
        visit(page, address)
        expect(page.locator("#log li time")).to_have_count(10)
        times = page.locator("#log li time").all_text_contents()
        assert times == sorted(times)


def test_a_job_that_has_ended_offers_nothing_that_would_change_it(
    browser: Browser, store: JobStore, address: str
) -> None:
    job = running_job(store)
    with open_page(browser) as page:
        visit(page, f"{address}/jobs/{job.ident}")
        page.locator("#tester").wait_for()
        job.end()
        page.locator("#tester").wait_for(state="hidden")
        expect(page.get_by_role("button", name="Add")).to_have_count(0)
