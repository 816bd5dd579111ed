"""Signing in, and what is offered to whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dashboard.browsing import expect, open_page, visit
from dashboard.made_up_jobs import MadeUpJob, store_of
from dashboard_serving import serve_in_thread

from amicrawl.disk import Disk
from amicrawl.fleet.dashboard.users import Role, Users

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from redis_server import RedisServer

PASSWORD = "correct horse battery staple"


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_a_viewer_sees_jobs_and_no_buttons_and_an_admin_adds_users(
    browser: Browser, redis_server: RedisServer, tmp_path: Path
) -> None:
    path = tmp_path / "users.json"
    users = Users(path, disk=Disk())
    users.put("ada", role=Role.admin, password=PASSWORD)
    users.put("vic", role=Role.view, password=PASSWORD)
    store = store_of(redis_server.url)
    job = MadeUpJob.queued(store, "https://example.org/").start()
    store.close()
    with serve_in_thread(redis_server.url, users=path) as dashboard:
        with open_page(browser) as page:
            visit(page, f"{dashboard.url}/jobs/{job.ident}")
            page.wait_for_url(re.compile("/login"))
            sign_in(page, "vic")
            page.wait_for_url(re.compile(f"//[^/]+/jobs/{job.ident}"))
            page.locator("#link", has_text="live").wait_for()
            expect(page.locator("[data-verb]:visible, #job-verbs button")).to_have_count(0)
            expect(page.get_by_role("link", name="Users")).to_have_count(0)
        with open_page(browser, expected="401") as page:
            visit(page, f"{dashboard.url}/?sort=url")
            sign_in(page, "vic")
            page.locator("#link", has_text="live").wait_for()
            page.locator(f'tr[data-ident="{job.ident}"]').click()
            page.context.clear_cookies()
            page.keyboard.press("a")
            page.wait_for_url(re.compile("/login"))
            sign_in(page, "vic")
            page.wait_for_url(re.compile(r"/\?sort=url"))
        with open_page(browser) as page:
            visit(page, f"{dashboard.url}/users")
            sign_in(page, "ada")
            page.get_by_role("button", name="Add a user").click()
            page.locator("dialog [name=name]").fill("vic")
            page.locator("dialog").get_by_role("button", name="Add").click()
            page.locator("dialog .message", has_text="There is a user of that name").wait_for()
            page.locator("dialog [name=name]").fill("opal")
            page.locator("dialog [name=role]").select_option("operate")
            page.locator("dialog [name=password]").fill(PASSWORD + "!")
            page.locator("dialog").get_by_role("button", name="Add").click()
            page.locator('#users tr[data-name="opal"]', has_text="operate").wait_for()
            page.locator('tr[data-name="opal"]').get_by_role("button", name="New token").click()
            page.get_by_role("button", name="Make it").click()
            expect(page.get_by_role("textbox", name="Token")).to_have_value(re.compile(".{20}"))
            page.get_by_role("button", name="Close").click()
            page.locator('tr[data-name="opal"]', has_text="1 token").wait_for()
            page.get_by_role("button", name="Sign out").click()
            page.wait_for_url(re.compile("/login"))
